//! Line wrapping: words stay whole, and a word that is longer than a line continues after `…`.

use std::ops::Range;

/// The minimum width; a terminal that reports less is assumed to be wrong.
const COLUMNS_MIN: usize = 20;

/// Returns the width of a text in columns. Colours have no width.
pub(crate) fn columns(text: &str) -> usize {
    visible(text).map(|(_, character)| columns_of(character)).sum()
}

/// Iterates over the visible characters of a text with their byte offsets: all but escape sequences of colours.
fn visible(text: &str) -> impl Iterator<Item = (usize, char)> {
    let mut is_escape = false;
    text.char_indices().filter(move |(_, character)| match (is_escape, character) {
        (false, '\u{1b}') => {
            is_escape = true;
            false
        }
        (true, 'm') => {
            is_escape = false;
            false
        }
        (is_escape, _) => !is_escape,
    })
}

/// Returns the width of a character: two columns for East Asian characters and emoji, none for combining accents.
pub(crate) const fn columns_of(character: char) -> usize {
    match character {
        '\u{300}'..='\u{36f}' | '\u{200d}' | '\u{fe00}'..='\u{fe0f}' | '\u{20d0}'..='\u{20ff}' => 0,
        '\u{1100}'..='\u{115f}'
        | '\u{2e80}'..='\u{a4cf}'
        | '\u{ac00}'..='\u{d7a3}'
        | '\u{f900}'..='\u{faff}'
        | '\u{fe30}'..='\u{fe6f}'
        | '\u{ff00}'..='\u{ff60}'
        | '\u{ffe0}'..='\u{ffe6}'
        | '\u{1f300}'..='\u{1faff}'
        | '\u{20000}'..='\u{3fffd}' => 2,
        _ => 1,
    }
}

/// Breaks a cell's text into lines of at most `width` columns. Later lines keep the indentation of the first one.
///
/// A word that is too long is broken after a `/`, else after a dot or a dash, else anywhere, with `…` at the end of the
/// line.
pub(crate) fn cell_lines(text: &str, width: usize) -> Vec<String> {
    let width = width.max(2);
    if columns(text) <= width {
        return vec![text.to_owned()];
    }
    let indent = text.len() - text.trim_start_matches(' ').len();
    let indent = if indent + 8 <= width { indent } else { 0 };
    let mut lines = Lines { done: Vec::new(), line: " ".repeat(indent), indent: " ".repeat(indent) };
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        lines.add(word, width);
    }
    lines.end()
}

/// Lines under construction.
struct Lines {
    done: Vec<String>,
    line: String,
    indent: String,
}

impl Lines {
    fn is_fresh(&self) -> bool {
        self.line.len() == self.indent.len()
    }

    fn next_line(&mut self) {
        let line = core::mem::replace(&mut self.line, self.indent.clone());
        self.done.push(line);
    }

    fn add(&mut self, word: &str, width: usize) {
        let gap = usize::from(!self.is_fresh());
        if columns(&self.line) + gap + columns(word) <= width {
            self.line.push_str(&" ".repeat(gap));
            self.line.push_str(word);
            return;
        }
        if !self.is_fresh() {
            self.next_line();
        }
        let mut rest = word;
        while self.indent.len() + columns(rest) > width {
            let (piece, mark) = first_piece(rest, width - self.indent.len());
            self.line.push_str(piece);
            self.line.push_str(mark);
            self.next_line();
            rest = rest.get(piece.len()..).unwrap_or_default();
        }
        self.line.push_str(rest);
    }

    fn end(mut self) -> Vec<String> {
        if !self.is_fresh() || self.done.is_empty() {
            self.next_line();
        }
        self.done
    }
}

/// Splits off the part of a long word that fits this line, and returns the mark for its continuation.
fn first_piece(word: &str, width: usize) -> (&str, &'static str) {
    let fits = |room: usize| {
        let mut taken = 0;
        let past = visible(word).find(|(_, character)| {
            taken += columns_of(*character);
            taken > room
        });
        word.get(..past.map_or(word.len(), |(index, _)| index)).unwrap_or(word)
    };
    let whole = fits(width);
    let half = whole.len() / 2;
    let at_dot = || whole.rfind(['.', '_', '-', ',']).filter(|dot| *dot > half);
    if let Some(end) = whole.rfind('/').filter(|slash| *slash > 0).or_else(at_dot) {
        return (whole.get(..=end).unwrap_or(whole), "");
    }
    let piece = fits(width.saturating_sub(1).max(1));
    // Take at least one character; otherwise the loop would not end.
    let least = word.chars().next().map_or(0, char::len_utf8);
    (word.get(..piece.len().max(least)).unwrap_or(word), "…")
}

/// Breaks prose into lines of at most `width` columns, if there is a width. Continuation lines start with `indent`.
///
/// Words stay whole, even if they are longer than a line, so that paths and addresses can be copied.
pub(crate) fn flow(text: &str, width: Option<usize>, indent: &str) -> String {
    let Some(width) = width.map(|width| width.max(COLUMNS_MIN)) else { return text.to_owned() };
    text.split_inclusive('\n').map(|line| flow_line(line, width, indent)).collect()
}

fn flow_line(line: &str, width: usize, indent: &str) -> String {
    let mut flowed = String::new();
    let mut taken = 0;
    for word in words(line) {
        let word = line.get(word).unwrap_or_default();
        let own = columns(word.trim_end_matches(['\n', ' ']));
        if taken > 0 && taken + own > width {
            flowed.truncate(flowed.trim_end_matches(' ').len());
            flowed.push('\n');
            flowed.push_str(indent);
            taken = columns(indent);
        }
        flowed.push_str(word);
        taken += columns(word);
    }
    flowed
}

/// Splits a line into words, each with the spaces after it; leading spaces belong to the first word.
fn words(line: &str) -> Vec<Range<usize>> {
    let (mut words, mut start, mut was_space) = (Vec::new(), 0, true);
    for (index, character) in line.char_indices() {
        let is_space = character == ' ';
        let is_lead = line.get(start..index).is_some_and(|before| before.trim_start_matches(' ').is_empty());
        if was_space && !is_space && !is_lead {
            words.push(start..index);
            start = index;
        }
        was_space = is_space;
    }
    words.push(start..line.len());
    words
}

/// Parses the value of `COLUMNS`.
pub(crate) fn parse_columns(value: Option<&str>) -> Option<usize> {
    value?.trim().parse::<usize>().ok().filter(|columns| *columns > 0).map(|columns| columns.max(COLUMNS_MIN))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_break_at_spaces_then_slashes_then_with_a_mark() {
        for (text, width, expected) in [
            ("", 8, vec![""]),
            ("one two", 8, vec!["one two"]),
            ("one two three", 8, vec!["one two", "three"]),
            ("  one two three", 10, vec!["  one two", "  three"]),
            ("docs/a/long/path.md", 10, vec!["docs/a/", "long/", "path.md"]),
            ("section.context.collect", 12, vec!["section.", "context.", "collect"]),
            ("incomprehensible", 8, vec!["incompr…", "ehensib…", "le"]),
            ("a incomprehensible", 8, vec!["a", "incompr…", "ehensib…", "le"]),
            ("漢字漢字漢字", 5, vec!["漢字…", "漢字…", "漢字"]),
            ("漢", 1, vec!["漢"]),
        ] {
            assert_eq!(cell_lines(text, width), expected, "{text} in {width}");
        }
    }

    #[test]
    fn nothing_of_a_cell_is_lost() {
        let text = "see /srv/www/index.html or incomprehensibilities, naïvely 漢字 there";
        for width in 3..40 {
            let lines = cell_lines(text, width);
            assert!(lines.iter().all(|line| columns(line) <= width), "{width}: {lines:?}");
            let whole: String = lines.concat().replace(['…', ' '], "");
            assert_eq!(whole, text.replace(' ', ""), "{width}");
        }
    }

    #[test]
    fn prose_keeps_its_words_and_colours_take_no_room() {
        let text = "\u{1b}[1mwarning\u{1b}[0m: one two three /a/path/that/is/longer/than/a/line end\nnext\n";
        assert_eq!(
            flow(text, Some(20), "  "),
            "\u{1b}[1mwarning\u{1b}[0m: one two\n  three\n  /a/path/that/is/longer/than/a/line\n  end\nnext\n"
        );
        assert_eq!(flow(text, None, "  "), text);
        assert_eq!(flow("  one two three four five\n", Some(20), "    "), "  one two three four\n    five\n");
    }

    #[test]
    fn columns_are_what_the_variable_says_if_that_is_a_number() {
        for (value, expected) in
            [(None, None), (Some(""), None), (Some("x"), None), (Some("0"), None), (Some("5"), Some(20))]
        {
            assert_eq!(parse_columns(value), expected, "{value:?}");
        }
        assert_eq!(parse_columns(Some(" 132 ")), Some(132));
    }
}
