//! Maps the lines of a text to the lines of the file that it was taken from.
//!
//! On its way into a prompt, text loses parts: front matter, comments, blank lines at its ends. The rest is a list of
//! runs of whole, unchanged lines of the file. Runs are counted in lines, not in bytes, because removing hidden
//! characters and secrets may change a line later but never adds or removes one.

use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use crate::source::Source;
use crate::text::{Place, Places, slice};

/// Maps places of a text to places of the file that it was taken from.
///
/// ```
/// use proem_core::line_map::LineMap;
/// use proem_core::text::Place;
///
/// let file = "---\nname: x\n---\nfirst\n<!-- gone -->\nsecond\n";
/// let line_map = LineMap::from_kept(file, &[16..22, 36..43]);
/// assert_eq!(line_map.place(Place { line: 1, column: 1 }), Some(Place { line: 4, column: 1 }));
/// assert_eq!(line_map.place(Place { line: 2, column: 3 }), Some(Place { line: 6, column: 3 }));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineMap {
    /// The line of the text that starts a run, from 1, and the place of its first character in the file. The first
    /// run starts with the text.
    runs: Vec<(usize, Place)>,
    /// The number of bytes at the end of the text that are in no file.
    added: usize,
}

const START: Place = Place { line: 1, column: 1 };

impl LineMap {
    /// Creates a map that starts at `place` of the file and omits nothing.
    #[must_use]
    pub fn from_place(place: Place) -> Self {
        Self { runs: vec![(1, place)], added: 0 }
    }

    /// Creates a map from its parts.
    #[must_use]
    pub const fn from_parts(runs: Vec<(usize, Place)>, added: usize) -> Self {
        Self { runs, added }
    }

    /// Returns the first line of each run with its place in the file, and the number of bytes at the end that are in no
    /// file.
    #[must_use]
    pub fn parts(&self) -> (&[(usize, Place)], usize) {
        (&self.runs, self.added)
    }

    /// Creates a map of the whole file.
    #[must_use]
    pub fn whole() -> Self {
        Self::from_place(START)
    }

    /// Creates a map from the byte ranges of `file` that make up the text, in order. Every range except the first
    /// starts a line of the text.
    #[must_use]
    pub fn from_kept(file: &str, kept: &[Range<usize>]) -> Self {
        let mut places = Places::new(file);
        let (mut runs, mut line) = (Vec::with_capacity(kept.len()), 1);
        for bytes in kept.iter().filter(|bytes| !bytes.is_empty()) {
            runs.push((line, places.at(bytes.start)));
            let text = slice(file, bytes.start, bytes.end);
            line += memchr::memchr_iter(b'\n', text.as_bytes()).count();
        }
        if runs.is_empty() {
            runs.push((1, places.at(kept.first().map_or(0, |bytes| bytes.start))));
        }
        Self { runs, added: 0 }
    }

    /// Starts one column later, after a byte-order mark of the file that is not part of the text.
    #[must_use]
    pub fn behind_mark(mut self) -> Self {
        if let Some((_, place)) = self.runs.first_mut() {
            place.column += 1;
        }
        self
    }

    /// Marks the last `bytes` bytes of the text as belonging to no file.
    #[must_use]
    pub fn with_added(mut self, bytes: usize) -> Self {
        self.added = bytes;
        self
    }

    /// Returns the number of bytes at the end of the text that are in no file.
    #[must_use]
    pub const fn added(&self) -> usize {
        self.added
    }

    /// Maps a place of the text to the file; `None` for a place before the text.
    #[must_use]
    pub fn place(&self, at: Place) -> Option<Place> {
        let index = self.runs.partition_point(|(line, _)| *line <= at.line).checked_sub(1)?;
        let (line, start) = *self.runs.get(index)?;
        let column = if at.line == line { start.column + at.column - 1 } else { at.column };
        Some(Place { line: start.line + (at.line - line), column })
    }

    /// Returns `file` with the place at which the text starts.
    #[must_use]
    pub fn source(&self, file: &Source) -> Source {
        self.source_at(file, START)
    }

    /// Returns `file` with the place that a place of the text maps to.
    #[must_use]
    pub fn source_at(&self, file: &Source, at: Place) -> Source {
        self.place(at).map_or_else(|| file.without_place(), |place| file.at(place))
    }

    /// Returns the map of a part of the text, from one place to another.
    #[must_use]
    pub fn part(&self, from: Place, to: Place) -> Self {
        let mut runs = vec![(1, self.place(from).unwrap_or(START))];
        let inside = self.runs.iter().filter(|(line, _)| *line > from.line && *line <= to.line);
        runs.extend(inside.map(|(line, place)| (line - from.line + 1, *place)));
        Self { runs, added: 0 }
    }

    /// Iterates over the lines of the text, except the first, that do not follow their predecessor in the file.
    pub fn breaks(&self) -> impl Iterator<Item = Place> {
        self.runs.iter().skip(1).map(|(line, _)| Place { line: *line, column: 1 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(line: usize, column: usize) -> Place {
        Place { line, column }
    }

    #[test]
    fn places_are_those_of_the_file() {
        let file = "\u{FEFF}---\na\n---\nb\n<!-- c -->\n\nd\ne";
        let start = file.find('b').expect("it is there");
        let second = file.find('d').expect("it is there");
        let line_map = LineMap::from_kept(file, &[start..start + 2, second..file.len()]);
        for (text, expected) in [(at(1, 1), at(4, 1)), (at(2, 1), at(7, 1)), (at(3, 1), at(8, 1))] {
            assert_eq!(line_map.place(text), Some(expected), "{text:?}");
        }
        assert_eq!(line_map.breaks().collect::<Vec<_>>(), [at(2, 1)]);
    }

    #[test]
    fn a_part_begins_where_it_stands_in_the_file() {
        let file = "  a b\nc\n<!-- x -->\nd\ne\n";
        let second = file.find('d').expect("it is there");
        let line_map = LineMap::from_kept(file, &[2..8, second..file.len()]);
        // The text is "a b\nc\nd\ne\n".
        let part = line_map.part(at(1, 3), at(3, 2));
        assert_eq!(part.place(at(1, 1)), Some(at(1, 5)), "b");
        assert_eq!(part.place(at(2, 1)), Some(at(2, 1)), "c");
        assert_eq!(part.place(at(3, 1)), Some(at(4, 1)), "d");
        assert_eq!(part.breaks().collect::<Vec<_>>(), [at(3, 1)]);
    }

    #[test]
    fn an_empty_excerpt_has_a_place() {
        assert_eq!(LineMap::from_kept("a\nb", &[]).place(START), Some(START));
        assert_eq!(LineMap::from_kept("a\nb", &[2..2, 2..2]).place(START), Some(at(2, 1)));
    }
}
