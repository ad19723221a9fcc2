//! The paths that `git status --short` lists, so that `git diff` can be limited to them: otherwise it would check every
//! file of the tree again.

use std::path::{Component, Path, PathBuf};

/// Most paths for which limiting the diff saves time and fits a command line; [`PATH_BYTES_MAX`] limits their bytes.
const PATHS_MAX: usize = 1_000;
const PATH_BYTES_MAX: usize = 64 << 10;

/// The changed paths, from the top of the working tree.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ChangedPaths {
    /// Changed in the working tree, compared with the index.
    pub(super) unstaged: Vec<String>,
    /// Changed in the index, compared with the last commit.
    pub(super) staged: Vec<String>,
}

/// Parses a short status whose paths are relative to `below`, a folder of the tree. Returns `None` if any line is not
/// plain: then the diff must check every file.
pub(super) fn read(status: &str, below: &Path) -> Option<ChangedPaths> {
    let mut listed = ChangedPaths::default();
    for line in status.lines() {
        let (codes, paths) = line.split_at_checked(2)?;
        let (staged, unstaged) = (codes.chars().next()?, codes.chars().nth(1)?);
        let is_untracked = matches!(codes, "??" | "!!");
        let is_unmerged = codes.contains('U') || matches!(codes, "AA" | "DD");
        if is_unmerged {
            return None;
        }
        let paths = both(paths.strip_prefix(' ')?)?;
        for path in paths.into_iter().filter(|_| !is_untracked) {
            let path = from_top(below, &path)?;
            if staged != ' ' {
                listed.staged.push(path.clone());
            }
            if unstaged != ' ' {
                listed.unstaged.push(path);
            }
        }
    }
    let all = || listed.staged.iter().chain(&listed.unstaged);
    let fits = all().count() <= PATHS_MAX && all().map(String::len).sum::<usize>() <= PATH_BYTES_MAX;
    fits.then_some(listed)
}

/// Parses the path of a line, or the two of a rename.
fn both(text: &str) -> Option<Vec<String>> {
    let (first, rest) = one(text)?;
    if rest.is_empty() {
        return Some(vec![first]);
    }
    let (second, rest) = one(rest.strip_prefix(" -> ")?)?;
    rest.is_empty().then(|| vec![first, second])
}

/// Parses a path as git writes it, and returns the rest of the text. Paths with unusual characters are quoted.
fn one(text: &str) -> Option<(String, &str)> {
    if let Some(quoted) = text.strip_prefix('"') {
        return unquoted(quoted);
    }
    let end = text.find(' ').unwrap_or(text.len());
    let (path, rest) = text.split_at_checked(end)?;
    Some((path.to_owned(), rest))
}

/// Reads up to the closing quote.
fn unquoted(text: &str) -> Option<(String, &str)> {
    let mut bytes = Vec::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Some((String::from_utf8(bytes).ok()?, text.get(at + 1..)?)),
            '\\' => bytes.push(match characters.next()?.1 {
                'a' => 0x07,
                'b' => 0x08,
                't' => b'\t',
                'n' => b'\n',
                'v' => 0x0B,
                'f' => 0x0C,
                'r' => b'\r',
                '"' => b'"',
                '\\' => b'\\',
                first => {
                    let digits = [first, characters.next()?.1, characters.next()?.1];
                    u8::from_str_radix(&digits.iter().collect::<String>(), 8).ok()?
                }
            }),
            plain => bytes.extend(plain.encode_utf8(&mut [0; 4]).bytes()),
        }
    }
    None
}

/// Converts a path relative to a folder of the tree to one from the top.
fn from_top(below: &Path, path: &str) -> Option<String> {
    let mut whole = PathBuf::new();
    for part in below.join(path).components() {
        match part {
            Component::Normal(name) => whole.push(name),
            Component::ParentDir if whole.pop() => {}
            Component::CurDir => {}
            _ => return None,
        }
    }
    whole.to_str().filter(|path| !path.is_empty()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(status: &str, below: &str) -> Option<(Vec<String>, Vec<String>)> {
        read(status, Path::new(below)).map(|listed| (listed.unstaged, listed.staged))
    }

    fn paths(unstaged: &[&str], staged: &[&str]) -> (Vec<String>, Vec<String>) {
        let own = |paths: &[&str]| paths.iter().map(|path| (*path).to_owned()).collect();
        (own(unstaged), own(staged))
    }

    #[test]
    fn plain_lines_are_read_and_all_others_declined() {
        for (status, below, expected) in [
            ("", "", Some(paths(&[], &[]))),
            (
                " M a\nM  b\nMM c/d\n?? e\n D f\nA  g\n",
                "",
                Some(paths(&["a", "c/d", "f"], &["b", "c/d", "g"])),
            ),
            (" M ../a\n M b\n", "sub", Some(paths(&["a", "sub/b"], &[]))),
            ("R  a -> b\n R \"c d\" -> e\n", "", Some(paths(&["c d", "e"], &["a", "b"]))),
            (" M \"\\303\\244 \\\"x\\\"\\t\"\n", "", Some(paths(&["ä \"x\"\t"], &[]))),
            (" M \"a -> b\"\n", "", Some(paths(&["a -> b"], &[]))),
            ("UU a\n", "", None),
            ("AA a\n", "", None),
            (" M ../../a\n", "sub", None),
            (" M \"\\377\"\n", "", None),
            (" M \"open\n", "", None),
            (" M a b\n", "", None),
            ("M\n", "", None),
        ] {
            assert_eq!(listed(status, below), expected, "{status:?} in {below:?}");
        }
    }

    #[test]
    fn many_paths_are_declined() {
        let status = " M a\n".repeat(PATHS_MAX + 1);
        assert_eq!(listed(&status, ""), None);
    }
}
