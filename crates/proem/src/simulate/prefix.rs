//! Caches that compare from the first token on: those of inference servers, and implicit ones of providers.

use super::pieces::Pieces;
use super::{Cache, Figures, Sent};
use crate::models::{CacheKind, CacheRules, Earlier, Model};
use crate::tokens::Tokenizer;

use proem_core::change::estimated_tokens;

pub(super) struct Prefix {
    rules: CacheRules,
    min_tokens: usize,
    tokenizer: Tokenizer,
    earlier: Vec<(Sequence, f64)>,
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

    fn tokens(&self) -> usize {
        match self {
            Self::Tokens(tokens) => tokens.len(),
            Self::Bytes(bytes) => estimated_tokens(bytes.len()),
        }
    }

    /// How many tokens two texts begin with in common.
    fn common(&self, other: &Self) -> usize {
        match (self, other) {
            (Self::Tokens(a), Self::Tokens(b)) => a.iter().zip(b).take_while(|(a, b)| a == b).count(),
            (Self::Bytes(a), Self::Bytes(b)) => {
                estimated_tokens(a.iter().zip(b).take_while(|(a, b)| a == b).count())
            }
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
        let min_tokens = model.and_then(|model| model.min_tokens).unwrap_or(rules.min_tokens);
        let is_server = rules.is_chat_template();
        // A server of an open model has no minimum, whatever its model is called.
        let min_tokens = if is_server { rules.min_tokens } else { min_tokens };
        Self { rules: rules.clone(), min_tokens, tokenizer, earlier: Vec::new() }
    }

    fn hit(&self, now_sent: &Sequence, now: f64) -> usize {
        let total = now_sent.tokens();
        let living = self.earlier.iter().filter(|(_, until)| *until >= now);
        let common = living.map(|(earlier, _)| {
            let common = now_sent.common(earlier);
            let is_whole = common == earlier.tokens();
            if self.rules.kind == CacheKind::Units && !is_whole { 0 } else { common }
        });
        let common = common.max().unwrap_or(0).min(total.saturating_sub(self.rules.leaves));
        let stepped = common - common % self.rules.step.max(1);
        if stepped < self.min_tokens { 0 } else { stepped }
    }
}

impl Cache for Prefix {
    fn take(&mut self, sent: &Sent, pieces: &Pieces, now: f64) -> Result<Figures, String> {
        let sequence = match &sent.tokens {
            Some(tokens) => Sequence::Tokens(tokens.clone()),
            None => Sequence::of(&pieces.text(), self.tokenizer),
        };
        let (input_tokens, read) = (sequence.tokens(), self.hit(&sequence, now));
        let reply = match (&sent.reply_tokens, &sent.reply) {
            (Some(tokens), _) => Some(Sequence::Tokens(tokens.clone())),
            (None, Some(text)) => Some(Sequence::of(&format!("<|assistant|>{text}"), self.tokenizer)),
            (None, None) => None,
        };
        let seconds = self
            .rules
            .seconds
            .map_or(f64::INFINITY, |seconds| std::time::Duration::from_secs(seconds).as_secs_f64());
        if self.rules.of == Earlier::Last {
            self.earlier.clear();
        }
        let mut answered = sequence.clone();
        self.earlier.push((sequence, now + seconds));
        if let Some(reply) = reply {
            answered.extend(reply);
            self.earlier.push((answered, now + seconds));
        }
        Ok(Figures { input_tokens, read, uncached: input_tokens - read, ..Figures::default() })
    }
}
