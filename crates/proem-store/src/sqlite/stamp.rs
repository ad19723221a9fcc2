//! Whether anybody has written since: one look at the file and one at the head of its write-ahead log's index.
//!
//! Asking SQLite takes two locks and a walk through a tree; this takes neither. Every commit of every process alters
//! the index's head before it is acknowledged, because that is how SQLite's own readers learn of it. So as long as
//! the head is the same, the whole store is. Nothing is read out of it: it is equal or it is not.
//!
//! The file of the index must never be closed here. When a process closes any descriptor of a file, the system drops
//! all locks that it holds there, those of SQLite's transactions among them.

use std::collections::BTreeMap;
use std::fs::{self, File, Metadata};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The length of one of the two copies of the head.
const HEAD_BYTES: usize = 48;

/// The version of the index's form that is known: what all versions of SQLite have written since 2010.
const INDEX_VERSION: u32 = 3_007_000;

/// Watches the index of one store's log.
#[derive(Debug)]
pub(super) struct Watch {
    index: &'static File,
    /// What was seen last, and its number.
    last: Mutex<(Option<Stamp>, u64)>,
}

/// A state of the store: what its file looks like, and the head of its log's index.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Stamp {
    /// Identity, length, and times of the last change of bytes and of anything, which show who wrote past SQLite.
    file: [i64; 7],
    head: [u8; HEAD_BYTES],
}

impl Watch {
    /// Watches the store at `path`, to which a connection is open for as long as this lives; `None` where that cannot be
    /// relied on, and then SQLite is asked.
    pub(super) fn of(path: &Path) -> Option<Self> {
        // Elsewhere a read may not see what another process wrote into memory that it shares with the file.
        if !cfg!(target_os = "linux") {
            return None;
        }
        // As SQLite names it: beside the file itself, not beside a link to it.
        let real = path.canonicalize().ok()?;
        let watch = Self {
            index: kept_open(&PathBuf::from(format!("{}-shm", real.to_str()?)))?,
            last: Mutex::default(),
        };
        watch.head().map(|_| watch)
    }

    /// A number that is the same as before only if nobody has written since; `None` when that cannot be told now.
    /// `file` is what the store's file looks like.
    pub(super) fn number(&self, file: &Metadata) -> Option<u64> {
        let head = self.head()?;
        let own = |number: u64| i64::from_ne_bytes(number.to_ne_bytes());
        let file = [
            own(file.dev()),
            own(file.ino()),
            own(file.len()),
            file.mtime(),
            file.mtime_nsec(),
            file.ctime(),
            file.ctime_nsec(),
        ];
        let stamp = Some(Stamp { file, head });
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.0 != stamp {
            *last = (stamp, last.1 + 1);
        }
        Some(last.1)
    }

    /// The head of the index. Who is just writing it has altered one copy and not the other.
    fn head(&self) -> Option<[u8; HEAD_BYTES]> {
        let mut both = [0; 2 * HEAD_BYTES];
        self.index.read_exact_at(&mut both, 0).ok()?;
        let (copies, _) = both.as_chunks::<HEAD_BYTES>();
        let [first, second] = copies else { return None };
        let version = u32::from_ne_bytes(*first.first_chunk()?);
        (first == second && version == INDEX_VERSION).then_some(*first)
    }
}

/// The file at `path`, opened once and for as long as the process lives.
fn kept_open(path: &Path) -> Option<&'static File> {
    static KEPT: Mutex<BTreeMap<(u64, u64), &'static File>> = Mutex::new(BTreeMap::new());
    let identity = |found: Metadata| (found.dev(), found.ino());
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = kept.get(&identity(fs::metadata(path).ok()?)) {
        return Some(known);
    }
    // Leaked first: whatever goes wrong below must not close it.
    let file: &'static File = Box::leak(Box::new(File::open(path).ok()?));
    Some(kept.entry(identity(file.metadata().ok()?)).or_insert(file))
}
