//! A carrier's text as a list of what its sources put there, so that two texts can be aligned by source before they are
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
    /// The first span, which has the place in the source.
    pub(super) first: &'t Span,
}

/// What two units must share to be the same one at different times. All of it is borrowed: most units of two prompts are
/// the same, and are looked at once.
#[derive(Debug, Clone, Copy)]
pub(super) struct Key<'t> {
    pub(super) section: Option<&'t str>,
    /// The source, whose place does not count.
    source: &'t Source,
    /// The text itself, if a template says it: a template has many pieces, and which of them are there depends on its
    /// conditions. What a file or a variable says is one piece, whatever it says.
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

/// What makes a source the same one, whatever the place in it: its kind and its names. A variable that was read from a
/// file is the variable.
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
    for span in &carrier.spans {
        let section = sections.at(span.bytes.start);
        let said = is_said_by_template(span).then(|| text(&span.bytes));
        let key = Key { section, source: &span.source, said };
        match units.last_mut() {
            Some(last) if said.is_none() && last.key == key => {
                last.bytes.end = span.bytes.end;
                last.text = text(&last.bytes);
            }
            _ => units.push(Unit { key, bytes: span.bytes.clone(), text: text(&span.bytes), first: span }),
        }
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
            Source::Request { field, .. } if is_said && **field == *"template" => Role::Template,
            Source::File { .. } if is_said => Role::Template,
            _ => Role::Content,
        }
    }
}
