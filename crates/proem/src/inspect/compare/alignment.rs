//! Two carriers aligned by source. What is alike from both ends is passed by, and only what lies between the first and the last
//! that came or went becomes a list for an algorithm: mostly that is little, and a prompt may have many thousand sources.
//!
//! The result is that of the algorithm on whole lists, which itself passes by what is alike at both ends. `properties.rs`
//! compares the two.

use similar::DiffOp;

use super::lines::aligned;
use super::snapshot::CarrierText;
use super::units::{Keys, Unit, Units};

/// How many units that are alike the algorithm sees on either side. What came and repeats what follows is moved along them,
/// as far as they go.
const MARGIN: usize = if cfg!(test) { 1 } else { 32 };

/// How the units of one carrier become those of another.
pub(super) struct Alignment<'t> {
    /// Units before the lists that are on both sides, with other texts.
    pub(super) front: Vec<Pair<'t>>,
    /// The units of the first side where something came or went, and some around it.
    pub(super) before: Vec<Unit<'t>>,
    /// The same of the second side.
    pub(super) after: Vec<Unit<'t>>,
    /// How the one list becomes the other.
    pub(super) ops: Vec<DiffOp>,
    /// Units behind the lists that are on both sides, with other texts.
    pub(super) back: Vec<Pair<'t>>,
}

/// One unit before and after.
pub(super) type Pair<'t> = (Unit<'t>, Unit<'t>);

impl<'t> Alignment<'t> {
    pub(super) fn of(a: &'t CarrierText, b: &'t CarrierText) -> Self {
        let (mut a, mut b) = (Units::of(a), Units::of(b));
        let front = Alike::walk(&mut a, &mut b, Units::next);
        let back = Alike::walk(&mut a, &mut b, Units::next_back);
        if a.left().is_empty() && b.left().is_empty() {
            // Nothing came or went; both have the same units, and all of them were seen.
            let (before, after, ops) = (Vec::new(), Vec::new(), Vec::new());
            return Self { front: front.without_last(0), before, after, ops, back: Vec::new() };
        }
        let mut margin = MARGIN;
        loop {
            let (before, after): (Vec<_>, Vec<_>) =
                (a.widened(margin).collect(), b.widened(margin).collect());
            let (old, new) = (0..before.len(), 0..after.len());
            let ops = aligned(&Keys(&before), old, &Keys(&after), new);
            let is_alike = |op: Option<&DiffOp>| matches!(op, Some(DiffOp::Equal { .. }));
            let is_whole = |alike: &Alike<'_>, op| alike.units <= margin || is_alike(op);
            if is_whole(&front, ops.first()) && is_whole(&back, ops.last()) {
                let mut back = back.without_last(margin);
                back.reverse();
                return Self { front: front.without_last(margin), before, after, ops, back };
            }
            // It was moved as far as the margin goes, and may go on.
            margin *= 2;
        }
    }
}

/// Units from one end that are on both sides.
struct Alike<'t> {
    units: usize,
    /// Those with other texts, each with its number.
    changed: Vec<(usize, Pair<'t>)>,
}

impl<'t> Alike<'t> {
    fn walk(a: &mut Units<'t>, b: &mut Units<'t>, step: impl Fn(&mut Units<'t>) -> Option<Unit<'t>>) -> Self {
        let mut alike = Self { units: 0, changed: Vec::new() };
        loop {
            let left = (a.left(), b.left());
            let next = step(a).zip(step(b));
            let Some((old, new)) = next.filter(|(old, new)| old.key == new.key) else {
                a.go_back(left.0);
                b.go_back(left.1);
                return alike;
            };
            if old.key.said.is_none() && old.text != new.text {
                alike.changed.push((alike.units, (old, new)));
            }
            alike.units += 1;
        }
    }

    /// The pairs with other texts, without those of the last units.
    fn without_last(self, units: usize) -> Vec<Pair<'t>> {
        let kept = self.units.saturating_sub(units);
        self.changed.into_iter().take_while(|(number, _)| *number < kept).map(|(_, pair)| pair).collect()
    }
}
