//! What an earlier build of this process knows of files, so that an unchanged one need not be read again.
//!
//! A file is unchanged when its identity, mode, length and both times are. Times cannot tell of a change within
//! one tick of the file system's clock, so what was written shortly before it was read is not remembered but read
//! again: some file systems tick in whole seconds. Nor can they tell where another machine may write, so only file
//! systems of this machine count. A program that keeps a file mapped into memory and goes on writing to it can
//! change bytes without changing times until the system writes them back: such a file is the one exception.

use std::cell::Cell;
use std::os::fd::AsFd;
use std::time::{Duration, SystemTime};

use crate::observe::file::Identity;

/// Longer than any tick of a file system's clock.
const MARGIN: Duration = Duration::from_secs(2);

thread_local! {
    static IS_OFF: Cell<bool> = const { Cell::new(false) };
    static MARGIN_HERE: Cell<Duration> = const { Cell::new(MARGIN) };
}

/// Does some work that reads every file anew, whatever is known of it.
///
/// For measurements, and for tests that compare both ways: nothing else differs.
pub fn without<R>(work: impl FnOnce() -> R) -> R {
    within(&IS_OFF, true, work)
}

/// Does some work for which files count as settled sooner than the slowest clock allows.
#[cfg(test)]
pub(crate) fn with_margin<R>(margin: Duration, work: impl FnOnce() -> R) -> R {
    within(&MARGIN_HERE, margin, work)
}

fn within<T: Copy, R>(
    cell: &'static std::thread::LocalKey<Cell<T>>,
    value: T,
    work: impl FnOnce() -> R,
) -> R {
    struct Back<T: Copy + 'static>(&'static std::thread::LocalKey<Cell<T>>, T);
    impl<T: Copy> Drop for Back<T> {
        fn drop(&mut self) {
            self.0.set(self.1);
        }
    }
    let _back = Back(cell, cell.replace(value));
    work()
}

/// Tells whether this thread may use what is known.
pub(crate) fn is_on() -> bool {
    !IS_OFF.get()
}

/// The moment before which files must have changed last, so that a later change will show.
pub(crate) fn settled_before() -> Option<Moment> {
    let now = SystemTime::now().checked_sub(MARGIN_HERE.get())?;
    let since = now.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    Some(Moment { seconds: i64::try_from(since.as_secs()).ok()?, nanoseconds: since.subsec_nanos().into() })
}

/// A moment as file systems keep it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment {
    seconds: i64,
    nanoseconds: i64,
}

/// What changes when a file does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub(crate) identity: Identity,
    mode: u32,
    bytes: i64,
    written: Moment,
    changed: Moment,
}

impl Stamp {
    pub(crate) fn of(status: &rustix::fs::Stat) -> Self {
        // The types differ between systems.
        fn wide(number: impl TryInto<i64>) -> i64 {
            number.try_into().unwrap_or(i64::MAX)
        }
        let moment = |seconds, nanoseconds| Moment { seconds, nanoseconds };
        Self {
            identity: Identity::of_status(status),
            mode: status.st_mode,
            bytes: wide(status.st_size),
            written: moment(wide(status.st_mtime), wide(status.st_mtime_nsec)),
            changed: moment(wide(status.st_ctime), wide(status.st_ctime_nsec)),
        }
    }

    /// Tells whether a change from now on will change the stamp.
    pub(crate) fn is_settled(&self, before: Moment) -> bool {
        self.changed < before && self.written < before
    }
}

/// Tells whether nobody but this machine writes to the file system of an open folder.
#[cfg(target_os = "linux")]
pub(crate) fn is_local(folder: &impl AsFd) -> bool {
    // ext4, XFS, Btrfs, tmpfs, overlay, F2FS, ZFS, bcachefs.
    const LOCAL: [u64; 8] =
        [0xEF53, 0x5846_5342, 0x9123_683E, 0x0102_1994, 0x794C_7630, 0xF2F5_2010, 0x2FC1_2FC1, 0xCA45_1A4E];
    let found = rustix::fs::fstatfs(folder).ok().and_then(|status| u64::try_from(status.f_type).ok());
    found.is_some_and(|kind| LOCAL.contains(&(kind & 0xFFFF_FFFF)))
}

/// On other systems nothing is remembered: what their file systems promise was not tried.
#[cfg(not(target_os = "linux"))]
pub(crate) fn is_local(_: &impl AsFd) -> bool {
    false
}
