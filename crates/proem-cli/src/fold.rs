//! Breaks sentences into lines that fit the width of the output.

/// The width when the environment does not say another.
const COLUMNS: usize = 80;

/// Returns the width of lines: `COLUMNS` of the environment within reason, else 80.
pub(crate) fn columns() -> usize {
    let said = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
    said.filter(|columns| *columns > 0).map_or(COLUMNS, |columns: usize| columns.clamp(40, 120))
}

/// Breaks a text between words, so that no line is wider than `columns`, of which `taken` are in use in the first line.
///
/// Lines after the first are indented. A word that does not fit has a line of its own: a path stays whole.
pub(crate) fn folded(text: &str, taken: usize, indent: usize, columns: usize) -> String {
    let (mut folded, mut width) = (String::with_capacity(text.len()), taken);
    for (index, word) in text.split(' ').enumerate() {
        let own = word.chars().count();
        if index > 0 && width + 1 + own > columns {
            folded.push('\n');
            folded.extend(std::iter::repeat_n(' ', indent));
            width = indent;
        } else if index > 0 {
            folded.push(' ');
            width += 1;
        }
        folded.push_str(word);
        width += own;
    }
    folded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_broken_between_words() {
        assert_eq!(folded("one two three", 0, 2, 9), "one two\n  three");
        assert_eq!(folded("one two three", 4, 2, 9), "one\n  two\n  three");
        assert_eq!(folded("a verylongword b", 0, 1, 5), "a\n verylongword\n b");
        assert_eq!(folded("", 3, 2, 9), "");
    }
}
