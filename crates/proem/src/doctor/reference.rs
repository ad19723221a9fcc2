//! The comparison of one carrier as it would be written without a thought about time: keys are texts of their own, and
//! whatever is looked for is looked for from the beginning. Random and adversarial prompts must give the same both ways.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

use proem_core::carrier::Carrier;
use proem_core::change::between;
use proem_core::rendered::Span;
use proem_core::source::Source;
use similar::{Algorithm, DiffOp, capture_diff_slices};

use super::cause::{Cause, Reason};
use super::compare::{Difference, Kind, Owner};
use super::snapshot::{CarrierText, Snapshot};
use super::units::Role;

/// What differs in one carrier.
pub(super) fn of_carrier(
    a: Option<&CarrierText>,
    b: Option<&CarrierText>,
    sides: (&Snapshot, &Snapshot),
) -> Vec<Difference> {
    let text = |side: Option<&CarrierText>| side.map(|carrier| carrier.text.clone()).unwrap_or_default();
    let Some(carrier) = a.or(b).map(|text| text.carrier).filter(|_| text(a) != text(b)) else {
        return Vec::new();
    };
    let (before, after) = (a.map(units).unwrap_or_default(), b.map(units).unwrap_or_default());
    let byte = between(&text(a), &text(b)).first_byte;
    let aligned = Aligned::new((carrier, byte), &before, &after, sides);
    let mut found: Vec<Difference> = Vec::new();
    for difference in aligned.differences() {
        // A file is a path and a text, a skill has three pieces: it is one event. A value stands at each of its tags.
        let is_value = matches!(
            difference.cause,
            Cause::Clock(_)
                | Cause::Day(_)
                | Cause::Git(_)
                | Cause::Variable(_)
                | Cause::VariableAppeared(_)
                | Cause::VariableGone(_)
        );
        if is_value || !found.iter().any(|known| known.cause == difference.cause) {
            found.push(difference);
        }
    }
    if let Some(first) = found.first_mut() {
        // Aligned by source, the first one may begin with bytes that happen to be the same.
        first.byte = byte;
        if sides.0.profile != sides.1.profile {
            first.cause = Cause::Profile { before: sides.0.profile.clone(), after: sides.1.profile.clone() };
        }
    }
    found
}

/// Neighbouring bytes of one section and one source.
#[derive(Debug, Clone)]
struct Unit<'t> {
    key: Key,
    bytes: Range<usize>,
    text: &'t str,
    /// The first span, which has the place in the source.
    first: &'t Span,
}

/// What two units must share to be the same one at different times.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Key {
    section: Option<String>,
    /// The source without a place, in words.
    source: String,
    /// The text itself, if a template says it: a template has many pieces, and which of them are there depends on its
    /// conditions. What a file or a variable says is one piece, whatever it says.
    said: Option<String>,
}

fn units(carrier: &CarrierText) -> Vec<Unit<'_>> {
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

impl Unit<'_> {
    fn role(&self) -> Role {
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

/// Two lists of units, to be aligned by their sources.
struct Aligned<'u> {
    carrier: Carrier,
    /// The first byte that differs.
    byte: usize,
    before: &'u [Unit<'u>],
    after: &'u [Unit<'u>],
    sides: (&'u Snapshot, &'u Snapshot),
    /// How often each unit is on one side and on the other.
    counts: HashMap<&'u Key, (usize, usize)>,
    /// The files that were used on one side only, by path, and whether that is the second.
    flipped: Vec<(&'u str, bool)>,
}

impl<'u> Aligned<'u> {
    fn new(
        (carrier, byte): (Carrier, usize),
        before: &'u [Unit<'u>],
        after: &'u [Unit<'u>],
        sides: (&'u Snapshot, &'u Snapshot),
    ) -> Self {
        let mut counts: HashMap<&Key, (usize, usize)> = HashMap::new();
        for unit in before {
            counts.entry(&unit.key).or_default().0 += 1;
        }
        for unit in after {
            counts.entry(&unit.key).or_default().1 += 1;
        }
        let (a, b) = sides;
        let paths: BTreeSet<&String> = a.considered.keys().chain(b.considered.keys()).collect();
        let flipped = |path: &'u String| {
            let is_new = Self::is_used(b, path);
            (Self::is_used(a, path) != is_new).then_some((path.as_str(), is_new))
        };
        let flipped = paths.into_iter().filter_map(flipped).collect();
        Self { carrier, byte, before, after, sides, counts, flipped }
    }

    fn differences(&self) -> Vec<Difference> {
        let keys = |units: &[Unit<'_>]| units.iter().map(|unit| unit.key.clone()).collect::<Vec<_>>();
        let mut found = Vec::new();
        for op in capture_diff_slices(Algorithm::Myers, &keys(self.before), &keys(self.after)) {
            let (old, new) = (&self.before[op.old_range()], &self.after[op.new_range()]);
            if matches!(op, DiffOp::Equal { .. }) {
                let pairs = old.iter().zip(new).filter(|(old, new)| old.text != new.text);
                found.extend(pairs.map(|(old, new)| self.changed(old, new)));
            } else {
                found.extend(self.replaced(old, new));
            }
        }
        found
    }

    /// Units without a partner at their place on the other side.
    fn replaced(&self, old: &'u [Unit<'u>], new: &'u [Unit<'u>]) -> Vec<Difference> {
        let mut new: Vec<&Unit<'_>> = new.iter().collect();
        let mut found = Vec::new();
        let mut left = Vec::new();
        for unit in old {
            match new.iter().position(|other| is_edited(unit, other)) {
                Some(index) => found.push(self.changed(unit, new.remove(index))),
                None => left.push(unit),
            }
        }
        let (old, new) = (principal(&left), principal(&new));
        if self.is_reordered(&old, &new) {
            found.extend(self.reordered());
        } else if let (Some(from), Some(to)) = (swapped(&old, &new), new.first()) {
            found.push(self.swap(from, to));
        } else if !are_other_files(&old, &new)
            && old.iter().chain(&new).all(|unit| unit.role() == Role::Template && !self.is_flipped(unit))
        {
            found.extend(self.decided(&old, &new));
        } else {
            let gone = old.iter().filter(|unit| !self.is_on_both(unit));
            found.extend(gone.map(|unit| self.one_sided(Some(unit), None)));
            let come = new.iter().filter(|unit| !self.is_on_both(unit));
            found.extend(come.map(|unit| self.one_sided(None, Some(unit))));
        }
        found
    }

    /// Tells whether all that is left is on the other side, too, elsewhere.
    fn is_reordered(&self, old: &[&Unit<'_>], new: &[&Unit<'_>]) -> bool {
        let mut all = old.iter().chain(new).peekable();
        all.peek().is_some() && all.all(|unit| self.is_on_both(unit))
    }

    /// Tells whether a unit is as often on one side as on the other. A file is two: its path, and its text.
    fn is_on_both(&self, unit: &Unit<'_>) -> bool {
        self.counts.get(&unit.key).is_some_and(|(before, after)| before == after)
    }

    /// What stands at the byte on each side.
    fn reordered(&self) -> Option<Difference> {
        let at = |units: &'u [Unit<'u>]| {
            let here = units.iter().filter(|unit| unit.bytes.end > self.byte);
            here.clone().find(|unit| unit.role() != Role::Frame).or_else(|| here.clone().next())
        };
        let (a, b) = (at(self.before)?, at(self.after)?);
        let cause = Cause::Reordered(a.first.source.without_place().to_string());
        Some(self.difference(Kind::Moved, Some(a), Some(b), cause))
    }

    fn swap(&self, from: &Unit<'_>, to: &Unit<'_>) -> Difference {
        let section = to.key.section.as_deref();
        let is_own =
            |unit: &Unit<'_>| matches!(unit.first.source, Source::BuiltIn { .. } | Source::Profile { .. });
        let cause = match (is_own(from), is_own(to)) {
            (true, true) => Cause::Wording(to.first.source.without_place().to_string()),
            (false, true) => Cause::one_sided((&from.first.source, from.first.stability), section, false),
            (_, false) => Cause::one_sided((&to.first.source, to.first.stability), section, true),
        };
        self.difference(Kind::Changed, Some(from), Some(to), cause)
    }

    /// Text of a template that came or went: a condition decided that. If one file alone came or went, and is nowhere
    /// in the text, it is that file's doing.
    fn decided(&self, old: &[&'u Unit<'u>], new: &[&'u Unit<'u>]) -> Option<Difference> {
        let (from, to) = (old.first().copied(), new.first().copied());
        let unit = to.or(from)?;
        let is_section_new =
            |units: &[Unit<'_>]| !units.iter().any(|other| other.key.section == unit.key.section);
        let kind = match (from, to) {
            (Some(_), Some(_)) => Kind::Changed,
            (None, _) => Kind::Added,
            (_, None) => Kind::Removed,
        };
        let Some((path, is_new)) = self.deciding_file() else {
            let id = || unit.key.section.clone().unwrap_or_default();
            let cause = match kind {
                Kind::Added if is_section_new(self.before) => Cause::SectionAppeared(id()),
                Kind::Removed if is_section_new(self.after) => Cause::SectionGone(id()),
                _ => Cause::Condition(unit.first.source.to_string()),
            };
            return Some(self.difference(kind, from, to, cause));
        };
        let source = Source::File { path: path.into(), place: None };
        let mut found =
            self.difference(kind, from, to, Cause::one_sided((&source, unit.first.stability), None, is_new));
        let owner = Owner { section: unit.key.section.clone(), source, line: None, is_end: false };
        if is_new {
            found.b = Some(owner);
        } else {
            found.a = Some(owner);
        }
        Some(found)
    }

    fn is_used(side: &Snapshot, path: &str) -> bool {
        side.considered.get(path).is_some_and(|outcome| outcome == "used")
    }

    /// Tells whether a unit is text of a file that was used on one side only.
    fn is_flipped(&self, unit: &Unit<'_>) -> bool {
        let (a, b) = self.sides;
        path_of(&unit.first.source).is_some_and(|path| Self::is_used(a, path) != Self::is_used(b, path))
    }

    /// The one file that was used on one side only and whose text is on neither.
    fn deciding_file(&self) -> Option<(String, bool)> {
        let (a, b) = self.sides;
        let spans = a.carriers.iter().chain(&b.carriers).flat_map(|carrier| &carrier.spans);
        let shown: BTreeSet<&str> = spans.filter_map(|span| path_of(&span.source)).collect();
        self.only_flipped(|path| !shown.contains(path))
    }

    /// The one file of a kind that was used on one side only, and whether that is the second.
    fn only_flipped(&self, is_meant: impl Fn(&str) -> bool) -> Option<(String, bool)> {
        let mut flipped = self.flipped.iter().filter(|(path, _)| is_meant(path));
        let (path, is_new) = flipped.next().filter(|_| flipped.next().is_none())?;
        Some(((*path).to_owned(), *is_new))
    }

    fn changed(&self, old: &Unit<'_>, new: &Unit<'_>) -> Difference {
        let path = path_of(&old.first.source);
        if let Some((path, is_new)) = path.and_then(|folder| self.flipped_below(folder)) {
            return self.listed(old, path, is_new);
        }
        let is_beginning = old.text.starts_with(new.text) || new.text.starts_with(old.text);
        let is_cut = is_beginning && (is_cut_behind(self.before, old) || is_cut_behind(self.after, new));
        let cause = if let Some(path) = path.filter(|_| is_cut) {
            Cause::CutMoved(path.to_owned())
        } else {
            let stability = old.first.stability.max(new.first.stability);
            Cause::edited(&old.first.source, stability, old.text, new.text)
        };
        self.difference(Kind::Changed, Some(old), Some(new), cause)
    }

    /// A list of what lies in a folder, which has one file more or less.
    fn listed(&self, list: &Unit<'_>, path: String, is_new: bool) -> Difference {
        let source = Source::File { path: path.into(), place: None };
        let cause = Cause::one_sided((&source, list.first.stability), None, is_new);
        let owner = Some(Owner { section: list.key.section.clone(), source, line: None, is_end: false });
        let (kind, a, b) = if is_new { (Kind::Added, None, owner) } else { (Kind::Removed, owner, None) };
        Difference { kind, a, b, ..self.difference(kind, Some(list), None, cause) }
    }

    /// The one file below a folder that was used on one side only.
    fn flipped_below(&self, folder: &str) -> Option<(String, bool)> {
        self.only_flipped(|path| path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/')))
    }

    fn one_sided(&self, old: Option<&Unit<'_>>, new: Option<&Unit<'_>>) -> Difference {
        let kind = if new.is_some() { Kind::Added } else { Kind::Removed };
        let cause = match old.or(new) {
            Some(unit) => {
                let span = (&unit.first.source, unit.first.stability);
                Cause::one_sided(span, unit.key.section.as_deref(), new.is_some())
            }
            None => Cause::Wording(String::new()),
        };
        self.difference(kind, old, new, cause)
    }

    fn difference(
        &self,
        kind: Kind,
        old: Option<&Unit<'_>>,
        new: Option<&Unit<'_>>,
        cause: Cause,
    ) -> Difference {
        let byte = match (old, new) {
            (Some(old), Some(new)) if kind == Kind::Changed => {
                old.bytes.start + between(old.text, new.text).first_byte
            }
            (old, new) => old.or(new).map_or(self.byte, |unit| unit.bytes.start),
        };
        Difference {
            kind,
            carrier: Some(self.carrier),
            byte,
            a: old.map(|unit| self.owner(unit, old.zip(new))),
            b: new.map(|unit| self.owner(unit, old.zip(new))),
            cause,
            reason: match self.carrier {
                Carrier::System | Carrier::Developer => Reason::System,
                Carrier::FirstUser | Carrier::Turn => Reason::Messages,
            },
            edited_at: None,
        }
    }

    /// Whose unit it is, at the line where it differs: where the carriers part if that lies in it, else where it parts
    /// from its partner.
    fn owner(&self, unit: &Unit<'_>, pair: Option<(&Unit<'_>, &Unit<'_>)>) -> Owner {
        let inside = match pair {
            _ if unit.bytes.contains(&self.byte) => self.byte - unit.bytes.start,
            Some((old, new)) => between(old.text, new.text).first_byte,
            None => 0,
        };
        let passed = unit.text.get(..unit.text.floor_char_boundary(inside)).unwrap_or_default();
        let is_end = !passed.is_empty() && passed.len() == unit.text.len();
        // Behind its last character a text is still on its last line.
        let passed = if is_end { passed.trim_end_matches('\n') } else { passed };
        let begin = match &unit.first.source {
            Source::Variable { path: Some(_), .. } => Some(1),
            other => other.place().map(|place| place.line),
        };
        Owner {
            section: unit.key.section.clone(),
            source: unit.first.source.without_place(),
            line: begin.map(|line| line + passed.matches('\n').count()),
            is_end,
        }
    }
}

/// What a group is about: its content; without any, the text of templates; without that, frames.
fn principal<'u>(units: &[&'u Unit<'u>]) -> Vec<&'u Unit<'u>> {
    let highest = units.iter().map(|unit| unit.role()).max();
    units.iter().filter(|unit| Some(unit.role()) == highest).copied().collect()
}

/// Tells whether two pieces of a template are one, before and after an edit: they begin at the same place of it.
fn is_edited(old: &Unit<'_>, new: &Unit<'_>) -> bool {
    old.key.section == new.key.section
        && old.key.source == new.key.source
        && old.key.said.is_some()
        && old.first.source.place() == new.first.source.place()
}

/// The old source of a section whose text another source brings now.
fn swapped<'u>(old: &[&'u Unit<'u>], new: &[&'u Unit<'u>]) -> Option<&'u Unit<'u>> {
    let (from, to) = (old.first()?, new.first()?);
    let is_whole = |unit: &Unit<'_>| unit.role() != Role::Content || is_wording(&unit.first.source);
    let is_other = from.key.source != to.key.source && from.key.section == to.key.section;
    // One file in place of another is two events.
    let is_of_files = path_of(&from.first.source).is_some() && path_of(&to.first.source).is_some();
    (is_other && !is_of_files && (is_whole(from) || is_whole(to))).then_some(*from)
}

/// Tells whether one file stands in place of another.
fn are_other_files(old: &[&Unit<'_>], new: &[&Unit<'_>]) -> bool {
    let path =
        |units: &[&Unit<'_>]| units.first().and_then(|unit| path_of(&unit.first.source)).map(str::to_owned);
    path(old).is_some() && path(new).is_some() && path(old) != path(new)
}

const fn is_wording(source: &Source) -> bool {
    matches!(source, Source::Pack { .. } | Source::Request { .. })
}

/// Tells whether a unit ends where its carrier is cut.
fn is_cut_behind(units: &[Unit<'_>], unit: &Unit<'_>) -> bool {
    let next = units.iter().find(|other| other.bytes.start == unit.bytes.end && !other.bytes.is_empty());
    next.is_some_and(
        |next| matches!(&next.first.source, Source::Profile { key, .. } if key.rsplit('.').next() == Some("cut")),
    )
}

fn path_of(source: &Source) -> Option<&str> {
    match source {
        Source::File { path, .. } | Source::Variable { path: Some(path), .. } => Some(path),
        _ => None,
    }
}
