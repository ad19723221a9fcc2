//! Looks up refs in the files that git keeps them in: loose ones, then `packed-refs`.

use std::cell::OnceCell;
use std::path::Path;

use proem_core::fact::Absence;
use proem_core::limit::{GIT_PACKED_REFS_BYTES_MAX, GIT_SYMBOLIC_REFS_MAX};

use super::repository::{POINTER, Repository};
use crate::observe::file::Cap;

/// The refs of a repository.
pub(super) struct Refs<'r> {
    repository: &'r Repository,
    packed: OnceCell<Result<String, Absence>>,
}

impl<'r> Refs<'r> {
    pub(super) const fn new(repository: &'r Repository) -> Self {
        Self { repository, packed: OnceCell::new() }
    }

    /// Tells whether a ref, such as `refs/heads/main`, has a value.
    pub(super) fn exists(&self, name: &str) -> Result<bool, Absence> {
        self.object(name).map(|id| id.is_some())
    }

    /// Returns the object of a ref, following symbolic refs.
    pub(super) fn object(&self, name: &str) -> Result<Option<String>, Absence> {
        let mut name = name.to_owned();
        for _ in 0..GIT_SYMBOLIC_REFS_MAX {
            if !is_ref_name(&name) {
                return Ok(None);
            }
            match self.loose(&name)? {
                Some(text) => match text.strip_prefix("ref:") {
                    Some(target) => target.trim().clone_into(&mut name),
                    None => return Ok(Some(text.trim_end().to_owned()).filter(|id| is_object_id(id))),
                },
                None => return self.packed_object(&name),
            }
        }
        Ok(None)
    }

    /// The content of a loose ref, which in a linked working tree may be the tree's own.
    fn loose(&self, name: &str) -> Result<Option<String>, Absence> {
        let Repository { own, common, .. } = self.repository;
        let folders = if own == common { 1 } else { 2 };
        for folder in [own, common].into_iter().take(folders) {
            match self.repository.read(&folder.join(name), POINTER) {
                Ok(text) => return Ok(Some(text)),
                Err(Absence::NoSuchFile | Absence::IsADirectory) => {}
                Err(why) => return Err(Absence::GitFailed(format!("{}: {why}", name.escape_debug()))),
            }
        }
        Ok(None)
    }

    fn packed_object(&self, name: &str) -> Result<Option<String>, Absence> {
        // Searches the whole text: splitting a large file into lines takes far longer.
        let (packed, wanted) = (self.packed()?, format!(" {name}"));
        for at in memchr::memmem::find_iter(packed.as_bytes(), wanted.as_bytes()) {
            let behind = packed.as_bytes().get(at + wanted.len()..).unwrap_or_default();
            let is_end = behind.is_empty() || behind.starts_with(b"\n") || behind.starts_with(b"\r\n");
            // Steps back by the length of an id: a search for the start of the line could run through the whole file.
            let id = [40, 64].into_iter().find_map(|length| line_start(packed, at.checked_sub(length)?, at));
            if let Some(id) = id.filter(|_| is_end) {
                return Ok(Some(id.to_owned()));
            }
        }
        Ok(None)
    }

    fn packed(&self) -> Result<&str, Absence> {
        let cap = Cap::new(GIT_PACKED_REFS_BYTES_MAX);
        let read = || match self.repository.read(&self.repository.common.join("packed-refs"), cap) {
            Err(Absence::NoSuchFile) => Ok(String::new()),
            Err(why) => Err(Absence::GitFailed(format!("packed-refs: {why}"))),
            Ok(text) => Ok(text),
        };
        self.packed.get_or_init(read).as_deref().map_err(Clone::clone)
    }
}

/// Returns the object id between two offsets, if a line begins with it.
fn line_start(text: &str, start: usize, end: usize) -> Option<&str> {
    let is_first = start == 0 || text.as_bytes().get(start - 1) == Some(&b'\n');
    text.get(start..end).filter(|id| is_first && is_object_id(id))
}

/// Tells whether `text` is an object id of either hash.
pub(super) fn is_object_id(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Tells whether git itself would accept this as the name of a ref; names beside `HEAD` included.
///
/// A name that git refuses could be any text: a sentence for the model, or a path elsewhere.
pub(super) fn is_ref_name(name: &str) -> bool {
    let is_bad = |byte: u8| byte <= b' ' || byte == 0x7f || b"~^:?*[\\".contains(&byte);
    let is_good_part = |part: &str| {
        !part.is_empty()
            && !part.starts_with('.')
            && Path::new(part).extension().is_none_or(|end| end != "lock")
    };
    !name.is_empty()
        && name != "@"
        && !name.contains("..")
        && !name.contains("@{")
        && !name.ends_with('.')
        && !name.bytes().any(is_bad)
        && name.split('/').all(is_good_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Row G9.
    #[test]
    fn names_that_git_refuses_are_no_refs() {
        for (name, expected) in [
            ("refs/heads/main", true),
            ("refs/heads/feature/x-1", true),
            ("refs/heads/ünï", true),
            ("ORIG_HEAD", true),
            ("refs/heads/a b", false),
            ("refs/heads/x..y", false),
            ("refs/heads/x.lock", false),
            ("refs/heads/x.lock/y", false),
            ("refs/heads/.x", false),
            ("refs//heads", false),
            ("refs/heads/", false),
            ("refs/heads/x.", false),
            ("refs/heads/@{x", false),
            ("refs/heads/\u{7f}", false),
            ("../../etc/passwd", false),
            ("/etc/passwd", false),
            ("", false),
        ] {
            assert_eq!(is_ref_name(name), expected, "{name}");
        }
    }
}
