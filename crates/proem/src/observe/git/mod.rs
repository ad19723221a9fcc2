//! Facts about a directory from git, without running anything that the repository names.
//!
//! The branch is read from `HEAD`, without a process. Status and diff come from the `git` program, run in a shadow of
//! the repository ([`shadow`]) that has none of the repository's configuration.

mod config;
mod fence;
#[cfg(feature = "fuzz")]
pub mod fuzzed;
mod head;
mod lazy_tree;
mod objects;
mod ownership;
mod program;
mod refs;
mod repository;
mod revision;
mod shadow;
mod status_paths;

use std::cell::OnceCell;
use std::path::{Path, PathBuf};
use std::time::Duration;

use proem_core::fact::Absence;
use proem_core::text::is_javascript_space;

use crate::observe::file::virtual_tree;
use crate::request::bundle::{BundleGit, ROOT};
use crate::request::caller::Workspaces;
use repository::Repository;
pub use revision::{Revision, RevisionError};
use shadow::Shadow;
use status_paths::ChangedPaths;

/// Tells whether a directory is the top of a working tree that git accepts.
pub(crate) fn is_repository_root(folder: &Path) -> bool {
    if let Some(tree) = virtual_tree() {
        return tree.git().is_some() && folder == Path::new(ROOT);
    }
    folder.join(".git").symlink_metadata().is_ok()
        && repository::find(folder).is_ok_and(|found| found.worktree == folder)
}

/// The party for which git is queried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// The user, who may see every repository.
    User,
    /// A remote client that uses proem's own templates: the working tree must lie in a workspace of the server.
    Served(Workspaces),
    /// A party that may see the working tree only, and no byte of a repository elsewhere.
    Tree,
}

/// Git facts about one directory. Each is observed once, on first use.
pub(crate) struct Git {
    cwd: PathBuf,
    time_max: Duration,
    reach: Reach,
    repository: OnceCell<Result<Repository, Absence>>,
    shadow: OnceCell<Result<Shadow, Absence>>,
    /// The output of `git status`, once it has run.
    status: OnceCell<String>,
}

/// The top of the working tree that a real path belongs to.
pub(crate) fn root_of(cwd: &Path) -> Option<PathBuf> {
    if let Some(tree) = virtual_tree() {
        return (tree.git().is_some() && cwd.starts_with(ROOT)).then(|| PathBuf::from(ROOT));
    }
    repository::find(cwd).ok().map(|repository| repository.worktree)
}

/// Returns a fact that a bundle has about git.
fn fact(git: Option<&BundleGit>, value: impl Fn(&BundleGit) -> &Option<String>) -> Result<String, Absence> {
    value(git.ok_or(Absence::NotARepository)?).clone().ok_or(Absence::NotGiven)
}

impl Git {
    pub(crate) fn new(cwd: &Path, time_max: Duration, reach: Reach) -> Self {
        // Git uses the real path: behind a link, another repository may be the right one.
        let cwd = crate::observe::file::canonical(cwd).unwrap_or_else(|_| cwd.to_owned());
        let (repository, shadow, status) = (OnceCell::new(), OnceCell::new(), OnceCell::new());
        Self { cwd, time_max, reach, repository, shadow, status }
    }

    /// The top of the working tree.
    pub(crate) fn root(&self) -> Option<&Path> {
        if let Some(tree) = virtual_tree() {
            return tree.git().map(|_| Path::new(ROOT));
        }
        self.repository().ok().map(|repository| repository.worktree.as_path())
    }

    /// The branch as `git rev-parse --abbrev-ref HEAD` prints it.
    pub(crate) fn branch(&self) -> Result<String, Absence> {
        if let Some(tree) = virtual_tree() {
            return fact(tree.git(), |git| &git.branch);
        }
        let repository = self.repository()?;
        if repository.uses_reftable() {
            let branch = self.shadow()?.run(&["rev-parse", "--abbrev-ref", "HEAD"]);
            return match branch {
                Ok(branch) => Ok(branch.trim().to_owned()),
                // Git refuses to name a branch that has no commit; everything else is a failure.
                Err(Absence::GitFailed(_)) => Err(Absence::UnbornBranch),
                Err(why) => Err(why),
            };
        }
        head::branch(repository)
    }

    /// `git status --short`, right-trimmed only: its first column may be a space.
    pub(crate) fn status(&self) -> Result<String, Absence> {
        if let Some(tree) = virtual_tree() {
            return fact(tree.git(), |git| &git.status);
        }
        if self.is_revision() {
            return Ok(String::new());
        }
        let status = self.shadow()?.run(&["status", "--short", "--ignore-submodules=all"])?;
        let text = status.trim_end_matches(is_javascript_space).to_owned();
        self.status.get_or_init(|| status);
        Ok(text)
    }

    /// The summary of the unstaged changes, then of the staged ones.
    pub(crate) fn diff(&self) -> Result<String, Absence> {
        const DIFF: [&str; 5] =
            ["diff", "--stat", "--no-ext-diff", "--no-textconv", "--ignore-submodules=all"];
        const STAGED: [&str; 1] = ["--cached"];
        if let Some(tree) = virtual_tree() {
            return fact(tree.git(), |git| &git.diff);
        }
        if self.is_revision() {
            return Ok(String::new());
        }
        let shadow = self.shadow()?;
        let (unstaged, staged) = match self.listed() {
            Some(ChangedPaths { unstaged, staged }) => {
                (shadow.run_on(&DIFF, &unstaged)?, shadow.run_on(&[&DIFF[..], &STAGED].concat(), &staged)?)
            }
            None => (shadow.run(&DIFF)?, shadow.run(&[&DIFF[..], &STAGED].concat())?),
        };
        let parts = [unstaged.trim(), staged.trim()];
        Ok(parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n"))
    }

    /// Returns the paths of the status, if it has run and every line is plain.
    fn listed(&self) -> Option<ChangedPaths> {
        let below = self.cwd.strip_prefix(self.root()?).ok()?;
        status_paths::read(self.status.get()?, below)
    }

    /// Tells whether this is a revision that is laid out on demand. It never has changes.
    fn is_revision(&self) -> bool {
        crate::observe::file::is_lazy(&self.cwd) && self.root().is_some()
    }

    fn repository(&self) -> Result<&Repository, Absence> {
        let find = || {
            let found = repository::find(&self.cwd)?;
            match self.reach {
                Reach::User => Ok(found),
                Reach::Served(workspaces) => match ownership::bounds(&found) {
                    Some(bounds) if workspaces.contain(&bounds.tree) => Ok(Repository::bounded(bounds)),
                    _ => Err(Absence::OutsideRoots),
                },
                Reach::Tree => match ownership::bounds(&found) {
                    Some(bounds) => Ok(Repository::bounded(bounds)),
                    None => Err(Absence::OutsideRoots),
                },
            }
        };
        self.repository.get_or_init(find).as_ref().map_err(Clone::clone)
    }

    fn shadow(&self) -> Result<&Shadow, Absence> {
        let make = || Shadow::new(self.repository()?, &self.cwd, self.time_max);
        self.shadow.get_or_init(make).as_ref().map_err(Clone::clone)
    }
}
