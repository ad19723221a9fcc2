//! A revision of a repository as a tree of files, without touching the repository or running anything that it names.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Duration;

use proem_core::fact::Absence;
use tempfile::TempDir;

use super::repository::{self, Repository};
use super::shadow::Shadow;
use crate::file::reason;

/// How long checking a revision out may take.
const TIME_MAX: Duration = Duration::from_mins(1);

/// Most entries of a folder above the repository that are linked.
const ENTRIES_MAX: usize = 2_000;

/// A revision, laid out in a folder of its own at the path that the repository has below `/`.
#[derive(Debug)]
pub struct Revision {
    folder: TempDir,
    /// The real path of that folder.
    root: PathBuf,
    /// The working directory, as it really is.
    cwd: PathBuf,
}

impl Revision {
    /// Lays out what `name` was, for a build in `cwd`.
    pub fn check_out(cwd: &Path, name: &str) -> Result<Self, String> {
        let failed = |why: Absence| why.to_string();
        let cwd = crate::file::canonical(cwd).map_err(|error| reason(&error))?;
        let repository = repository::find(&cwd).map_err(failed)?;
        let folder = tempfile::Builder::new().prefix("proem-revision-").tempdir();
        let folder = folder.map_err(|error| reason(&error))?;
        let root = crate::file::canonical(folder.path()).map_err(|error| reason(&error))?;
        let worktree = below(&root, &repository.worktree);
        fs::create_dir_all(&worktree).map_err(|error| reason(&error))?;
        let shadow = Shadow::of(&repository, &repository.worktree, TIME_MAX).map_err(failed)?;
        let commit = shadow.commit(name).map_err(|why| match why {
            Absence::GitFailed(_) => format!("there is no revision `{}`", name.escape_debug()),
            other => other.to_string(),
        })?;
        let own = worktree.join(".git");
        lay_git(&own, &repository, &shadow, &commit)?;
        shadow.check_out(&commit, &worktree, &own.join("index")).map_err(failed)?;
        link_above(&root, &repository.worktree);
        let revision = Self { folder, root, cwd };
        fs::create_dir_all(revision.cwd()).map_err(|error| reason(&error))?;
        Ok(revision)
    }

    /// The working directory inside.
    #[must_use]
    pub fn cwd(&self) -> PathBuf {
        below(&self.root, &self.cwd)
    }

    /// What stands before every path inside.
    #[must_use]
    pub fn root(&self) -> &Path {
        debug_assert!(self.folder.path().exists(), "it goes with this");
        &self.root
    }
}

fn below(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}

/// What makes the tree a repository on the same branch, with nothing changed.
fn lay_git(own: &Path, repository: &Repository, shadow: &Shadow, commit: &str) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("cannot lay out the revision: {}", reason(&error));
    fs::create_dir_all(own.join("refs/heads")).map_err(failed)?;
    fs::write(own.join("config"), "[core]\n\trepositoryformatversion = 0\n").map_err(failed)?;
    let objects = crate::file::canonical(&repository.common.join("objects")).map_err(failed)?;
    symlink(objects, own.join("objects")).map_err(failed)?;
    let branch = shadow.run(&["symbolic-ref", "-q", "HEAD"]).ok();
    let branch = branch.as_deref().map(str::trim).filter(|name| name.starts_with("refs/heads/"));
    let Some(branch) = branch.filter(|name| !name.contains("..")) else {
        return fs::write(own.join("HEAD"), format!("{commit}\n")).map_err(failed);
    };
    let file = own.join(branch);
    fs::create_dir_all(file.parent().unwrap_or(own)).map_err(failed)?;
    fs::write(file, format!("{commit}\n")).map_err(failed)?;
    fs::write(own.join("HEAD"), format!("ref: {branch}\n")).map_err(failed)
}

/// Links what lies above the repository: instruction files there count for some profiles. The topmost folder is the
/// same for every path.
fn link_above(root: &Path, worktree: &Path) {
    for folder in worktree.ancestors().skip(1).filter(|folder| folder.parent().is_some()) {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten().take(ENTRIES_MAX);
        for entry in entries {
            let target = below(root, folder).join(entry.file_name());
            if target.symlink_metadata().is_err() {
                // One that cannot be linked is one that is not read.
                let _ = symlink(entry.path(), target);
            }
        }
    }
}
