//! The only module that decides how text is cut, trimmed or measured.
//!
//! Everything here works on character boundaries and gives the same result in every locale. No other module may trim
//! text as a precaution: every byte of a prompt, present or missing, must have an explanation.

use alloc::string::String;

/// Tells whether JavaScript's `trim` and `\s` count `character` as white space.
///
/// Differs from Rust's `char::is_whitespace` in two places: U+FEFF is one, U+0085 is not.
#[must_use]
pub const fn is_javascript_space(character: char) -> bool {
    matches!(
        character,
        '\t'..='\r'
            | ' '
            | '\u{A0}'
            | '\u{1680}'
            | '\u{2000}'..='\u{200A}'
            | '\u{2028}'
            | '\u{2029}'
            | '\u{202F}'
            | '\u{205F}'
            | '\u{3000}'
            | '\u{FEFF}'
    )
}

/// Tells whether a `.` in a JavaScript regular expression stops at `character`.
#[must_use]
pub const fn is_line_break(character: char) -> bool {
    matches!(character, '\n' | '\r' | '\u{2028}' | '\u{2029}')
}

/// Returns the longest prefix of `text` that fits in `bytes_max` bytes.
///
/// Cuts on a character boundary: half a character would become U+FFFD in the prompt.
///
/// ```
/// assert_eq!(proem_core::text::clip("naïve", 3), "na");
/// ```
#[must_use]
pub fn clip(text: &str, bytes_max: usize) -> &str {
    if text.len() <= bytes_max {
        return text;
    }
    let end = text.floor_char_boundary(bytes_max);
    slice(text, 0, end)
}

/// Returns `text[start..end]`; both ends must be character boundaries.
///
/// The only place that slices a `str`. Callers pass positions that a scanner found at ASCII bytes.
#[must_use]
pub(crate) fn slice(text: &str, start: usize, end: usize) -> &str {
    text.get(start..end).expect("positions come from a scan of this very text, which stops on characters")
}

/// One character position in a text, counted from 1 as editors do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The line, from 1; only LF ends a line.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
}

/// A line of a text with the place of a mistake in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Excerpt {
    /// The place of the mistake in the text.
    pub place: Place,
    /// The text of that line.
    pub line: String,
}

/// Converts ascending byte offsets of one text into places, in one pass over the text.
///
/// An offset before the last one restarts from the top, so any order is correct, and the ascending order in which
/// templates are rendered is linear.
#[derive(Debug, Clone)]
pub struct Places<'t> {
    text: &'t str,
    offset: usize,
    place: Place,
}

impl<'t> Places<'t> {
    /// Starts at the first character of `text`.
    #[must_use]
    pub const fn new(text: &'t str) -> Self {
        Self { text, offset: 0, place: Place { line: 1, column: 1 } }
    }

    /// Returns the place of the byte at `offset`; beyond the end means the end.
    pub fn at(&mut self, offset: usize) -> Place {
        let offset = self.text.floor_char_boundary(offset);
        if offset < self.offset {
            *self = Self::new(self.text);
        }
        let passed = slice(self.text, self.offset, offset);
        let line_breaks = memchr::memchr_iter(b'\n', passed.as_bytes());
        let (count, last) = line_breaks.fold((0, None), |(count, _), at| (count + 1, Some(at)));
        self.place = match last {
            None => Place { column: self.place.column + passed.chars().count(), ..self.place },
            Some(last) => Place {
                line: self.place.line + count,
                column: slice(passed, last + 1, passed.len()).chars().count() + 1,
            },
        };
        self.offset = offset;
        self.place
    }
}

/// Converts places of a text into byte offsets; ascending order is fastest.
#[derive(Debug, Clone)]
pub struct Offsets<'t> {
    text: &'t str,
    offset: usize,
    place: Place,
}

impl<'t> Offsets<'t> {
    /// Starts at the first character of `text`.
    #[must_use]
    pub const fn new(text: &'t str) -> Self {
        Self { text, offset: 0, place: Place { line: 1, column: 1 } }
    }

    /// Returns the byte at a place; `None` when the text has no such place.
    pub fn at(&mut self, place: Place) -> Option<usize> {
        if (place.line, place.column) < (self.place.line, self.place.column) {
            *self = Self::new(self.text);
        }
        let mut offset = self.offset;
        let mut column = self.place.column;
        for _ in self.place.line..place.line {
            offset += memchr::memchr(b'\n', slice(self.text, offset, self.text.len()).as_bytes())? + 1;
            column = 1;
        }
        // The place after the last character is valid too. The search does not look for the end of the line, which
        // may be far away.
        let mut rest = slice(self.text, offset, self.text.len()).chars();
        for _ in 0..place.column.checked_sub(column)? {
            offset += rest.next().filter(|character| *character != '\n')?.len_utf8();
        }
        (self.offset, self.place) = (offset, place);
        Some(offset)
    }
}

/// Finds a needle from ascending byte offsets of one text, in one pass over the text.
///
/// Searching from every line to the end of a text without the needle takes quadratic time. This type caches the last
/// result, which stays valid until an offset passes it.
#[derive(Debug, Clone)]
pub struct ForwardSearch<'t> {
    text: &'t str,
    needle: &'t str,
    /// The offset of the last search, and its result.
    known: Option<(usize, Option<usize>)>,
}

impl<'t> ForwardSearch<'t> {
    /// Searches for `needle` in `text`.
    #[must_use]
    pub const fn new(text: &'t str, needle: &'t str) -> Self {
        Self { text, needle, known: None }
    }

    /// Returns the start of the first needle at or after `offset`. An offset before the last one starts a new search.
    pub fn find_from(&mut self, offset: usize) -> Option<usize> {
        if let Some((asked, next)) = self.known
            && asked <= offset
            && next.is_none_or(|next| offset <= next)
        {
            return next;
        }
        let found = self.text.get(offset..).and_then(|rest| rest.find(self.needle)).map(|at| offset + at);
        self.known = Some((offset, found));
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_needle_is_found_from_any_offset() {
        for text in ["", "-->", "a-->b-->", "--->-->", "--", "é-->é"] {
            let starts = || (0..=text.len()).filter(|at| text.is_char_boundary(*at));
            let mut ahead = ForwardSearch::new(text, "-->");
            for at in starts().chain(starts().rev()).chain(starts().step_by(2)) {
                let expected = text.get(at..).and_then(|rest| rest.find("-->")).map(|found| at + found);
                assert_eq!(ahead.find_from(at), expected, "{text:?} from {at}");
            }
        }
    }

    #[test]
    fn offsets_undo_places() {
        let text = "a🦀\nécd\n\nx";
        let starts: std::vec::Vec<usize> =
            text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
        let mut offsets = Offsets::new(text);
        for at in starts.iter().chain(starts.iter().rev()) {
            let place = Places::new(text).at(*at);
            assert_eq!(offsets.at(place), Some(*at), "{place:?}");
        }
        for (line, column) in [(1, 4), (3, 2), (5, 1), (4, 3)] {
            assert_eq!(offsets.at(Place { line, column }), None, "{line}:{column}");
        }
    }

    #[test]
    fn a_long_line_is_walked_once() {
        let text = "a".repeat(1 << 20);
        let mut offsets = Offsets::new(&text);
        for column in 1..=text.len() + 1 {
            assert_eq!(offsets.at(Place { line: 1, column }), Some(column - 1));
        }
    }

    #[test]
    fn clip_never_splits_a_character() {
        for (text, bytes_max, expected) in
            [("", 0, ""), ("abc", 2, "ab"), ("aé", 2, "a"), ("é", 1, ""), ("🦀x", 4, "🦀")]
        {
            assert_eq!(clip(text, bytes_max), expected, "{text:?} to {bytes_max}");
        }
    }

    #[test]
    fn javascript_space_differs_from_rust_in_two_characters() {
        let differing: std::vec::Vec<char> =
            (char::MIN..=char::MAX).filter(|c| is_javascript_space(*c) != c.is_whitespace()).collect();
        assert_eq!(differing, ['\u{85}', '\u{FEFF}']);
    }

    #[test]
    fn places_count_characters_and_go_back() {
        let mut places = Places::new("añb\r\nc🦀d");
        let found: std::vec::Vec<(usize, usize)> = [0, 3, 6, 11, 1, 99]
            .into_iter()
            .map(|at| {
                let p = places.at(at);
                (p.line, p.column)
            })
            .collect();
        assert_eq!(found, [(1, 1), (1, 3), (2, 1), (2, 3), (1, 2), (2, 4)]);
    }
}
