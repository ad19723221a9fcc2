//! The regions of a text in which references are ignored: code and comments, found in one pass.

use std::ops::Range;

use proem_core::profile::rules::ImportCode;
use proem_core::text::ForwardSearch;

/// The regions in which references are ignored, queried in the order of the text.
pub(super) struct Regions {
    /// Sorted ranges that do not overlap.
    regions: Vec<Range<usize>>,
    /// The first region that does not end before the last queried byte.
    next: usize,
}

impl Regions {
    /// Finds the regions of some kinds.
    pub(super) fn new(text: &str, kinds: &[ImportCode]) -> Self {
        let mut found = code(text, kinds);
        found.sort_by_key(|region| region.start);
        let mut regions: Vec<Range<usize>> = Vec::with_capacity(found.len());
        for region in found {
            match regions.last_mut() {
                Some(last) if region.start <= last.end => last.end = last.end.max(region.end),
                _ => regions.push(region),
            }
        }
        Self { regions, next: 0 }
    }

    /// Tells whether a byte lies in a region. A byte before the last queried one is searched for from the beginning.
    pub(super) fn contain(&mut self, byte: usize) -> bool {
        if self
            .next
            .checked_sub(1)
            .and_then(|last| self.regions.get(last))
            .is_some_and(|last| byte < last.end)
        {
            self.next = 0;
        }
        while self.regions.get(self.next).is_some_and(|region| region.end <= byte) {
            self.next += 1;
        }
        self.regions.get(self.next).is_some_and(|region| region.start <= byte)
    }
}

impl Regions {
    /// Tells whether a part of the text, which starts behind the last queried byte, reaches into a region.
    pub(super) fn reach(&mut self, part: Range<usize>) -> bool {
        self.contain(part.start) || self.regions.get(self.next).is_some_and(|region| region.start < part.end)
    }
}

fn code(text: &str, kinds: &[ImportCode]) -> Vec<Range<usize>> {
    let mut regions = Vec::new();
    if kinds.contains(&ImportCode::Fences) || kinds.contains(&ImportCode::Indented) {
        lines(text, kinds, &mut regions);
    }
    if kinds.contains(&ImportCode::Backticks) || kinds.contains(&ImportCode::Spans) {
        let is_across = kinds.contains(&ImportCode::Backticks);
        backticks(text, is_across, &mut regions);
    }
    if kinds.contains(&ImportCode::Comments) {
        let mut from = 0;
        while let Some(start) = text.get(from..).and_then(|rest| rest.find("<!--")).map(|at| from + at) {
            let end =
                text.get(start..).and_then(|rest| rest.find("-->")).map_or(text.len(), |at| start + at + 3);
            regions.push(start..end);
            from = end;
        }
    }
    regions
}

/// Adds fenced and indented blocks.
fn lines(text: &str, kinds: &[ImportCode], regions: &mut Vec<Range<usize>>) {
    let (mut start, mut open, mut is_after_blank) = (0, None, true);
    for line in text.split_inclusive('\n') {
        let plain = line.trim_start_matches(' ');
        let indent = line.len() - plain.len();
        let is_fence =
            kinds.contains(&ImportCode::Fences) && (plain.starts_with("```") || plain.starts_with("~~~"));
        if is_fence && indent < 4 {
            match open.take() {
                Some(begin) => regions.push(begin..start + line.len()),
                None => open = Some(start),
            }
        } else if open.is_none() && kinds.contains(&ImportCode::Indented) && is_after_blank {
            let is_code = (indent >= 4 || line.starts_with('\t')) && !line.trim().is_empty();
            regions.extend(is_code.then(|| start..start + line.len()));
            is_after_blank = is_code || line.trim().is_empty();
            start += line.len();
            continue;
        }
        is_after_blank = line.trim().is_empty();
        start += line.len();
    }
    regions.extend(open.map(|begin| begin..text.len()));
}

/// Adds the text between equal runs of backticks; across blank lines only if `is_across`.
///
/// A run opens a region if an equally long run follows. Across blank lines a part of the run is enough, the longest
/// part first; that part may be closed by the rest of the same run.
fn backticks(text: &str, is_across: bool, regions: &mut Vec<Range<usize>>) {
    let runs = Runs::new(text);
    let mut paragraphs = ForwardSearch::new(text, "\n\n");
    let mut index = 0;
    // The number of backticks of the run that belong to the previous region.
    let mut taken = 0;
    while let Some(run) = runs.list.get(index) {
        let (at, length) = (run.start + taken, run.len() - taken);
        if length == 0 {
            (index, taken) = (index + 1, 0);
            continue;
        }
        let (closing, ticks) = if is_across {
            let ticks = length.min(runs.longest_from(index + 1)).max(length / 2);
            let is_own = ticks <= length / 2;
            (if is_own { Some(index).filter(|_| ticks > 0) } else { runs.next_of(ticks, index + 1) }, ticks)
        } else {
            let limit = paragraphs.find_from(at + length).unwrap_or(text.len());
            let next = runs.next_of(length, index + 1);
            (next.filter(|next| runs.list.get(*next).is_some_and(|run| run.start < limit)), length)
        };
        match closing {
            Some(own) if own == index => {
                taken += 2 * ticks;
                regions.push(at..at + 2 * ticks);
            }
            Some(next) => {
                let end = runs.list.get(next).map_or(text.len(), |run| run.start + ticks);
                regions.push(at..end);
                (index, taken) = (next, ticks);
            }
            None => (index, taken) = (index + 1, 0),
        }
    }
}

/// The runs of backticks of a text, and the longest in each part of the list: a binary tree in an array, with the
/// leaves after the inner nodes.
struct Runs {
    list: Vec<Range<usize>>,
    leaves: usize,
    longest: Vec<usize>,
}

impl Runs {
    fn new(text: &str) -> Self {
        let (bytes, mut list, mut from) = (text.as_bytes(), Vec::new(), 0);
        while let Some(start) = memchr::memchr(b'`', &bytes[from..]).map(|at| from + at) {
            from = start + bytes[start..].iter().take_while(|byte| **byte == b'`').count();
            list.push(start..from);
        }
        let leaves = list.len().next_power_of_two();
        let mut longest = vec![0; 2 * leaves];
        for (index, run) in list.iter().enumerate() {
            longest[leaves + index] = run.len();
        }
        for node in (1..leaves).rev() {
            longest[node] = longest[2 * node].max(longest[2 * node + 1]);
        }
        Self { list, leaves, longest }
    }

    /// Returns the length of the longest run from this index on.
    fn longest_from(&self, index: usize) -> usize {
        let (mut node, mut longest) = (self.leaves + index, 0);
        if index >= self.leaves {
            return 0;
        }
        loop {
            longest = longest.max(self.longest[node]);
            // Goes up while this is a right child: the part to the right of a left child is its sibling.
            while node % 2 == 1 {
                if node == 1 {
                    return longest;
                }
                node /= 2;
            }
            node += 1;
        }
    }

    /// Returns the first run of at least this length, from this index on.
    fn next_of(&self, length: usize, index: usize) -> Option<usize> {
        if index >= self.leaves {
            return None;
        }
        let mut node = self.leaves + index;
        while self.longest[node] < length {
            while node % 2 == 1 {
                if node == 1 {
                    return None;
                }
                node /= 2;
            }
            node += 1;
        }
        while node < self.leaves {
            node *= 2;
            if self.longest[node] < length {
                node += 1;
            }
        }
        Some(node - self.leaves)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Finds the same regions by searching from every run of backticks to the end, for every length.
    fn one_by_one(text: &str, is_across: bool) -> Vec<Range<usize>> {
        let (mut regions, mut from) = (Vec::new(), 0);
        while let Some(at) = text.get(from..).and_then(|rest| rest.find('`')).map(|at| from + at) {
            let run = text.get(at..).unwrap_or_default().bytes().take_while(|byte| *byte == b'`').count();
            let lengths = if is_across { (1..=run).rev().collect::<Vec<_>>() } else { vec![run] };
            let closing = lengths.into_iter().find_map(|length| {
                let behind = at + length;
                let rest = text.get(behind..)?;
                let limit = if is_across { rest.len() } else { rest.find("\n\n").unwrap_or(rest.len()) };
                let end = rest.get(..limit)?.find(&"`".repeat(length))?;
                Some(behind + end + length)
            });
            regions.extend(closing.map(|end| at..end));
            from = closing.unwrap_or(at + run);
        }
        regions
    }

    /// A generator of numbers that are the same in every test run.
    struct Dice(u64);

    impl Dice {
        fn below(&mut self, sides: usize) -> usize {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(self.0 >> 33).expect("31 bits fit") % sides
        }
    }

    #[test]
    fn backticks_are_paired_as_if_looked_for_one_by_one() {
        let parts = ["`", "``", "```", "`````", "a", "\n", "\n\n", " "];
        let mut dice = Dice(1);
        for _ in 0..20_000 {
            let text: String = (0..dice.below(14)).map(|_| parts[dice.below(parts.len())]).collect();
            for is_across in [false, true] {
                let mut regions = Vec::new();
                backticks(&text, is_across, &mut regions);
                assert_eq!(regions, one_by_one(&text, is_across), "{text:?} {is_across}");
            }
        }
    }

    #[test]
    fn regions_contain_what_any_of_them_contains() {
        let kinds = [ImportCode::Spans, ImportCode::Fences, ImportCode::Indented, ImportCode::Comments];
        let parts = ["`", "```\n", "~~~\n", "    a\n", "\n", "a", "<!--", "-->", "\t"];
        let mut dice = Dice(2);
        for _ in 0..5_000 {
            let text: String = (0..dice.below(14)).map(|_| parts[dice.below(parts.len())]).collect();
            let (found, mut regions) = (code(&text, &kinds), Regions::new(&text, &kinds));
            for byte in (0..text.len()).chain((0..text.len()).rev()) {
                let expected = found.iter().any(|region| region.contains(&byte));
                assert_eq!(regions.contain(byte), expected, "{text:?} {byte}");
            }
        }
    }
}
