//! A carrier's text as a list of units, one per source, so that two texts can be aligned by source before they are
//! compared by byte.

use std::hash::{Hash, Hasher};
use std::ops::{Index, Range};

use proem_core::rendered::Span;
use proem_core::source::Source;

use super::snapshot::CarrierText;

/// Neighbouring bytes of one section and one source.
#[derive(Debug, Clone)]
pub(super) struct Unit<'t> {
    pub(super) key: Key<'t>,
    pub(super) bytes: Range<usize>,
    pub(super) text: &'t str,
    /// The first span.
    pub(super) first: &'t Span,
    /// All of its spans, which have the places in the source.
    spans: &'t [Span],
}

/// The identity of a unit in two prompts. All of it is borrowed: most units of two prompts are the same, and are
/// compared once.
#[derive(Debug, Clone, Copy)]
pub(super) struct Key<'t> {
    pub(super) section: Option<&'t str>,
    /// The source; its place is ignored.
    source: &'t Source,
    /// The text itself, if a template contains it: a template has many pieces, and its conditions select some of
    /// them. The text of a file or a variable is one piece, whatever its bytes.
    pub(super) said: Option<&'t str>,
}

impl Key<'_> {
    /// Tells whether two units come from one source.
    pub(super) fn is_of_same_source(&self, other: &Self) -> bool {
        is_one_source(self.source, other.source)
    }
}

impl PartialEq for Key<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.section == other.section && self.said == other.said && self.is_of_same_source(other)
    }
}

impl Eq for Key<'_> {}

impl Hash for Key<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.section, self.said, identity(self.source)).hash(state);
    }
}

/// Tells whether two sources are one, whatever the places in it.
fn is_one_source(source: &Source, other: &Source) -> bool {
    // Neighbours mostly have one path, and it is the very same: it need not be read.
    let is_same = |own: &str, other: &str| std::ptr::eq(own, other) || own == other;
    let ((kind, name, part), (other_kind, other_name, other_part)) = (identity(source), identity(other));
    kind == other_kind && is_same(name, other_name) && part == other_part
}

/// Returns the identity of a source, whatever the place in it: its kind and its names. A variable that was read from
/// a file is the variable.
pub(super) fn identity(source: &Source) -> (u8, &str, &str) {
    match source {
        Source::BuiltIn { name, .. } => (0, name, ""),
        Source::File { path, .. } => (1, path, ""),
        Source::Variable { key, .. } => (2, key, ""),
        Source::Request { field, .. } => (3, field, ""),
        Source::Pack { path, key, .. } => (4, path, key),
        Source::Profile { profile, key } => (5, profile, key),
        Source::Hook { name } => (6, name, ""),
    }
}

/// The keys of units, for an algorithm that wants a list of them.
pub(super) struct Keys<'u>(pub(super) &'u [Unit<'u>]);

impl<'u> Index<usize> for Keys<'u> {
    type Output = Key<'u>;

    fn index(&self, index: usize) -> &Key<'u> {
        &self.0[index].key
    }
}

/// Splits a carrier into units: runs of spans of one section and one source.
pub(super) fn units(carrier: &CarrierText) -> Vec<Unit<'_>> {
    let mut sections = carrier.section_index();
    let text = |bytes: &Range<usize>| carrier.text.get(bytes.clone()).unwrap_or_default();
    let mut units: Vec<Unit<'_>> = Vec::new();
    for (index, span) in carrier.spans.iter().enumerate() {
        let section = sections.at(span.bytes.start);
        let said = is_said_by_template(span).then(|| text(&span.bytes));
        let key = Key { section, source: &span.source, said };
        match units.last_mut() {
            Some(last) if said.is_none() && last.key == key => {
                last.bytes.end = span.bytes.end;
                last.text = text(&last.bytes);
                last.spans = carrier.spans.get(index - last.spans.len()..=index).unwrap_or_default();
            }
            _ => {
                let (bytes, text, spans) =
                    (span.bytes.clone(), text(&span.bytes), std::slice::from_ref(span));
                units.push(Unit { key, bytes, text, first: span, spans });
            }
        }
    }
    units
}

/// Tells whether bytes are literal text of a template, and not the output of one of its tags.
fn is_said_by_template(span: &Span) -> bool {
    span.template.is_none() && !matches!(span.source, Source::Variable { .. } | Source::Hook { .. })
}

/// The role of a unit in the text, the more important the higher.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum UnitRole {
    /// Surrounds content: text of a profile before and after a section, of a list around its items.
    Frame,
    /// Is literal text of a template.
    Template,
    /// Is content: a file, a value, a text of the request.
    Content,
}

impl Unit<'_> {
    /// Returns the line of the source that has the byte `inside` of the text, or its end.
    pub(super) fn line_at(&self, inside: usize) -> Option<usize> {
        let at = self.bytes.start + inside;
        let index = self.spans.partition_point(|span| span.bytes.end <= at);
        let span = self.spans.get(index).or(self.spans.last())?;
        let (first, start) = match &self.first.source {
            // The whole file is inserted.
            Source::Variable { path: Some(_), .. } => (1, 0),
            _ => (span.source.place()?.line, span.bytes.start - self.bytes.start),
        };
        let passed = self.text.get(start..inside).unwrap_or_default();
        Some(first + passed.matches('\n').count())
    }

    pub(super) fn role(&self) -> UnitRole {
        let is_said = self.key.said.is_some();
        match &self.first.source {
            Source::Profile { key, .. } if key.ends_with(".template") => UnitRole::Template,
            Source::Profile { .. } => UnitRole::Frame,
            Source::BuiltIn { .. } => UnitRole::Template,
            Source::Request { field, .. } if is_said && **field == *"template" => UnitRole::Template,
            Source::File { .. } if is_said => UnitRole::Template,
            _ => UnitRole::Content,
        }
    }
}
