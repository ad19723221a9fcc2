//! Finds the differences in one carrier: aligns its texts by source, and describes each addition, removal, move and
//! change.

use std::cell::OnceCell;
use std::cmp::Ordering;
use std::collections::{HashMap, HashSet, VecDeque};
use std::ops::Bound;

use proem_core::cache_loss::between;
use proem_core::carrier::Carrier;
use proem_core::source::Source;
use similar::DiffOp;

use super::alignment::Alignment;
use super::cause::{Cause, MissReason};
use super::comparison::{Difference, DifferenceKind, Owner};
use super::snapshot::{CarrierText, Snapshot};
use super::units::{Key, Unit, UnitRole, identity, units};

/// The outcome of a file whose text is in the prompt.
const USED: &str = "used";

/// Two texts of a carrier, aligned by their sources.
pub(super) struct Differences<'u> {
    /// The first byte that differs.
    byte: usize,
    texts: (&'u CarrierText, &'u CarrierText),
    alignment: &'u Alignment<'u>,
    sides: (&'u Snapshot, &'u Snapshot),
    /// The number of occurrences on each side of every unit without a partner at its place. All other units occur
    /// equally often on both.
    counts: HashMap<Key<'u>, (usize, usize)>,
    /// Results that need a pass over everything, computed once for all differences.
    known: SharedResults<'u>,
}

#[derive(Default)]
struct SharedResults<'u> {
    /// The files that were used on one side only, by path, and whether that is the second.
    flipped: OnceCell<Vec<(&'u str, bool)>>,
    deciding_file: OnceCell<Option<(String, bool)>>,
    cuts: OnceCell<[HashSet<usize>; 2]>,
    sections: OnceCell<[HashSet<Option<&'u str>>; 2]>,
    parting: OnceCell<Option<(Unit<'u>, Unit<'u>)>>,
}

impl<'u> Differences<'u> {
    pub(super) fn new(
        byte: usize,
        texts: (&'u CarrierText, &'u CarrierText),
        alignment: &'u Alignment<'u>,
        sides: (&'u Snapshot, &'u Snapshot),
    ) -> Self {
        let mut counts: HashMap<Key<'u>, (usize, usize)> = HashMap::new();
        for op in alignment.ops.iter().filter(|op| !matches!(op, DiffOp::Equal { .. })) {
            for unit in &alignment.before[op.old_range()] {
                counts.entry(unit.key).or_default().0 += 1;
            }
            for unit in &alignment.after[op.new_range()] {
                counts.entry(unit.key).or_default().1 += 1;
            }
        }
        Self { byte, texts, alignment, sides, counts, known: SharedResults::default() }
    }

    pub(super) fn all(&self) -> Vec<Difference> {
        let Alignment { before, after, ops } = self.alignment;
        let mut found: Vec<Difference> = Vec::new();
        for op in ops {
            let (old, new) = (&before[op.old_range()], &after[op.new_range()]);
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
        let mut waiting: HashMap<_, VecDeque<usize>> = HashMap::new();
        for (index, unit) in new.iter().enumerate() {
            waiting.entry(beginning(unit)).or_default().push_back(index);
        }
        let (mut found, mut left, mut is_edited) = (Vec::new(), Vec::new(), vec![false; new.len()]);
        for unit in old {
            // Two pieces of a template are one, before and after an edit, if they begin at the same place of it.
            let mut partners = waiting.get_mut(&beginning(unit)).filter(|_| unit.key.said.is_some());
            match partners.as_mut().and_then(|partners| partners.pop_front()) {
                Some(index) => {
                    is_edited[index] = true;
                    found.push(self.changed(unit, &new[index]));
                }
                None => left.push(unit),
            }
        }
        let new: Vec<&Unit<'_>> =
            new.iter().zip(is_edited).filter(|(_, is_edited)| !is_edited).map(|(unit, _)| unit).collect();
        let (old, new) = (principal(&left), principal(&new));
        if self.is_reordered(&old, &new) {
            found.extend(self.reordered());
        } else if let (Some(from), Some(to)) = (swapped(&old, &new), new.first()) {
            found.push(self.swap(from, to));
        } else if !are_other_files(&old, &new)
            && old.iter().chain(&new).all(|unit| unit.role() == UnitRole::Template && !self.is_flipped(unit))
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

    /// Returns the units at the byte on each side.
    fn reordered(&self) -> Option<Difference> {
        let at = |text: &'u CarrierText| {
            let mut here = units(text).into_iter().filter(|unit| unit.bytes.end > self.byte).peekable();
            let first = here.peek().cloned();
            here.find(|unit| unit.role() != UnitRole::Frame).or(first)
        };
        let find = || at(self.texts.0).zip(at(self.texts.1));
        let (a, b) = self.known.parting.get_or_init(find).as_ref()?;
        let cause = Cause::Reordered(a.first.source.without_place().to_string());
        Some(self.difference(DifferenceKind::Moved, Some(a), Some(b), cause))
    }

    fn swap(&self, from: &Unit<'_>, to: &Unit<'_>) -> Difference {
        let section = to.key.section;
        let is_own =
            |unit: &Unit<'_>| matches!(unit.first.source, Source::BuiltIn { .. } | Source::Profile { .. });
        let cause = match (is_own(from), is_own(to)) {
            (true, true) => Cause::Wording(to.first.source.without_place().to_string()),
            (false, true) => Cause::one_sided((&from.first.source, from.first.stability), section, false),
            (_, false) => Cause::one_sided((&to.first.source, to.first.stability), section, true),
        };
        self.difference(DifferenceKind::Changed, Some(from), Some(to), cause)
    }

    /// Text of a template that came or went: a condition decided that. If one file alone came or went, and is nowhere
    /// in the text, it is that file's doing.
    fn decided(&self, old: &[&'u Unit<'u>], new: &[&'u Unit<'u>]) -> Option<Difference> {
        let (from, to) = (old.first().copied(), new.first().copied());
        let unit = to.or(from)?;
        let is_section_new = |side: usize| !self.sections()[side].contains(&unit.key.section);
        let kind = match (from, to) {
            (Some(_), Some(_)) => DifferenceKind::Changed,
            (None, _) => DifferenceKind::Added,
            (_, None) => DifferenceKind::Removed,
        };
        let Some((path, is_new)) = self.deciding_file() else {
            let id = || unit.key.section.unwrap_or_default().to_owned();
            let cause = match kind {
                DifferenceKind::Added if is_section_new(0) => Cause::SectionAppeared(id()),
                DifferenceKind::Removed if is_section_new(1) => Cause::SectionGone(id()),
                _ => Cause::Condition(unit.first.source.to_string()),
            };
            return Some(self.difference(kind, from, to, cause));
        };
        let source = Source::File { path: path.into(), place: None };
        let mut found =
            self.difference(kind, from, to, Cause::one_sided((&source, unit.first.stability), None, is_new));
        let owner = Owner { section: unit.key.section.map(str::to_owned), source, line: None, is_end: false };
        if is_new {
            found.b = Some(owner);
        } else {
            found.a = Some(owner);
        }
        Some(found)
    }

    /// Tells whether a unit is text of a file that was used on one side only.
    fn is_flipped(&self, unit: &Unit<'_>) -> bool {
        let is_used =
            |side: &Snapshot, path| side.considered.get(path).is_some_and(|outcome| outcome == USED);
        path_of(&unit.first.source)
            .is_some_and(|path| is_used(self.sides.0, path) != is_used(self.sides.1, path))
    }

    /// The files that were used on one side only, by path, and whether that is the second.
    fn flipped(&self) -> &[(&'u str, bool)] {
        self.known.flipped.get_or_init(|| flipped(self.sides.0, self.sides.1))
    }

    /// Returns the one file that was used on one side only and whose text is on neither.
    fn deciding_file(&self) -> Option<(String, bool)> {
        let find = || {
            let (a, b) = self.sides;
            let flipped = self.flipped();
            let mut is_shown = vec![false; flipped.len()];
            let spans = a.carriers.iter().chain(&b.carriers).flat_map(|carrier| &carrier.spans);
            for path in spans.filter_map(|span| path_of(&span.source)) {
                if let Ok(index) = flipped.binary_search_by_key(&path, |(path, _)| path) {
                    is_shown[index] = true;
                }
            }
            let hidden = flipped.iter().zip(is_shown).filter(|(_, is_shown)| !is_shown);
            only(hidden.map(|(file, _)| file))
        };
        self.known.deciding_file.get_or_init(find).clone()
    }

    /// The names of the sections that each side has.
    fn sections(&self) -> &[HashSet<Option<&'u str>>; 2] {
        let of = |text: &'u CarrierText| units(text).into_iter().map(|unit| unit.key.section).collect();
        self.known.sections.get_or_init(|| [of(self.texts.0), of(self.texts.1)])
    }

    /// Returns the positions on each side of the text that replaces a cut part.
    fn cuts(&self) -> &[HashSet<usize>; 2] {
        let of = |text: &CarrierText| {
            let cuts =
                units(text).into_iter().filter(|unit| !unit.bytes.is_empty() && is_cut(&unit.first.source));
            cuts.map(|unit| unit.bytes.start).collect()
        };
        self.known.cuts.get_or_init(|| [of(self.texts.0), of(self.texts.1)])
    }

    fn changed(&self, old: &Unit<'_>, new: &Unit<'_>) -> Difference {
        let path = path_of(&old.first.source);
        if let Some((path, is_new)) = path.and_then(|folder| self.flipped_below(folder)) {
            return self.listed(old, path, is_new);
        }
        let is_beginning = old.text.starts_with(new.text) || new.text.starts_with(old.text);
        let is_cut_behind = |side: usize, unit: &Unit<'_>| self.cuts()[side].contains(&unit.bytes.end);
        let is_cut = is_beginning && (is_cut_behind(0, old) || is_cut_behind(1, new));
        let cause = if let Some(path) = path.filter(|_| is_cut) {
            Cause::CutMoved(path.to_owned())
        } else {
            let stability = old.first.stability.max(new.first.stability);
            Cause::edited(&old.first.source, stability, old.text, new.text)
        };
        self.difference(DifferenceKind::Changed, Some(old), Some(new), cause)
    }

    /// Describes a change of a list of a folder's files, which has one file more or less.
    fn listed(&self, list: &Unit<'_>, path: String, is_new: bool) -> Difference {
        let source = Source::File { path: path.into(), place: None };
        let cause = Cause::one_sided((&source, list.first.stability), None, is_new);
        let owner =
            Some(Owner { section: list.key.section.map(str::to_owned), source, line: None, is_end: false });
        let (kind, a, b) = if is_new {
            (DifferenceKind::Added, None, owner)
        } else {
            (DifferenceKind::Removed, owner, None)
        };
        Difference { kind, a, b, ..self.difference(kind, Some(list), None, cause) }
    }

    /// The one file below a folder that was used on one side only.
    fn flipped_below(&self, folder: &str) -> Option<(String, bool)> {
        let beginning = format!("{folder}/");
        // Most sources are files, which contain nothing: then the files used on one side only are not needed.
        let is_below = |path: &str| path.starts_with(&beginning);
        let is_empty = |side: &Snapshot| {
            let behind = (Bound::Included(beginning.as_str()), Bound::Unbounded);
            !side.considered.range::<str, _>(behind).next().is_some_and(|(path, _)| is_below(path))
        };
        if is_empty(self.sides.0) && is_empty(self.sides.1) {
            return None;
        }
        let flipped = self.flipped();
        let first = flipped.partition_point(|(path, _)| *path < beginning.as_str());
        only(flipped[first..].iter().take_while(|(path, _)| is_below(path)))
    }

    fn one_sided(&self, old: Option<&Unit<'_>>, new: Option<&Unit<'_>>) -> Difference {
        let kind = if new.is_some() { DifferenceKind::Added } else { DifferenceKind::Removed };
        let cause = match old.or(new) {
            Some(unit) => {
                let span = (&unit.first.source, unit.first.stability);
                Cause::one_sided(span, unit.key.section, new.is_some())
            }
            None => Cause::Wording(String::new()),
        };
        self.difference(kind, old, new, cause)
    }

    fn difference(
        &self,
        kind: DifferenceKind,
        old: Option<&Unit<'_>>,
        new: Option<&Unit<'_>>,
        cause: Cause,
    ) -> Difference {
        let byte = match (old, new) {
            (Some(old), Some(new)) if kind == DifferenceKind::Changed => {
                old.bytes.start + between(old.text, new.text).first_byte
            }
            (old, new) => old.or(new).map_or(self.byte, |unit| unit.bytes.start),
        };
        Difference {
            kind,
            carrier: Some(self.texts.0.carrier),
            byte,
            a: old.map(|unit| self.owner(unit, old.zip(new))),
            b: new.map(|unit| self.owner(unit, old.zip(new))),
            cause,
            reason: match self.texts.0.carrier {
                Carrier::System | Carrier::Developer => MissReason::System,
                Carrier::FirstUser | Carrier::Turn => MissReason::Messages,
            },
            edited_at: None,
        }
    }

    /// Returns the owner of a unit, at the line of the difference: where the carriers diverge if that lies in it,
    /// else where it diverges from its partner.
    fn owner(&self, unit: &Unit<'_>, pair: Option<(&Unit<'_>, &Unit<'_>)>) -> Owner {
        let inside = match pair {
            _ if unit.bytes.contains(&self.byte) => self.byte - unit.bytes.start,
            Some((old, new)) => between(old.text, new.text).first_byte,
            None => 0,
        };
        let passed = unit.text.get(..unit.text.floor_char_boundary(inside)).unwrap_or_default();
        let is_end = !passed.is_empty() && passed.len() == unit.text.len();
        // The end of a text belongs to its last line.
        let passed = if is_end { passed.trim_end_matches('\n') } else { passed };
        let inside =
            if is_end { passed.floor_char_boundary(passed.len().saturating_sub(1)) } else { passed.len() };
        Owner {
            section: unit.key.section.map(str::to_owned),
            source: unit.first.source.without_place(),
            line: unit.line_at(inside),
            is_end,
        }
    }
}

/// Returns the main units of a group: its content; without any, the text of templates; without that, frames.
fn principal<'u>(units: &[&'u Unit<'u>]) -> Vec<&'u Unit<'u>> {
    let highest = units.iter().map(|unit| unit.role()).max();
    units.iter().filter(|unit| Some(unit.role()) == highest).copied().collect()
}

/// The part of a template's piece that an edit leaves the same: section, source, and the line and column of its
/// beginning.
type Beginning<'u> = (Option<&'u str>, (u8, &'u str, &'u str), Option<(usize, usize)>);

fn beginning<'u>(unit: &Unit<'u>) -> Beginning<'u> {
    let source = &unit.first.source;
    (unit.key.section, identity(source), source.place().map(|place| (place.line, place.column)))
}

/// The files that were used on one side only, by path, and whether that is the second.
fn flipped<'s>(a: &'s Snapshot, b: &'s Snapshot) -> Vec<(&'s str, bool)> {
    fn used(side: &Snapshot) -> impl Iterator<Item = &str> {
        side.considered.iter().filter(|(_, outcome)| *outcome == USED).map(|(path, _)| path.as_str())
    }
    let (mut a, mut b, mut flipped) = (used(a).peekable(), used(b).peekable(), Vec::new());
    loop {
        let order = match (a.peek(), b.peek()) {
            (Some(before), Some(after)) => before.cmp(after),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => return flipped,
        };
        let before = a.next_if(|_| order.is_le());
        let after = b.next_if(|_| order.is_ge());
        match (before, after) {
            (Some(path), None) => flipped.push((path, false)),
            (None, Some(path)) => flipped.push((path, true)),
            _ => {}
        }
    }
}

/// The one file of a few; `None` if there are more, or none.
fn only<'f>(mut files: impl Iterator<Item = &'f (&'f str, bool)>) -> Option<(String, bool)> {
    let (path, is_new) = files.next()?;
    files.next().is_none().then(|| ((*path).to_owned(), *is_new))
}

/// Returns the old source of a section whose text now comes from another source.
fn swapped<'u>(old: &[&'u Unit<'u>], new: &[&'u Unit<'u>]) -> Option<&'u Unit<'u>> {
    let (from, to) = (old.first()?, new.first()?);
    let is_whole = |unit: &Unit<'_>| unit.role() != UnitRole::Content || is_wording(&unit.first.source);
    let is_other = !from.key.is_of_same_source(&to.key) && from.key.section == to.key.section;
    // One file in place of another is two events.
    let is_of_files = path_of(&from.first.source).is_some() && path_of(&to.first.source).is_some();
    (is_other && !is_of_files && (is_whole(from) || is_whole(to))).then_some(*from)
}

/// Tells whether one file replaces another.
fn are_other_files(old: &[&Unit<'_>], new: &[&Unit<'_>]) -> bool {
    let path =
        |units: &[&Unit<'_>]| units.first().and_then(|unit| path_of(&unit.first.source)).map(str::to_owned);
    path(old).is_some() && path(new).is_some() && path(old) != path(new)
}

const fn is_wording(source: &Source) -> bool {
    matches!(source, Source::Pack { .. } | Source::Request { .. })
}

/// Tells whether a source is the text with which a profile replaces a cut part.
fn is_cut(source: &Source) -> bool {
    matches!(source, Source::Profile { key, .. } if key.rsplit('.').next() == Some("cut"))
}

fn path_of(source: &Source) -> Option<&str> {
    match source {
        Source::File { path, .. } | Source::Variable { path: Some(path), .. } => Some(path),
        _ => None,
    }
}
