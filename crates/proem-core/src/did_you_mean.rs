//! Finds the known name that a misspelt one most likely meant.

use alloc::vec::Vec;

/// Returns the candidate closest to `wanted`, if one is close enough to be worth suggesting.
///
/// "Close enough" is a third of the longer word's length, at least one edit; a swap of neighbours
/// is one edit. Ties go to the earlier candidate, so the answer is always the same.
///
/// ```
/// assert_eq!(proem_core::did_you_mean::nearest("git:brnach", ["git:status", "git:branch"]), Some("git:branch"));
/// assert_eq!(proem_core::did_you_mean::nearest("zebra", ["git:status"]), None);
/// ```
#[must_use]
pub fn nearest<'c>(wanted: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    const WANTED_CHARACTERS_MAX: usize = 64;
    let wanted: Vec<char> = wanted.chars().take(WANTED_CHARACTERS_MAX + 1).collect();
    if wanted.len() > WANTED_CHARACTERS_MAX {
        return None;
    }
    let mut best: Option<(usize, &str)> = None;
    for candidate in candidates {
        let letters: Vec<char> = candidate.chars().collect();
        let edits = edits(&wanted, &letters);
        let edits_max = (wanted.len().max(letters.len()) / 3).max(1);
        if edits <= edits_max && best.is_none_or(|(fewest, _)| edits < fewest) {
            best = Some((edits, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// Counts insertions, deletions, replacements and swaps of neighbours between two words.
fn edits(from: &[char], to: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut previous: Vec<usize> = (0..=to.len()).collect();
    for (row, letter) in from.iter().enumerate() {
        let mut current = Vec::with_capacity(to.len() + 1);
        current.push(row + 1);
        for (column, other) in to.iter().enumerate() {
            let replaced = previous[column] + usize::from(letter != other);
            let mut fewest = replaced.min(previous[column + 1] + 1).min(current[column] + 1);
            let swapped = row > 0 && column > 0 && *letter == to[column - 1] && from[row - 1] == *other;
            if swapped {
                fewest = fewest.min(before[column - 1] + 1);
            }
            current.push(fewest);
        }
        before = core::mem::replace(&mut previous, current);
    }
    previous[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_each_kind_of_edit_once() {
        for (from, to, expected) in [
            ("", "", 0),
            ("abc", "abc", 0),
            ("abc", "ac", 1),
            ("ac", "abc", 1),
            ("abc", "acb", 1),
            ("abc", "xyz", 3),
        ] {
            let from: Vec<char> = from.chars().collect();
            let to: Vec<char> = to.chars().collect();
            assert_eq!(edits(&from, &to), expected, "{from:?} to {to:?}");
        }
    }
}
