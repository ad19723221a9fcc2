//! A frozen prompt as stores keep it: texts by carrier, and a description of where their bytes come from.
//!
//! The shapes stand apart from the model and have a version, because what was stored must be readable by
//! every later proem.

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

/// A frozen prompt: its texts, and what is known about them.
#[derive(Debug, Clone)]
pub struct StoredPrompt {
    /// The text of each carrier.
    pub texts: BTreeMap<Carrier, String>,
    /// Where the bytes come from, as JSON.
    pub description: String,
    /// The digest of the system carrier's text, where somebody has hashed it.
    digest: Option<Digest>,
}

/// Whether somebody has hashed it is no part of a prompt.
impl PartialEq for StoredPrompt {
    fn eq(&self, other: &Self) -> bool {
        self.texts == other.texts && self.description == other.description
    }
}

impl Eq for StoredPrompt {}

/// Why a stored prompt cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damaged(pub String);

impl std::fmt::Display for Damaged {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for Damaged {}

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
    considered: Vec<StoredConsidered>,
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
struct StoredNote {
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
struct StoredConsidered {
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
    pub fn of(frozen: &Frozen) -> Result<Self, Damaged> {
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
        let description = serde_json::to_string(&description).map_err(|error| Damaged(error.to_string()))?;
        let texts = pieces.carriers.into_iter().map(|(carrier, text)| (carrier, text.text().to_owned()));
        Ok(Self::new(texts.collect(), description))
    }

    /// What a store has read.
    #[must_use]
    pub const fn new(texts: BTreeMap<Carrier, String>, description: String) -> Self {
        Self { texts, description, digest: None }
    }

    /// The same, by somebody who has just hashed the text of the system carrier: it need not be hashed once more.
    #[must_use]
    pub fn hashed(self, digest: Option<Digest>) -> Self {
        Self { digest, ..self }
    }

    /// The frozen prompt that was kept.
    pub fn frozen(mut self) -> Result<Frozen, Damaged> {
        let description = describe(&self.description)?;
        let mut carriers = BTreeMap::new();
        for (carrier, spans) in description.spans {
            let text = self.texts.remove(&carrier).unwrap_or_default();
            let rendered = Rendered::restore(text, spans.into_iter().map(restore_span).collect());
            let message = || Damaged(format!("the sources of the {carrier} carrier do not fit its text"));
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
        Frozen::restore(pieces, digest).ok_or_else(|| Damaged("a section lies outside of its carrier".into()))
    }
}

/// Reads a description. Why it cannot be read is the version's doing if that is a later one: then the rest may be of any
/// shape.
fn describe(json: &str) -> Result<Description, Damaged> {
    let read: Result<Description, _> = serde_json::from_str(json);
    let version = match &read {
        Ok(description) => description.version,
        Err(_) => serde_json::from_str(json).map_or(VERSION, |Form { version }| version),
    };
    if version > VERSION {
        return Err(Damaged(format!("it was written by a later proem, in form {version}")));
    }
    read.map_err(|error| Damaged(error.to_string()))
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

fn store_note(note: &Note) -> StoredNote {
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
fn restore_note(stored: StoredNote) -> Option<Note> {
    let code = Code::from_word(&stored.code)?;
    let StoredNote { severity, message, hint, source, fix, .. } = stored;
    let fix = fix.map(|(start, end, text)| Fix { bytes: start..end, text });
    Some(Note { code, severity, message, hint, source: source.map(restore_source), fix })
}

fn store_considered(considered: FileOutcome) -> StoredConsidered {
    let FileOutcome { path, outcome, why } = considered;
    StoredConsidered { path, outcome, why }
}

fn restore_considered(stored: StoredConsidered) -> FileOutcome {
    let StoredConsidered { path, outcome, why } = stored;
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
            assert_eq!(stored(&description).frozen(), Err(Damaged(expected.to_owned())), "{description}");
        }
        assert!(stored(r#"{"version":1,"spans":7}"#).frozen().is_err_and(|Damaged(why)| why != later));
    }
}
