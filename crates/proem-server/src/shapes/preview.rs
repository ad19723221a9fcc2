//! What an author is told about a prompt that is not stored.

use std::collections::BTreeMap;
use std::ops::Range;

use proem::build_shape::{NoteShape, SectionShape, SpanShape, section_shapes, span_shapes};
use proem::preview::{Break, Preview, Ranges};
use proem::stats::Stats;
use proem_core::bracket::outline::{OutlineTag, TagKind};
use proem_core::carrier::Carrier;
use proem_core::note::{Code, Note};
use proem_core::source::Source;
use schemars::JsonSchema;
use serde::Serialize;

use super::carriers;

/// A prompt that is built and not stored.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct PreviewAnswer<'b> {
    /// The text of each carrier.
    pub(crate) carriers: BTreeMap<&'static str, String>,
    /// How many bytes of the system carrier must not change.
    pub(crate) prefix_bytes: usize,
    /// The SHA-256 of the prefix, in hexadecimal.
    pub(crate) digest: String,
    /// The sections, in order.
    pub(crate) sections: Vec<SectionShape<'b>>,
    /// Where every byte comes from.
    pub(crate) spans: Vec<TracedSpan<'b>>,
    /// The tags of the request's bracket template, in order.
    pub(crate) tags: Vec<TagShape<'b>>,
    /// The bytes of that template that do not apply here.
    pub(crate) unused: Vec<RangeShape>,
    /// Tokens and money.
    pub(crate) stats: Stats,
    /// The values that change more often than the prefix may.
    pub(crate) breaks: Vec<BreakShape>,
    /// What a reader should know.
    pub(crate) notes: Vec<TracedNote<'b>>,
}

/// Bytes of the request's template.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
pub(crate) struct RangeShape {
    /// The first byte.
    pub(crate) start: usize,
    /// The byte behind the last one.
    pub(crate) end: usize,
}

impl From<Range<usize>> for RangeShape {
    fn from(range: Range<usize>) -> Self {
        Self { start: range.start, end: range.end }
    }
}

/// A run of bytes with one origin.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct TracedSpan<'b> {
    #[serde(flatten)]
    span: SpanShape<'b>,
    /// The bytes of the request's template that put it here.
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
    /// The variable that it names.
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<&'b str>,
    /// Whether it asks for the absence of a value.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schemars(default)]
    negated: bool,
    /// The number of its block; tags of one block share it.
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<usize>,
    /// Whether it looks like a tag of a block and stays as text.
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
    /// Where it comes from, in words.
    key: String,
    /// How long it stays the same.
    stability: &'static str,
    /// The carrier.
    carrier: &'static str,
    /// Where it stands in the carrier's text, in bytes.
    byte: usize,
    /// Where it stands, in tokens.
    token: usize,
    /// The tokens from there to the end of the carrier.
    lost_tokens: usize,
    /// What they cost more when they are not read from the cache, in dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    usd: Option<f64>,
    /// The tag that put it there.
    #[serde(skip_serializing_if = "Option::is_none")]
    tag: Option<RangeShape>,
    /// What to tell the author.
    message: String,
}

impl BreakShape {
    fn of(found: &Break, ranges: &mut Ranges<'_>) -> Self {
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

/// A note, and the bytes of the template that it is about.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct TracedNote<'b> {
    #[serde(flatten)]
    note: NoteShape<'b>,
    /// The bytes of the request's template.
    #[serde(skip_serializing_if = "Option::is_none")]
    range: Option<RangeShape>,
    /// A change of the template that would mend it.
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<FixShape<'b>>,
}

/// A change of the template.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct FixShape<'b> {
    /// What it does, in words.
    label: String,
    #[serde(flatten)]
    range: RangeShape,
    /// What is put in the place of those bytes.
    insert: &'b str,
}

impl<'b> TracedNote<'b> {
    fn of(note: &'b Note, ranges: &mut Ranges<'_>) -> Self {
        let range = note.source.as_ref().and_then(|source| ranges.tag(source));
        // A change is in the bytes of the text at fault: that must be the request's template.
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
    /// Tells everything about a prompt; `more` are notes about its figures.
    pub(crate) fn of(
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
            breaks: breaks.iter().map(|found| BreakShape::of(found, &mut ranges)).collect(),
            notes: build
                .frozen()
                .notes()
                .iter()
                .chain(more)
                .map(|note| TracedNote::of(note, &mut ranges))
                .collect(),
        }
    }
}
