//! Ignore files, read with the usual checks and compiled once per build, within one shared budget.
//!
//! A file that cannot be read, or exceeds the budget, excludes no skill, and prevents every import of files below its
//! folder, because its patterns are unknown.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use proem_core::fact::Absence;
use proem_core::limit::{
    IGNORE_BYTES_MAX, IGNORE_COMPARISONS_MAX, IGNORE_FILE_BYTES_MAX, IGNORE_PATTERNS_MAX,
};
use proem_core::note::{Code, Note, Severity};

use super::file;
use crate::observe::file::{Cap, ReadPolicy, read_bytes, shown};

/// The names in directories of skills; later ones override earlier ones.
pub(crate) const NAMES: [&str; 3] = [".gitignore", ".ignore", ".fdignore"];

const CAP: Cap = Cap::new(IGNORE_FILE_BYTES_MAX);

/// The ignore files of a folder that apply, and the dialect of their patterns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Reader {
    /// All three names, with git's patterns.
    Skills,
    /// `.gitignore` only, with the patterns of the `ignore` crate: agents that import files use the same one.
    Imports,
    /// `.gitignore` only, with git's patterns.
    Walk,
    /// `.cursorignore` only, with git's patterns.
    Cursor,
}

impl Reader {
    const fn names(self) -> &'static [&'static str] {
        match self {
            Self::Skills => &NAMES,
            Self::Imports | Self::Walk => &[".gitignore"],
            Self::Cursor => &[".cursorignore"],
        }
    }
}

/// The rules of one folder.
#[derive(Debug, Default)]
pub(super) struct Rules {
    matcher: Option<Gitignore>,
    /// The files that exist and could not be used.
    pub(super) unread: Vec<UnusableFile>,
}

impl Rules {
    /// Tells whether there is any rule.
    pub(super) const fn is_any(&self) -> bool {
        self.matcher.is_some()
    }
}

/// An ignore file that could not be used.
#[derive(Debug, Clone)]
pub(super) struct UnusableFile {
    pub(super) path: PathBuf,
    /// The reason; `None` if the budget is used up.
    pub(super) why: Option<Absence>,
}

/// All ignore files of one build.
#[derive(Debug, Clone)]
pub(crate) struct IgnoreFiles(RefCell<State>);

#[derive(Debug, Clone)]
struct State {
    /// The folders read so far.
    known: BTreeMap<(PathBuf, Reader), Arc<Rules>>,
    bytes: usize,
    patterns: usize,
    /// The number of paths compared, multiplied by the patterns.
    comparisons: usize,
    is_spent: bool,
    /// The note that the budget is used up, until it is taken.
    note: Option<Note>,
}

impl Default for IgnoreFiles {
    fn default() -> Self {
        let (known, is_spent, note) = (BTreeMap::new(), false, None);
        Self(RefCell::new(State { known, bytes: 0, patterns: 0, comparisons: 0, is_spent, note }))
    }
}

/// The result of applying the rules above a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    Free,
    Ignored,
    /// The rules are unknown, because this file could not be used.
    Unknown(PathBuf),
}

impl IgnoreFiles {
    /// Returns the rules of a folder, from those of its files that `exists` reports, and whether they were read just
    /// now. Lines that are not patterns are skipped, as git does.
    pub(super) fn rules_of(
        &self,
        folder: &Path,
        reader: Reader,
        exists: impl Fn(&str) -> bool,
        policy: &ReadPolicy,
    ) -> (Arc<Rules>, bool) {
        let key = (folder.to_owned(), reader);
        if let Some(known) = self.0.borrow().known.get(&key) {
            return (Arc::clone(known), false);
        }
        let mut state = self.0.borrow_mut();
        let rules = Arc::new(state.read(folder, reader, exists, policy));
        state.known.insert(key, Arc::clone(&rules));
        (rules, true)
    }

    /// Returns the ignore file that excludes `path`: the nearest folder with a matching rule decides.
    pub(super) fn excluding(&self, rules: &[Arc<Rules>], path: &Path, is_folder: bool) -> Option<String> {
        for own in rules.iter().rev().filter_map(|rules| rules.matcher.as_ref()) {
            if !self.0.borrow_mut().compare(own) {
                return None;
            }
            match own.matched(path, is_folder) {
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

    /// Tells whether the ignore files from a root to a file leave it out. For imports only patterns that match the file
    /// itself count, as in the agent that reads them: `docs/` ignores no file in `docs`.
    pub(super) fn verdict(&self, rules: &[Arc<Rules>], path: &Path, reader: Reader) -> Verdict {
        let mut verdict = Verdict::Free;
        for own in rules {
            if let Some(unread) = own.unread.first() {
                return Verdict::Unknown(unread.path.clone());
            }
            let Some(matcher) = &own.matcher else { continue };
            if !self.0.borrow_mut().compare(matcher) {
                return Verdict::Unknown(matcher.path().join(".gitignore"));
            }
            let found = match reader {
                Reader::Imports => matcher.matched(path, false),
                _ => matcher.matched_path_or_any_parents(path, false),
            };
            verdict = match found {
                Match::None => verdict,
                Match::Ignore(_) => Verdict::Ignored,
                Match::Whitelist(_) => Verdict::Free,
            };
        }
        verdict
    }

    /// Returns the note that the budget is used up, on the first call only.
    pub(super) fn take_note(&self) -> Option<Note> {
        self.0.borrow_mut().note.take()
    }

    /// Returns the bytes and patterns that were compiled.
    #[cfg(test)]
    pub(super) fn spent(&self) -> (usize, usize) {
        let state = self.0.borrow();
        (state.bytes, state.patterns)
    }
}

impl State {
    fn read(
        &mut self,
        folder: &Path,
        reader: Reader,
        exists: impl Fn(&str) -> bool,
        policy: &ReadPolicy,
    ) -> Rules {
        let mut builder = GitignoreBuilder::new(folder);
        let (mut has_rules, mut unread) = (false, Vec::new());
        for name in reader.names().iter().filter(|name| exists(name)) {
            let path = folder.join(name);
            match self.text(&path, policy) {
                Ok(text) => {
                    has_rules = true;
                    for line in text.lines() {
                        add(&mut builder, &path, line, reader);
                    }
                }
                Err(Some(Absence::NoSuchFile)) => {}
                Err(why) => unread.push(UnusableFile { path, why }),
            }
        }
        let matcher = if has_rules { builder.build().ok() } else { None };
        Rules { matcher, unread }
    }

    /// Reads an ignore file within the budget. Once one does not fit, no other is read.
    fn text(&mut self, path: &Path, policy: &ReadPolicy) -> Result<String, Option<Absence>> {
        if self.is_spent {
            return Err(None);
        }
        let bytes = read_bytes(path, policy, CAP).map_err(Some)?;
        let text = String::from_utf8_lossy(&bytes);
        let text = text.strip_prefix('\u{FEFF}').unwrap_or(&text);
        let patterns = text.lines().filter(|line| is_pattern(line)).count();
        if self.bytes + bytes.len() > IGNORE_BYTES_MAX || self.patterns + patterns > IGNORE_PATTERNS_MAX {
            self.spend(path);
            return Err(None);
        }
        self.bytes += bytes.len();
        self.patterns += patterns;
        Ok(text.to_owned())
    }

    /// Charges one comparison of a path; returns `false` if the budget is used up.
    fn compare(&mut self, rules: &Gitignore) -> bool {
        self.comparisons = self.comparisons.saturating_add(rules.len() + 1);
        let is_left = self.comparisons <= IGNORE_COMPARISONS_MAX;
        if !is_left {
            self.spend(&rules.path().join(".gitignore"));
        }
        is_left
    }

    fn spend(&mut self, path: &Path) {
        if std::mem::replace(&mut self.is_spent, true) {
            return;
        }
        let path = shown(path);
        let message = format!(
            "{path} and all ignore files behind it do not count: over {} KiB, {IGNORE_PATTERNS_MAX} patterns or \
             {IGNORE_COMPARISONS_MAX} comparisons for the ignore files of one build; skills that they name are listed, \
             and files below their folders are not imported",
            IGNORE_BYTES_MAX >> 10,
        );
        let note = Note::new(Code::OverLimit, Severity::Warning, message);
        self.note = Some(note.with_hint("shorten the ignore files").with_source(file(&path)));
    }
}

fn is_pattern(line: &str) -> bool {
    !line.trim().is_empty() && !line.starts_with('#')
}

fn add(builder: &mut GitignoreBuilder, path: &Path, line: &str, reader: Reader) {
    let line = match reader {
        // An empty pattern matches nothing in git; the library would match everything.
        Reader::Skills | Reader::Walk | Reader::Cursor if matches!(line.trim_end(), "!" | "!/" | "/") => {
            return;
        }
        Reader::Skills | Reader::Walk | Reader::Cursor => &*as_git_reads(line),
        Reader::Imports => line,
    };
    let _ = builder.add_line(Some(path.to_owned()), line);
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

/// Rewrites a pattern so that the matcher treats it as git treats the original: braces are literal, classes have names,
/// and a tab at the end belongs to the pattern.
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

/// Tells whether a name is one of the three.
pub(super) fn is_ignore_file(name: &[u8]) -> Option<&'static str> {
    NAMES.into_iter().find(|known| OsStr::new(known).as_bytes() == name)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    struct Folders(tempfile::TempDir);

    impl Folders {
        /// Makes `count` folders, each with a `.gitignore` of this text.
        fn new(count: usize, text: &str) -> std::io::Result<Self> {
            let root = tempfile::tempdir()?;
            for number in 0..count {
                let folder = root.path().join(number.to_string());
                fs::create_dir(&folder)?;
                fs::write(folder.join(".gitignore"), text)?;
            }
            Ok(Self(root))
        }

        fn rules(&self, ignores: &IgnoreFiles, number: usize, reader: Reader) -> Arc<Rules> {
            let policy = ReadPolicy::user(None, &[]);
            ignores.rules_of(&self.0.path().join(number.to_string()), reader, |_| true, &policy).0
        }
    }

    #[test]
    fn three_hundred_folders_share_one_budget() -> std::io::Result<()> {
        let pattern = |number: usize| format!("*a{number}*b\n");
        let text: String = (0..).map(pattern).take(6_000).collect();
        let folders = Folders::new(300, &text)?;
        let ignores = IgnoreFiles::default();
        let all: Vec<Arc<Rules>> =
            (0..300).map(|number| folders.rules(&ignores, number, Reader::Skills)).collect();
        assert_eq!(ignores.spent(), (3 * text.len(), 18_000));
        assert_eq!(all.iter().filter(|rules| rules.is_any()).count(), 3);
        assert_eq!(
            all.iter().filter(|rules| rules.unread.iter().any(|unread| unread.why.is_none())).count(),
            297
        );
        let note = ignores.take_note().map(|note| note.code);
        assert_eq!((note, ignores.take_note()), (Some(Code::OverLimit), None));
        // Imports use the same budget, and another build has its own.
        assert!(!folders.rules(&ignores, 0, Reader::Imports).is_any());
        assert!(folders.rules(&IgnoreFiles::default(), 299, Reader::Imports).is_any());
        Ok(())
    }

    #[test]
    fn bytes_count_as_well_as_patterns() -> std::io::Result<()> {
        let text = "#".repeat(IGNORE_FILE_BYTES_MAX);
        let folders = Folders::new(6, &text)?;
        let ignores = IgnoreFiles::default();
        let read = (0..6).filter(|number| folders.rules(&ignores, *number, Reader::Skills).is_any()).count();
        assert_eq!((read, ignores.spent()), (IGNORE_BYTES_MAX / text.len(), (IGNORE_BYTES_MAX, 0)));
        Ok(())
    }

    #[test]
    fn a_file_is_read_once() -> std::io::Result<()> {
        let folders = Folders::new(1, "a\n")?;
        let ignores = IgnoreFiles::default();
        let first = folders.rules(&ignores, 0, Reader::Skills);
        fs::write(folders.0.path().join("0/.gitignore"), "b\nc\n")?;
        assert!(Arc::ptr_eq(&first, &folders.rules(&ignores, 0, Reader::Skills)));
        assert_eq!(ignores.spent(), (2, 1));
        Ok(())
    }

    #[test]
    fn comparisons_have_a_budget() -> std::io::Result<()> {
        let folders = Folders::new(1, &"*\n".repeat(10_000))?;
        let ignores = IgnoreFiles::default();
        let rules = [folders.rules(&ignores, 0, Reader::Skills)];
        let path = folders.0.path().join("0/a");
        let most = IGNORE_COMPARISONS_MAX / 10_001;
        assert!((0..most).all(|_| ignores.excluding(&rules, &path, false).is_some()));
        assert_eq!(ignores.excluding(&rules, &path, false), None);
        assert!(ignores.take_note().is_some());
        assert_eq!(
            ignores.verdict(&rules, &path, Reader::Imports),
            Verdict::Unknown(folders.0.path().join("0/.gitignore"))
        );
        Ok(())
    }
}
