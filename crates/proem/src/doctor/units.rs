//! A carrier's text as a list of what its sources put there, so that two texts can be aligned by source before they are
//! compared by byte.

use std::ops::Range;

use proem_core::rendered::Span;
use proem_core::source::Source;

use super::snapshot::CarrierText;

/// Neighbouring bytes of one section and one source.
#[derive(Debug, Clone)]
pub(super) struct Unit<'t> {
    pub(super) key: Key,
    pub(super) bytes: Range<usize>,
    pub(super) text: &'t str,
    /// The first span, which has the place in the source.
    pub(super) first: &'t Span,
}

/// What two units must share to be the same one at different times.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Key {
    pub(super) section: Option<String>,
    /// The source without a place, in words.
    pub(super) source: String,
    /// The text itself, if a template says it: a template has many pieces, and which of them are there depends on its
    /// conditions. What a file or a variable says is one piece, whatever it says.
    pub(super) said: Option<String>,
}

pub(super) fn units(carrier: &CarrierText) -> Vec<Unit<'_>> {
    let mut units: Vec<Unit<'_>> = Vec::new();
    for span in &carrier.spans {
        let text = carrier.text.get(span.bytes.clone()).unwrap_or_default();
        let key = Key {
            section: carrier.section(span.bytes.start).map(str::to_owned),
            source: span.source.without_place().to_string(),
            said: is_said_by_template(span).then(|| text.to_owned()),
        };
        let is_whole = key.said.is_none();
        if let Some(last) = units.last_mut().filter(|last| is_whole && last.key == key) {
            last.bytes.end = span.bytes.end;
            last.text = carrier.text.get(last.bytes.clone()).unwrap_or_default();
            continue;
        }
        units.push(Unit { key, bytes: span.bytes.clone(), text, first: span });
    }
    units
}

/// Tells whether bytes stand in a template themselves, and were not put there by a tag of it.
fn is_said_by_template(span: &Span) -> bool {
    span.template.is_none() && !matches!(span.source, Source::Variable { .. } | Source::Hook { .. })
}

/// What a unit is to the text, the more telling the higher.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Role {
    /// Stands around something: words of a profile before and after a section, of a list around its items.
    Frame,
    /// Stands in a template.
    Template,
    /// Is what somebody wrote: a file, a value, a text of the request.
    Content,
}

impl Unit<'_> {
    pub(super) fn role(&self) -> Role {
        let is_said = self.key.said.is_some();
        match &self.first.source {
            Source::Profile { key, .. } if key.ends_with(".template") => Role::Template,
            Source::Profile { .. } => Role::Frame,
            Source::BuiltIn { .. } => Role::Template,
            Source::Request { field, .. } if is_said && field == "template" => Role::Template,
            Source::File { .. } if is_said => Role::Template,
            _ => Role::Content,
        }
    }
}
