//! Rules for which files a build may read, depending on who wrote the template.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use proem_core::fact::Absence;
use proem_core::limit::LINKS_MAX;

use super::secret::is_secret;
use crate::request::caller::{Caller, Workspaces};

/// The files that a template may read, which depend on its author.
#[derive(Debug, Clone)]
pub(crate) struct ReadPolicy {
    roots: Option<Vec<PathBuf>>,
    /// The limits of reads for a remote client, wherever a root leads once it is resolved.
    served: Option<ServedFolders>,
    fence: Option<ProjectFence>,
    home: Option<PathBuf>,
    allowed: Vec<PathBuf>,
}

impl ReadPolicy {
    /// Allows all files of the user except secrets: for templates of the user's own.
    pub(crate) fn user(home: Option<&Path>, allowed: &[PathBuf]) -> Self {
        Self {
            roots: None,
            served: None,
            fence: None,
            home: home.map(canonical),
            allowed: with_canonical(allowed),
        }
    }

    /// Allows only files that lie below one of `roots` once links are resolved: for templates of other authors.
    pub(crate) fn beneath(roots: &[PathBuf], home: Option<&Path>, allowed: &[PathBuf]) -> Self {
        Self { roots: Some(with_canonical(roots)), ..Self::user(home, allowed) }
    }

    /// Also keeps reads for a remote client in the server's workspaces and in folders of the operator. A root is a
    /// path: a folder on the way to it may be swapped for a link after the server has checked it.
    pub(crate) fn served(self, caller: Caller, own: &[PathBuf]) -> Self {
        match caller {
            Caller::Remote(workspaces) if !workspaces.is_empty() => {
                Self { served: Some(ServedFolders { workspaces, own: with_canonical(own) }), ..self }
            }
            _ => self,
        }
    }

    /// Tells whether it is the policy for a client of a server.
    pub(crate) const fn is_served(&self) -> bool {
        self.served.is_some()
    }

    /// Tells whether it allows only files below some roots.
    pub(crate) const fn is_restricted(&self) -> bool {
        self.roots.is_some()
    }

    /// Also keeps what a project names inside of it, unless the user allowed the exact path.
    pub(crate) fn fenced(self, fence: Option<ProjectFence>) -> Self {
        Self { fence, ..self }
    }

    /// Also allows one exact path, even if its name suggests a secret.
    pub(crate) fn allowing(&self, path: &Path) -> Self {
        let mut policy = self.clone();
        policy.allowed.push(path.to_owned());
        policy
    }

    /// Returns the policy for paths that a file of the project names: a fence applies to all of them.
    pub(crate) fn of_project(&self) -> Self {
        let fence = self.fence.clone().map(|fence| ProjectFence { spelt: None, ..fence });
        Self { fence, ..self.clone() }
    }

    /// Refuses a path by its spelling alone, so that the error does not reveal which files exist.
    pub(crate) fn check_as_written(&self, path: &Path) -> Result<(), Absence> {
        let plain = if is_plain(path) { Cow::Borrowed(path) } else { Cow::Owned(without_dots(path)) };
        if let Some(roots) = &self.roots
            && !is_beneath(&plain, roots)
        {
            let climbs = path.components().any(|component| component == Component::ParentDir);
            return Err(if climbs { Absence::PathEscape } else { Absence::OutsideRoots });
        }
        self.check_secret(&plain, path)
    }

    /// Refuses a path by the real path of the opened file.
    pub(crate) fn check_opened(&self, written: &Path, opened: &Path) -> Result<(), Absence> {
        self.check_roots(opened)?;
        self.check_secret(written, opened)?;
        match &self.fence {
            Some(fence) if fence.is_crossed(written, opened) && !self.is_shared(opened) => {
                Err(Absence::OutsideProject(super::shown(opened)))
            }
            _ => Ok(()),
        }
    }

    /// Turns "no such file" into a refusal where the missing file would lie outside the roots.
    pub(crate) fn hide_absence(&self, path: &Path, why: Absence) -> Absence {
        match &self.roots {
            // There is nothing to hide, and finding the nearest existing folder takes a call for each folder on the
            // way.
            None => why,
            Some(roots) => match self.check_roots(&nearest_existing(path, 0)) {
                Ok(()) => why,
                // Below a root that does not exist there is nothing to hide either.
                Err(_) if roots.iter().any(|root| path.starts_with(root) && !super::exists(root)) => why,
                Err(outside) => outside,
            },
        }
    }

    /// Tells whether a path looks like a secret and the user has not allowed it.
    pub(crate) fn is_secret(&self, path: &Path) -> bool {
        self.check_secret(path, path).is_err()
    }

    /// Tells whether a real path lies where this policy may read.
    pub(crate) fn allows(&self, real: &Path) -> bool {
        self.check_roots(real).is_ok()
    }

    fn check_roots(&self, real: &Path) -> Result<(), Absence> {
        if self.served.as_ref().is_some_and(|served| !served.contains(real)) {
            return Err(Absence::OutsideRoots);
        }
        match &self.roots {
            Some(roots) if !is_beneath(real, roots) => Err(Absence::OutsideRoots),
            _ => Ok(()),
        }
    }

    fn check_secret(&self, written: &Path, real: &Path) -> Result<(), Absence> {
        let is_refused = is_secret(real, self.home.as_deref()) && !self.is_allowed(written, real);
        if is_refused { Err(Absence::SecretPath) } else { Ok(()) }
    }

    /// Tells whether the user allowed projects to link to a file, or to a folder that it lies in.
    fn is_shared(&self, real: &Path) -> bool {
        self.allowed.iter().any(|allowed| lies_below(real, allowed))
    }

    /// Tells whether the user allowed an exact path.
    fn is_allowed(&self, written: &Path, real: &Path) -> bool {
        self.allowed.iter().any(|allowed| allowed == written || allowed == real)
    }
}

/// Folders that a server may read for its clients.
#[derive(Debug, Clone)]
struct ServedFolders {
    workspaces: Workspaces,
    own: Vec<PathBuf>,
}

impl ServedFolders {
    fn contains(&self, real: &Path) -> bool {
        self.workspaces.contain(real) || is_beneath(real, &self.own)
    }
}

/// The boundary of a project that the user does not trust: a link in it may have been made by a stranger, and must not
/// bring the user's files into a prompt.
#[derive(Debug, Clone)]
pub(crate) struct ProjectFence {
    /// The path of the project as it is written, and its real path. `None` means that the fence applies to every path.
    spelt: Option<[PathBuf; 2]>,
    real: PathBuf,
}

impl ProjectFence {
    /// Creates the fence of a project from its path as it is written and its real path.
    pub(crate) fn around(project: &Path, real: &Path) -> Self {
        Self { spelt: Some([project.to_owned(), real.to_owned()]), real: real.to_owned() }
    }

    fn is_crossed(&self, written: &Path, opened: &Path) -> bool {
        let is_named_inside = match &self.spelt {
            None => true,
            Some(spelt) => spelt.iter().any(|project| lies_below(written, project)),
        };
        is_named_inside && !lies_below(opened, &self.real)
    }
}

/// Returns the deepest real directory on the way to a path that does not exist. Follows dangling links.
pub(super) fn nearest_existing(path: &Path, links: usize) -> PathBuf {
    if let Ok(real) = super::open::canonical(path) {
        return real;
    }
    let above: Vec<&Path> = path.ancestors().skip(1).collect();
    // Mostly the folder exists and the file does not, or one or two folders are missing. Otherwise a binary search
    // finds the last folder that exists, since each existing folder lies above each missing one: a path can name two
    // thousand folders.
    let near = above.iter().take(3).position(|folder| known(folder).is_some());
    let missing = near.unwrap_or_else(|| above.partition_point(|folder| known(folder).is_none()));
    let first_missing = missing.checked_sub(1).and_then(|last| above.get(last)).copied().unwrap_or(path);
    if let Ok(target) = super::on_disk(first_missing).read_link()
        && links < LINKS_MAX
    {
        let folder = first_missing.parent().unwrap_or(first_missing);
        return nearest_existing(&without_dots(&folder.join(target)), links + 1);
    }
    above.get(missing).and_then(|folder| known(folder)).unwrap_or_else(|| PathBuf::from("/"))
}

fn is_beneath(path: &Path, roots: &[PathBuf]) -> bool {
    roots.iter().any(|root| lies_below(path, root))
}

/// Tells whether a path is `folder` or lies below it, as [`Path::starts_with`] does. Compares bytes if both are plain,
/// since splitting paths costs more than most reads.
pub(crate) fn lies_below(path: &Path, folder: &Path) -> bool {
    if !is_plain(path) || !is_plain(folder) {
        return path.starts_with(folder);
    }
    let rest = bytes_of(path).strip_prefix(bytes_of(folder));
    rest.is_some_and(|rest| matches!(rest.first(), None | Some(b'/')))
}

/// Tells whether a path is absolute and written without `.`, `..` and needless slashes. A root is not: it ends in a slash.
pub(crate) fn is_plain(path: &Path) -> bool {
    let bytes = bytes_of(path);
    let is_name = |name: &[u8]| !matches!(name, b"" | b"." | b"..");
    bytes.first() == Some(&b'/')
        && bytes.last() != Some(&b'/')
        && (!may_have_dots(bytes) || bytes.split(|byte| *byte == b'/').skip(1).all(is_name))
}

/// Tells whether any slash is followed by a slash or a dot. Has no branch for each byte, so that the compiler can
/// compare many at once.
fn may_have_dots(bytes: &[u8]) -> bool {
    let pairs = bytes.iter().zip(bytes.iter().skip(1));
    pairs.fold(false, |found, (first, second)| found | (*first == b'/' && matches!(second, b'/' | b'.')))
}

fn bytes_of(path: &Path) -> &[u8] {
    path.as_os_str().as_encoded_bytes()
}

/// Real paths by paths as they are written; `None` for paths that do not exist.
type RealPaths = BTreeMap<PathBuf, Option<PathBuf>>;

thread_local! {
    static RESOLVED: RefCell<Option<RealPaths>> = const { RefCell::new(None) };
}

/// Runs `work` with each root resolved only once: a folder that is swapped for a link meanwhile does not change which
/// files may be read.
pub(crate) fn with_fixed_roots<R>(work: impl FnOnce() -> R) -> R {
    struct RestoreRoots(Option<RealPaths>);
    impl Drop for RestoreRoots {
        fn drop(&mut self) {
            RESOLVED.set(self.0.take());
        }
    }
    let _back = RestoreRoots(RESOLVED.replace(Some(BTreeMap::new())));
    work()
}

fn canonical(path: &Path) -> PathBuf {
    known(path).unwrap_or_else(|| path.to_owned())
}

/// Returns the real path of a folder, resolved once; `None` if it does not exist.
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

/// Returns each path as it is written and as it is resolved.
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

    /// Compares the test on bytes with the result of splitting a path.
    #[test]
    fn plain_paths_are_those_that_stay_as_they_are() {
        let parts = ["a", ".", "..", "", "...", ".a", "a.", "..a", "bc", "é"];
        let mut paths: Vec<String> = vec!["/".into(), String::new(), "//".into()];
        for first in parts {
            for second in parts {
                for third in parts {
                    let path = format!("{first}/{second}/{third}");
                    paths.extend([format!("/{path}"), path]);
                }
            }
        }
        // Longer ones are compared many bytes at a time.
        for length in 20..75 {
            let name = "x".repeat(length);
            for part in parts {
                paths.extend([
                    format!("/{name}/{part}"),
                    format!("/{name}/{part}/{name}"),
                    format!("/{part}/{name}"),
                ]);
            }
        }
        for path in &paths {
            let path = Path::new(path);
            let is_same = bytes_of(&without_dots(path)) == bytes_of(path);
            let expected = path.is_absolute() && path != Path::new("/") && is_same;
            assert_eq!(is_plain(path), expected, "{}", path.display());
        }
        for path in &paths {
            for folder in paths.iter().step_by(7) {
                let (path, folder) = (Path::new(path), Path::new(folder));
                assert_eq!(lies_below(path, folder), path.starts_with(folder), "{path:?} {folder:?}");
            }
        }
    }

    /// Finds the expected folder by testing one after the other from the end.
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
        assert!((2..=14).contains(&asked), "{asked} folders were asked for");
    }
}
