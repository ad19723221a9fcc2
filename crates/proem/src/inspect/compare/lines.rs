//! Two lists aligned in time that is linear in their length.
//!
//! The library gives up on the shortest alignment after an effort that grows with the square root of the lists, at each of
//! its steps. Long lists are therefore aligned block by block, and each block begins where the last one was sure.

use std::hash::Hash;
use std::ops::{Index, Range};

use similar::{Algorithm, ChangeTag, DiffOp, DiffableStr, TextDiff, capture_diff, group_diff_ops};

/// The largest sum of items that is aligned at once: up to here the library's effort is bounded.
const TOGETHER_MAX: usize = 1 << 16;

/// The number of items of each list that are aligned at a time.
const BLOCK: usize = 1 << 14;

/// A line of one text or of both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChangedLine<'t> {
    /// The text that has it.
    pub side: Side,
    /// The line with its end.
    pub text: &'t str,
}

/// The text that has a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The first one alone.
    Before,
    /// The second one alone.
    After,
    /// Both.
    Both,
}

/// Compares two texts line by line: groups of changed lines, each with `context` unchanged lines around it.
#[must_use]
pub fn changed_lines<'t>(before: &'t str, after: &'t str, context: usize) -> Vec<Vec<ChangedLine<'t>>> {
    let (old, new) = (before.tokenize_lines(), after.tokenize_lines());
    let ops = if old.len() + new.len() <= TOGETHER_MAX {
        TextDiff::from_lines(before, after).ops().to_vec()
    } else {
        aligned(&*old, 0..old.len(), &*new, 0..new.len())
    };
    let line = |change: similar::Change<&'t str>| {
        let side = match change.tag() {
            ChangeTag::Delete => Side::Before,
            ChangeTag::Insert => Side::After,
            ChangeTag::Equal => Side::Both,
        };
        ChangedLine { side, text: change.value() }
    };
    let groups = group_diff_ops(ops, context).into_iter();
    groups
        .map(|group| group.iter().flat_map(|op| op.iter_changes(&*old, &*new)).map(line).collect())
        .collect()
}

/// The steps that make the second list of the first.
pub(super) fn aligned<Old, New>(
    old: &Old,
    old_range: Range<usize>,
    new: &New,
    new_range: Range<usize>,
) -> Vec<DiffOp>
where
    Old: Index<usize> + ?Sized,
    New: Index<usize> + ?Sized,
    Old::Output: Hash + Eq,
    New::Output: PartialEq<Old::Output> + Hash + Eq,
{
    if old_range.len() + new_range.len() <= TOGETHER_MAX {
        return capture_diff(Algorithm::Myers, old, old_range, new, new_range);
    }
    let is_same = |(a, b): &(usize, usize)| new[*b] == old[*a];
    let front = old_range.clone().zip(new_range.clone()).take_while(is_same).count();
    let (rest_old, rest_new) =
        (old_range.start + front..old_range.end, new_range.start + front..new_range.end);
    let back = rest_old.clone().rev().zip(rest_new.clone().rev()).take_while(is_same).count();
    let mut ops = Vec::new();
    push(&mut ops, equal(old_range.start, new_range.start, front));
    let (old_end, new_end) = (rest_old.end - back, rest_new.end - back);
    let (mut a, mut b) = (rest_old.start, rest_new.start);
    while a < old_end || b < new_end {
        let (to_a, to_b) = (old_end.min(a + BLOCK), new_end.min(b + BLOCK));
        let block = capture_diff(Algorithm::Myers, old, a..to_a, new, b..to_b);
        let is_last = to_a == old_end && to_b == new_end;
        // The items after the last match may have a partner in the next block.
        let sure = if is_last { None } else { sure(&block, (a, b)) };
        let kept = sure.map_or(block.len(), |last| last + 1);
        (a, b) = sure.and_then(|last| block.get(last)).map_or((to_a, to_b), ends);
        block.into_iter().take(kept).for_each(|op| push(&mut ops, op));
    }
    push(&mut ops, equal(old_end, new_end, back));
    ops
}

/// The last step of a block that both lists share, if it lies in the second half: each block must go on from there.
fn sure(block: &[DiffOp], start: (usize, usize)) -> Option<usize> {
    let last = block.iter().rposition(|op| matches!(op, DiffOp::Equal { .. }))?;
    let (a, b) = block.get(last).map(ends)?;
    (a - start.0 >= BLOCK / 2 || b - start.1 >= BLOCK / 2).then_some(last)
}

fn ends(op: &DiffOp) -> (usize, usize) {
    (op.old_range().end, op.new_range().end)
}

const fn equal(old_index: usize, new_index: usize, len: usize) -> DiffOp {
    DiffOp::Equal { old_index, new_index, len }
}

/// Adds a step; two that leave neighbours as they are become one.
fn push(ops: &mut Vec<DiffOp>, op: DiffOp) {
    match (ops.last_mut(), op) {
        (_, DiffOp::Equal { len: 0, .. }) => {}
        (Some(DiffOp::Equal { len, .. }), DiffOp::Equal { len: more, .. }) => *len += more,
        _ => ops.push(op),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes the second list of the first by the steps, and counts the items that both share.
    fn follow(old: &[usize], new: &[usize], ops: &[DiffOp]) -> usize {
        let (mut made, mut at, mut shared) = (Vec::new(), 0, 0);
        for op in ops {
            assert_eq!((op.old_range().start, op.new_range().start), (at, made.len()));
            at = op.old_range().end;
            if let DiffOp::Equal { len, .. } = op {
                assert_eq!(old[op.old_range()], new[op.new_range()]);
                shared += len;
            }
            made.extend_from_slice(&new[op.new_range()]);
        }
        assert_eq!((at, made.as_slice()), (old.len(), new));
        shared
    }

    #[test]
    fn long_lists_are_aligned_block_by_block() {
        let old: Vec<usize> = (0..100_000).collect();
        let without =
            |gone: Range<usize>| (0..100_000).filter(|item| !gone.contains(item)).collect::<Vec<_>>();
        let every_tenth =
            (0..100_000).map(|item| if item % 10 == 0 { item + 200_000 } else { item }).collect();
        for (new, expected) in [
            (old.clone(), 100_000),
            (without(5..10), 99_995),
            (without(20_000..60_000), 60_000),
            (every_tenth, 90_000),
            (Vec::new(), 0),
            ([without(90_000..100_000), (300_000..310_000).collect()].concat(), 90_000),
        ] {
            let ops = aligned(&*old, 0..old.len(), &*new, 0..new.len());
            assert_eq!(follow(&old, &new, &ops), expected);
        }
        let symbols = |seed: usize| (0..80_000).map(|item| ((item * seed) >> 7) % 2).collect::<Vec<_>>();
        let (old, new) = (symbols(2_654_435_761), symbols(40_503));
        let ops = aligned(&*old, 0..old.len(), &*new, 0..new.len());
        assert!(follow(&old, &new, &ops) > 40_000);
    }

    #[test]
    fn changed_lines_have_lines_around_them() {
        let (before, after) = ("a\nb\nc\nd\n", "a\nb\nx\nd\n");
        let line = |side, text| ChangedLine { side, text };
        let expected = vec![vec![
            line(Side::Both, "b\n"),
            line(Side::Before, "c\n"),
            line(Side::After, "x\n"),
            line(Side::Both, "d\n"),
        ]];
        assert_eq!(changed_lines(before, after, 1), expected);
        assert_eq!(changed_lines(before, before, 1), Vec::<Vec<_>>::new());
    }
}
