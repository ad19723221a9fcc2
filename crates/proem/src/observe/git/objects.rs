//! Reads objects of a repository one by one, through one `git cat-file --batch`.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use proem_core::fact::Absence;
use proem_core::limit::GIT_BLOB_BYTES_MAX;

use super::shadow::Shadow;
use crate::observe::process::{Dialogue, ProcessStop};

/// A running `git cat-file --batch`.
pub(super) struct Objects {
    dialogue: Dialogue,
}

/// The result of reading an object.
pub(super) enum Object {
    /// Its bytes.
    Bytes(Vec<u8>),
    /// Larger than the limit; its size in bytes.
    TooLarge(u64),
    /// The object store does not have it.
    Missing,
}

/// An entry of a tree object.
pub(super) struct TreeEntry {
    pub(super) name: OsString,
    pub(super) kind: EntryKind,
    pub(super) id: String,
}

/// The kind of a tree's entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EntryKind {
    Folder,
    File,
    Link,
    /// A commit of another repository, which is checked out as an empty folder.
    Submodule,
}

impl Objects {
    pub(super) fn new(shadow: &Shadow) -> Result<Self, Absence> {
        Ok(Self { dialogue: shadow.start(&["cat-file", "--batch"])? })
    }

    /// Reads an object by its id, or by a name that has no white space.
    pub(super) fn read(&mut self, id: &str, shadow: &Shadow) -> Result<Object, Absence> {
        self.answer(id).map_err(|why| match why {
            ProcessStop::CannotRead(_) => Absence::GitFailed(shadow.complaint(&self.dialogue.complaints())),
            why => shadow.stopped(why),
        })
    }

    fn answer(&mut self, id: &str) -> Result<Object, ProcessStop> {
        self.dialogue.ask(id)?;
        let head = self.dialogue.line()?;
        // `<id> <type> <size>`, or `<id> missing`.
        let size = str::from_utf8(&head).ok().and_then(|head| head.rsplit(' ').next()?.parse::<u64>().ok());
        let Some(size) = size else { return Ok(Object::Missing) };
        match usize::try_from(size) {
            Ok(bytes) if bytes <= GIT_BLOB_BYTES_MAX => {
                let mut content = self.dialogue.bytes(bytes.saturating_add(1))?;
                content.truncate(bytes);
                Ok(Object::Bytes(content))
            }
            _ => self.dialogue.skip(size.saturating_add(1)).map(|()| Object::TooLarge(size)),
        }
    }
}

/// Parses a tree object: `<mode> <name>\0<id>`, again and again, with ids of `id_bytes` bytes.
///
/// Leaves out names that git refuses to check out: they would lead out of the folder, or into `.git`.
pub(super) fn parse_tree(mut bytes: &[u8], id_bytes: usize) -> Option<Vec<TreeEntry>> {
    let mut entries = Vec::new();
    while !bytes.is_empty() {
        let space = memchr::memchr(b' ', bytes)?;
        let (mode, rest) = (bytes.get(..space)?, bytes.get(space + 1..)?);
        let end = memchr::memchr(0, rest)?;
        let (name, rest) = (rest.get(..end)?, rest.get(end + 1..)?);
        let id = rest.get(..id_bytes)?;
        bytes = rest.get(id_bytes..)?;
        let kind = match mode {
            b"40000" | b"040000" => EntryKind::Folder,
            b"120000" => EntryKind::Link,
            b"160000" => EntryKind::Submodule,
            _ => EntryKind::File,
        };
        if is_safe(name) {
            entries.push(TreeEntry { name: OsString::from_vec(name.to_vec()), kind, id: hex(id) });
        }
    }
    Some(entries)
}

fn hex(bytes: &[u8]) -> String {
    let digit = |number: u8| char::from_digit(u32::from(number), 16).unwrap_or('0');
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

fn is_safe(name: &[u8]) -> bool {
    !matches!(name, b"" | b"." | b"..") && !name.contains(&b'/') && !name.eq_ignore_ascii_case(b".git")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_is_parsed_and_dangerous_names_are_left_out() {
        let mut tree = Vec::new();
        for (mode, name) in [
            ("100644", "a b"),
            ("40000", "sub"),
            ("120000", "link"),
            ("160000", "module"),
            ("100755", ".."),
            ("40000", ".GIT"),
            ("100644", "x/y"),
        ] {
            tree.extend_from_slice(format!("{mode} {name}\0").as_bytes());
            tree.extend_from_slice(&[0xab; 20]);
        }
        let parsed = parse_tree(&tree, 20).expect("it is a tree");
        let seen: Vec<(&str, EntryKind)> =
            parsed.iter().map(|entry| (entry.name.to_str().expect("text"), entry.kind)).collect();
        let expected = [
            ("a b", EntryKind::File),
            ("sub", EntryKind::Folder),
            ("link", EntryKind::Link),
            ("module", EntryKind::Submodule),
        ];
        assert_eq!(seen, expected);
        assert_eq!(parsed[0].id, "ab".repeat(20));
        assert!(parse_tree(&tree[..tree.len() - 1], 20).is_none(), "a cut tree");
    }
}
