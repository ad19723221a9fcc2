//! Whether a repository that is kept elsewhere says itself that a working tree is its own.
//!
//! A `.git` that leads away can be written by anybody, and would show branches and names of a repository that its writer
//! may not see. The repository's own files cannot: those of a linked working tree and of a submodule name the tree.

use std::fs;
use std::path::Path;

use proem_core::limit::SETTINGS_BYTES_MAX;

use super::config::worktree;
use super::repository::{Bounds, POINTER, Repository};
use crate::observe::file::{Cap, canonical, read_within};

/// The real paths of a repository that lies in its working tree, or names it, and whose files lie there, too.
///
/// Whoever reads it from then on reads below these paths, and asks each descriptor whether it does: what is swapped after
/// this look is not read.
pub(super) fn bounds(repository: &Repository) -> Option<Bounds> {
    let Repository { worktree, own, common, .. } = repository;
    let (tree, own, common) = (canonical(worktree).ok()?, canonical(own).ok()?, canonical(common).ok()?);
    let is_inside = own.starts_with(&tree) && common.starts_with(&tree);
    let is_part = own == common || own.parent() == Some(common.join("worktrees").as_path());
    let is_own = is_inside || (is_part && names(&own, &tree));
    let is_vouched = is_own && stays(&own, &common) && stays(&common, &common);
    is_vouched.then_some(Bounds { tree, own, common })
}

/// Tells whether git's own folder names the working tree: linked ones in a file, submodules in their settings.
fn names(own: &Path, tree: &Path) -> bool {
    let is_tree = |path: &Path| canonical(path).is_ok_and(|real| real == tree);
    let read = |name: &str, cap: Cap| read_within(&own.join(name), &[own], cap);
    let linked = read("gitdir", POINTER);
    if linked.is_ok_and(|entry| own.join(entry.trim()).parent().is_some_and(is_tree)) {
        return true;
    }
    let cap = Cap::new(SETTINGS_BYTES_MAX);
    let said = ["config.worktree", "config"].iter().find_map(|name| {
        let settings = read(name, cap).ok()?;
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
