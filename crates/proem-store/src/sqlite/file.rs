//! The file of a store: which one it is, and how it comes to be.

use std::fs::{self, DirBuilder, OpenOptions};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rusqlite::Connection;

use super::{reason, reason_of, schema, unusable, write_ahead};
use crate::StoreError;

/// Which file a path leads to.
pub(super) fn identity(path: &Path) -> std::io::Result<(u64, u64)> {
    fs::metadata(path).map(|found| (found.dev(), found.ino()))
}

/// Makes the store, and its folder if need be, for the user alone. It gets its name when it is whole: a file without
/// tables is always a damaged one.
pub(super) fn create(path: &Path) -> Result<(), StoreError> {
    static ATTEMPT: AtomicU64 = AtomicU64::new(1);
    let log = PathBuf::from(format!("{}-wal", path.display()));
    if log.exists() {
        let why = format!("it is gone, and its log {} is left", log.display());
        return Err(unusable(path, why, "put the file back, or remove the log to begin anew"));
    }
    let failed =
        |error: &std::io::Error| unusable(path, reason(error), "name a place that can be written to");
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder.filter(|folder| !folder.exists()) {
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(|error| failed(&error))?;
    }
    // One name for each attempt: two threads must not write into one file.
    let attempt = ATTEMPT.fetch_add(1, Ordering::Relaxed);
    let unnamed = PathBuf::from(format!("{}.{}-{attempt}.new", path.display(), std::process::id()));
    let made = make(&unnamed, path).and_then(|()| match fs::hard_link(&unnamed, path) {
        // Somebody else was first, with the same tables.
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        other => other.map_err(|error| failed(&error)),
    });
    // What is left of it harms nobody.
    drop(fs::remove_file(&unnamed));
    made
}

/// Makes an empty store under a name that nobody looks for.
fn make(unnamed: &Path, path: &Path) -> Result<(), StoreError> {
    let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(unnamed);
    file.map_err(|error| unusable(path, reason(&error), "name a place that can be written to"))?;
    let connection = Connection::open(unnamed).map_err(|error| reason_of(path, &error))?;
    schema::migrate(&connection, path)?;
    // Whoever opens it has nothing to switch then.
    write_ahead(&connection).map_err(|error| reason_of(path, &error))?;
    connection.close().map_err(|(_, error)| reason_of(path, &error))
}
