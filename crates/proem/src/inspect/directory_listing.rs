//! Lists a directory, for a user interface in which a file is chosen.

use std::fs;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;

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
        for refused in ["..", "out", "../outside", "b.md", "missing"] {
            assert_eq!(list(&root.join(refused), &roots, 10), None, "{refused}");
        }
        Ok(())
    }
}
