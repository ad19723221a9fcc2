//! The JSON output: shapes for programs, separate from the model, with a version.
//!
//! `docs/schema/build.json` is generated from these types; a test keeps it and every output equal.

use std::borrow::Cow;
use std::collections::BTreeMap;

use proem_core::carrier::Carrier;
use proem_core::file_outcome::FileOutcome;
use proem_core::frozen::{Body, PlacedSection};
use proem_core::note::Note;
use proem_core::rendered::Span;
use proem_core::source::Source;
use proem_core::text_safety::escape::escape_line;
use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::build::Build;
use crate::build::fingerprint::{Fingerprint, definition};
use crate::build::signature::Signature;
use crate::costs::stats::Stats;
use crate::deliver::{Delivery, RawMessage};
use crate::request::{Request, distinct_tools};

pub use crate::SHAPE_VERSION as VERSION;

/// A finished prompt.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "proem build")]
pub struct BuildShape<'b> {
    /// The version of this shape.
    pub version: u32,
    /// The profile that it was built by.
    pub profile: &'b str,
    /// The text of each carrier; a carrier without text is missing.
    pub carriers: BTreeMap<&'static str, &'b str>,
    /// The number of bytes of the system carrier that must not change.
    pub prefix_bytes: usize,
    /// The part of the system carrier that must not change.
    pub prefix: &'b str,
    /// The separator between it and the rest; empty if the profile has no boundary.
    pub boundary: &'b str,
    /// The part of the system carrier that belongs to this turn alone.
    pub suffix: String,
    /// The SHA-256 of the prefix, in hexadecimal.
    pub digest: String,
    /// The digests that key a provider's cache.
    pub fingerprint: FingerprintShape,
    /// The SHA-256 of the directory of skills, in hexadecimal; missing if the prompt has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skill_directory: Option<&'b str>,
    /// Tells whether a running session may be used for this prompt.
    pub signature: &'b Signature,
    /// The model of the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<&'b str>,
    /// The tools of the request as a provider gets them, in the order of the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<Value>>,
    /// The sections, in order.
    pub sections: Vec<SectionShape<'b>>,
    /// The origin of every byte: without gap or overlap, carrier by carrier.
    #[schemars(with = "Vec<SpanShape<'b>>")]
    pub spans: Spans<'b>,
    /// Notes for the reader.
    pub notes: Vec<NoteShape<'b>>,
    /// The files that were examined.
    pub considered: Vec<ConsideredShape<'b>>,
    /// The parts of the request that the provider takes, when one is named.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Value>")]
    pub payload: Option<&'b RawValue>,
    /// The messages to keep for the next call, as they are sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub history: Option<&'b [RawMessage]>,
    /// Tokens and money, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stats: Option<&'b Stats>,
}

/// The spans of a prompt. Each is put into its shape when it is written: all of them at once take more memory than the
/// text that they become.
#[derive(Debug, Clone, Copy)]
pub struct Spans<'b> {
    body: &'b Body,
}

impl<'b> Spans<'b> {
    /// The spans, in order.
    pub fn iter(&self) -> impl Iterator<Item = SpanShape<'b>> + use<'b> {
        let body = self.body;
        let of_carrier =
            move |carrier: Carrier| body.spans(carrier).iter().map(move |found| span(carrier, found));
        Carrier::ALL.into_iter().flat_map(of_carrier)
    }
}

impl Serialize for Spans<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

/// The digests of the prefix, of the tools, and of both, in hexadecimal.
#[derive(Debug, Serialize, JsonSchema)]
pub struct FingerprintShape {
    /// Of the prefix.
    pub system: String,
    /// Of the tools in canonical form, sorted by name; of nothing when there are none.
    pub tools: String,
    /// Of both.
    pub fingerprint: String,
}

/// A section at its place in a carrier.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SectionShape<'b> {
    /// The section's name in the profile.
    pub id: &'b str,
    /// The carrier.
    pub carrier: &'static str,
    /// The stability of its least stable byte.
    pub stability: &'static str,
    /// The first byte in the carrier's text.
    pub start: usize,
    /// The end, exclusive.
    pub end: usize,
    /// The origin of its content as a whole.
    pub source: SourceShape<'b>,
}

/// A run of bytes with one origin.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SpanShape<'b> {
    /// The carrier.
    pub carrier: &'static str,
    /// The first byte in the carrier's text.
    pub start: usize,
    /// The end, exclusive.
    pub end: usize,
    /// The stability of these bytes.
    pub stability: &'static str,
    /// Their origin.
    pub source: SourceShape<'b>,
    /// The place in the template that put them here, when that is not the source itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub template: Option<SourceShape<'b>>,
    /// The places that include that template, the nearest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub included_from: Vec<SourceShape<'b>>,
}

/// The origin of bytes.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum SourceShape<'b> {
    /// Text compiled into proem.
    BuiltIn {
        /// The asset's name.
        name: &'b str,
        /// The line, from 1.
        #[serde(skip_serializing_if = "Option::is_none")]
        line: Option<usize>,
        /// The column in characters, from 1.
        #[serde(skip_serializing_if = "Option::is_none")]
        column: Option<usize>,
    },
    /// A file.
    File {
        /// The path.
        path: Cow<'b, str>,
        /// The line, from 1.
        #[serde(skip_serializing_if = "Option::is_none")]
        line: Option<usize>,
        /// The column in characters, from 1.
        #[serde(skip_serializing_if = "Option::is_none")]
        column: Option<usize>,
    },
    /// The value of a variable.
    Variable {
        /// The key.
        key: &'b str,
        /// The file that the value was read from, whole.
        #[serde(skip_serializing_if = "Option::is_none")]
        path: Option<Cow<'b, str>>,
        /// The file's line that the value begins with.
        #[serde(skip_serializing_if = "Option::is_none")]
        line: Option<usize>,
    },
    /// A field of the request.
    Request {
        /// The field.
        field: &'b str,
        /// The line, from 1.
        #[serde(skip_serializing_if = "Option::is_none")]
        line: Option<usize>,
        /// The column in characters, from 1.
        #[serde(skip_serializing_if = "Option::is_none")]
        column: Option<usize>,
    },
    /// Wording of a pack.
    Pack {
        /// The pack's file.
        path: Cow<'b, str>,
        /// The key of the catalog.
        key: &'b str,
        /// The line in the wording, from 1.
        #[serde(skip_serializing_if = "Option::is_none")]
        line: Option<usize>,
        /// The column in characters, from 1.
        #[serde(skip_serializing_if = "Option::is_none")]
        column: Option<usize>,
    },
    /// Text that the profile puts around a section.
    Profile {
        /// The profile.
        profile: &'b str,
        /// The key that holds the text.
        key: &'b str,
    },
    /// A hook.
    Hook {
        /// Its name.
        name: &'b str,
    },
}

/// A note.
#[derive(Debug, Serialize, JsonSchema)]
pub struct NoteShape<'b> {
    /// The subject, as a stable word.
    pub code: &'static str,
    /// `info`, `warning` or `error`.
    pub severity: &'static str,
    /// The description of the event.
    pub message: &'b str,
    /// The suggested fix.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<&'b str>,
    /// The place of the event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<SourceShape<'b>>,
}

/// A file that was examined.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ConsideredShape<'b> {
    /// The path that was looked up, with invisible characters escaped.
    pub path: Cow<'b, str>,
    /// The outcome.
    pub outcome: &'static str,
    /// The reason for not using it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<Cow<'b, str>>,
}

impl<'b> BuildShape<'b> {
    /// Puts a build into this shape.
    #[must_use]
    pub fn new(build: &'b Build) -> Self {
        let (frozen, whole) = (build.frozen(), build.whole());
        Self {
            version: VERSION,
            profile: frozen.profile(),
            carriers: whole.carriers().map(|(carrier, text)| (carrier.word(), text)).collect(),
            prefix_bytes: frozen.prefix().len(),
            prefix: frozen.prefix(),
            boundary: build.suffix().boundary(),
            suffix: build.suffix().text(Carrier::System),
            digest: frozen.digest().hex(),
            fingerprint: fingerprint(build.fingerprint()),
            skill_directory: build.skill_directory(),
            signature: build.signature(),
            model: None,
            tools: None,
            sections: section_shapes(whole),
            spans: Spans { body: whole },
            notes: frozen.notes().iter().map(NoteShape::new).collect(),
            considered: frozen.considered().iter().map(ConsideredShape::new).collect(),
            payload: None,
            history: None,
            stats: None,
        }
    }

    /// Adds the fields of the request that the prompt does not contain: with them, two saved builds can be compared
    /// as a cache compares them.
    #[must_use]
    pub fn with_request(mut self, request: &'b Request) -> Self {
        self.model = request.model.as_deref();
        let tools = distinct_tools(request.tools.as_deref().unwrap_or_default());
        self.tools = (!tools.is_empty()).then(|| tools.into_iter().map(definition).collect());
        self
    }

    /// Adds the parts of the request to a provider.
    #[must_use]
    pub fn with_delivery(mut self, delivered: &'b Delivery) -> Self {
        self.payload = Some(&delivered.payload);
        self.history = Some(&delivered.history);
        self.notes.extend(delivered.notes.iter().map(NoteShape::new));
        self
    }

    /// Adds tokens and money.
    #[must_use]
    pub fn with_stats(mut self, stats: &'b Stats, notes: &'b [Note]) -> Self {
        self.stats = Some(stats);
        self.notes.extend(notes.iter().map(NoteShape::new));
        self
    }
}

fn fingerprint(fingerprint: &Fingerprint) -> FingerprintShape {
    let Fingerprint { system, tools, whole } = fingerprint;
    FingerprintShape { system: system.hex(), tools: tools.hex(), fingerprint: whole.hex() }
}

impl<'b> NoteShape<'b> {
    /// Puts a note into this shape.
    #[must_use]
    pub fn new(note: &'b Note) -> Self {
        Self {
            code: note.code.word(),
            severity: note.severity.word(),
            message: &note.message,
            hint: note.hint.as_deref(),
            source: note.source.as_ref().map(|source| SourceShape::new(source).shown()),
        }
    }
}

impl<'b> ConsideredShape<'b> {
    fn new(considered: &'b FileOutcome) -> Self {
        let (path, why) = (escape_line(&considered.path), considered.why.as_deref().map(escape_line));
        Self { path, outcome: considered.outcome.word(), why }
    }
}

impl<'b> SourceShape<'b> {
    /// Puts a source into this shape.
    #[must_use]
    pub fn new(source: &'b Source) -> Self {
        let (line, column) =
            source.place().map_or((None, None), |place| (Some(place.line), Some(place.column)));
        match source {
            Source::BuiltIn { name, .. } => Self::BuiltIn { name, line, column },
            Source::File { path, .. } => Self::File { path: path.as_ref().into(), line, column },
            Source::Variable { key, path } => {
                let line = path.as_ref().map(|_| 1);
                Self::Variable { key, path: path.as_deref().map(Into::into), line }
            }
            Source::Request { field, .. } => Self::Request { field, line, column },
            Source::Pack { path, key, .. } => Self::Pack { path: path.as_ref().into(), key, line, column },
            Source::Profile { profile, key } => Self::Profile { profile, key },
            Source::Hook { name } => Self::Hook { name },
        }
    }

    /// Escapes a source for people, who must see a file's name. A span keeps the name that the file has.
    fn shown(mut self) -> Self {
        if let Self::File { path, .. } | Self::Pack { path, .. } | Self::Variable { path: Some(path), .. } =
            &mut self
            && let Cow::Owned(spelt) = escape_line(path)
        {
            *path = Cow::Owned(spelt);
        }
        self
    }
}

/// The sections of a prompt, in order.
#[must_use]
pub fn section_shapes(body: &Body) -> Vec<SectionShape<'_>> {
    body.sections().iter().map(section).collect()
}

fn section(placed: &PlacedSection) -> SectionShape<'_> {
    SectionShape {
        id: &placed.id,
        carrier: placed.carrier.word(),
        stability: placed.stability.word(),
        start: placed.bytes.start,
        end: placed.bytes.end,
        source: SourceShape::new(&placed.source),
    }
}

/// Returns the origin of every byte of a prompt: without gap or overlap, carrier by carrier.
#[must_use]
pub fn span_shapes(body: &Body) -> Vec<SpanShape<'_>> {
    Spans { body }.iter().collect()
}

fn span(carrier: Carrier, span: &Span) -> SpanShape<'_> {
    SpanShape {
        carrier: carrier.word(),
        start: span.bytes.start,
        end: span.bytes.end,
        stability: span.stability.word(),
        source: SourceShape::new(&span.source),
        template: span.template.as_ref().map(SourceShape::new),
        included_from: span.included_from.iter().map(SourceShape::new).collect(),
    }
}
