//! Looks up refs in the files that git keeps them in: loose ones, then `packed-refs`.

use std::cell::OnceCell;
use std::path::Component;
use std::path::Path;

use proem_core::fact::Absence;
use proem_core::limit::GIT_PACKED_REFS_BYTES_MAX;

use super::repository::{POINTER, Repository, read_own};
use crate::file::Cap;

/// The refs of a repository.
pub(super) struct Refs<'r> {
    repository: &'r Repository,
    packed: OnceCell<Result<String, Absence>>,
}

impl<'r> Refs<'r> {
    pub(super) const fn new(repository: &'r Repository) -> Self {
        Self { repository, packed: OnceCell::new() }
    }

    /// Tells whether a full ref name, such as `refs/heads/main`, has a value.
    pub(super) fn exists(&self, name: &str) -> Result<bool, Absence> {
        if !is_plain(name) {
            return Ok(false);
        }
        let is_loose =
            |folder: &Path| read_own(&folder.join(name), POINTER).is_ok_and(|text| is_value(&text));
        if is_loose(&self.repository.common) || is_loose(&self.repository.own) {
            return Ok(true);
        }
        Ok(self.packed()?.lines().any(|line| line.split_once(' ').is_some_and(|(_, packed)| packed == name)))
    }

    fn packed(&self) -> Result<&str, Absence> {
        let cap = Cap { bytes_max: GIT_PACKED_REFS_BYTES_MAX, words: "64 MiB" };
        let read = || match read_own(&self.repository.common.join("packed-refs"), cap) {
            Err(Absence::NoSuchFile) => Ok(String::new()),
            other => other,
        };
        self.packed.get_or_init(read).as_deref().map_err(Clone::clone)
    }
}

/// Tells whether a ref's file holds an object id or points to another ref.
pub(super) fn is_value(text: &str) -> bool {
    text.starts_with("ref:") || is_object_id(text.trim())
}

/// Tells whether `text` is an object id of either hash.
pub(super) fn is_object_id(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Tells whether a ref name stays below its folder.
fn is_plain(name: &str) -> bool {
    !name.contains('\0')
        && Path::new(name).components().all(|component| matches!(component, Component::Normal(_)))
}
