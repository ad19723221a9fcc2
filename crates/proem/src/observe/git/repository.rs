//! Finds the repository that a directory belongs to.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};

use proem_core::fact::Absence;
use proem_core::limit::{ANCESTORS_MAX, GIT_HEAD_BYTES_MAX, SETTINGS_BYTES_MAX};

use super::config::{self, Settings};
use crate::observe::file::{Cap, ReadPolicy, read_text, read_unlinked, read_within, shown};

/// A repository: its working tree and the folders in which git keeps its own files.
#[derive(Debug)]
pub(super) struct Repository {
    /// The top of the working tree.
    pub(super) worktree: PathBuf,
    /// The folder with `HEAD` and `index`.
    pub(super) own: PathBuf,
    /// The folder with `objects` and `refs`; another one only in a linked working tree.
    pub(super) common: PathBuf,
    /// The paths that a party without access beyond the working tree may read; `None` means no limit, for the user.
    pub(super) bounds: Option<Bounds>,
    /// The harmless part of its configuration, once it was read.
    settings: OnceCell<Settings>,
}

/// The real paths of a repository that passed the [ownership check](super::ownership).
#[derive(Debug)]
pub(super) struct Bounds {
    pub(super) tree: PathBuf,
    pub(super) own: PathBuf,
    pub(super) common: PathBuf,
}

impl Repository {
    pub(super) fn settings(&self) -> &Settings {
        let cap = Cap::new(SETTINGS_BYTES_MAX);
        self.settings
            .get_or_init(|| config::read(self.read(&self.common.join("config"), cap).ok().as_deref()))
    }

    /// Reads one of git's own files: for the user without limit, for others only within the bounds.
    pub(super) fn read(&self, path: &Path, cap: Cap) -> Result<String, Absence> {
        match &self.bounds {
            None => read_own(path, cap),
            Some(Bounds { own, common, .. }) => read_within(path, &[own, common], cap),
        }
    }

    /// Makes the same repository for a party that may see its working tree only.
    pub(super) fn bounded(bounds: Bounds) -> Self {
        let Bounds { tree, own, common } = &bounds;
        let (worktree, own, common) = (tree.clone(), own.clone(), common.clone());
        Self { worktree, own, common, bounds: Some(bounds), settings: OnceCell::new() }
    }

    pub(super) fn uses_reftable(&self) -> bool {
        // Most repositories have no such folder, and then their settings need not be read.
        self.common.join("reftable").is_dir() && self.settings().has("extensions.refstorage", "reftable")
    }
}

/// Git's small files: pointers of a line or so.
pub(super) const POINTER: Cap = Cap::new(GIT_HEAD_BYTES_MAX);

/// Reads one of git's own files, which are as public as the working tree. A link is read only if its target is allowed.
pub(super) fn read_own(path: &Path, cap: Cap) -> Result<String, Absence> {
    match read_unlinked(path, cap)? {
        Some(text) => Ok(text),
        None => read_text(path, &ReadPolicy::user(None, &[]), cap),
    }
}

/// Walks up from `cwd` to the first directory with a `.git` that is a repository.
pub(super) fn find(cwd: &Path) -> Result<Repository, Absence> {
    for directory in cwd.ancestors().take(ANCESTORS_MAX) {
        let entry = directory.join(".git");
        let Ok(metadata) = std::fs::metadata(&entry) else { continue };
        if metadata.is_dir() && is_repository(&entry, &entry) {
            return Ok(open(directory, entry.clone(), entry));
        }
        if metadata.is_file() {
            return linked(directory, &entry);
        }
    }
    Err(Absence::NotARepository)
}

/// Follows a `.git` file, as linked working trees and submodules have.
fn linked(directory: &Path, entry: &Path) -> Result<Repository, Absence> {
    let broken = |why: &str| Absence::GitFailed(format!("{}: {why}", shown(entry)));
    let text = read_own(entry, POINTER).map_err(|why| broken(&why.to_string()))?;
    let target = text.strip_prefix("gitdir:").ok_or_else(|| broken("it does not begin with `gitdir:`"))?;
    let own = directory.join(target.trim());
    let common = match read_own(&own.join("commondir"), POINTER) {
        Ok(text) => own.join(text.trim()),
        Err(_) => own.clone(),
    };
    if !is_repository(&own, &common) {
        return Err(broken("it does not point to a repository"));
    }
    Ok(open(directory, own, common))
}

fn open(directory: &Path, own: PathBuf, common: PathBuf) -> Repository {
    Repository { worktree: directory.to_owned(), own, common, bounds: None, settings: OnceCell::new() }
}

/// Applies git's own test of a folder that claims to be a repository.
fn is_repository(own: &Path, common: &Path) -> bool {
    own.join("HEAD").symlink_metadata().is_ok()
        && common.join("objects").is_dir()
        && common.join("refs").is_dir()
}
