//! A comparison in JSON, for programs.

use proem_core::source::Source;
use schemars::JsonSchema;
use serde::Serialize;

use super::comparison::{Comparison, Difference, Loss, Owner};
use crate::output::build_shape::SourceShape;
use crate::settings::tokens::TokenBounds;

/// Two prompts against each other.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "proem diff")]
pub struct ComparisonShape<'c> {
    /// The name of the first prompt.
    pub a: &'c str,
    /// The name of the second prompt.
    pub b: &'c str,
    /// The shared beginning of the cached prefix.
    pub common_prefix: CommonShape,
    /// The first difference; missing when the bytes are the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_difference: Option<DifferenceShape<'c>>,
    /// The other differences, in order.
    pub further: Vec<DifferenceShape<'c>>,
    /// The loss of one call.
    pub lost: LossShape<'c>,
    /// The way tokens are counted; for an estimate with the bounds of its error.
    pub counted: &'c str,
}

/// The shared beginning of two prompts.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CommonShape {
    /// In bytes.
    pub bytes: usize,
    /// In tokens.
    pub tokens: usize,
}

/// Something that differs.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DifferenceShape<'c> {
    /// `changed`, `added`, `removed` or `moved`.
    pub kind: &'static str,
    /// The carrier, or `tools`.
    pub place: &'static str,
    /// The first byte there that differs.
    pub byte: usize,
    /// The owner of the bytes in the first prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub a: Option<OwnerShape<'c>>,
    /// The owner of the bytes in the second prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub b: Option<OwnerShape<'c>>,
    /// The cause, as a stable word.
    pub cause: &'static str,
    /// The cause, in a sentence.
    pub message: String,
    /// The provider's word for it.
    pub reason: &'static str,
    /// The time at which the file was written, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub edited_at: Option<&'c str>,
}

/// The owner of bytes.
#[derive(Debug, Serialize, JsonSchema)]
pub struct OwnerShape<'c> {
    /// The section.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub section: Option<&'c str>,
    /// The source.
    pub source: SourceShape<'c>,
    /// Its line, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// `true` if the byte is the first one after the source: the other prompt continues where this source ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<bool>,
}

/// The loss of one call.
#[derive(Debug, Serialize, JsonSchema)]
pub struct LossShape<'c> {
    /// Tokens that are not read from the cache.
    pub tokens: usize,
    /// The least and the most that they can be, where they are estimated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bounds: Option<TokenBounds>,
    /// `true` when the tools are not among them: a saved build of an older version has only their digest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lacks_tools: Option<bool>,
    /// The additional cost in dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usd: Option<f64>,
    /// The model, if one is named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<&'c str>,
    /// The day of the prices.
    pub prices_as_of: &'c str,
    /// The provider whose cache is simulated; missing for one that keeps every beginning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<&'c str>,
}

impl<'c> ComparisonShape<'c> {
    /// Puts a comparison into this shape.
    #[must_use]
    pub fn new(
        names: (&'c str, &'c str),
        comparison: &'c Comparison,
        lost: &Loss,
        model: Option<&'c str>,
        prices_as_of: &'c str,
    ) -> Self {
        let mut all = comparison.differences.iter().map(difference);
        Self {
            a: names.0,
            b: names.1,
            common_prefix: CommonShape { bytes: comparison.common_bytes, tokens: comparison.common_tokens },
            first_difference: all.next(),
            further: all.collect(),
            lost: LossShape {
                tokens: lost.tokens,
                bounds: comparison.lost_bounds.filter(|_| lost.tokens > 0),
                lacks_tools: comparison.lacks_tools.then_some(true),
                usd: lost.usd,
                model,
                prices_as_of,
                provider: None,
            },
            counted: &comparison.counted,
        }
    }

    /// Sets the provider whose cache is simulated.
    #[must_use]
    pub const fn with_provider(mut self, provider: Option<&'c str>) -> Self {
        self.lost.provider = provider;
        self
    }
}

fn difference(found: &Difference) -> DifferenceShape<'_> {
    DifferenceShape {
        kind: found.kind.word(),
        place: found.place(),
        byte: found.byte,
        a: found.a.as_ref().map(owner),
        b: found.b.as_ref().map(owner),
        cause: found.cause.word(),
        message: found.cause.to_string(),
        reason: found.reason.word(),
        edited_at: found.edited_at.as_deref(),
    }
}

fn owner(owner: &Owner) -> OwnerShape<'_> {
    let source: &Source = &owner.source;
    OwnerShape {
        section: owner.section.as_deref(),
        source: SourceShape::new(source),
        line: owner.line,
        end: owner.is_end.then_some(true),
    }
}
