//! Stamps of files: what `stat` says about them. While the stamps of everything that a search looked at are the same, the
//! search need not run again.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::Stat;

use super::lazy::{Look, is_lazy};

/// A file that changed less than this before it was looked at may change again with the same time: clocks of file systems
/// are coarse.
const COARSE: Duration = Duration::from_millis(50);

/// The stamp of one path; `None` if nothing is there.
type Stamp = Option<Marks>;

/// The numbers that `stat` gives and that a change alters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Marks {
    file: (u64, u64),
    /// The type and the rights.
    mode: u32,
    /// The size and the times; not of a path of which only the kind was looked at.
    content: Option<(u64, i128, i128)>,
}

/// The stamps of all paths that a search looked at.
#[derive(Debug)]
pub(crate) struct Stamps {
    paths: Vec<(CString, bool, Stamp)>,
}

impl Stamps {
    /// Takes the stamps of paths that were looked at. `began` is the time before the first look. `None` if they cannot show
    /// that nothing changed: a file was changed a moment ago, or a tree is not on the disk.
    pub(crate) fn take(looks: Vec<(PathBuf, Look)>, began: SystemTime) -> Option<Self> {
        let mut watched: BTreeMap<PathBuf, bool> = BTreeMap::new();
        for (path, look) in looks {
            if is_lazy(&path) {
                return None;
            }
            *watched.entry(path).or_default() |= look != Look::Kind;
        }
        let since = began.checked_sub(COARSE)?.duration_since(UNIX_EPOCH).ok()?;
        let since = i128::try_from(since.as_nanos()).ok()?;
        let mut paths = Vec::with_capacity(watched.len());
        for (path, has_content) in watched {
            let name = CString::new(path.as_os_str().as_bytes()).ok()?;
            let stamp = stamp(&name, has_content);
            let is_fresh = |marks: Marks| marks.content.is_some_and(|(_, _, changed)| changed >= since);
            if stamp.is_some_and(is_fresh) {
                return None;
            }
            paths.push((name, has_content, stamp));
        }
        Some(Self { paths })
    }

    /// Tells whether every path has the same stamp.
    pub(crate) fn are_current(&self) -> bool {
        self.paths.iter().all(|(path, has_content, known)| stamp(path, *has_content) == *known)
    }
}

fn stamp(path: &CString, has_content: bool) -> Stamp {
    let status: Stat = rustix::fs::stat(path).ok()?;
    Some(Marks {
        file: (wide(status.st_dev), wide(status.st_ino)),
        mode: u32::try_from(wide(status.st_mode)).unwrap_or(u32::MAX),
        content: has_content.then(|| {
            let time = |seconds: i64, nanoseconds: i128| i128::from(seconds) * 1_000_000_000 + nanoseconds;
            let size = u64::try_from(status.st_size).unwrap_or_default();
            let modified = time(status.st_mtime, i128::from(status.st_mtime_nsec));
            (size, modified, time(status.st_ctime, i128::from(status.st_ctime_nsec)))
        }),
    })
}

/// Widens a number whose type differs between systems.
fn wide(number: impl TryInto<u64>) -> u64 {
    number.try_into().unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    fn taken(looks: &[(&Path, Look)]) -> Option<Stamps> {
        let looks = looks.iter().map(|(path, look)| ((*path).to_owned(), *look)).collect();
        // As if the search began long after every change.
        Stamps::take(looks, SystemTime::now() + Duration::from_mins(1))
    }

    #[test]
    fn a_change_of_content_alters_a_stamp_and_one_beside_it_does_not() {
        let site = tempfile::tempdir().expect("there is room");
        let (file, missing) = (site.path().join("a"), site.path().join("b"));
        fs::write(&file, "old").expect("there is room");
        let looks = [(&*file, Look::Content), (&*missing, Look::Content), (site.path(), Look::Kind)];
        let stamps = taken(&looks).expect("nothing is fresh");
        assert!(stamps.are_current() && stamps.paths.len() == 3);
        fs::write(site.path().join("c"), "other").expect("there is room");
        assert!(stamps.are_current(), "of the folder, only the kind was looked at");
        fs::write(&missing, "new").expect("there is room");
        assert!(!stamps.are_current(), "a missing file is there now");
        fs::remove_file(&missing).expect("it is there");
        assert!(stamps.are_current());
        fs::write(&file, "newer").expect("there is room");
        assert!(!stamps.are_current(), "another size");
    }

    #[test]
    fn a_file_that_changed_a_moment_ago_gives_no_stamps() {
        let site = tempfile::tempdir().expect("there is room");
        let file = site.path().join("a");
        fs::write(&file, "x").expect("there is room");
        let looks = vec![(file.clone(), Look::Content)];
        assert!(Stamps::take(looks, SystemTime::now()).is_none());
    }
}
