//! Tokenizers for the vocabulary o200k.

use std::fmt;

/// Tokenizers that are ready.
pub struct Counters {
    tiktoken_rs: tiktoken_rs::CoreBPE,
    bpe_openai: &'static bpe_openai::Tokenizer,
}

impl fmt::Debug for Counters {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Counters")
    }
}

impl Counters {
    /// Builds the vocabularies, and checks that every tokenizer counts what proem does.
    #[must_use]
    pub fn new(text: &str, expected: usize) -> Self {
        let tiktoken_rs = tiktoken_rs::o200k_base().expect("it brings the vocabulary");
        let counters = Self { tiktoken_rs, bpe_openai: bpe_openai::o200k_base() };
        assert_eq!(counters.tiktoken_rs(text), expected, "tiktoken-rs counts the same");
        assert_eq!(counters.bpe_openai(text), expected, "bpe-openai counts the same");
        counters
    }

    /// Counts with tiktoken-rs.
    #[must_use]
    pub fn tiktoken_rs(&self, text: &str) -> usize {
        self.tiktoken_rs.encode_ordinary(text).len()
    }

    /// Counts with bpe-openai.
    #[must_use]
    pub fn bpe_openai(&self, text: &str) -> usize {
        self.bpe_openai.count(text)
    }
}
