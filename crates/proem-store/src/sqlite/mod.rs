//! SQLite: one file, for as many processes of one machine as like.
//!
//! Every write is one transaction that takes the lock when it begins, and is on the disk when it is
//! acknowledged (`synchronous = FULL`). Each thread has a connection of its own, so that readers never wait.

mod schema;

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::fs::{self, DirBuilder, OpenOptions};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use proem::stored::StoredPrompt;
use proem_core::carrier::Carrier;
use proem_core::digest::Digest;
use rusqlite::{Connection, ErrorCode, OptionalExtension, Row, Transaction, TransactionBehavior, params};

use crate::memory::page;
use crate::record::{self, Compaction, ConversationHead, Epoch, EpochHead, Page, Query, TemplateVersion};
use crate::{Store, StoreError};

/// How long a writer waits for the lock before it gives up.
const BUSY_TIME_MAX: Duration = Duration::from_secs(10);

/// The oldest SQLite whose write-ahead log is known to be sound.
const SQLITE_VERSION_MIN: i32 = 3_051_003;

const HEAD: &str =
    "conversation, number, reason, digest, fingerprint, profile, engine, cwd, model, has_turn, opened_at";

/// A store in a file.
#[derive(Debug)]
pub struct SqliteStore {
    path: PathBuf,
    /// Tells the connections of this store from those of another on the same thread.
    id: u64,
    /// The file that was opened.
    identity: (u64, u64),
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
            create(path)?;
        }
        if fs::metadata(path).is_ok_and(|found| found.len() == 0) {
            return Err(StoreError::Damaged {
                what: format!("the store {}", path.display()),
                why: "its file is empty".into(),
            });
        }
        let identity = identity(path).map_err(|error| unusable(path, reason(&error), "name a file"))?;
        let store = Self { path: path.to_owned(), id: NEXT.fetch_add(1, Ordering::Relaxed), identity };
        let connection = store.connect()?;
        schema::migrate(&connection, path)?;
        CONNECTIONS.with_borrow_mut(|known| known.insert(store.id, Rc::new(connection)));
        Ok(store)
    }

    /// A connection whose every write is durable, and which trusts nothing that the file brings.
    fn connect(&self) -> Result<Connection, StoreError> {
        let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_WRITE | rusqlite::OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(&self.path, flags).map_err(|error| self.fail(&error))?;
        connection.busy_timeout(BUSY_TIME_MAX).map_err(|error| self.fail(&error))?;
        // Before anything is written: setting the journal's mode already alters the file.
        schema::check_owner(&connection, &self.path)?;
        connection
            .execute_batch(
                "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; \
                 PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON; PRAGMA temp_store = MEMORY;",
            )
            .map_err(|error| self.fail(&error))?;
        connection.set_prepared_statement_cache_capacity(64);
        Ok(connection)
    }

    fn connection(&self) -> Result<Rc<Connection>, StoreError> {
        if let Some(known) = CONNECTIONS.with_borrow(|known| known.get(&self.id).cloned()) {
            return Ok(known);
        }
        // A file that is gone must not come back empty.
        let connection = Rc::new(self.connect()?);
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

    /// Writes in one transaction that holds the lock from its beginning.
    fn write<T>(&self, work: impl FnOnce(&Transaction<'_>) -> Result<T, Failure>) -> Result<T, StoreError> {
        self.check_file()?;
        let connection = self.connection()?;
        let write = || {
            let transaction = Transaction::new_unchecked(&connection, TransactionBehavior::Immediate)?;
            let done = work(&transaction)?;
            transaction.commit()?;
            Ok(done)
        };
        write().map_err(|failure| self.explain(failure))
    }

    fn explain(&self, failure: Failure) -> StoreError {
        match failure {
            Failure::Sqlite(error) => self.fail(&error),
            Failure::Store(error) => error,
        }
    }

    fn fail(&self, error: &rusqlite::Error) -> StoreError {
        // A connection that saw a failure must not be used again.
        CONNECTIONS.with_borrow_mut(|known| known.remove(&self.id));
        reason_of(&self.path, error)
    }

    /// Makes sure that the file is still the one that was opened: what is written to a file that was removed or
    /// replaced is lost, and what is read from it is not what others have written since.
    fn check_file(&self) -> Result<(), StoreError> {
        let is_same = |found: &fs::Metadata| (found.dev(), found.ino()) == self.identity && found.len() > 0;
        if fs::metadata(&self.path).is_ok_and(|found| is_same(&found)) {
            return Ok(());
        }
        CONNECTIONS.with_borrow_mut(|known| known.remove(&self.id));
        let why = "its file was removed, emptied or replaced".to_owned();
        Err(unusable(&self.path, why, "put the file back, or start again with another one"))
    }
}

/// Which file a path leads to.
fn identity(path: &Path) -> std::io::Result<(u64, u64)> {
    fs::metadata(path).map(|found| (found.dev(), found.ino()))
}

/// What an error of SQLite means for those who use the store.
fn reason_of(path: &Path, error: &rusqlite::Error) -> StoreError {
    let (place, why) = (path.display().to_string(), error.to_string());
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
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

/// Makes the store, and its folder if need be, for the user alone. It gets its name when it is whole: a file without
/// tables is always a damaged one.
fn create(path: &Path) -> Result<(), StoreError> {
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
    connection.close().map_err(|(_, error)| reason_of(path, &error))
}

fn head(row: &Row<'_>) -> rusqlite::Result<EpochHead> {
    Ok(EpochHead {
        conversation: row.get(0)?,
        number: row.get(1)?,
        reason: row.get(2)?,
        digest: row.get(3)?,
        fingerprint: row.get(4)?,
        profile: row.get(5)?,
        engine: row.get(6)?,
        cwd: row.get(7)?,
        model: row.get(8)?,
        has_turn: row.get(9)?,
        opened_at: row.get(10)?,
    })
}

/// Reads a text that is kept once, and makes sure that it is the one.
fn blob(connection: &Connection, digest: &str) -> Result<String, Failure> {
    let mut statement = connection.prepare_cached("SELECT bytes FROM blob WHERE digest = ?1")?;
    let bytes: Option<Vec<u8>> = statement.query_row([digest], |row| row.get(0)).optional()?;
    let damaged = |why: &str| StoreError::Damaged { what: format!("the text {digest}"), why: why.to_owned() };
    let bytes = bytes.ok_or_else(|| damaged("it is gone"))?;
    if Digest::of(&bytes).hex() != digest {
        return Err(damaged("its bytes are not those of its digest").into());
    }
    String::from_utf8(bytes).map_err(|_| damaged("it is no text").into())
}

fn keep(transaction: &Transaction<'_>, bytes: &[u8]) -> Result<String, Failure> {
    let digest = Digest::of(bytes).hex();
    let mut statement = transaction
        .prepare_cached("INSERT INTO blob (digest, bytes) VALUES (?1, ?2) ON CONFLICT DO NOTHING")?;
    statement.execute(params![digest, bytes])?;
    Ok(digest)
}

/// An epoch with its texts.
fn whole(
    connection: &Connection,
    condition: &str,
    values: &[&dyn rusqlite::ToSql],
) -> Result<Option<Epoch>, Failure> {
    let sql = format!("SELECT {HEAD}, texts, description, request FROM epoch WHERE {condition}");
    let mut statement = connection.prepare_cached(&sql)?;
    let found = statement
        .query_row(values, |row| Ok((head(row)?, row.get(11)?, row.get(12)?, row.get(13)?)))
        .optional()?;
    let Some((head, texts, description, request)): Option<(EpochHead, String, String, String)> = found else {
        return Ok(None);
    };
    let prompt =
        StoredPrompt { texts: texts_of(connection, &texts)?, description: blob(connection, &description)? };
    Ok(Some(Epoch { head, prompt, request: blob(connection, &request)? }))
}

fn texts_of(connection: &Connection, digests: &str) -> Result<BTreeMap<Carrier, String>, Failure> {
    let digests: BTreeMap<Carrier, String> = serde_json::from_str(digests).map_err(|error| {
        StoreError::Damaged { what: "the list of an epoch's texts".into(), why: error.to_string() }
    })?;
    digests.into_iter().map(|(carrier, digest)| Ok((carrier, blob(connection, &digest)?))).collect()
}

fn insert(transaction: &Transaction<'_>, epoch: &Epoch) -> Result<(), Failure> {
    let blobs = epoch.blobs();
    for bytes in blobs.all() {
        keep(transaction, bytes)?;
    }
    let EpochHead {
        conversation,
        number,
        reason,
        digest,
        fingerprint,
        profile,
        engine,
        cwd,
        model,
        has_turn,
        opened_at,
    } = &epoch.head;
    transaction
        .prepare_cached(&format!(
            "INSERT INTO epoch ({HEAD}, texts, description, request) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)"
        ))?
        .execute(params![
            conversation,
            number,
            reason,
            digest,
            fingerprint,
            profile,
            engine,
            cwd,
            model,
            has_turn,
            opened_at,
            blobs.texts_json(),
            Digest::of(blobs.description).hex(),
            Digest::of(blobs.request).hex(),
        ])?;
    transaction
        .prepare_cached(
            "INSERT INTO conversation (id, epoch, began_at, opened_at, cwd) VALUES (?1, ?2, ?3, ?3, ?4) \
             ON CONFLICT (id) DO UPDATE SET epoch = ?2, opened_at = ?3, cwd = ?4",
        )?
        .execute(params![conversation, number, opened_at, cwd])?;
    Ok(())
}

fn number(connection: &Connection, conversation: &str) -> Result<u64, Failure> {
    let mut statement = connection.prepare_cached("SELECT epoch FROM conversation WHERE id = ?1")?;
    Ok(statement.query_row([conversation], |row| row.get(0)).optional()?.unwrap_or(0))
}

impl Store for SqliteStore {
    fn current(&self, conversation: &str) -> Result<Option<Epoch>, StoreError> {
        let Some(head) = self.current_head(conversation)? else { return Ok(None) };
        self.epoch(conversation, head.number)
    }

    fn current_head(&self, conversation: &str) -> Result<Option<EpochHead>, StoreError> {
        self.read(|connection| {
            let sql = format!(
                "SELECT {HEAD}, current FROM (SELECT id, epoch AS current FROM conversation WHERE id = ?1) \
                 LEFT JOIN epoch ON conversation = id AND number = current"
            );
            let mut statement = connection.prepare_cached(&sql)?;
            let found = statement.query_row([conversation], |row| {
                let is_there = row.get::<_, Option<u64>>(1)?.is_some();
                Ok((is_there.then(|| head(row)).transpose()?, row.get(11)?))
            });
            let Some((head, number)): Option<(Option<EpochHead>, u64)> = found.optional()? else {
                return Ok(None);
            };
            // The conversation says that there is such an epoch: that it is not there is no "no prompt".
            let what = format!("epoch {number} of `{conversation}`");
            head.map(Some).ok_or_else(|| StoreError::Damaged { what, why: "it is gone".into() }.into())
        })
    }

    fn current_number(&self, conversation: &str) -> Result<u64, StoreError> {
        self.read(|connection| number(connection, conversation))
    }

    fn epoch(&self, conversation: &str, number: u64) -> Result<Option<Epoch>, StoreError> {
        self.read(|connection| {
            whole(connection, "conversation = ?1 AND number = ?2", &[&conversation, &number])
        })
    }

    fn epochs(&self, conversation: &str) -> Result<Vec<EpochHead>, StoreError> {
        self.read(|connection| {
            let sql = format!("SELECT {HEAD} FROM epoch WHERE conversation = ?1 ORDER BY number");
            let mut statement = connection.prepare_cached(&sql)?;
            let heads = statement.query_map([conversation], head)?.collect::<Result<_, _>>()?;
            Ok(heads)
        })
    }

    fn open(&self, epoch: &Epoch) -> Result<Epoch, StoreError> {
        let EpochHead { conversation, number: wanted, .. } = &epoch.head;
        self.write(|transaction| {
            let current = number(transaction, conversation)?;
            if *wanted == current + 1 {
                insert(transaction, epoch)?;
                return Ok(epoch.clone());
            }
            let known = whole(transaction, "conversation = ?1 AND number = ?2", &[conversation, wanted])?;
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
            transaction.execute("DELETE FROM epoch WHERE conversation = ?1", [conversation])?;
            Ok(transaction.execute("DELETE FROM conversation WHERE id = ?1", [conversation])? > 0)
        })
    }

    fn begin_compaction(&self, compaction: &Compaction) -> Result<(), StoreError> {
        let Compaction { token, conversation, from, rebuilt, request, expires_at } = compaction;
        let rebuilt = rebuilt.as_ref().map(crate::transfer::epoch_json).transpose()?;
        self.write(|transaction| {
            transaction.execute("DELETE FROM compaction WHERE expires_at < ?1", [record::now()])?;
            transaction.execute(
                "INSERT INTO compaction (token, conversation, epoch, rebuilt, request, expires_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                params![token, conversation, from, rebuilt, request, expires_at],
            )?;
            Ok(())
        })
    }

    fn compaction(&self, token: &str) -> Result<Option<Compaction>, StoreError> {
        let found = self.read(|connection| {
            let mut statement = connection.prepare_cached(
                "SELECT token, conversation, epoch, rebuilt, request, expires_at FROM compaction WHERE token = ?1",
            )?;
            let row = |row: &Row<'_>| {
                let rebuilt: Option<String> = row.get(3)?;
                let compaction = Compaction {
                    token: row.get(0)?,
                    conversation: row.get(1)?,
                    from: row.get(2)?,
                    rebuilt: None,
                    request: row.get(4)?,
                    expires_at: row.get(5)?,
                };
                Ok((compaction, rebuilt))
            };
            Ok(statement.query_row([token], row).optional()?)
        })?;
        let Some((compaction, rebuilt)) = found else { return Ok(None) };
        let rebuilt = rebuilt.as_deref().map(crate::transfer::epoch_of_json).transpose()?;
        Ok(Some(Compaction { rebuilt, ..compaction }))
    }

    fn end_compaction(&self, token: &str) -> Result<bool, StoreError> {
        self.write(|transaction| {
            Ok(transaction.execute("DELETE FROM compaction WHERE token = ?1", [token])? > 0)
        })
    }

    fn template(&self) -> Result<Option<TemplateVersion>, StoreError> {
        Ok(self.template_versions(None, 1)?.into_iter().next())
    }

    fn template_version(&self, version: u64) -> Result<Option<TemplateVersion>, StoreError> {
        let newest = self.template_versions(version.checked_add(1), 1)?.into_iter().next();
        Ok(newest.filter(|template| template.version == version))
    }

    fn template_versions(&self, below: Option<u64>, most: usize) -> Result<Vec<TemplateVersion>, StoreError> {
        let below = below.and_then(|below| i64::try_from(below).ok()).unwrap_or(i64::MAX);
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        self.read(|connection| {
            let mut statement = connection.prepare_cached(
                "SELECT version, text, author, written_at FROM template WHERE version < ?1 ORDER BY version DESC LIMIT ?2",
            )?;
            let row = |row: &Row<'_>| {
                Ok(TemplateVersion { version: row.get(0)?, text: row.get(1)?, author: row.get(2)?, written_at: row.get(3)? })
            };
            Ok(statement.query_map(params![below, most], row)?.collect::<Result<_, _>>()?)
        })
    }

    fn put_template(
        &self,
        text: &str,
        author: Option<&str>,
        expected: Option<u64>,
    ) -> Result<TemplateVersion, StoreError> {
        self.write(|transaction| {
            let current = newest_template(transaction)?;
            if expected.is_some_and(|expected| expected != current) {
                return Err(StoreError::Conflict { current }.into());
            }
            let template = TemplateVersion {
                version: current + 1,
                text: text.to_owned(),
                author: author.map(str::to_owned),
                written_at: record::now(),
            };
            insert_template(transaction, &template)?;
            Ok(template)
        })
    }

    fn restore_template(&self, template: &TemplateVersion) -> Result<(), StoreError> {
        self.write(|transaction| {
            let current = newest_template(transaction)?;
            if template.version != current + 1 {
                return Err(StoreError::Conflict { current }.into());
            }
            insert_template(transaction, template)
        })
    }

    fn check(&self) -> Result<Vec<String>, StoreError> {
        self.read(|connection| {
            let mut statement = connection.prepare("PRAGMA integrity_check(100)")?;
            let mut found: Vec<String> =
                statement.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
            found.retain(|line| line != "ok");
            found.extend(damaged_blobs(connection)?);
            found.extend(missing_blobs(connection)?);
            found.extend(missing_epochs(connection)?);
            found.extend(damaged_epochs(connection)?);
            Ok(found)
        })
    }

    fn prune(&self) -> Result<u64, StoreError> {
        self.write(|transaction| {
            let freed: i64 = transaction.query_row(
                &format!("SELECT coalesce(sum(length(bytes)), 0) FROM blob WHERE digest NOT IN ({USED})"),
                [],
                |row| row.get(0),
            )?;
            transaction.execute(&format!("DELETE FROM blob WHERE digest NOT IN ({USED})"), [])?;
            Ok(u64::try_from(freed).unwrap_or(0))
        })
    }

    fn describe(&self) -> String {
        format!("sqlite:{}", self.path.display())
    }
}

fn newest_template(transaction: &Transaction<'_>) -> Result<u64, Failure> {
    Ok(transaction.query_row("SELECT coalesce(max(version), 0) FROM template", [], |row| row.get(0))?)
}

fn insert_template(transaction: &Transaction<'_>, template: &TemplateVersion) -> Result<(), Failure> {
    let TemplateVersion { version, text, author, written_at } = template;
    transaction.execute(
        "INSERT INTO template (version, text, author, written_at) VALUES (?1, ?2, ?3, ?4)",
        params![version, text, author, written_at],
    )?;
    Ok(())
}

/// The digests that epochs refer to.
const USED: &str = "SELECT description FROM epoch UNION SELECT request FROM epoch \
    UNION SELECT value FROM epoch, json_each(CASE WHEN json_valid(epoch.texts) THEN epoch.texts ELSE '{}' END)";

/// Texts whose bytes are not those of their digest.
fn damaged_blobs(connection: &Connection) -> Result<Vec<String>, Failure> {
    let mut statement = connection.prepare("SELECT digest, bytes FROM blob")?;
    let mut rows = statement.query([])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let (digest, bytes): (String, Vec<u8>) = (row.get(0)?, row.get(1)?);
        if Digest::of(&bytes).hex() != digest {
            found.push(format!("the text {digest}: its bytes are not those of its digest"));
        }
    }
    Ok(found)
}

/// Texts that an epoch refers to and that are not there.
fn missing_blobs(connection: &Connection) -> Result<Vec<String>, Failure> {
    let mut statement = connection
        .prepare(&format!("SELECT digest FROM (SELECT description AS digest FROM ({USED})) WHERE digest NOT IN (SELECT digest FROM blob)"))?;
    let missing: Vec<String> = statement.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    Ok(missing.into_iter().map(|digest| format!("the text {digest}: it is gone")).collect())
}

/// Epochs that a conversation must have and has not, and conversations that have lost their head.
fn missing_epochs(connection: &Connection) -> Result<Vec<String>, Failure> {
    let mut statement = connection.prepare(
        "SELECT 'epoch ' || c.epoch || ' of `' || c.id || '`: it is gone' FROM conversation c \
         WHERE NOT EXISTS (SELECT 1 FROM epoch e WHERE e.conversation = c.id AND e.number = c.epoch) \
         UNION ALL SELECT DISTINCT 'conversation `' || e.conversation || '`: it is gone, and its epochs are not' \
         FROM epoch e WHERE e.conversation NOT IN (SELECT id FROM conversation)",
    )?;
    Ok(statement.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?)
}

/// Epochs whose texts are whole and still make no prompt.
fn damaged_epochs(connection: &Connection) -> Result<Vec<String>, Failure> {
    let mut statement =
        connection.prepare("SELECT conversation, number FROM epoch ORDER BY conversation, number")?;
    let all: Vec<(String, u64)> =
        statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<Result<_, _>>()?;
    let mut found = Vec::new();
    for (conversation, number) in all {
        let epoch = match whole(connection, "conversation = ?1 AND number = ?2", &[&conversation, &number]) {
            Ok(epoch) => epoch.map(crate::Kept::of).transpose().map(drop),
            Err(Failure::Store(error)) => Err(error),
            Err(failure) => return Err(failure),
        };
        found.extend(epoch.err().map(|error| format!("epoch {number} of `{conversation}`: {error}")));
    }
    Ok(found)
}

impl Drop for SqliteStore {
    fn drop(&mut self) {
        CONNECTIONS.with_borrow_mut(|known| known.remove(&self.id));
    }
}
