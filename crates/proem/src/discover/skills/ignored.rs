//! Ignore files inside a directory of skills; none from above it counts.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use proem_core::fact::Absence;
use proem_core::limit::IGNORE_FILE_BYTES_MAX;

use crate::file::{Cap, ReadPolicy, read_bytes};

/// The names, in the order in which later ones overrule earlier ones.
pub(super) const NAMES: [&str; 3] = [".gitignore", ".ignore", ".fdignore"];

const CAP: Cap = Cap { bytes_max: IGNORE_FILE_BYTES_MAX, words: "64 KiB" };

/// The rules of one folder.
pub(super) struct Rules {
    matcher: Gitignore,
}

impl Rules {
    /// Reads those of the three files that `exists` names. A line that is no pattern is passed over, as
    /// git does. A file that cannot be read comes back with its reason.
    pub(super) fn read(
        folder: &Path,
        exists: impl Fn(&str) -> bool,
        policy: &ReadPolicy,
    ) -> (Option<Self>, Vec<(&'static str, Absence)>) {
        let mut builder = GitignoreBuilder::new(folder);
        let (mut has_rules, mut failed) = (false, Vec::new());
        for name in NAMES.into_iter().filter(|name| exists(name)) {
            match read_bytes(&folder.join(name), policy, CAP) {
                Ok(bytes) => {
                    has_rules = true;
                    let text = String::from_utf8_lossy(&bytes);
                    let text = text.strip_prefix('\u{FEFF}').unwrap_or(&text);
                    // Nothing stands for nothing; the library takes it for everything.
                    let is_pattern = |line: &&str| !matches!(line.trim_end(), "!" | "!/" | "/");
                    for line in text.lines().filter(is_pattern) {
                        let _ = builder.add_line(Some(folder.join(name)), &as_git_reads(line));
                    }
                }
                Err(Absence::NoSuchFile) => {}
                Err(why) => failed.push((name, why)),
            }
        }
        let matcher = if has_rules { builder.build().ok() } else { None };
        (matcher.map(|matcher| Self { matcher }), failed)
    }
}

/// Classes of characters that git knows by name.
const CLASSES: [(&str, &str); 12] = [
    ("[:alnum:]", "a-zA-Z0-9"),
    ("[:alpha:]", "a-zA-Z"),
    ("[:blank:]", " \t"),
    ("[:cntrl:]", "\u{1}-\u{1F}\u{7F}"),
    ("[:digit:]", "0-9"),
    ("[:graph:]", "!-~"),
    ("[:lower:]", "a-z"),
    ("[:print:]", " -~"),
    ("[:punct:]", "!-/:-@\\[-`{-~"),
    ("[:space:]", " \t\r\u{B}\u{C}"),
    ("[:upper:]", "A-Z"),
    ("[:xdigit:]", "0-9a-fA-F"),
];

/// A pattern in words that the matcher reads as git reads the original: braces are no alternatives,
/// classes have names, and a tab at the end belongs to the pattern.
fn as_git_reads(line: &str) -> String {
    let mut escaped = String::with_capacity(line.len());
    let mut is_escaped = false;
    for character in line.chars() {
        if matches!(character, '{' | '}') && !is_escaped {
            escaped.push('\\');
        }
        is_escaped = character == '\\' && !is_escaped;
        escaped.push(character);
    }
    for (name, characters) in CLASSES {
        escaped = escaped.replace(name, characters);
    }
    match escaped.strip_suffix('\t') {
        Some(rest) => format!("{rest}[\t]"),
        None => escaped,
    }
}

/// The ignore file that excludes `path`: the rules of the nearest folder that says anything decide.
pub(super) fn excluding(rules: &[Rules], path: &Path, is_folder: bool) -> Option<String> {
    for own in rules.iter().rev() {
        match own.matcher.matched(path, is_folder) {
            Match::None => {}
            Match::Whitelist(_) => return None,
            Match::Ignore(glob) => {
                return Some(
                    glob.from()
                        .map_or_else(|| "an ignore file".to_owned(), |from| from.display().to_string()),
                );
            }
        }
    }
    None
}

/// Tells whether a name is one of the three.
pub(super) fn is_ignore_file(name: &[u8]) -> Option<&'static str> {
    NAMES.into_iter().find(|known| OsStr::new(known).as_bytes() == name)
}
