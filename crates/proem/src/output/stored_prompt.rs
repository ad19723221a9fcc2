//! The stored form of a frozen prompt: texts by carrier, and a description of the origin of their bytes.
//!
//! The shapes are separate from the model and have a version, because every later proem must be able to read what an
//! earlier one stored.

use std::collections::BTreeMap;
use std::sync::Arc;

use proem_core::carrier::Carrier;
use proem_core::digest::Digest;
use proem_core::file_outcome::{FileOutcome, Outcome};
use proem_core::frozen::{Frozen, Pieces, PlacedSection};
use proem_core::note::{Code, Fix, Note, Severity};
use proem_core::rendered::{Rendered, Span};
use proem_core::source::Source;
use proem_core::stability::Stability;
use proem_core::text::Place;
use serde::{Deserialize, Serialize};

/// The version of this shape. A prompt of a later one is refused, not guessed at.
pub const VERSION: u32 = 1;

/// A frozen prompt: its texts, and their description.
#[derive(Debug, Clone)]
pub struct StoredPrompt {
    /// The text of each carrier.
    pub texts: BTreeMap<Carrier, String>,
    /// The origin of the bytes, as JSON.
    pub description: String,
    /// The cached digest of the system carrier's text.
    digest: Option<Digest>,
}

/// Ignores the cached digest.
impl PartialEq for StoredPrompt {
    fn eq(&self, other: &Self) -> bool {
        self.texts == other.texts && self.description == other.description
    }
}

impl Eq for StoredPrompt {}

/// The reason why a stored prompt cannot be read.
#[derive(Debug, Clone)]
pub struct DamagedPrompt {
    message: String,
    json: Option<Arc<serde_json::Error>>,
}

impl DamagedPrompt {
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), json: None }
    }

    pub(super) fn from_json(error: serde_json::Error) -> Self {
        Self { message: error.to_string(), json: Some(Arc::new(error)) }
    }
}

impl std::fmt::Display for DamagedPrompt {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for DamagedPrompt {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(self.json.as_deref()?)
    }
}

#[derive(Deserialize)]
struct Form {
    version: u32,
}

#[derive(Serialize, Deserialize)]
struct Description {
    version: u32,
    profile: String,
    sections: Vec<StoredSection>,
    spans: BTreeMap<Carrier, Vec<StoredSpan>>,
    notes: Vec<StoredNote>,
    considered: Vec<StoredFileOutcome>,
}

#[derive(Serialize, Deserialize)]
struct StoredSection {
    id: String,
    carrier: Carrier,
    start: usize,
    end: usize,
    stability: Stability,
    accepts: Stability,
    source: StoredSource,
}

#[derive(Serialize, Deserialize)]
struct StoredSpan {
    start: usize,
    end: usize,
    stability: Stability,
    source: StoredSource,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    template: Option<StoredSource>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    included_from: Vec<StoredSource>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct StoredNote {
    code: String,
    severity: Severity,
    message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    source: Option<StoredSource>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fix: Option<(usize, usize, String)>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct StoredFileOutcome {
    path: String,
    outcome: Outcome,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    why: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum StoredSource {
    BuiltIn { name: Arc<str>, at: Option<[usize; 2]> },
    File { path: Arc<str>, at: Option<[usize; 2]> },
    Variable { key: Arc<str>, path: Option<Arc<str>> },
    Request { field: Arc<str>, at: Option<[usize; 2]> },
    Pack { path: Arc<str>, key: Arc<str>, at: Option<[usize; 2]> },
    Profile { profile: Arc<str>, key: Arc<str> },
    Hook { name: Arc<str> },
}

impl StoredPrompt {
    /// The form in which a frozen prompt is kept.
    pub fn from_frozen(frozen: &Frozen) -> Result<Self, DamagedPrompt> {
        let pieces = frozen.pieces();
        let spans = |rendered: &Rendered| rendered.spans().iter().map(store_span).collect();
        let description = Description {
            version: VERSION,
            profile: pieces.profile,
            sections: pieces.sections.iter().map(store_section).collect(),
            spans: pieces.carriers.iter().map(|(carrier, text)| (*carrier, spans(text))).collect(),
            notes: pieces.notes.iter().map(store_note).collect(),
            considered: pieces.considered.into_iter().map(store_considered).collect(),
        };
        let description = serde_json::to_string(&description).map_err(DamagedPrompt::from_json)?;
        let texts = pieces.carriers.into_iter().map(|(carrier, text)| (carrier, text.text().to_owned()));
        Ok(Self::new(texts.collect(), description))
    }

    /// Makes a prompt of the columns that a store has read.
    #[must_use]
    pub const fn new(texts: BTreeMap<Carrier, String>, description: String) -> Self {
        Self { texts, description, digest: None }
    }

    /// Sets the digest of the system carrier's text, for a caller that has just computed it.
    #[must_use]
    pub fn hashed(self, digest: Option<Digest>) -> Self {
        Self { digest, ..self }
    }

    /// The frozen prompt that was kept.
    pub fn frozen(mut self) -> Result<Frozen, DamagedPrompt> {
        let description = describe(&self.description)?;
        let mut carriers = BTreeMap::new();
        for (carrier, spans) in description.spans {
            let text = self.texts.remove(&carrier).unwrap_or_default();
            let rendered = Rendered::restore(text, spans.into_iter().map(restore_span).collect());
            let message =
                || DamagedPrompt::new(format!("the sources of the {carrier} carrier do not fit its text"));
            carriers.insert(carrier, rendered.ok_or_else(message)?.into());
        }
        // A description that does not know of the text would make another prompt of it.
        let digest = self.digest.filter(|_| carriers.contains_key(&Carrier::System));
        let pieces = Pieces {
            profile: description.profile,
            carriers,
            sections: description.sections.into_iter().map(restore_section).collect(),
            notes: description.notes.into_iter().filter_map(restore_note).collect(),
            considered: description.considered.into_iter().map(restore_considered).collect(),
        };
        Frozen::restore(pieces, digest)
            .ok_or_else(|| DamagedPrompt::new("a section lies outside of its carrier"))
    }
}

/// Parses a description. A later version is reported first: the rest may then have any shape.
fn describe(json: &str) -> Result<Description, DamagedPrompt> {
    let read: Result<Description, _> = serde_json::from_str(json);
    let version = match &read {
        Ok(description) => description.version,
        Err(_) => serde_json::from_str(json).map_or(VERSION, |Form { version }| version),
    };
    if version > VERSION {
        return Err(DamagedPrompt::new(format!("it was written by a later proem, in form {version}")));
    }
    read.map_err(DamagedPrompt::from_json)
}

fn store_section(placed: &PlacedSection) -> StoredSection {
    StoredSection {
        id: placed.id.clone(),
        carrier: placed.carrier,
        start: placed.bytes.start,
        end: placed.bytes.end,
        stability: placed.stability,
        accepts: placed.accepts,
        source: store_source(&placed.source),
    }
}

fn restore_section(stored: StoredSection) -> PlacedSection {
    PlacedSection {
        id: stored.id,
        carrier: stored.carrier,
        bytes: stored.start..stored.end,
        stability: stored.stability,
        source: restore_source(stored.source),
        accepts: stored.accepts,
    }
}

fn store_span(span: &Span) -> StoredSpan {
    StoredSpan {
        start: span.bytes.start,
        end: span.bytes.end,
        stability: span.stability,
        source: store_source(&span.source),
        template: span.template.as_ref().map(store_source),
        included_from: span.included_from.iter().map(store_source).collect(),
    }
}

fn restore_span(stored: StoredSpan) -> Span {
    Span {
        bytes: stored.start..stored.end,
        source: restore_source(stored.source),
        template: stored.template.map(restore_source),
        included_from: stored.included_from.into_iter().map(restore_source).collect(),
        stability: stored.stability,
    }
}

pub(super) fn store_note(note: &Note) -> StoredNote {
    StoredNote {
        code: note.code.word().to_owned(),
        severity: note.severity,
        message: note.message.clone(),
        hint: note.hint.clone(),
        source: note.source.as_ref().map(store_source),
        fix: note.fix.as_ref().map(|fix| (fix.bytes.start, fix.bytes.end, fix.text.clone())),
    }
}

/// Notes of a code that this proem does not know are of no use to it.
pub(super) fn restore_note(stored: StoredNote) -> Option<Note> {
    let code = Code::from_word(&stored.code)?;
    let StoredNote { severity, message, hint, source, fix, .. } = stored;
    let fix = fix.map(|(start, end, text)| Fix { bytes: start..end, text });
    Some(Note { code, severity, message, hint, source: source.map(restore_source), fix })
}

pub(super) fn store_considered(considered: FileOutcome) -> StoredFileOutcome {
    let FileOutcome { path, outcome, why } = considered;
    StoredFileOutcome { path, outcome, why }
}

pub(super) fn restore_considered(stored: StoredFileOutcome) -> FileOutcome {
    let StoredFileOutcome { path, outcome, why } = stored;
    FileOutcome { path, outcome, why }
}

fn store_source(source: &Source) -> StoredSource {
    let at = source.place().map(|place| [place.line, place.column]);
    match source.clone() {
        Source::BuiltIn { name, .. } => StoredSource::BuiltIn { name, at },
        Source::File { path, .. } => StoredSource::File { path, at },
        Source::Variable { key, path } => StoredSource::Variable { key, path },
        Source::Request { field, .. } => StoredSource::Request { field, at },
        Source::Pack { path, key, .. } => StoredSource::Pack { path, key, at },
        Source::Profile { profile, key } => StoredSource::Profile { profile, key },
        Source::Hook { name } => StoredSource::Hook { name },
    }
}

fn restore_source(stored: StoredSource) -> Source {
    let place = |at: Option<[usize; 2]>| at.map(|[line, column]| Place { line, column });
    match stored {
        StoredSource::BuiltIn { name, at } => Source::BuiltIn { name, place: place(at) },
        StoredSource::File { path, at } => Source::File { path, place: place(at) },
        StoredSource::Variable { key, path } => Source::Variable { key, path },
        StoredSource::Request { field, at } => Source::Request { field, place: place(at) },
        StoredSource::Pack { path, key, at } => Source::Pack { path, key, place: place(at) },
        StoredSource::Profile { profile, key } => Source::Profile { profile, key },
        StoredSource::Hook { name } => Source::Hook { name },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTHING: &str =
        r#"{"version":1,"profile":"x","sections":[],"spans":{},"notes":[],"considered":[]}"#;

    fn stored(description: &str) -> StoredPrompt {
        let texts = BTreeMap::from([(Carrier::System, "text".to_owned())]);
        StoredPrompt::new(texts, description.to_owned()).hashed(Some(Digest::new(b"text")))
    }

    #[test]
    fn a_description_of_another_prompt_does_not_get_the_digest_of_this_one() {
        let frozen = stored(NOTHING).frozen().expect("it can be read");
        assert_eq!((frozen.prefix(), frozen.digest()), ("", Digest::new(b"")));
    }

    #[test]
    fn a_later_form_is_called_so_whatever_else_it_says() {
        let later = "it was written by a later proem, in form 2";
        for (description, expected) in [
            (NOTHING.replace("\"version\":1", "\"version\":2"), later),
            (r#"{"version":2,"spans":7}"#.to_owned(), later),
        ] {
            let error = stored(&description).frozen().expect_err("it cannot be read");
            assert_eq!(error.to_string(), expected, "{description}");
        }
        let error = stored(r#"{"version":1,"spans":7}"#).frozen().expect_err("it cannot be read");
        assert_ne!(error.to_string(), later);
        assert!(std::error::Error::source(&error).is_some(), "the error of the JSON is its source");
    }
}
