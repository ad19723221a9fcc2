//! Names sources for people: without the column, and no longer than there is room.

use proem_core::source::Source;

use crate::terminal::visible_line;

/// The source as a whole. A variable that was read from a file is called by the file.
pub(crate) fn name(source: &Source) -> String {
    match source {
        Source::Variable { path: Some(path), .. } => visible_line(path),
        _ => visible_line(&source.without_place().to_string()),
    }
}

/// The source's line that its text begins with, where that is known.
pub(crate) fn first_line(source: &Source) -> Option<usize> {
    match source {
        // A file is inserted whole.
        Source::Variable { path: Some(_), .. } => Some(1),
        _ => source.place().map(|place| place.line),
    }
}

/// Puts the line behind the name, as editors read it.
pub(crate) fn with_line(name: &str, line: Option<usize>) -> String {
    line.map_or_else(|| name.to_owned(), |line| format!("{name}:{line}"))
}

/// Keeps the end of a label, which tells sources apart: at most `characters_max` characters, cut before
/// a `/` or a space where there is one.
pub(crate) fn shortened(label: &str, characters_max: usize) -> String {
    let characters: Vec<char> = label.chars().collect();
    if characters.len() <= characters_max {
        return label.to_owned();
    }
    let end = &characters[characters.len() + 1 - characters_max..];
    let start = end.iter().position(|character| matches!(character, '/' | ' ')).unwrap_or(0);
    core::iter::once(&'…').chain(&end[start..]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_cut_on_the_left() {
        for (label, expected) in [
            ("", ""),
            ("[git:branch]", "[git:branch]"),
            ("/srv/AGENTS.md:9", "…/AGENTS.md:9"),
            ("/srv/long-name-of-a-file.md:12", "…f-a-file.md:12"),
            ("profile mine, section.base", "… section.base"),
            ("123456789012345", "123456789012345"),
            ("ä234567890123456", "…34567890123456"),
        ] {
            assert_eq!(shortened(label, 15), expected, "{label}");
        }
    }
}
