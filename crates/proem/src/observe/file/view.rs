//! The files of a bundle in the place of the disk.
//!
//! A bundle is laid out in a private temporary folder, at the path that its files have below `/`. While its view is in force
//! on a thread, every access to a path goes to that folder, and paths that come back lose the folder's name. So a build sees
//! the files of the bundle and no other file, except for the settings of the server's user. There are no links below the
//! folder, and `..` is resolved before a path is translated, so no path leads out of it.

use std::borrow::Cow;
use std::cell::RefCell;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tempfile::TempDir;

use super::policy::{lies_below, without_dots};
use crate::request::bundle::{Bundle, BundleGit, ROOT};

/// A bundle that is laid out.
pub(crate) struct VirtualTree {
    /// Removes the files with it.
    _folder: TempDir,
    /// The real path of the folder.
    root: PathBuf,
    /// The folder of the user's settings, which stays visible.
    settings: Option<PathBuf>,
    git: Option<BundleGit>,
}

impl VirtualTree {
    /// Lays out a bundle. `cwd` is its working directory, which need not hold a file.
    pub(crate) fn new(bundle: &Bundle, cwd: &str, settings: Option<PathBuf>) -> io::Result<Self> {
        let folder = tempfile::Builder::new().prefix("proem-workspace-").tempdir()?;
        let root = fs::canonicalize(folder.path())?;
        let below = |path: &str| root.join(path.trim_start_matches('/'));
        fs::create_dir_all(below(cwd))?;
        for (path, text) in bundle.files() {
            let place = below(ROOT).join(path);
            fs::create_dir_all(place.parent().unwrap_or(&root))?;
            OpenOptions::new().write(true).create_new(true).open(place)?.write_all(text.as_bytes())?;
        }
        if bundle.git().is_some() {
            fs::create_dir_all(below(ROOT).join(".git"))?;
        }
        let settings = settings.map(|settings| without_dots(&settings));
        Ok(Self { _folder: folder, root, settings, git: bundle.git().cloned() })
    }

    /// Returns the facts of git, if the bundle has some.
    pub(crate) const fn git(&self) -> Option<&BundleGit> {
        self.git.as_ref()
    }

    fn on_disk(&self, path: &Path) -> PathBuf {
        let plain = without_dots(path);
        if self.settings.as_ref().is_some_and(|settings| lies_below(&plain, settings)) {
            return plain;
        }
        match plain.strip_prefix("/") {
            Ok(rest) if rest.as_os_str().is_empty() => self.root.clone(),
            Ok(rest) => self.root.join(rest),
            // A relative path belongs to the process, which has no place in a bundle.
            Err(_) => self.root.join("nowhere").join(plain),
        }
    }
}

thread_local! {
    /// The views in force on this thread, the last one first in effect; `None` is the disk.
    static VIEWS: RefCell<Vec<(u64, Option<Arc<VirtualTree>>)>> = const { RefCell::new(Vec::new()) };
}

/// Keeps a view in force on this thread for as long as it exists.
pub(crate) struct ViewGuard {
    id: u64,
    /// A view belongs to one thread.
    _thread: PhantomData<*const ()>,
}

impl ViewGuard {
    /// Puts a view in force: that of a bundle, or the disk.
    pub(crate) fn new(tree: Option<VirtualTree>) -> Self {
        let id = VIEWS.with_borrow_mut(|views| {
            let id = views.iter().map(|(id, _)| *id).max().map_or(0, |last| last + 1);
            views.push((id, tree.map(Arc::new)));
            id
        });
        Self { id, _thread: PhantomData }
    }
}

impl Drop for ViewGuard {
    fn drop(&mut self) {
        // Guards may be dropped in any order.
        let gone = VIEWS.with_borrow_mut(|views| {
            let at = views.iter().position(|(id, _)| *id == self.id)?;
            Some(views.remove(at))
        });
        drop(gone);
    }
}

/// Returns the bundle in force.
pub(crate) fn virtual_tree() -> Option<Arc<VirtualTree>> {
    VIEWS.with_borrow(|views| views.last()?.1.clone())
}

/// Tells whether a bundle is in the place of the disk.
pub(crate) fn is_virtual() -> bool {
    VIEWS.with_borrow(|views| views.last().is_some_and(|(_, tree)| tree.is_some()))
}

/// Returns the path at which the system has the file that a build calls `path`.
pub(crate) fn on_disk(path: &Path) -> Cow<'_, Path> {
    VIEWS.with_borrow(|views| match views.last() {
        Some((_, Some(tree))) => Cow::Owned(tree.on_disk(path)),
        _ => Cow::Borrowed(path),
    })
}

/// Returns the path that a build sees for a path of the system.
pub(crate) fn as_seen(real: PathBuf) -> PathBuf {
    VIEWS.with_borrow(|views| match views.last() {
        Some((_, Some(tree))) => match real.strip_prefix(&tree.root) {
            Ok(rest) => Path::new("/").join(rest),
            Err(_) => real,
        },
        _ => real,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn paths_go_to_the_folder_and_back_and_never_out_of_it() {
        let files = BTreeMap::from([("a/b".to_owned(), "text".to_owned())]);
        let bundle = Bundle::new(files, None, None).expect("it is valid");
        let tree =
            VirtualTree::new(&bundle, "/workspace/src", Some("/etc/proem".into())).expect("there is room");
        let root = tree.root.clone();
        assert_eq!(on_disk(Path::new("/workspace")), Path::new("/workspace"), "control: the disk");
        let guard = ViewGuard::new(Some(tree));
        for (path, expected) in [
            ("/workspace/a/b", root.join("workspace/a/b")),
            ("/workspace/../../../etc/passwd", root.join("etc/passwd")),
            ("/", root.clone()),
            ("/etc/passwd", root.join("etc/passwd")),
            ("/etc/proem/proem.toml", "/etc/proem/proem.toml".into()),
            ("/etc/proem/../passwd", root.join("etc/passwd")),
            ("x", root.join("nowhere/x")),
        ] {
            assert_eq!(on_disk(Path::new(path)), expected, "{path}");
        }
        assert_eq!(as_seen(root.join("workspace/a")), Path::new("/workspace/a"));
        assert!(super::super::is_dir(Path::new("/workspace/src")));
        let other = ViewGuard::new(None);
        assert!(!is_virtual());
        drop(guard);
        assert!(!is_virtual() && !root.exists());
        drop(other);
    }
}
