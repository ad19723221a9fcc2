//! The files of a store: their identity, and the creation of the database.

use std::fs::{self, DirBuilder, Metadata, OpenOptions};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use proem::Reservation;
use rusqlite::Connection;

use super::{enable_wal, io_explanation, schema, store_error, unusable};
use crate::StoreError;

/// The files of a store: the database, its write-ahead log, and the log's index.
const PARTS: [(&str, &str); 3] = [("", "file"), ("-wal", "log"), ("-shm", "log's index")];

/// The fix for a location in which no file can be created.
const WRITABLE: &str = "choose a location that you can write to";

/// The files of an open store, as they were when it was opened. While this value lives, no reader of this process opens
/// them.
#[derive(Debug)]
pub(super) struct Files {
    parts: Vec<Part>,
    _reservation: Reservation,
}

#[derive(Debug)]
struct Part {
    path: PathBuf,
    word: &'static str,
    identity: (u64, u64),
}

impl Files {
    /// Finds the files that exist now.
    pub(super) fn find(path: &Path) -> std::io::Result<Self> {
        // SQLite puts them beside the file itself, not beside a link to it.
        let real = path.canonicalize()?;
        let (mut parts, mut all) = (Vec::new(), Vec::new());
        for (ending, word) in PARTS {
            let mut name = real.clone().into_os_string();
            name.push(ending);
            let path = PathBuf::from(name);
            let Ok(found) = fs::metadata(&path) else { continue };
            parts.push(Part { path, word, identity: (found.dev(), found.ino()) });
            all.push(found);
        }
        Ok(Self { parts, _reservation: Reservation::new(&all) })
    }

    /// Fails unless the files are those that were opened; returns the metadata of the database.
    ///
    /// Writes to a file that was removed or replaced are lost, and reads from it miss the writes of other processes. SQLite
    /// itself continues with a log that was removed.
    pub(super) fn check(&self) -> Result<Metadata, String> {
        let mut main = None;
        for part in &self.parts {
            let is_same = |found: &Metadata| (found.dev(), found.ino()) == part.identity;
            let Some(found) = fs::metadata(&part.path).ok().filter(is_same) else {
                return Err(format!("its {} was removed or replaced", part.word));
            };
            main.get_or_insert(found);
        }
        match main {
            Some(_) if self.parts.len() < PARTS.len() => Err("its log is missing".into()),
            Some(main) if main.len() == 0 => Err("its file was emptied".into()),
            Some(main) => Ok(main),
            None => Err("its file is missing".into()),
        }
    }
}

/// Creates the store, and its folder if it does not exist, for the user alone. The file gets its name when it is
/// complete, so that a file without tables is always a damaged one.
pub(super) fn create(path: &Path) -> Result<(), StoreError> {
    static ATTEMPT: AtomicU64 = AtomicU64::new(1);
    let log = PathBuf::from(format!("{}-wal", path.display()));
    if log.exists() {
        let why = format!("its file is missing, but its log {} exists", log.display());
        return Err(unusable(path, why, "restore the file, or remove the log to start with an empty store"));
    }
    let failed = |error: std::io::Error| unusable(path, io_explanation(error), WRITABLE);
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder.filter(|folder| !folder.exists()) {
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
    }
    // Each attempt has a name of its own: two threads must not write into one file.
    let attempt = ATTEMPT.fetch_add(1, Ordering::Relaxed);
    let temporary = PathBuf::from(format!("{}.{}-{attempt}.new", path.display(), std::process::id()));
    let created = create_empty(&temporary, path).and_then(|()| match fs::hard_link(&temporary, path) {
        // Another process was first, with the same tables.
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        other => other.map_err(failed),
    });
    // A temporary file that stays behind does no harm.
    drop(fs::remove_file(&temporary));
    created
}

/// Creates an empty store under a temporary name.
fn create_empty(temporary: &Path, path: &Path) -> Result<(), StoreError> {
    let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(temporary);
    file.map_err(|error| unusable(path, io_explanation(error), WRITABLE))?;
    let connection = Connection::open(temporary).map_err(|error| store_error(path, error))?;
    schema::migrate(&connection, path)?;
    // Processes that open the store then need not switch its mode.
    enable_wal(&connection).map_err(|error| store_error(path, error))?;
    connection.close().map_err(|(_, error)| store_error(path, error))
}
