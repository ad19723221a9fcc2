//! Labels of sources for people: without the column, shortened to the space available.

use proem_core::source::Source;

use crate::paths::Paths;

/// Returns the name of a source. A variable with the content of a file has the name of that file.
pub(crate) fn name(source: &Source, paths: &Paths) -> String {
    match source {
        Source::Variable { path: Some(path), .. } => paths.shown(path),
        _ => paths.source(&source.without_place()),
    }
}

/// Returns the line of the source that its text starts at, if known.
pub(crate) fn first_line(source: &Source) -> Option<usize> {
    match source {
        // The whole file is inserted.
        Source::Variable { path: Some(_), .. } => Some(1),
        _ => source.place().map(|place| place.line),
    }
}

/// Appends the line to a name in the `name:line` form of editors.
pub(crate) fn with_line(name: &str, line: Option<usize>) -> String {
    line.map_or_else(|| name.to_owned(), |line| format!("{name}:{line}"))
}

/// Shortens a label to its last `characters_max` characters, which distinguish sources. Cuts before a `/` or a space if
/// there is one.
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
