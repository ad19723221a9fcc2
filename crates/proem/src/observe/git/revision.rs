//! A revision of a repository as a tree of files, without touching the repository or running anything that it names.

use std::fmt;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use proem_core::fact::Absence;
use proem_core::limit::{GIT_REVISION_LINKS_MAX, GIT_REVISION_TIME_MAX};
use tempfile::TempDir;

use super::lazy_tree::{LazyTree, Plan, Problem};
use super::repository::{self, Repository};
use super::shadow::Shadow;
use crate::error::{ErrorCause, reason};
use crate::observe::file::{LayOut, Look, Registration, shown};

/// A revision, in a folder of its own at the path that the repository has below `/`.
///
/// Only files that a build uses are laid out there, on demand. So a build is as fast as in the working tree, however
/// many files the revision has, and objects that it does not need may be missing.
pub struct Revision {
    /// Registers the folder for as long as the revision exists.
    _registration: Registration,
    tree: Arc<Mutex<LazyTree>>,
    folder: TempDir,
    /// The real path of the revision's folder.
    root: PathBuf,
    /// The real path of the working directory.
    cwd: PathBuf,
}

/// A revision that cannot be built.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum RevisionError {
    /// The working directory belongs to no repository.
    NotARepository,
    /// The repository has no commit of that name.
    Unknown {
        /// The name.
        name: String,
        /// True if the repository lacks its older commits.
        is_shallow: bool,
    },
    /// The object store lacks an object that the build needs.
    Missing {
        /// The path from the top of the repository.
        path: String,
        /// The id of the object.
        id: String,
    },
    /// Git or the system failed.
    Failed {
        /// The reason.
        why: String,
        /// The error of git or the system, if any.
        cause: ErrorCause,
    },
}

impl RevisionError {
    /// Returns advice for the user.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Self::NotARepository => "run it inside of a git repository, or name one with `--cwd`".into(),
            Self::Unknown { is_shallow: true, .. } => {
                "the clone is shallow; `git fetch --unshallow` brings its older commits".into()
            }
            Self::Unknown { .. } => {
                "name a commit, a tag or a branch of the repository that the working directory belongs to"
                    .into()
            }
            Self::Missing { id, .. } => {
                format!(
                    "the clone is partial or damaged; `git cat-file -t {id}` fetches the object where it can"
                )
            }
            Self::Failed { .. } => "`git fsck` checks the repository".into(),
        }
    }
}

impl fmt::Display for RevisionError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotARepository => formatter.write_str("not a git repository"),
            Self::Unknown { name, .. } => write!(formatter, "there is no revision `{}`", name.escape_debug()),
            Self::Missing { path, id } => {
                write!(formatter, "`{path}` is not in the object store (object {id})")
            }
            Self::Failed { why, .. } => formatter.write_str(why),
        }
    }
}

impl std::error::Error for RevisionError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Failed { cause, .. } => cause.source(),
            _ => None,
        }
    }
}

impl Revision {
    /// Opens the revision called `name`, for a build in `cwd`.
    pub fn open(cwd: &Path, name: &str) -> Result<Self, RevisionError> {
        let cwd = crate::observe::file::canonical(cwd)
            .map_err(|error| RevisionError::Failed { why: reason(&error), cause: ErrorCause::new(error) })?;
        let repository = repository::find(&cwd).map_err(failed)?;
        let shadow = Shadow::new(&repository, &repository.worktree, GIT_REVISION_TIME_MAX).map_err(failed)?;
        let commit = resolve(&shadow, &repository, name)?;
        let folder = tempfile::Builder::new().prefix("proem-revision-").tempdir().map_err(unwritten)?;
        let root = crate::observe::file::canonical(folder.path()).map_err(unwritten)?;
        let worktree = below(&root, &repository.worktree);
        let own = worktree.join(".git");
        fs::create_dir_all(&worktree).map_err(unwritten)?;
        lay_git(&own, &shadow, &commit)?;
        link_above(&root, &repository.worktree);
        let settings = repository.settings();
        let is_converted = settings.has("core.autocrlf", "true") || settings.has("core.eol", "crlf");
        let objects =
            crate::observe::file::canonical(&repository.common.join("objects")).map_err(unwritten)?;
        let plan = Plan { worktree, commit, own, objects, is_converted };
        let mut tree = LazyTree::new(plan, shadow).map_err(failed)?;
        tree.prepare(&below(&root, &cwd), Look::Kind);
        // A directory that the revision does not have is an empty one.
        fs::create_dir_all(below(&root, &cwd)).map_err(|error| RevisionError::Failed {
            why: format!("`{}` is not a directory there", shown(&cwd)),
            cause: ErrorCause::new(error),
        })?;
        let tree = Arc::new(Mutex::new(tree));
        let lazy = Arc::clone(&tree);
        let lay_out: Arc<LayOut> = Arc::new(move |path, look| {
            lazy.lock().unwrap_or_else(PoisonError::into_inner).prepare(path, look);
        });
        let registration = Registration::new(root.clone(), lay_out);
        Ok(Self { _registration: registration, tree, folder, root, cwd })
    }

    /// Tells whether the repository that `cwd` belongs to has a commit called `name`.
    #[must_use]
    pub fn exists(cwd: &Path, name: &str) -> bool {
        let find = || {
            let cwd = crate::observe::file::canonical(cwd).ok()?;
            let repository = repository::find(&cwd).ok()?;
            let shadow = Shadow::new(&repository, &repository.worktree, GIT_REVISION_TIME_MAX).ok()?;
            resolve(&shadow, &repository, name).ok()
        };
        find().is_some()
    }

    /// Returns the first problem since the revision was opened. A build that ran with a problem does not show the
    /// revision and must be discarded.
    #[must_use]
    pub fn problem(&self) -> Option<RevisionError> {
        let tree = self.tree.lock().unwrap_or_else(PoisonError::into_inner);
        tree.problem().map(|problem| match problem {
            Problem::Missing { path, id } => RevisionError::Missing { path: shown(path), id: id.clone() },
            Problem::Failed { why, cause } => {
                RevisionError::Failed { why: why.clone(), cause: cause.clone() }
            }
        })
    }

    /// Returns the working directory inside the revision's folder.
    #[must_use]
    pub fn cwd(&self) -> PathBuf {
        below(&self.root, &self.cwd)
    }

    /// Returns the prefix of every path inside.
    #[must_use]
    pub fn root(&self) -> &Path {
        debug_assert!(self.folder.path().exists(), "it goes with this");
        &self.root
    }
}

impl fmt::Debug for Revision {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Revision").field("cwd", &self.cwd).finish_non_exhaustive()
    }
}

fn failed(why: Absence) -> RevisionError {
    match why {
        Absence::NotARepository => RevisionError::NotARepository,
        other => RevisionError::Failed { why: other.to_string(), cause: ErrorCause::new(other) },
    }
}

fn unwritten(error: std::io::Error) -> RevisionError {
    let why = format!("cannot write into a temporary folder: {}", reason(&error));
    RevisionError::Failed { why, cause: ErrorCause::new(error) }
}

fn resolve(shadow: &Shadow, repository: &Repository, name: &str) -> Result<String, RevisionError> {
    shadow.commit(name).map_err(|why| match why {
        Absence::GitFailed(_) => {
            let is_shallow = repository.common.join("shallow").symlink_metadata().is_ok();
            RevisionError::Unknown { name: name.to_owned(), is_shallow }
        }
        other => failed(other),
    })
}

fn below(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}

/// Makes the folder a repository on the same branch.
fn lay_git(own: &Path, shadow: &Shadow, commit: &str) -> Result<(), RevisionError> {
    fs::create_dir_all(own.join("refs/heads")).map_err(unwritten)?;
    fs::write(own.join("config"), "[core]\n\trepositoryformatversion = 0\n").map_err(unwritten)?;
    // The folder stays empty, because a link would lead out. A workspace's template may then lack the branch.
    fs::create_dir(own.join("objects")).map_err(unwritten)?;
    let branch = shadow.run(&["symbolic-ref", "-q", "HEAD"]).ok();
    let branch = branch.as_deref().map(str::trim).filter(|name| name.starts_with("refs/heads/"));
    let Some(branch) = branch.filter(|name| !name.contains("..")) else {
        return fs::write(own.join("HEAD"), format!("{commit}\n")).map_err(unwritten);
    };
    let file = own.join(branch);
    fs::create_dir_all(file.parent().unwrap_or(own)).map_err(unwritten)?;
    fs::write(file, format!("{commit}\n")).map_err(unwritten)?;
    fs::write(own.join("HEAD"), format!("ref: {branch}\n")).map_err(unwritten)
}

/// Links the files above the repository: some profiles read instruction files there. The topmost folder is the same for
/// every path.
fn link_above(root: &Path, worktree: &Path) {
    for folder in worktree.ancestors().skip(1).filter(|folder| folder.parent().is_some()) {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten().take(GIT_REVISION_LINKS_MAX);
        for entry in entries {
            let target = below(root, folder).join(entry.file_name());
            if target.symlink_metadata().is_err() {
                // An entry that cannot be linked is not read.
                let _ = symlink(entry.path(), target);
            }
        }
    }
}
