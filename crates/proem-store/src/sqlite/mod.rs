//! A store in a SQLite file, for any number of processes on one machine.
//!
//! Every write is one transaction that takes the lock when it begins, and is on the disk when it is acknowledged
//! (`synchronous = FULL`). Each thread has a connection of its own, so readers never wait.

mod calls;
mod check;
mod compactions;
mod file;
mod rows;
mod schema;
mod states;
mod templates;
mod traffic;
mod workspaces;

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use file::Files;
use proem_core::limit::SQLITE_LOCK_TIME_MAX;
use rows::{EpochReader, insert};
use rusqlite::{Connection, ErrorCode, Row, Transaction, TransactionBehavior, params};

use crate::Maintenance;
use crate::columns::row_limit;
use crate::record::{ConversationHead, Epoch, EpochHead, History, Page, PageKey, Query};
use crate::texts::TextCache;
use crate::{Commit, Current, CurrentHead, Explanation, Store, StoreError};

/// The oldest SQLite without known faults in its write-ahead log.
const SQLITE_VERSION_MIN: i32 = 3_051_003;

/// A store in a SQLite file.
#[derive(Debug)]
pub struct SqliteStore {
    path: PathBuf,
    /// Distinguishes the connections of this store from those of another on the same thread.
    id: u64,
    /// Held while this process writes.
    writers: Mutex<()>,
    texts: TextCache,
    /// A connection that never writes. It knows whether another one has written, and it keeps the log and its index in
    /// place, which SQLite removes with the last connection.
    observer: Mutex<Connection>,
    /// The files that were opened. Dropped last: connections must be closed before readers may open them.
    files: Files,
}

thread_local! {
    /// The connections of this thread, by store.
    static CONNECTIONS: RefCell<HashMap<u64, Rc<Connection>>> = RefCell::new(HashMap::new());
}

impl SqliteStore {
    /// Opens the store at `path`, and creates it if it does not exist. Only the user may read it.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        if rusqlite::version_number() < SQLITE_VERSION_MIN {
            let why = format!("SQLite {} can lose its write-ahead log", rusqlite::version());
            return Err(unusable(path, why, "build proem with its bundled SQLite"));
        }
        if !path.exists() {
            file::create(path)?;
        }
        if fs::metadata(path).is_ok_and(|found| found.len() == 0) {
            return Err(StoreError::damaged(format!("the store {}", path.display()), "its file is empty"));
        }
        let failed = |error: std::io::Error| unusable(path, io_explanation(error), "choose a file");
        // Readers must be kept away before the first lock is taken.
        let before = Files::find(path).map_err(failed)?;
        let connection = connect(path)?;
        schema::migrate(&connection, path)?;
        let observer = connect(path)?;
        // The log and its index exist only now.
        let files = Files::find(path).map_err(failed)?;
        drop(before);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        CONNECTIONS.with_borrow_mut(|known| known.insert(id, Rc::new(connection)));
        Ok(Self {
            path: path.to_owned(),
            id,
            writers: Mutex::new(()),
            texts: TextCache::default(),
            observer: Mutex::new(observer),
            files,
        })
    }

    fn connection(&self) -> Result<Rc<Connection>, StoreError> {
        // A connection that an error or a panic left within a transaction would still show the moment of that transaction.
        let is_free = |connection: &Rc<Connection>| connection.is_autocommit();
        if let Some(known) = CONNECTIONS.with_borrow(|known| known.get(&self.id).cloned()).filter(is_free) {
            return Ok(known);
        }
        // Opens without creating: a file that was removed must not come back empty.
        let connection = Rc::new(connect(&self.path).inspect_err(|_| self.close_connection())?);
        schema::check_version(&connection, &self.path)?;
        CONNECTIONS.with_borrow_mut(|known| known.insert(self.id, Rc::clone(&connection)));
        Ok(connection)
    }

    /// Reads with this thread's connection.
    fn read<T>(&self, work: impl FnOnce(&Connection) -> Result<T, Failure>) -> Result<T, StoreError> {
        self.check_file()?;
        let connection = self.connection()?;
        work(&connection).map_err(|failure| self.explain(failure))
    }

    /// Reads an epoch: its row and its texts at one moment, with one lock.
    fn read_epoch<T>(
        &self,
        work: impl FnOnce(EpochReader<'_>) -> Result<Option<T>, Failure>,
    ) -> Result<Option<T>, StoreError> {
        let generation = self.data_version()?;
        let connection = &self.connection()?;
        work(EpochReader { connection, texts: Some((&self.texts, generation)) })
            .map_err(|failure| self.explain(failure))
    }

    /// Returns a number that changes with every commit of every other connection, in any process. All writes count, because
    /// the observing connection never writes.
    fn data_version(&self) -> Result<u64, StoreError> {
        self.check_file()?;
        let observer = self.observer.lock().unwrap_or_else(PoisonError::into_inner);
        let mut statement =
            observer.prepare_cached("PRAGMA data_version").map_err(|error| self.explain(error.into()))?;
        statement.query_row([], |row| row.get(0)).map_err(|error| self.explain(error.into()))
    }

    /// Writes in one transaction that holds the lock from its beginning.
    fn write<T>(&self, work: impl FnOnce(&Transaction<'_>) -> Result<T, Failure>) -> Result<T, StoreError> {
        self.check_file()?;
        let connection = self.connection()?;
        // Writers of one process queue here, because SQLite itself waits by trying again after a while.
        let _turn = self.writers.lock().unwrap_or_else(PoisonError::into_inner);
        let write = || {
            let transaction = Transaction::new_unchecked(&connection, TransactionBehavior::Immediate)?;
            // A newer proem may have migrated the tables since this connection was opened.
            schema::check_version(&transaction, &self.path)?;
            let done = work(&transaction)?;
            transaction.commit()?;
            Ok(done)
        };
        let done = write().map_err(|failure| self.explain(failure))?;
        // If the log was removed meanwhile, this write is lost.
        self.check_file()?;
        Ok(done)
    }

    fn explain(&self, failure: Failure) -> StoreError {
        match failure {
            Failure::Sqlite(error) => {
                // A connection with a failure is not used again.
                self.close_connection();
                store_error(&self.path, error)
            }
            Failure::Store(error) => error,
        }
    }

    /// Closes this thread's connection.
    fn close_connection(&self) {
        CONNECTIONS.with_borrow_mut(|known| known.remove(&self.id));
    }

    /// Fails unless the store's files are still those that were opened.
    fn check_file(&self) -> Result<(), StoreError> {
        self.files.check().map(drop).map_err(|why| {
            self.close_connection();
            let hint = "stop every proem that uses it, restore the file or a backup, and start again";
            unusable(&self.path, why, hint)
        })
    }
}

/// Opens a connection whose writes are durable and which does not trust the schema of the file.
fn connect(path: &Path) -> Result<Connection, StoreError> {
    let fail = |error: rusqlite::Error| store_error(path, error);
    let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_WRITE | rusqlite::OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(fail)?;
    connection.busy_timeout(SQLITE_LOCK_TIME_MAX).map_err(fail)?;
    // First, because setting the journal mode already writes to the file.
    schema::check_owner(&connection, path)?;
    let settings = "PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; PRAGMA trusted_schema = OFF; \
        PRAGMA cell_size_check = ON; PRAGMA temp_store = MEMORY;";
    enable_wal(&connection).and_then(|()| connection.execute_batch(settings)).map_err(fail)?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(connection)
}

/// Switches a file to a write-ahead log, unless it has one. If two processes do so at once, SQLite refuses one of them
/// without waiting, because both have the file open for reading. So this function waits.
pub(super) fn enable_wal(connection: &Connection) -> rusqlite::Result<()> {
    const STEP: Duration = Duration::from_millis(5);
    let begun = Instant::now();
    loop {
        let switched = connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()));
        let is_busy = |error: &rusqlite::Error| error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy);
        if begun.elapsed() >= SQLITE_LOCK_TIME_MAX || !switched.as_ref().is_err_and(is_busy) {
            return switched;
        }
        thread::sleep(STEP);
    }
}

/// Classifies an error of SQLite.
fn store_error(path: &Path, error: rusqlite::Error) -> StoreError {
    let (place, code) = (path.display().to_string(), error.sqlite_error_code());
    match code {
        Some(ErrorCode::NotADatabase) => StoreError::Unusable {
            place,
            why: Explanation::new("it is not a SQLite database", error),
            hint: "name the file of a store, or one that does not exist yet; if it was a store, restore a backup".into(),
        },
        Some(ErrorCode::DatabaseCorrupt) => StoreError::damaged(format!("the store {place}"), Explanation::from_error(error)),
        Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => {
            let hint = "check that the file and its folder exist and are writable".into();
            StoreError::Unusable { place, why: Explanation::from_error(error), hint }
        }
        _ => StoreError::Unavailable { place, why: Explanation::from_error(error) },
    }
}

/// An error inside a transaction.
enum Failure {
    Sqlite(rusqlite::Error),
    Store(StoreError),
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

fn unusable(path: &Path, why: impl Into<Explanation>, hint: &str) -> StoreError {
    StoreError::Unusable { place: path.display().to_string(), why: why.into(), hint: hint.to_owned() }
}

/// Explains an error of the system without its number.
fn io_explanation(error: std::io::Error) -> Explanation {
    let text = error.to_string();
    Explanation::new(text.split(" (os error").next().unwrap_or(&text).to_lowercase(), error)
}

impl Store for SqliteStore {
    fn generation(&self) -> Result<Option<u64>, StoreError> {
        self.data_version().map(Some)
    }

    fn current(&self, conversation: &str) -> Result<Option<Current>, StoreError> {
        let read = || self.read_epoch(|reader| reader.current(conversation));
        if let Some(found) = read()? {
            return Ok(Some(found));
        }
        // Either there is none, or it is missing, or it was opened after the first look.
        if self.current_head(conversation)?.is_some() { read() } else { Ok(None) }
    }

    fn current_head(&self, conversation: &str) -> Result<Option<CurrentHead>, StoreError> {
        self.read(|connection| {
            if let Some(head) = rows::current_head(connection, conversation)? {
                return Ok(Some(head));
            }
            let number = rows::current_number(connection, conversation)?;
            // Read again: the first epoch may have been opened between the two statements.
            match rows::current_head(connection, conversation)? {
                None if number > 0 => {
                    // The conversation has such an epoch, so its row is missing.
                    let what = format!("epoch {number} of `{conversation}`");
                    Err(StoreError::damaged(what, "it is missing").into())
                }
                head => Ok(head),
            }
        })
    }

    fn current_number(&self, conversation: &str) -> Result<u64, StoreError> {
        self.read(|connection| rows::current_number(connection, conversation))
    }

    fn epoch(&self, conversation: &str, number: u64) -> Result<Option<Epoch>, StoreError> {
        self.read_epoch(|reader| reader.numbered(conversation, number))
    }

    fn history(&self, conversation: &str) -> Result<History, StoreError> {
        self.read(|connection| rows::history(connection, conversation))
    }

    fn open(&self, epoch: &Epoch) -> Result<Epoch, StoreError> {
        let EpochHead { conversation, number: wanted, .. } = &epoch.head;
        self.write(|transaction| {
            let current = rows::current_number(transaction, conversation)?;
            if *wanted == current + 1 {
                insert(transaction, epoch)?;
                return Ok(epoch.clone());
            }
            let reader = EpochReader { connection: transaction, texts: None };
            let known = reader.numbered(conversation, *wanted)?;
            known.ok_or_else(|| StoreError::Conflict { current }.into())
        })
    }

    fn commit(&self, change: &Commit<'_>) -> Result<bool, StoreError> {
        let Commit { conversation, state, epoch, .. } = *change;
        self.write(|transaction| {
            let known = states::read(transaction, conversation)?.map_or(0, |state| state.version);
            if !change.fits(rows::current_number(transaction, conversation)?, known) {
                return Ok(false);
            }
            if let Some(epoch) = epoch {
                insert(transaction, epoch)?;
            }
            states::write(transaction, conversation, state)?;
            Ok(true)
        })
    }

    fn conversations(&self, query: &Query) -> Result<Page<ConversationHead>, StoreError> {
        let PageKey { opened_at, conversation } = PageKey::from_query(query);
        let search = query.search.clone().unwrap_or_default();
        let most = row_limit(query.most).saturating_add(1);
        self.read(|connection| {
            let mut statement = connection.prepare_cached(
                "SELECT c.id, c.epoch, e.reason, e.profile, e.cwd, e.model, c.began_at, c.opened_at \
                 FROM conversation c JOIN epoch e ON e.conversation = c.id AND e.number = c.epoch \
                 WHERE (c.opened_at, c.id) < (?1, ?2) AND (instr(c.id, ?3) > 0 OR instr(c.cwd, ?3) > 0 OR ?3 = '') \
                 ORDER BY c.opened_at DESC, c.id DESC LIMIT ?4",
            )?;
            let head = |row: &Row<'_>| ConversationHead::from_columns(&rows::Columns(row));
            let found = statement.query_map(params![opened_at, conversation, search, most], head)?;
            Ok(Page::new(found.collect::<Result<_, _>>()?, query.most))
        })
    }

    fn remove(&self, conversation: &str) -> Result<bool, StoreError> {
        self.write(|transaction| {
            transaction.execute("DELETE FROM compaction WHERE conversation = ?1", [conversation])?;
            transaction.execute("DELETE FROM call WHERE conversation = ?1", [conversation])?;
            transaction.execute("DELETE FROM traffic_call WHERE conversation = ?1", [conversation])?;
            transaction.execute("DELETE FROM traffic_chain WHERE conversation = ?1", [conversation])?;
            let sql = "DELETE FROM traffic_conversation WHERE id = ?1";
            let is_observed = transaction.execute(sql, [conversation])? > 0;
            transaction.execute("DELETE FROM epoch WHERE conversation = ?1", [conversation])?;
            // Its state goes with it: see the table.
            let sql = "DELETE FROM conversation WHERE id = ?1";
            Ok(transaction.execute(sql, [conversation])? > 0 || is_observed)
        })
    }

    fn maintenance(&self) -> Option<&dyn Maintenance> {
        Some(self)
    }

    fn is_near(&self) -> bool {
        true
    }

    fn describe(&self) -> String {
        format!("sqlite:{}", self.path.display())
    }
}

impl Drop for SqliteStore {
    fn drop(&mut self) {
        CONNECTIONS.with_borrow_mut(|known| known.remove(&self.id));
    }
}

#[cfg(test)]
mod tests;
