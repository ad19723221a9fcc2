//! The side of a connection that a request comes from, which decides what it may read.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::request::bundle::ROOT;

/// The origin of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caller {
    /// The user, on their own machine: templates in the request are the user's own.
    User,
    /// A client at the other end of a connection, which may read below these workspaces.
    Remote(Workspaces),
}

impl Caller {
    /// A client that may read the working directory of its request, and nothing around it.
    pub const REMOTE: Self = Self::Remote(Workspaces { roots: &[], has_user_files: false });

    /// Tells whether the request came over a connection.
    #[must_use]
    pub const fn is_remote(self) -> bool {
        matches!(self, Self::Remote(_))
    }
}

/// The directories that a server serves, as real paths, and whether it also reads files of its user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Workspaces {
    roots: &'static [PathBuf],
    has_user_files: bool,
}

impl Workspaces {
    /// Takes directories, with links resolved; leaves out those that do not exist.
    ///
    /// Each list is kept for the life of the process: a server has one.
    #[must_use]
    pub fn new(directories: &[PathBuf]) -> Self {
        Self::from_real(directories.iter().filter_map(|directory| directory.canonicalize().ok()).collect())
    }

    /// The workspaces of a request that brings its own.
    pub(crate) fn of_bundle() -> Self {
        Self::from_real(vec![PathBuf::from(ROOT)])
    }

    /// Takes real paths as they are.
    pub(crate) fn from_real(real: Vec<PathBuf>) -> Self {
        static KNOWN: Mutex<Vec<&'static [PathBuf]>> = Mutex::new(Vec::new());
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(same) = known.iter().find(|same| ***same == *real) {
            return Self { roots: same, has_user_files: false };
        }
        let kept: &'static [PathBuf] = Vec::leak(real);
        known.push(kept);
        Self { roots: kept, has_user_files: false }
    }

    /// Also reads files of the server's user that become text of prompts, below the user's home.
    #[must_use]
    pub const fn with_user_files(self, has_user_files: bool) -> Self {
        Self { has_user_files, ..self }
    }

    /// Tells whether files of the server's user are read.
    #[must_use]
    pub const fn has_user_files(self) -> bool {
        self.has_user_files
    }

    /// Returns the directories.
    pub(crate) const fn roots(self) -> &'static [PathBuf] {
        self.roots
    }

    /// Tells whether the list is empty.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.roots.is_empty()
    }

    /// Tells whether a real path lies in one of them.
    #[must_use]
    pub fn contain(self, real: &Path) -> bool {
        self.roots.iter().any(|root| real.starts_with(root))
    }
}

/// The author of a template, which decides which files it may read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Author {
    /// The user, on the command line or in their own configuration, or proem itself.
    User,
    /// The workspace, or a remote caller.
    Other,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_list_is_kept_once_and_holds_what_lies_below() {
        let folder = tempfile::tempdir().expect("a folder");
        let directories = [folder.path().to_owned(), PathBuf::from("/does/not/exist")];
        let (first, again) = (Workspaces::new(&directories), Workspaces::new(&directories));
        assert_eq!(first, again);
        assert!(std::ptr::eq(first.roots, again.roots));
        let real = folder.path().canonicalize().expect("it is there");
        assert!(first.contain(&real) && first.contain(&real.join("below")));
        assert!(!first.contain(real.parent().expect("it has one")));
        assert_eq!(Caller::Remote(Workspaces::new(&[])), Caller::REMOTE);
        assert_ne!(first, first.with_user_files(true));
    }
}
