//! SQLite: one file, for as many processes of one machine as like.
//!
//! Every write is one transaction that takes the lock when it begins, and is on the disk when it is
//! acknowledged (`synchronous = FULL`). Each thread has a connection of its own, so that readers never wait.

mod calls;
mod check;
mod compactions;
mod file;
mod rows;
mod schema;
mod templates;

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
use rows::{HEAD, Rows, current, head, insert, number};
use rusqlite::{Connection, ErrorCode, Row, Transaction, TransactionBehavior, params};

use crate::Maintenance;
use crate::record::{
    self, Compaction, ConversationHead, Epoch, EpochHead, History, Page, Query, TemplateHead, TemplateVersion,
};
use crate::texts::Texts;
use crate::{Store, StoreError};
use proem::store::page;

/// How long a writer waits for the lock before it gives up.
const BUSY_TIME_MAX: Duration = Duration::from_secs(10);

/// The oldest SQLite whose write-ahead log is known to be sound.
const SQLITE_VERSION_MIN: i32 = 3_051_003;

/// A store in a file.
#[derive(Debug)]
pub struct SqliteStore {
    path: PathBuf,
    /// Tells the connections of this store from those of another on the same thread.
    id: u64,
    /// Held while this process writes.
    writers: Mutex<()>,
    texts: Texts,
    /// A connection that never writes. It knows whether another one has written, and it keeps the log and its index in
    /// place, which SQLite removes with the last connection.
    observer: Mutex<Connection>,
    /// The files that were opened. Dropped last: connections must be closed before readers may open these.
    files: Files,
}

thread_local! {
    /// The connections of this thread, by store.
    static CONNECTIONS: RefCell<HashMap<u64, Rc<Connection>>> = RefCell::new(HashMap::new());
}

impl SqliteStore {
    /// Opens the store at `path`, and makes it if it is not there. Only the user may read it.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        if rusqlite::version_number() < SQLITE_VERSION_MIN {
            let why = format!("SQLite {} may lose its log", rusqlite::version());
            return Err(unusable(path, why, "build proem with the SQLite that it brings"));
        }
        if !path.exists() {
            file::create(path)?;
        }
        if fs::metadata(path).is_ok_and(|found| found.len() == 0) {
            return Err(StoreError::Damaged {
                what: format!("the store {}", path.display()),
                why: "its file is empty".into(),
            });
        }
        let failed = |error: std::io::Error| unusable(path, reason(&error), "name a file");
        // Before the first lock is taken.
        let before = Files::find(path).map_err(failed)?;
        let connection = connect(path)?;
        schema::migrate(&connection, path)?;
        let observer = connect(path)?;
        // Only now is there a log, and its index.
        let files = Files::find(path).map_err(failed)?;
        drop(before);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        CONNECTIONS.with_borrow_mut(|known| known.insert(id, Rc::new(connection)));
        Ok(Self {
            path: path.to_owned(),
            id,
            writers: Mutex::new(()),
            texts: Texts::default(),
            observer: Mutex::new(observer),
            files,
        })
    }

    fn connection(&self) -> Result<Rc<Connection>, StoreError> {
        // One that was left within a transaction, by an error or a panic, would go on to show that moment.
        let is_free = |connection: &Rc<Connection>| connection.is_autocommit();
        if let Some(known) = CONNECTIONS.with_borrow(|known| known.get(&self.id).cloned()).filter(is_free) {
            return Ok(known);
        }
        // A file that is gone must not come back empty.
        let connection = Rc::new(connect(&self.path).inspect_err(|_| self.forget())?);
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

    /// Reads an epoch: its row and its texts as they were at one moment, for one lock.
    fn read_epoch(
        &self,
        work: impl FnOnce(Rows<'_>) -> Result<Option<Epoch>, Failure>,
    ) -> Result<Option<Epoch>, StoreError> {
        let generation = self.data_version()?;
        let connection = &self.connection()?;
        work(Rows { connection, texts: Some((&self.texts, generation)) })
            .map_err(|failure| self.explain(failure))
    }

    /// Returns a number that changes with every commit of every other connection, in any process. All writes count, because
    /// the connection that is asked never writes.
    fn data_version(&self) -> Result<u64, StoreError> {
        self.check_file()?;
        let observer = self.observer.lock().unwrap_or_else(PoisonError::into_inner);
        let mut statement =
            observer.prepare_cached("PRAGMA data_version").map_err(|error| self.fail(&error))?;
        statement.query_row([], |row| row.get(0)).map_err(|error| self.fail(&error))
    }

    /// Writes in one transaction that holds the lock from its beginning.
    fn write<T>(&self, work: impl FnOnce(&Transaction<'_>) -> Result<T, Failure>) -> Result<T, StoreError> {
        self.check_file()?;
        let connection = self.connection()?;
        // Writers of one process line up here: SQLite's own way of waiting is to try again after a while.
        let _turn = self.writers.lock().unwrap_or_else(PoisonError::into_inner);
        let write = || {
            let transaction = Transaction::new_unchecked(&connection, TransactionBehavior::Immediate)?;
            // A later proem may have changed the tables since this connection was made.
            schema::check_version(&transaction, &self.path)?;
            let done = work(&transaction)?;
            transaction.commit()?;
            Ok(done)
        };
        let done = write().map_err(|failure| self.explain(failure))?;
        // A log that lost its name meanwhile has taken this write with it.
        self.check_file()?;
        Ok(done)
    }

    fn explain(&self, failure: Failure) -> StoreError {
        match failure {
            Failure::Sqlite(error) => self.fail(&error),
            Failure::Store(error) => error,
        }
    }

    fn fail(&self, error: &rusqlite::Error) -> StoreError {
        // A connection that saw a failure must not be used again.
        self.forget();
        reason_of(&self.path, error)
    }

    /// Closes this thread's connection.
    fn forget(&self) {
        CONNECTIONS.with_borrow_mut(|known| known.remove(&self.id));
    }

    /// Fails unless the store's files are still those that were opened.
    fn check_file(&self) -> Result<(), StoreError> {
        self.files.check().map(drop).map_err(|why| {
            self.forget();
            let hint =
                "stop every proem that uses it, put the file back or restore a backup, and start again";
            unusable(&self.path, why, hint)
        })
    }
}

/// Opens a connection whose every write is durable, and which trusts nothing that the file brings.
fn connect(path: &Path) -> Result<Connection, StoreError> {
    let fail = |error: rusqlite::Error| reason_of(path, &error);
    let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_WRITE | rusqlite::OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(fail)?;
    connection.busy_timeout(BUSY_TIME_MAX).map_err(fail)?;
    // Before anything is written: setting the journal's mode already alters the file.
    schema::check_owner(&connection, path)?;
    let settings = "PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; PRAGMA trusted_schema = OFF; \
        PRAGMA cell_size_check = ON; PRAGMA temp_store = MEMORY;";
    write_ahead(&connection).and_then(|()| connection.execute_batch(settings)).map_err(fail)?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(connection)
}

/// Switches a file to a write-ahead log, unless it has one. Of two processes that do so at once SQLite refuses one without
/// waiting, since both have the file open for reading; so this waits.
pub(super) fn write_ahead(connection: &Connection) -> rusqlite::Result<()> {
    const STEP: Duration = Duration::from_millis(5);
    let begun = Instant::now();
    loop {
        let switched = connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()));
        let is_busy = |error: &rusqlite::Error| error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy);
        if begun.elapsed() >= BUSY_TIME_MAX || !switched.as_ref().is_err_and(is_busy) {
            return switched;
        }
        thread::sleep(STEP);
    }
}

/// What an error of SQLite means for those who use the store.
fn reason_of(path: &Path, error: &rusqlite::Error) -> StoreError {
    let (place, why) = (path.display().to_string(), error.to_string());
    match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => StoreError::Unusable {
            place,
            why: "it is not a SQLite database".into(),
            hint: "name the file of a store, or one that does not exist yet; if it was a store, restore a backup".into(),
        },
        Some(ErrorCode::DatabaseCorrupt) => {
            StoreError::Damaged { what: format!("the store {place}"), why }
        }
        Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => {
            let hint = "see whether the file and its folder are there and can be written to".into();
            StoreError::Unusable { place, why, hint }
        }
        _ => StoreError::Unavailable { place, why },
    }
}

/// What went wrong inside of a transaction.
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

fn unusable(path: &Path, why: String, hint: &str) -> StoreError {
    StoreError::Unusable { place: path.display().to_string(), why, hint: hint.to_owned() }
}

fn reason(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_lowercase()
}

impl Store for SqliteStore {
    fn generation(&self) -> Result<Option<u64>, StoreError> {
        self.data_version().map(Some)
    }

    fn current(&self, conversation: &str) -> Result<Option<Epoch>, StoreError> {
        if let Some(found) = self.read_epoch(|rows| rows.current(conversation))? {
            return Ok(Some(found));
        }
        // There is none, or there should be one.
        let Some(head) = self.current_head(conversation)? else { return Ok(None) };
        self.epoch(conversation, head.number)
    }

    fn current_head(&self, conversation: &str) -> Result<Option<EpochHead>, StoreError> {
        self.read(|connection| {
            if let Some(head) = current(connection, conversation)? {
                return Ok(Some(head));
            }
            let number = number(connection, conversation)?;
            // It may have been begun just now.
            match current(connection, conversation)? {
                None if number > 0 => {
                    // The conversation says that there is such an epoch: that it is not there is no "no prompt".
                    let what = format!("epoch {number} of `{conversation}`");
                    Err(StoreError::Damaged { what, why: "it is gone".into() }.into())
                }
                head => Ok(head),
            }
        })
    }

    fn current_number(&self, conversation: &str) -> Result<u64, StoreError> {
        self.read(|connection| number(connection, conversation))
    }

    fn epoch(&self, conversation: &str, number: u64) -> Result<Option<Epoch>, StoreError> {
        self.read_epoch(|rows| rows.numbered(conversation, number))
    }

    fn epochs(&self, conversation: &str) -> Result<Vec<EpochHead>, StoreError> {
        self.read(|connection| {
            let sql = format!("SELECT {HEAD} FROM epoch WHERE conversation = ?1 ORDER BY number");
            let mut statement = connection.prepare_cached(&sql)?;
            let heads = statement.query_map([conversation], head)?.collect::<Result<_, _>>()?;
            Ok(heads)
        })
    }

    fn history(&self, conversation: &str) -> Result<History, StoreError> {
        self.read(|connection| rows::history(connection, conversation))
    }

    fn open(&self, epoch: &Epoch) -> Result<Epoch, StoreError> {
        let EpochHead { conversation, number: wanted, .. } = &epoch.head;
        self.write(|transaction| {
            let current = number(transaction, conversation)?;
            if *wanted == current + 1 {
                insert(transaction, epoch)?;
                return Ok(epoch.clone());
            }
            let rows = Rows { connection: transaction, texts: None };
            let known = rows.numbered(conversation, *wanted)?;
            known.ok_or_else(|| StoreError::Conflict { current }.into())
        })
    }

    fn conversations(&self, query: &Query) -> Result<Page<ConversationHead>, StoreError> {
        let (time, name) =
            query.after.as_deref().and_then(record::read_place).unwrap_or((i64::MAX, String::new()));
        let search = query.search.clone().unwrap_or_default();
        let most = i64::try_from(query.most).unwrap_or(i64::MAX - 1) + 1;
        self.read(|connection| {
            let mut statement = connection.prepare_cached(
                "SELECT c.id, c.epoch, e.reason, e.profile, e.cwd, e.model, c.began_at, c.opened_at \
                 FROM conversation c JOIN epoch e ON e.conversation = c.id AND e.number = c.epoch \
                 WHERE (c.opened_at, c.id) < (?1, ?2) AND (instr(c.id, ?3) > 0 OR instr(c.cwd, ?3) > 0 OR ?3 = '') \
                 ORDER BY c.opened_at DESC, c.id DESC LIMIT ?4",
            )?;
            let row = |row: &Row<'_>| {
                Ok(ConversationHead {
                    conversation: row.get(0)?,
                    epoch: row.get(1)?,
                    reason: row.get(2)?,
                    profile: row.get(3)?,
                    cwd: row.get(4)?,
                    model: row.get(5)?,
                    began_at: row.get(6)?,
                    opened_at: row.get(7)?,
                })
            };
            let found = statement.query_map(params![time, name, search, most], row)?;
            let mut items = found.collect::<Result<Vec<_>, _>>()?;
            Ok(page(&mut items, query.most))
        })
    }

    fn remove(&self, conversation: &str) -> Result<bool, StoreError> {
        self.write(|transaction| {
            transaction.execute("DELETE FROM compaction WHERE conversation = ?1", [conversation])?;
            transaction.execute("DELETE FROM call WHERE conversation = ?1", [conversation])?;
            transaction.execute("DELETE FROM epoch WHERE conversation = ?1", [conversation])?;
            Ok(transaction.execute("DELETE FROM conversation WHERE id = ?1", [conversation])? > 0)
        })
    }

    fn begin_compaction(&self, compaction: &Compaction) -> Result<(), StoreError> {
        compactions::begin(self, compaction)
    }

    fn compaction(&self, token: &str) -> Result<Option<Compaction>, StoreError> {
        compactions::find(self, token)
    }

    fn end_compaction(&self, token: &str, opened: Option<u64>) -> Result<bool, StoreError> {
        compactions::end(self, token, opened)
    }

    fn add_call(&self, conversation: &str, record: &str) -> Result<Option<u64>, StoreError> {
        calls::add(self, conversation, record)
    }

    fn calls(&self, conversation: &str) -> Result<Vec<String>, StoreError> {
        calls::list(self, conversation)
    }

    fn last_call(&self, conversation: &str) -> Result<Option<String>, StoreError> {
        calls::last(self, conversation)
    }

    fn template(&self) -> Result<Option<TemplateVersion>, StoreError> {
        Ok(self.template_versions(None, 1)?.into_iter().next())
    }

    fn template_version(&self, version: u64) -> Result<Option<TemplateVersion>, StoreError> {
        let newest = self.template_versions(version.checked_add(1), 1)?.into_iter().next();
        Ok(newest.filter(|template| template.version == version))
    }

    fn template_versions(&self, below: Option<u64>, most: usize) -> Result<Vec<TemplateVersion>, StoreError> {
        templates::list(self, below, most)
    }

    fn put_template(
        &self,
        text: &str,
        author: Option<&str>,
        expected: Option<u64>,
    ) -> Result<TemplateVersion, StoreError> {
        templates::put(self, text, author, expected)
    }

    fn restore_template(&self, template: &TemplateVersion) -> Result<(), StoreError> {
        templates::restore(self, template)
    }

    fn template_heads(&self, below: Option<u64>, most: usize) -> Result<Vec<TemplateHead>, StoreError> {
        templates::heads(self, below, most)
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
