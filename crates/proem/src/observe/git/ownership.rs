//! Checks that a repository outside of a working tree names that working tree as its own.
//!
//! A `.git` file that leads elsewhere can be written by any author, and would reveal branches and names of a repository
//! that its author may not see. The repository's own files are proof: those of a linked working tree and of a submodule
//! name the tree.

use std::fs;
use std::path::Path;

use proem_core::limit::SETTINGS_BYTES_MAX;

use super::config::worktree;
use super::repository::{Bounds, POINTER, Repository};
use crate::observe::file::{Cap, canonical, read_within};

/// Returns the real paths of a repository that lies in its working tree, or names it, and whose own files lie in that
/// repository.
///
/// Later reads stay below these paths and check each descriptor, so a folder that is swapped after this check is not
/// read.
pub(super) fn bounds(repository: &Repository) -> Option<Bounds> {
    let Repository { worktree, own, common, .. } = repository;
    let (tree, own, common) = (canonical(worktree).ok()?, canonical(own).ok()?, canonical(common).ok()?);
    let is_inside = own.starts_with(&tree) && common.starts_with(&tree);
    let is_part = own == common || own.parent() == Some(common.join("worktrees").as_path());
    let is_own = is_inside || (is_part && names(&own, &tree));
    let is_vouched = is_own && stays(&own, &common) && stays(&common, &common);
    is_vouched.then_some(Bounds { tree, own, common })
}

/// Tells whether git's own folder names the working tree: linked trees do so in a file, submodules in their settings.
fn names(own: &Path, tree: &Path) -> bool {
    let is_tree = |path: &Path| canonical(path).is_ok_and(|real| real == tree);
    let read = |name: &str, cap: Cap| read_within(&own.join(name), &[own], cap);
    let linked = read("gitdir", POINTER);
    if linked.is_ok_and(|entry| own.join(entry.trim()).parent().is_some_and(is_tree)) {
        return true;
    }
    let cap = Cap::new(SETTINGS_BYTES_MAX);
    let configured = ["config.worktree", "config"].iter().find_map(|name| {
        let settings = read(name, cap).ok()?;
        worktree(&settings)
    });
    configured.is_some_and(|path| is_tree(&own.join(path)))
}

/// Tells whether every link in one of git's folders stays within them.
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
