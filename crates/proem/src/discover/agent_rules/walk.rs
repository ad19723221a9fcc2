//! The directories of a project that other agents search.

use std::path::{Path, PathBuf};

use proem_core::limit::ANCESTORS_MAX;
use proem_core::profile::rules::{RootSign, RuleWalk, RulesRecipe, WithoutRoot};

use super::SearchRoots;

/// The working directory and the project's root.
pub(super) struct Folders {
    cwd: PathBuf,
    root: PathBuf,
    /// True if a marker such as `.git` identifies the root.
    has_root: bool,
}

impl Folders {
    pub(super) fn new(recipe: &RulesRecipe, places: &SearchRoots) -> Self {
        // A process sees its real working directory, whatever link led there.
        let cwd = crate::observe::file::canonical(places.cwd()).unwrap_or_else(|_| places.cwd().to_owned());
        let is_root = |folder: &&Path| match recipe.root {
            RootSign::Entry => crate::observe::file::on_disk(&folder.join(".git")).symlink_metadata().is_ok(),
            RootSign::Repository => crate::observe::git::is_repository_root(folder),
            RootSign::RepositoryOrFile => {
                crate::observe::git::is_repository_root(folder)
                    || crate::observe::file::check_regular(&folder.join(".git")).is_ok()
            }
        };
        let found = cwd.ancestors().take(ANCESTORS_MAX).find(is_root).map(Path::to_owned);
        let has_root = found.is_some();
        let without = match recipe.without_root {
            WithoutRoot::Cwd => cwd.clone(),
            WithoutRoot::Top => PathBuf::from("/"),
        };
        Self { root: found.unwrap_or(without), cwd, has_root }
    }

    /// Returns the directories of a walk, in order.
    pub(super) fn on(&self, walk: RuleWalk) -> Vec<PathBuf> {
        let upwards = || self.cwd.ancestors().take(ANCESTORS_MAX).map(Path::to_owned);
        let to_root = || {
            let mut is_done = false;
            let root = self.root.clone();
            upwards().take_while(move |folder| {
                let goes_on = !is_done;
                is_done = *folder == root;
                goes_on
            })
        };
        let turned = |folders: Vec<PathBuf>| folders.into_iter().rev().collect();
        match walk {
            RuleWalk::CwdToRoot => to_root().collect(),
            RuleWalk::RootToCwd => turned(to_root().collect()),
            RuleWalk::TopToCwd => turned(upwards().collect()),
            RuleWalk::BelowTopToCwd => turned(upwards().filter(|folder| folder.parent().is_some()).collect()),
            // The folders below are found by the search, which has a limit and notes.
            RuleWalk::Root | RuleWalk::RootAndBelow => vec![self.root.clone()],
            RuleWalk::Cwd => vec![self.cwd.clone()],
            RuleWalk::RootAndCwd if self.root == self.cwd => vec![self.cwd.clone()],
            RuleWalk::RootAndCwd => vec![self.root.clone(), self.cwd.clone()],
            RuleWalk::Between => {
                to_root().skip(1).filter(|folder| *folder != self.root && *folder != self.cwd).collect()
            }
        }
    }

    /// Tells whether a marker such as `.git` identifies the root.
    pub(super) const fn has_root(&self) -> bool {
        self.has_root
    }

    pub(super) fn cwd(&self) -> &Path {
        &self.cwd
    }

    /// Returns the directory that imports of a project's file must not leave.
    pub(super) fn root_of(&self, path: &Path) -> PathBuf {
        let folder = path.parent().unwrap_or(path);
        let marked = folder
            .ancestors()
            .take(ANCESTORS_MAX)
            .find(|folder| crate::observe::file::on_disk(&folder.join(".git")).symlink_metadata().is_ok());
        match marked {
            Some(root) => root.to_owned(),
            None if self.has_root => self.root.clone(),
            None => folder.to_owned(),
        }
    }

    /// Returns a path relative to the project's root, if it lies below.
    pub(super) fn relative(&self, path: &str) -> String {
        let inside = Path::new(path).strip_prefix(&self.root).ok();
        inside.and_then(Path::to_str).unwrap_or(path).to_owned()
    }
}
