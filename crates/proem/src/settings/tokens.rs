//! Counts tokens: exactly if the vocabulary is known, else by a labelled estimate.

mod pieces;

use proem_core::estimate::Estimate;
use schemars::JsonSchema;
use serde::Serialize;

/// The way to count tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Tokenizer {
    /// Exactly, by a vocabulary.
    Exact(&'static str),
    /// By an [estimate](Estimate), with bounds.
    Estimate,
}

impl Tokenizer {
    /// The vocabularies that are compiled in.
    pub const NAMES: [&'static str; 7] =
        ["o200k_base", "cl100k_base", "llama3", "qwen2", "deepseek_v3", "deepseek_v4", "mistral_v3"];

    /// Returns the vocabulary of this name; the estimate if there is none.
    #[must_use]
    pub fn named(name: &str) -> Self {
        Self::NAMES.into_iter().find(|known| *known == name).map_or(Self::Estimate, Self::Exact)
    }

    /// Tells whether counts are exact.
    #[must_use]
    pub const fn is_exact(self) -> bool {
        matches!(self, Self::Exact(_))
    }

    /// Counts the tokens of a text.
    #[must_use]
    pub fn count(self, text: &str) -> usize {
        match (self, self.vocabulary()) {
            (Self::Exact(name), Some(vocabulary)) => pieces::count(name, vocabulary, text),
            _ => Estimate::from_text(text).tokens(),
        }
    }

    /// Counts the tokens of several texts joined together.
    #[must_use]
    pub fn count_joined(self, texts: &[&str]) -> usize {
        match (self, texts.iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().as_slice()) {
            (Self::Estimate, texts) => total(texts.iter().map(|text| **text)).tokens(),
            (Self::Exact(_), [one]) => self.count(one),
            (Self::Exact(_), _) => self.count(&texts.concat()),
        }
    }

    /// Returns the tokens of a text; `None` if only their number can be estimated.
    #[must_use]
    pub fn encode(self, text: &str) -> Option<Vec<u32>> {
        self.vocabulary().map(|vocabulary| vocabulary.encode(text))
    }

    /// Returns the least and the most tokens that texts can have; `None` if counts are exact.
    #[must_use]
    pub fn bounds<'t>(self, texts: impl IntoIterator<Item = &'t str>) -> Option<TokenBounds> {
        match self {
            Self::Exact(_) => None,
            Self::Estimate => {
                let estimate = total(texts);
                Some(TokenBounds { min: estimate.low(), max: estimate.high() })
            }
        }
    }

    /// Describes for people how texts are counted, and how wrong an estimate of them can be.
    #[must_use]
    pub fn describe<'t>(self, texts: impl IntoIterator<Item = &'t str>) -> String {
        match self {
            Self::Exact(name) => format!("exact, {name}"),
            Self::Estimate => match total(texts).error_percent() {
                (0, 0) => "estimated".into(),
                (less, more) => format!("estimated, −{less} % to +{more} %"),
            },
        }
    }

    /// Describes how whole requests are counted: providers do not publish how they frame messages and tools.
    #[must_use]
    pub fn describe_requests<'t>(self, texts: impl IntoIterator<Item = &'t str>) -> String {
        match self {
            Self::Exact(name) => format!("texts by {name}, frames of messages and tools estimated"),
            Self::Estimate => self.describe(texts),
        }
    }

    /// Returns the vocabulary, built on first use.
    fn vocabulary(self) -> Option<&'static tiktoken::CoreBpe> {
        match self {
            Self::Exact(name) => tiktoken::get_encoding(name),
            Self::Estimate => None,
        }
    }
}

/// The least and the most tokens that a text can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TokenBounds {
    /// The least.
    pub min: usize,
    /// The most.
    pub max: usize,
}

impl TokenBounds {
    /// Returns the bounds of a part, of `tokens` out of `all`, rounded away from each other.
    pub(crate) fn part(self, tokens: usize, all: usize) -> Self {
        let all = all.max(1);
        Self { min: self.min * tokens / all, max: (self.max * tokens).div_ceil(all) }
    }
}

fn total<'t>(texts: impl IntoIterator<Item = &'t str>) -> Estimate {
    texts.into_iter().map(Estimate::from_text).fold(Estimate::default(), std::ops::Add::add)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_counts() {
        // Published examples of OpenAI's own tokenizer.
        let text = "tiktoken is great!";
        assert_eq!(Tokenizer::named("o200k_base").count(text), 6);
        assert_eq!(Tokenizer::named("cl100k_base").encode(text).unwrap(), [83, 1609, 5963, 374, 2294, 0]);
        assert_eq!(Tokenizer::Estimate.count(text), 7);
    }

    #[test]
    fn every_vocabulary_is_there() {
        for name in Tokenizer::NAMES {
            assert!(Tokenizer::named(name).encode("x").is_some(), "{name}");
        }
        assert_eq!(Tokenizer::named("none"), Tokenizer::Estimate);
    }
}
