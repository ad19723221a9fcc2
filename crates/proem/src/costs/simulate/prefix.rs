//! Caches that compare from the first token on: those of inference servers, and implicit ones of providers.

use proem_core::cache_loss::estimated_tokens;

use super::pieces::Pieces;
use super::{Cache, Figures, Miss, Sent, least, lifetime};
use crate::settings::models::{CacheKind, CacheRules, Earlier, Model};
use crate::settings::tokens::Tokenizer;

pub(super) struct Prefix {
    rules: CacheRules,
    min_tokens: usize,
    tokenizer: Tokenizer,
    held: Vec<Held>,
    /// The model of the last request.
    model: String,
}

/// What is in the cache: a request, and where earlier ones that it begins with ended.
struct Held {
    sequence: Sequence,
    ends: Vec<usize>,
    lives_until: f64,
}

/// A text as it is compared: by tokens, or by bytes where no vocabulary is known.
#[derive(Debug, Clone)]
enum Sequence {
    Tokens(Vec<u32>),
    Bytes(Vec<u8>),
}

impl Sequence {
    fn of(text: &str, tokenizer: Tokenizer) -> Self {
        tokenizer.encode(text).map_or_else(|| Self::Bytes(text.as_bytes().to_vec()), Self::Tokens)
    }

    /// The length, in tokens or bytes.
    const fn len(&self) -> usize {
        match self {
            Self::Tokens(tokens) => tokens.len(),
            Self::Bytes(bytes) => bytes.len(),
        }
    }

    /// How many tokens a length is.
    const fn tokens(&self, length: usize) -> usize {
        match self {
            Self::Tokens(_) => length,
            Self::Bytes(_) => estimated_tokens(length),
        }
    }

    /// How much two texts begin with in common.
    fn common(&self, other: &Self) -> usize {
        match (self, other) {
            (Self::Tokens(a), Self::Tokens(b)) => a.iter().zip(b).take_while(|(a, b)| a == b).count(),
            (Self::Bytes(a), Self::Bytes(b)) => a.iter().zip(b).take_while(|(a, b)| a == b).count(),
            _ => 0,
        }
    }

    fn extend(&mut self, other: Self) {
        match (self, other) {
            (Self::Tokens(own), Self::Tokens(more)) => own.extend(more),
            (Self::Bytes(own), Self::Bytes(more)) => own.extend(more),
            _ => {}
        }
    }
}

impl Prefix {
    pub(super) fn new(rules: &CacheRules, model: Option<&Model>, tokenizer: Tokenizer) -> Self {
        let min_tokens = least(rules, model);
        Self { rules: rules.clone(), min_tokens, tokenizer, held: Vec::new(), model: String::new() }
    }

    /// How much of a request is in the cache, and by what of it.
    fn hit(&self, sequence: &Sequence, now: f64) -> usize {
        let living = self.held.iter().filter(|held| held.lives_until >= now);
        let common = living.map(|held| {
            let common = sequence.common(&held.sequence);
            match self.rules.kind {
                // Only the whole of an earlier request counts.
                CacheKind::Units => held.ends.iter().copied().filter(|end| *end <= common).max().unwrap_or(0),
                _ => common,
            }
        });
        let common = sequence.tokens(common.max().unwrap_or(0));
        let common = common.min(sequence.tokens(sequence.len()).saturating_sub(self.rules.leaves));
        let stepped = common - common % self.rules.step.max(1);
        if stepped < self.min_tokens { 0 } else { stepped }
    }

    /// Holds a request and the answer to it. What it begins with is not held a second time.
    fn hold(&mut self, mut sequence: Sequence, reply: Option<Sequence>, lives_until: f64) {
        if self.rules.of == Earlier::Last {
            self.held.clear();
        }
        let mut ends = vec![sequence.len()];
        let is_covered = |held: &Held| sequence.common(&held.sequence) == held.sequence.len();
        for covered in self.held.iter().filter(|held| is_covered(held)) {
            ends.extend(&covered.ends);
        }
        self.held.retain(|held| !is_covered(held));
        if let Some(reply) = reply {
            sequence.extend(reply);
            ends.push(sequence.len());
        }
        ends.sort_unstable();
        ends.dedup();
        self.held.push(Held { sequence, ends, lives_until });
    }
}

impl Cache for Prefix {
    fn take(&mut self, sent: &Sent, pieces: &Pieces, now: f64) -> Result<(Figures, Option<Miss>), String> {
        if pieces.model != self.model {
            self.model.clone_from(&pieces.model);
            self.held.clear();
        }
        let sequence = match &sent.tokens {
            Some(tokens) => Sequence::Tokens(tokens.clone()),
            None => Sequence::of(&pieces.text(), self.tokenizer),
        };
        let reply = match (&sent.reply_tokens, &sent.reply) {
            (Some(tokens), _) => Some(Sequence::Tokens(tokens.clone())),
            (None, Some(text)) => Some(Sequence::of(&format!("<|assistant|>{text}"), self.tokenizer)),
            (None, None) => None,
        };
        let (input_tokens, read) = (sequence.tokens(sequence.len()), self.hit(&sequence, now));
        let miss = match read {
            0 if input_tokens < self.min_tokens => Some(Miss::TooShort),
            0 => Some(Miss::Expired),
            _ => None,
        };
        self.hold(sequence, reply, now + lifetime(self.rules.seconds));
        Ok((Figures { input_tokens, read, uncached: input_tokens - read, ..Figures::default() }, miss))
    }
}
