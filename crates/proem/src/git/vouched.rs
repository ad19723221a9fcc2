//! Whether a repository that is kept elsewhere says itself that a working tree is its own.
//!
//! A `.git` that leads away can be written by anybody, and would show branches and names of a repository that its writer
//! may not see. The repository's own files cannot: those of a linked working tree and of a submodule name the tree.

use std::fs;
use std::path::Path;

use proem_core::limit::SETTINGS_BYTES_MAX;

use super::config::worktree;
use super::repository::{POINTER, Repository, read_own};
use crate::file::{Cap, canonical};

/// Tells whether a repository lies in its working tree, or names it; and whether all that git looks at lies there, too.
pub(super) fn is_vouched(repository: &Repository) -> bool {
    let Repository { worktree, own, common, .. } = repository;
    let (Ok(tree), Ok(own), Ok(common)) = (canonical(worktree), canonical(own), canonical(common)) else {
        return false;
    };
    let is_inside = own.starts_with(&tree) && common.starts_with(&tree);
    let is_part = own == common || own.parent() == Some(common.join("worktrees").as_path());
    (is_inside || (is_part && names(&own, &tree))) && stays(&own, &common) && stays(&common, &common)
}

/// Tells whether git's own folder names the working tree: linked ones in a file, submodules in their settings.
fn names(own: &Path, tree: &Path) -> bool {
    let is_tree = |path: &Path| canonical(path).is_ok_and(|real| real == tree);
    let linked = read_own(&own.join("gitdir"), POINTER);
    if linked.is_ok_and(|entry| own.join(entry.trim()).parent().is_some_and(is_tree)) {
        return true;
    }
    let cap = Cap { bytes_max: SETTINGS_BYTES_MAX, words: "256 KiB" };
    let said = ["config.worktree", "config"].iter().find_map(|name| {
        let settings = read_own(&own.join(name), cap).ok()?;
        worktree(&settings)
    });
    said.is_some_and(|path| is_tree(&own.join(path)))
}

/// Tells whether no link in one of git's folders leads out of them.
fn stays(folder: &Path, common: &Path) -> bool {
    let Ok(entries) = fs::read_dir(folder) else { return false };
    entries.into_iter().all(|entry| {
        let Ok(entry) = entry else { return false };
        let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
        // The oldest repositories have a link for `HEAD`, to a branch that may not have a file.
        !is_link
            || entry.file_name() == "HEAD"
            || canonical(&entry.path()).is_ok_and(|real| real.starts_with(folder) || real.starts_with(common))
    })
}
