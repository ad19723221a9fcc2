//! What happens to text from files before anything else does: hidden characters and secrets.
//!
//! Lines are neither added nor removed, so that a place in the treated text is a place in the file; only columns behind
//! something that was removed differ.

use std::sync::Arc;

use proem_core::note::{Code, Note, Severity};
use proem_core::profile::{Hygiene, Profile, Secrets};
use proem_core::source::Source;
use proem_core::text_safety::hygiene;

use crate::error::Error;
use crate::jinja::{Binding, Field, Item};
use crate::sections::text_findings::{SECRETS, odd_characters, secrets};
use crate::settings::config::Config;

/// How strict a build is with text from files: as the profile says, and never less than the user does.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Treatment {
    hygiene: Hygiene,
    secrets: Secrets,
}

impl Treatment {
    pub(crate) fn of(profile: &Profile, config: &Config) -> Self {
        Self {
            hygiene: profile.hygiene.max(config.hygiene.value),
            secrets: profile.secrets.max(config.secrets.value),
        }
    }

    /// Treats a text that `source` has; `None` when it stays as it is.
    pub(crate) fn apply(
        self,
        text: &str,
        source: &Source,
        notes: &mut Vec<Note>,
    ) -> Result<Option<String>, Error> {
        let clean = self.characters(text, source, notes)?;
        let seen = clean.as_deref().unwrap_or(text);
        Ok(self.masked(seen, source, notes)?.or(clean))
    }

    /// The same for a text that somebody owns.
    pub(crate) fn treat(
        self,
        text: &mut String,
        source: &Source,
        notes: &mut Vec<Note>,
    ) -> Result<(), Error> {
        if let Some(treated) = self.apply(text, source, notes)? {
            *text = treated;
        }
        Ok(())
    }

    /// Tells whether a file with a NUL is no text at all.
    pub(crate) fn refuses_nul(self) -> bool {
        self.hygiene >= Hygiene::Neutralise
    }

    /// Treats every field that comes from a file.
    pub(crate) fn binding(self, binding: &mut Binding, notes: &mut Vec<Note>) -> Result<(), Error> {
        let (Binding::Items { items, .. } | Binding::Fields { item: items }) = binding else { return Ok(()) };
        let mut treated: Vec<(usize, usize, String)> = Vec::new();
        for (number, Item { fields }) in items.iter().enumerate() {
            for (index, field) in fields.iter().enumerate().filter(|(_, field)| is_of_file(&field.source)) {
                let first = notes.len();
                let text = self.apply(&field.text, &field.source, notes);
                let sources = notes.iter_mut().skip(first).filter_map(|note| note.source.as_mut());
                sources.for_each(|source| move_into_file(source, field));
                let text = text.map_err(|error| match error {
                    Error::Refused { source: Some(mut source), message, more, key } => {
                        move_into_file(&mut source, field);
                        Error::Refused { source: Some(source), message, more, key }
                    }
                    other => other,
                })?;
                treated.extend(text.map(|text| (number, index, text)));
            }
        }
        if treated.is_empty() {
            return Ok(());
        }
        let items = Arc::make_mut(items);
        for (number, index, text) in treated {
            if let Some(field) = items.get_mut(number).and_then(|item| item.fields.get_mut(index)) {
                field.text = text.into();
            }
        }
        Ok(())
    }

    fn characters(self, text: &str, source: &Source, notes: &mut Vec<Note>) -> Result<Option<String>, Error> {
        let found = odd_characters(text, source);
        if found.is_empty() {
            return Ok(None);
        }
        if self.hygiene == Hygiene::Refuse {
            return Err(refused("hygiene", &found));
        }
        let treated = if self.hygiene == Hygiene::Neutralise { hygiene::neutralised(text) } else { None };
        let done = if treated.is_some() { "made harmless in the prompt" } else { "kept in the prompt" };
        notes.extend(found.into_iter().map(|note| said(note, done)));
        Ok(treated)
    }

    fn masked(self, text: &str, source: &Source, notes: &mut Vec<Note>) -> Result<Option<String>, Error> {
        let found = secrets(text, source);
        if found.is_empty() {
            return Ok(None);
        }
        if self.secrets == Secrets::Refuse {
            return Err(refused("secrets", &found));
        }
        let is_masked = self.secrets == Secrets::Redact;
        let done = if is_masked { "masked in the prompt" } else { "kept in the prompt" };
        notes.extend(found.into_iter().map(|note| said(note, done)));
        Ok(is_masked.then(|| SECRETS.without_secrets(text).into_owned()))
    }
}

/// What is said about hidden characters and secrets: a check says it itself, file by file.
pub(crate) const fn is_of_treatment(code: Code) -> bool {
    matches!(code, Code::HiddenText | Code::BidiControl | Code::ControlCharacter | Code::LooksSecret)
}

/// Text from files: what the request and proem itself say is as they say it.
pub(crate) const fn is_of_file(source: &Source) -> bool {
    matches!(source, Source::File { .. } | Source::Pack { .. })
}

/// Turns a place in the text of a field into the place in the file that the text was taken from, or into none where that is
/// not known.
fn move_into_file(source: &mut Source, field: &Field) {
    if let Some(place) = source.place() {
        *source = match &field.line_map {
            Some(line_map) => line_map.source_at(source, place),
            None => source.without_place(),
        };
    }
}

/// A finding as a note of a build, which succeeds all the same.
fn said(mut note: Note, done: &str) -> Note {
    note.severity = note.severity.min(Severity::Warning);
    note.message = format!("{}, {done}", note.message);
    note
}

fn refused(key: &str, found: &[Note]) -> Error {
    let all = found.len();
    let first = found.first();
    Error::Refused {
        source: first.and_then(|note| note.source.clone()).map(Box::new),
        message: first.map(|note| note.message.clone()).unwrap_or_default(),
        more: all.saturating_sub(1),
        key: key.to_owned(),
    }
}
