//! The paths that the words of a command name: a word that is a path, and paths inside a word, as in `-fhooks/Mk`,
//! `--file=hooks/Mk` and `. ./hooks/run`.
//!
//! A false path costs only a line in the list of pinned files. So this finds everything that could be a path, and the
//! caller tests which of them are files.

use std::collections::BTreeSet;

/// Characters between a path and the text beside it: those of shells, options and lists.
const BETWEEN: [char; 19] =
    ['=', ';', '&', '|', ',', ':', '\'', '"', '`', '(', ')', '<', '>', '{', '}', '[', ']', '$', '\\'];

/// Longest part of which every suffix is tried.
const ENDS_BYTES_MAX: usize = 256;

/// Returns everything in a word that could be a path, the word itself included.
pub(super) fn paths(word: &str) -> BTreeSet<&str> {
    let mut found = BTreeSet::from([word]);
    for part in word.split(|sign: char| sign.is_whitespace() || BETWEEN.contains(&sign)) {
        found.insert(part);
        // The text after a variable, as in `$PWD/hooks/run`.
        found.extend(part.split_once('/').map(|(_, behind)| behind.trim_start_matches('/')));
        // Letters of options may precede a path, and it is unknown where they end.
        if part.starts_with(['-', '+', '@', '%']) && part.len() <= ENDS_BYTES_MAX {
            let ends = part.char_indices().skip(1);
            found.extend(ends.filter_map(|(at, _)| part.get(at..)));
        }
    }
    found.remove("");
    found
}

/// Tells whether a command may run more than the files that its words name: a line for a shell or an interpreter, or a
/// word whose meaning depends on its context.
pub(super) fn is_open_ended(command: &[String]) -> bool {
    let is_line = |word: &String| {
        let letters = word.strip_prefix('-').filter(|letters| !letters.starts_with('-'));
        let is_short =
            |letters: &str| letters.len() <= 4 && letters.bytes().all(|byte| byte.is_ascii_alphabetic());
        letters.is_some_and(|letters| is_short(letters) && letters.contains(['c', 'e', 'm']))
    };
    let is_odd = |word: &String| word.contains(['$', '`', '*', '?', '~', ';', '|', '&']);
    command.iter().skip(1).any(|word| is_line(word) || is_odd(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_inside_of_words_are_found() {
        for (word, path) in [
            ("hooks/run", "hooks/run"),
            (". ./hooks/run", "./hooks/run"),
            ("-fhooks/Mk", "hooks/Mk"),
            ("-sfhooks/Mk", "hooks/Mk"),
            ("--file=hooks/Mk", "hooks/Mk"),
            ("@hooks/args", "hooks/args"),
            ("cd x;sh hooks/run|cat", "hooks/run"),
            ("sh 'hooks/my run'", "hooks/my"),
            ("\"$PWD/hooks/run\"", "hooks/run"),
            ("${PWD}/hooks/run&&true", "hooks/run"),
            ("PATH=a:hooks/bin", "hooks/bin"),
            ("a,hooks/b", "hooks/b"),
            ("-o/", "/"),
            ("-ä/x", "/x"),
        ] {
            assert!(paths(word).contains(path), "{word}: {:?}", paths(word));
        }
        assert_eq!(paths("-f"), BTreeSet::from(["-f", "f"]));
        assert!(paths("").is_empty());
    }

    #[test]
    fn command_lines_are_told_from_plain_words() {
        for (command, expected) in [
            (&["hooks/run", "a"][..], false),
            (&["python3", "hooks/x.py", "--verbose"], false),
            (&["make", "-s", "-fhooks/Mk"], false),
            (&["bash", "-c", "true"], true),
            (&["bash", "-ec", "true"], true),
            (&["python3", "-m", "hooks"], true),
            (&["env", "sh", "hooks/*"], true),
        ] {
            let words: Vec<String> = command.iter().map(|word| (*word).to_owned()).collect();
            assert_eq!(is_open_ended(&words), expected, "{command:?}");
        }
    }
}
