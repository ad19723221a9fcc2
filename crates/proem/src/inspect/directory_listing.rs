//! Lists a directory, for a user interface in which a file is chosen.

use std::collections::VecDeque;
use std::fs;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use proem_core::limit::SEARCH_ENTRIES_MAX;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::observe::deadline;
use crate::observe::file::open_below;

/// A directory's content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    /// Directories first, then files, each by name.
    pub entries: Vec<ListingEntry>,
    /// True if there are more entries than listed.
    pub is_cut: bool,
}

/// A file or a directory.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ListingEntry {
    /// True for a file.
    pub is_file: bool,
    /// The name.
    pub name: String,
    /// A file's length.
    pub bytes: Option<u64>,
}

/// Lists a directory that lies in one of `roots` once links are resolved; `None` for any other one, and for anything
/// that is not a directory. Names that are not text, `.git`, and links that lead out are left out.
#[must_use]
pub fn list(directory: &Path, roots: &[PathBuf], most: usize) -> Option<Listing> {
    let real = crate::observe::file::canonical(directory).ok()?;
    let root = roots
        .iter()
        .filter_map(|root| crate::observe::file::canonical(root).ok())
        .find(|root| real.starts_with(root))?;
    let opened = open(&root, real.strip_prefix(&root).ok()?).ok()?;
    let mut entries: Vec<ListingEntry> = Dir::read_from(&opened)
        .ok()?
        .flatten()
        .filter_map(|found| entry(&opened, &real, &root, found.file_name().to_str().ok()?))
        .collect();
    entries.sort();
    let is_cut = entries.len() > most;
    entries.truncate(most);
    Some(Listing { entries, is_cut })
}

/// A file or a directory that a search found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundEntry {
    /// The path from the directory that was searched.
    pub below: String,
    /// The entry.
    pub entry: ListingEntry,
}

/// Searches a directory that lies in one of `roots`, on all levels, for entries whose path below it has every word of
/// `text`, whatever the case of letters. Links to directories are not followed, and `.git` is left out, as in [`list`].
/// Returns at most `most` entries, those with the words in their names first, and tells whether some are left out; `None` for
/// a directory that [`list`] does not list either.
#[must_use]
pub fn search(
    directory: &Path,
    roots: &[PathBuf],
    text: &str,
    most: usize,
) -> Option<(Vec<FoundEntry>, bool)> {
    let real = crate::observe::file::canonical(directory).ok()?;
    let root = roots
        .iter()
        .filter_map(|root| crate::observe::file::canonical(root).ok())
        .find(|root| real.starts_with(root))?;
    let start = real.strip_prefix(&root).ok()?;
    open(&root, start).ok()?;
    let words: Vec<String> = text.split_whitespace().map(str::to_lowercase).collect();
    let mut search = Search { words: &words, root: &root, left: SEARCH_ENTRIES_MAX, found: Vec::new() };
    let mut waiting = VecDeque::from([String::new()]);
    let walk = || {
        while search.left > 0
            && deadline::check().is_ok()
            && let Some(below) = waiting.pop_front()
        {
            let joined = |path: &Path| if below.is_empty() { path.to_owned() } else { path.join(&below) };
            // One at a time, so that a wide tree needs no more descriptors than a narrow one. A link on the way, as to a folder
            // that leads back up, is refused.
            if let Ok(folder) = open(&root, &joined(start)) {
                waiting.extend(search.visit(&folder, &joined(&real), &below));
            }
        }
    };
    // The budget and the cancellation of a build count for a search too.
    let _stopped = deadline::build(walk);
    let is_whole = search.left > 0 && waiting.is_empty();
    let mut found = search.found;
    found.sort_by(|a, b| a.0.cmp(&b.0).then_with(|| a.1.below.cmp(&b.1.below)));
    let is_cut = !is_whole || found.len() > most;
    Some((found.into_iter().take(most).map(|(_, entry)| entry).collect(), is_cut))
}

/// A search in progress.
struct Search<'s> {
    words: &'s [String],
    root: &'s Path,
    /// The number of entries that may still be visited.
    left: usize,
    /// The entries that fit, each with its rank.
    found: Vec<(Rank, FoundEntry)>,
}

/// The order of results: words in the name come before words in the path, and short paths before long ones.
type Rank = (bool, usize);

impl Search<'_> {
    /// Visits the entries of a folder. Returns its folders.
    fn visit(&mut self, folder: &OwnedFd, path: &Path, below: &str) -> Vec<String> {
        let mut folders = Vec::new();
        let Ok(entries) = Dir::read_from(folder) else { return folders };
        for entry in entries.flatten() {
            if self.left == 0 {
                break;
            }
            self.left -= 1;
            let Some(name) = entry.file_name().to_str().ok() else { continue };
            let Some(listed) = self::entry(folder, path, self.root, name) else { continue };
            let whole = if below.is_empty() { name.to_owned() } else { format!("{below}/{name}") };
            if !listed.is_file {
                folders.push(whole.clone());
            }
            let (lower, own) = (whole.to_lowercase(), name.to_lowercase());
            if self.words.iter().all(|word| lower.contains(word.as_str())) {
                let is_elsewhere = !self.words.iter().all(|word| own.contains(word.as_str()));
                self.found.push(((is_elsewhere, whole.len()), FoundEntry { below: whole, entry: listed }));
            }
        }
        folders
    }
}

/// Opens a folder below a root; the way there was free of links a moment ago and must be so still.
fn open(root: &Path, below: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = rustix::fs::open(root, flags, Mode::empty())?;
    if below.as_os_str().is_empty() {
        return Ok(opened);
    }
    open_below(opened.as_fd(), below.as_os_str().as_bytes(), flags)
}

fn entry(folder: &OwnedFd, path: &Path, root: &Path, name: &str) -> Option<ListingEntry> {
    if matches!(name, "." | ".." | ".git") {
        return None;
    }
    let status = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    let (kind, bytes) = match FileType::from_raw_mode(status.st_mode) {
        FileType::Symlink => {
            let real = crate::observe::file::canonical(&path.join(name))
                .ok()
                .filter(|real| real.starts_with(root))?;
            let status = fs::symlink_metadata(real).ok()?;
            let kind = if status.is_dir() { FileType::Directory } else { FileType::RegularFile };
            (kind, status.len())
        }
        kind => (kind, u64::try_from(status.st_size).unwrap_or_default()),
    };
    let is_file = match kind {
        FileType::RegularFile => true,
        FileType::Directory => false,
        _ => return None,
    };
    Some(ListingEntry { is_file, name: name.to_owned(), bytes: is_file.then_some(bytes) })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn what_lies_outside_is_not_listed() -> std::io::Result<()> {
        let folder = tempfile::tempdir()?;
        let root = folder.path().join("root");
        fs::create_dir_all(root.join("sub"))?;
        fs::create_dir_all(root.join(".git"))?;
        fs::create_dir_all(folder.path().join("outside"))?;
        fs::write(root.join("b.md"), "12345")?;
        fs::write(root.join("a.md"), "")?;
        symlink("b.md", root.join("link.md"))?;
        symlink("../outside", root.join("out"))?;
        symlink("nowhere", root.join("dangling"))?;
        let roots = [root.clone()];

        let listing = list(&root, &roots, 10).expect("the root is allowed");
        let names: Vec<(&str, Option<u64>)> =
            listing.entries.iter().map(|entry| (entry.name.as_str(), entry.bytes)).collect();
        assert_eq!(names, [("sub", None), ("a.md", Some(0)), ("b.md", Some(5)), ("link.md", Some(5))]);
        assert!(!listing.is_cut);
        assert!(list(&root, &roots, 2).is_some_and(|listing| listing.is_cut && listing.entries.len() == 2));
        let found = |text: &str| {
            let (found, is_cut) = search(&root, &roots, text, 10).expect("the root is allowed");
            assert!(!is_cut);
            found.into_iter().map(|one| one.below).collect::<Vec<_>>()
        };
        fs::write(root.join("sub/Deep.md"), "")?;
        assert_eq!(found("deep"), ["sub/Deep.md"]);
        assert_eq!(found("SUB md"), ["sub/Deep.md"]);
        assert_eq!(found("sub"), ["sub", "sub/Deep.md"]);
        assert_eq!(found("outside"), Vec::<String>::new());
        assert_eq!(search(&root.join("out"), &roots, "", 10), None);
        fs::remove_file(root.join("sub/Deep.md"))?;
        for refused in ["..", "out", "../outside", "b.md", "missing"] {
            assert_eq!(list(&root.join(refused), &roots, 10), None, "{refused}");
        }
        Ok(())
    }
}
