//! P16: counts of tokens.

use std::hint::black_box;

use proem::tokens::Tokenizer;
use proem_bench::fixture::{PROSE, prose};
use proem_bench::{Options, Race};

pub(crate) fn run(options: &Options) {
    if options.wants("P16") {
        for bytes in options.sizes(&PROSE, 64_000) {
            tokens(options, bytes);
        }
    }
}

/// Counts by o200k, the vocabulary already built. The floor looks at every byte once, to find where words begin.
fn tokens(options: &Options, bytes: usize) {
    let text = prose(bytes);
    let tokenizer = Tokenizer::named("o200k_base");
    let race = Race::new("P16", format!("count the tokens of {} KB", bytes / 1_000))
        .grows("count tokens", bytes)
        .enter("floor", || words(black_box(&text)))
        .enter("proem", || tokenizer.count(black_box(&text)));
    #[cfg(feature = "peers")]
    let peers = proem_bench::peers::tokens::Counters::new(&text, tokenizer.count(&text));
    #[cfg(feature = "peers")]
    let race = race
        .enter("tiktoken-rs", || peers.tiktoken_rs(black_box(&text)))
        .enter("bpe-openai", || peers.bpe_openai(black_box(&text)));
    race.run_short(&options.at_most(100));
}

fn words(text: &str) -> usize {
    text.split_whitespace().count()
}
