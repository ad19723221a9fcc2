//! Who may read what.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use proem_core::fact::Absence;

use super::secret::is_secret;

/// What a template may read, which depends on who wrote it.
#[derive(Debug, Clone)]
pub(crate) struct ReadPolicy {
    roots: Option<Vec<PathBuf>>,
    home: Option<PathBuf>,
    allowed: Vec<PathBuf>,
}

impl ReadPolicy {
    /// Everything that the user may read, except secrets: for templates of the user's own.
    pub(crate) fn user(home: Option<&Path>, allowed: &[PathBuf]) -> Self {
        Self { roots: None, home: home.map(canonical), allowed: with_canonical(allowed) }
    }

    /// Only what lies below one of `roots` once links are resolved: for everybody else's.
    pub(crate) fn beneath(roots: &[PathBuf], home: Option<&Path>, allowed: &[PathBuf]) -> Self {
        Self { roots: Some(with_canonical(roots)), ..Self::user(home, allowed) }
    }

    /// Refuses by the path's spelling alone, so that the answer does not tell what exists.
    pub(crate) fn check_as_written(&self, path: &Path) -> Result<(), Absence> {
        if let Some(roots) = &self.roots {
            let plain = without_dots(path);
            if !is_beneath(&plain, roots) {
                let climbs = path.components().any(|component| component == Component::ParentDir);
                return Err(if climbs { Absence::PathEscape } else { Absence::OutsideRoots });
            }
        }
        self.check_secret(&without_dots(path), path)
    }

    /// Refuses by the path of what was really opened.
    pub(super) fn check_opened(&self, written: &Path, opened: &Path) -> Result<(), Absence> {
        self.check_roots(opened)?;
        self.check_secret(written, opened)
    }

    /// Turns "no such file" into a refusal where the missing file would lie outside the roots.
    pub(crate) fn hide_absence(&self, path: &Path, why: Absence) -> Absence {
        match &self.roots {
            // Nothing to hide; looking for what exists takes a call for every folder on the way.
            None => why,
            Some(roots) => match self.check_roots(&nearest_existing(path, 0)) {
                Ok(()) => why,
                // Below a root that does not exist there is nothing to hide either.
                Err(_) if roots.iter().any(|root| path.starts_with(root) && !root.exists()) => why,
                Err(outside) => outside,
            },
        }
    }

    /// Tells whether a path says that it holds a secret, and nobody allowed it.
    pub(crate) fn is_secret(&self, path: &Path) -> bool {
        self.check_secret(path, path).is_err()
    }

    /// Tells whether a real path lies where this policy may read.
    pub(crate) fn allows(&self, real: &Path) -> bool {
        self.check_roots(real).is_ok()
    }

    fn check_roots(&self, real: &Path) -> Result<(), Absence> {
        match &self.roots {
            Some(roots) if !is_beneath(real, roots) => Err(Absence::OutsideRoots),
            _ => Ok(()),
        }
    }

    fn check_secret(&self, written: &Path, real: &Path) -> Result<(), Absence> {
        let is_allowed = self.allowed.iter().any(|allowed| allowed == written || allowed == real);
        if !is_allowed && is_secret(real, self.home.as_deref()) { Err(Absence::SecretPath) } else { Ok(()) }
    }
}

/// The deepest real directory on the way to a path that does not exist, links that dangle followed.
pub(super) fn nearest_existing(path: &Path, links: usize) -> PathBuf {
    const LINKS_MAX: usize = 40;
    if let Ok(real) = super::open::canonical(path) {
        return real;
    }
    let above: Vec<&Path> = path.ancestors().skip(1).collect();
    // Mostly the folder is there and the file is not. Where it is not, each folder that is there lies above each that is not,
    // so the last one is searched for: a path can name two thousand of them.
    let missing = match above.first() {
        Some(folder) if known(folder).is_some() => 0,
        _ => above.partition_point(|folder| known(folder).is_none()),
    };
    let first_missing = missing.checked_sub(1).and_then(|last| above.get(last)).copied().unwrap_or(path);
    if let Ok(target) = first_missing.read_link()
        && links < LINKS_MAX
    {
        let folder = first_missing.parent().unwrap_or(first_missing);
        return nearest_existing(&without_dots(&folder.join(target)), links + 1);
    }
    above.get(missing).and_then(|folder| known(folder)).unwrap_or_else(|| PathBuf::from("/"))
}

fn is_beneath(path: &Path, roots: &[PathBuf]) -> bool {
    roots.iter().any(|root| path.starts_with(root))
}

/// Real paths by paths as they are written; `None` for what does not exist.
type Resolved = BTreeMap<PathBuf, Option<PathBuf>>;

thread_local! {
    static RESOLVED: RefCell<Option<Resolved>> = const { RefCell::new(None) };
}

/// Does some work in which each root is resolved once: a folder that is swapped for a link meanwhile does not move
/// what may be read.
pub(crate) fn with_fixed_roots<R>(work: impl FnOnce() -> R) -> R {
    struct Back(Option<Resolved>);
    impl Drop for Back {
        fn drop(&mut self) {
            RESOLVED.set(self.0.take());
        }
    }
    let _back = Back(RESOLVED.replace(Some(BTreeMap::new())));
    work()
}

fn canonical(path: &Path) -> PathBuf {
    known(path).unwrap_or_else(|| path.to_owned())
}

/// The real path of a folder, asked for once; `None` if it does not exist.
fn known(path: &Path) -> Option<PathBuf> {
    if let Some(known) = RESOLVED.with_borrow(|resolved| resolved.as_ref()?.get(path).cloned()) {
        return known;
    }
    let real = super::open::canonical(path).ok();
    RESOLVED.with_borrow_mut(|resolved| {
        if let Some(known) = resolved {
            known.insert(path.to_owned(), real.clone());
        }
    });
    real
}

/// Each path as it is spelt and as it really is.
fn with_canonical(paths: &[PathBuf]) -> Vec<PathBuf> {
    paths.iter().flat_map(|path| [path.clone(), canonical(path)]).collect()
}

/// Removes `.`, `..` and doubled slashes by spelling alone: links stay as they are written.
pub(crate) fn without_dots(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            other => plain.push(other),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    /// What the search must find, looked for folder by folder from the end.
    fn one_by_one(path: &Path, links: usize) -> PathBuf {
        for ancestor in path.ancestors() {
            if let Ok(real) = fs::canonicalize(ancestor) {
                return real;
            }
            if let Ok(target) = ancestor.read_link()
                && links < 40
            {
                let folder = ancestor.parent().unwrap_or(ancestor);
                return one_by_one(&without_dots(&folder.join(target)), links + 1);
            }
        }
        PathBuf::from("/")
    }

    #[test]
    fn the_nearest_folder_that_exists_is_found_through_links_and_without_them() {
        let site = tempfile::tempdir().expect("there is room");
        let at = |path: &str| site.path().join(path);
        fs::create_dir_all(at("a/b/c")).expect("there is room");
        fs::write(at("a/file"), "").expect("there is room");
        for (target, link) in [
            ("a/b", "to-folder"),
            ("a/none/deeper", "dangling"),
            ("loop", "loop"),
            ("to-folder/c/none", "twice"),
            ("../..", "a/up"),
        ] {
            symlink(target, at(link)).expect("a link is made");
        }
        let beginnings =
            ["", "a", "a/b/c", "a/file", "to-folder", "to-folder/c", "dangling", "loop", "twice", "a/up"];
        for beginning in beginnings {
            for end in ["", "x", "x/y", "x/y/z/x/y/z", "c/x", "none/x"] {
                let path = without_dots(&at(beginning).join(end));
                assert_eq!(nearest_existing(&path, 0), one_by_one(&path, 0), "{}", path.display());
            }
        }
    }

    #[test]
    fn a_path_of_two_thousand_folders_is_asked_for_a_few_times() {
        let site = tempfile::tempdir().expect("there is room");
        let asked = with_fixed_roots(|| {
            let path = site.path().join("a/".repeat(1_900));
            assert_eq!(nearest_existing(&path, 0), one_by_one(site.path(), 0));
            RESOLVED.with_borrow(|resolved| resolved.as_ref().map_or(0, BTreeMap::len))
        });
        assert!((2..=13).contains(&asked), "{asked} folders were asked for");
    }
}
