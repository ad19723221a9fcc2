//! Trees of files that are laid out on demand, and checks of files without reading them.
//!
//! A revision of a repository can have a million files, of which a build uses a dozen. Such a tree is registered here,
//! with a function that lays out the files that are about to be used. All access to files of a workspace therefore goes
//! through this module or one of the readers beside it. While no tree is registered, that costs one atomic load.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::{Metadata, ReadDir};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use super::view::on_disk;

/// The extent of an access to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    /// Finds out the kind of a path, links followed.
    Kind,
    /// Reads the file.
    Content,
    /// Lists the names in a folder.
    Names,
    /// Lists a directory of skills and everything below it, and reads its Markdown and ignore files.
    Skills,
    /// Shows the whole tree to a program.
    Everything,
}

/// Lays out the files that an access needs.
pub(crate) type LayOut = dyn Fn(&Path, Look) + Send + Sync;

static COUNT: AtomicUsize = AtomicUsize::new(0);
static TREES: RwLock<BTreeMap<PathBuf, Arc<LayOut>>> = RwLock::new(BTreeMap::new());

/// A tree that is laid out on demand as long as this exists.
pub(crate) struct Registration {
    root: PathBuf,
}

impl Registration {
    /// Registers the tree at `root`, a real path.
    pub(crate) fn new(root: PathBuf, lay_out: Arc<LayOut>) -> Self {
        let mut trees = TREES.write().unwrap_or_else(PoisonError::into_inner);
        trees.insert(root.clone(), lay_out);
        COUNT.store(trees.len(), Ordering::Release);
        Self { root }
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let mut trees = TREES.write().unwrap_or_else(PoisonError::into_inner);
        trees.remove(&self.root);
        COUNT.store(trees.len(), Ordering::Release);
    }
}

/// Returns the tree that a path lies in.
fn tree_of(path: &Path) -> Option<Arc<LayOut>> {
    if COUNT.load(Ordering::Acquire) == 0 {
        return None;
    }
    let trees = TREES.read().unwrap_or_else(PoisonError::into_inner);
    trees.iter().find(|(root, _)| path.starts_with(root)).map(|(_, lay_out)| Arc::clone(lay_out))
}

thread_local! {
    /// The accesses of this thread, while they are recorded.
    static LOOKS: RefCell<Option<Vec<(PathBuf, Look)>>> = const { RefCell::new(None) };
}

/// Runs `work`, and returns every access to a path that it made.
pub(crate) fn with_looks<R>(work: impl FnOnce() -> R) -> (R, Vec<(PathBuf, Look)>) {
    let before = LOOKS.replace(Some(Vec::new()));
    let done = work();
    (done, LOOKS.replace(before).unwrap_or_default())
}

/// Announces an access to a path. Must come before every access that does not go through this module.
pub(crate) fn look(path: &Path, look: Look) {
    watch(path, look);
    if let Some(lay_out) = tree_of(path) {
        lay_out(path, look);
    }
}

/// Records an access to a path through an open folder, of which [`look`] announced the whole tree.
pub(crate) fn watch(path: &Path, look: Look) {
    LOOKS.with_borrow_mut(|looks| {
        if let Some(looks) = looks {
            looks.push((path.to_owned(), look));
        }
    });
}

/// Tells whether a path lies in a tree that is laid out on demand.
pub(crate) fn is_lazy(path: &Path) -> bool {
    tree_of(path).is_some()
}

/// Lays out every registered tree completely, for a program that may use any file.
pub(crate) fn lay_out_everything() {
    if COUNT.load(Ordering::Acquire) == 0 {
        return;
    }
    let trees = TREES.read().unwrap_or_else(PoisonError::into_inner).clone();
    for (root, lay_out) in trees {
        lay_out(&root, Look::Everything);
    }
}

/// Tells whether a path exists, links followed.
pub(crate) fn exists(path: &Path) -> bool {
    look(path, Look::Kind);
    on_disk(path).exists()
}

/// Tells whether a path leads to a folder, links followed.
pub(crate) fn is_dir(path: &Path) -> bool {
    look(path, Look::Kind);
    on_disk(path).is_dir()
}

/// Returns the metadata of the file at a path, links followed.
pub(crate) fn metadata(path: &Path) -> io::Result<Metadata> {
    look(path, Look::Kind);
    std::fs::metadata(on_disk(path))
}

/// Lists a folder.
pub(crate) fn read_dir(folder: &Path) -> io::Result<ReadDir> {
    look(folder, Look::Names);
    std::fs::read_dir(on_disk(folder))
}
