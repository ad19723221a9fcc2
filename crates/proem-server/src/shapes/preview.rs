//! The answer to a preview: a prompt with its sources, costs and notes, for the author of a template.

use std::collections::BTreeMap;
use std::ops::Range;

use proem::build_shape::{NoteShape, SectionShape, SpanShape, section_shapes, span_shapes};
use proem::models::Model;
use proem::preview::{Break, Preview, Ranges};
use proem::stats::Stats;
use proem_core::bracket::outline::{OutlineTag, TagKind};
use proem_core::carrier::Carrier;
use proem_core::note::{Code, Note};
use proem_core::source::Source;
use schemars::JsonSchema;
use serde::Serialize;

use proem_api::carriers;

/// A prompt that was built and not stored.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct PreviewAnswer<'b> {
    /// The text of each carrier.
    pub(crate) carriers: BTreeMap<&'static str, String>,
    /// The length of the prefix: the bytes of the system carrier that must not change.
    pub(crate) prefix_bytes: usize,
    /// The SHA-256 of the prefix, in hexadecimal.
    pub(crate) digest: String,
    /// The sections, in order.
    pub(crate) sections: Vec<SectionShape<'b>>,
    /// The spans of all carriers, with the source of each.
    pub(crate) spans: Vec<TracedSpan<'b>>,
    /// The tags of the request's bracket template, in order.
    pub(crate) tags: Vec<TagShape<'b>>,
    /// The bytes of that template in branches that are not rendered.
    pub(crate) unused: Vec<RangeShape>,
    /// Token counts and prices.
    pub(crate) stats: Stats,
    /// The values that change more often than the prefix may.
    pub(crate) breaks: Vec<BreakShape>,
    /// The prices of the model, where they are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) prices: Option<ModelPricesShape>,
    /// Notes about the prompt and its figures.
    pub(crate) notes: Vec<TracedNote<'b>>,
}

/// The prices of a model, in US dollars for a million tokens.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ModelPricesShape {
    /// Input that is not cached.
    #[serde(skip_serializing_if = "Option::is_none")]
    input: Option<f64>,
    /// Input read from the cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_read: Option<f64>,
    /// Input written to the cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_write: Option<f64>,
}

impl From<&Model> for ModelPricesShape {
    fn from(model: &Model) -> Self {
        Self { input: model.input, cache_read: model.cache_read, cache_write: model.cache_write }
    }
}

/// A range of bytes in the request's template.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
pub(crate) struct RangeShape {
    /// The first byte.
    pub(crate) start: usize,
    /// The byte after the last one.
    pub(crate) end: usize,
}

impl From<Range<usize>> for RangeShape {
    fn from(range: Range<usize>) -> Self {
        Self { start: range.start, end: range.end }
    }
}

/// A span of a carrier with one source.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct TracedSpan<'b> {
    #[serde(flatten)]
    span: SpanShape<'b>,
    /// The bytes of the request's template that inserted it.
    #[serde(skip_serializing_if = "Option::is_none")]
    tag: Option<RangeShape>,
}

/// A tag of the template.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct TagShape<'b> {
    #[serde(flatten)]
    range: RangeShape,
    /// `variable`, `if`, `else` or `endif`.
    kind: &'static str,
    /// The key of the variable in the tag.
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<&'b str>,
    /// True if the condition is negated: the value must be absent.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schemars(default)]
    negated: bool,
    /// The number of its block; tags of one block share it.
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<usize>,
    /// True if it looks like a tag of a block, but is not part of one and stays in the text.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schemars(default)]
    problem: bool,
}

impl<'b> From<&'b OutlineTag> for TagShape<'b> {
    fn from(tag: &'b OutlineTag) -> Self {
        let (kind, negated) = match tag.kind {
            TagKind::If { negated } => ("if", negated),
            TagKind::Else => ("else", false),
            TagKind::EndIf => ("endif", false),
            _ => ("variable", false),
        };
        let (key, group, problem) = (tag.key.as_deref(), tag.group, tag.stays_text());
        Self { range: tag.bytes.clone().into(), kind, key, negated, group, problem }
    }
}

/// A value that changes more often than the prefix may.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct BreakShape {
    /// Its source, in words.
    key: String,
    /// The time for which it stays the same.
    stability: &'static str,
    /// The carrier.
    carrier: &'static str,
    /// Its position in the carrier's text, in bytes.
    byte: usize,
    /// Its position in the carrier's text, in tokens.
    token: usize,
    /// The number of tokens from there to the end of the carrier.
    lost_tokens: usize,
    /// The additional price of these tokens if they are not read from the cache, in US dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    usd: Option<f64>,
    /// The tag that inserted it.
    #[serde(skip_serializing_if = "Option::is_none")]
    tag: Option<RangeShape>,
    /// A message for the author.
    message: String,
}

impl BreakShape {
    fn new(found: &Break, ranges: &mut Ranges<'_>) -> Self {
        let key = match &found.source {
            Source::Variable { key, .. } => key.as_ref().into(),
            other => other.to_string(),
        };
        Self {
            key,
            stability: found.stability.word(),
            carrier: found.carrier.word(),
            byte: found.byte,
            token: found.token,
            lost_tokens: found.lost_tokens,
            usd: found.usd,
            tag: found.template.as_ref().and_then(|template| ranges.tag(template)).map(RangeShape::from),
            message: found.message(),
        }
    }
}

/// A note, with the bytes of the template to which it refers.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct TracedNote<'b> {
    #[serde(flatten)]
    note: NoteShape<'b>,
    /// The bytes of the request's template.
    #[serde(skip_serializing_if = "Option::is_none")]
    range: Option<RangeShape>,
    /// A change of the template that fixes the problem.
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<FixShape<'b>>,
}

/// A change of the template.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct FixShape<'b> {
    /// The effect of the change, in words.
    label: String,
    #[serde(flatten)]
    range: RangeShape,
    /// The text that replaces those bytes.
    insert: &'b str,
}

impl<'b> TracedNote<'b> {
    fn new(note: &'b Note, ranges: &mut Ranges<'_>) -> Self {
        let range = note.source.as_ref().and_then(|source| ranges.tag(source));
        // The range of a fix refers to the text with the problem, which must be the request's template.
        let fix = note.fix.as_ref().filter(|_| range.is_some()).map(|fix| FixShape {
            label: match note.code {
                Code::UnclosedIf => format!("add {} at the end", fix.text),
                _ if fix.text.is_empty() => "remove it".into(),
                _ => format!("replace it by {}", fix.text),
            },
            range: fix.bytes.clone().into(),
            insert: &fix.text,
        });
        Self { note: NoteShape::new(note), range: range.map(RangeShape::from), fix }
    }
}

impl<'b> PreviewAnswer<'b> {
    /// Adds the prices of the model.
    pub(crate) fn with_prices(self, model: Option<&Model>) -> Self {
        Self { prices: model.map(ModelPricesShape::from), ..self }
    }

    /// Describes a preview. `more` contains notes about its figures.
    pub(crate) fn new(
        template: &'b str,
        preview: &'b Preview,
        stats: Stats,
        breaks: &[Break],
        more: &'b [Note],
    ) -> Self {
        let Preview { build, outline } = preview;
        let mut ranges = Ranges::new(template, outline);
        let all = Carrier::ALL.into_iter().flat_map(|carrier| build.whole().spans(carrier));
        let spans = span_shapes(build.whole())
            .into_iter()
            .zip(all)
            .map(|(shape, span)| TracedSpan { span: shape, tag: ranges.of_span(span).map(RangeShape::from) });
        Self {
            carriers: carriers(build.whole()),
            prefix_bytes: build.frozen().prefix().len(),
            digest: build.frozen().digest().hex(),
            sections: section_shapes(build.whole()),
            spans: spans.collect(),
            tags: outline.tags.iter().map(TagShape::from).collect(),
            unused: outline.unused.iter().cloned().map(RangeShape::from).collect(),
            stats,
            breaks: breaks.iter().map(|found| BreakShape::new(found, &mut ranges)).collect(),
            prices: None,
            notes: build
                .frozen()
                .notes()
                .iter()
                .chain(more)
                .map(|note| TracedNote::new(note, &mut ranges))
                .collect(),
        }
    }
}
