//! The files of a store: which ones they are, and how the first one is made.

use std::fs::{self, DirBuilder, Metadata, OpenOptions};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use proem::Reservation;
use rusqlite::Connection;

use super::{reason, reason_of, schema, unusable, write_ahead};
use crate::StoreError;

/// The files of a store: the database, its log, and the log's index.
const PARTS: [(&str, &str); 3] = [("", "file"), ("-wal", "log"), ("-shm", "log's index")];

/// The files of an open store, as they were when it was opened. No reader of this process may open them.
#[derive(Debug)]
pub(super) struct Files {
    known: Vec<Part>,
    _reservation: Reservation,
}

#[derive(Debug)]
struct Part {
    path: PathBuf,
    word: &'static str,
    identity: (u64, u64),
}

impl Files {
    /// Finds those files that are there now.
    pub(super) fn find(path: &Path) -> std::io::Result<Self> {
        // As SQLite names them: beside the file itself, not beside a link to it.
        let real = path.canonicalize()?;
        let (mut known, mut all) = (Vec::new(), Vec::new());
        for (ending, word) in PARTS {
            let mut name = real.clone().into_os_string();
            name.push(ending);
            let path = PathBuf::from(name);
            let Ok(found) = fs::metadata(&path) else { continue };
            known.push(Part { path, word, identity: (found.dev(), found.ino()) });
            all.push(found);
        }
        Ok(Self { known, _reservation: Reservation::new(&all) })
    }

    /// Says what is wrong unless the files are those that were opened; returns what the database looks like.
    ///
    /// What is written to a file that was removed or replaced is lost, and what is read from it is not what others have
    /// written since. SQLite itself goes on with a log that has no name any more.
    pub(super) fn check(&self) -> Result<Metadata, String> {
        let mut main = None;
        for part in &self.known {
            let is_same = |found: &Metadata| (found.dev(), found.ino()) == part.identity;
            let Some(found) = fs::metadata(&part.path).ok().filter(is_same) else {
                return Err(format!("its {} was removed or replaced", part.word));
            };
            main.get_or_insert(found);
        }
        match main {
            Some(_) if self.known.len() < PARTS.len() => Err("it has no log".into()),
            Some(main) if main.len() == 0 => Err("its file was emptied".into()),
            Some(main) => Ok(main),
            None => Err("its file is gone".into()),
        }
    }
}

/// Makes the store, and its folder if need be, for the user alone. It gets its name when it is whole: a file without
/// tables is always a damaged one.
pub(super) fn create(path: &Path) -> Result<(), StoreError> {
    static ATTEMPT: AtomicU64 = AtomicU64::new(1);
    let log = PathBuf::from(format!("{}-wal", path.display()));
    if log.exists() {
        let why = format!("it is gone, and its log {} is left", log.display());
        return Err(unusable(path, why, "put the file back, or remove the log to begin with an empty store"));
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
