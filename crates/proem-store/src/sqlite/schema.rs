//! The tables, and the migrations from each version to the next.

use std::path::Path;

use rusqlite::{Connection, TransactionBehavior};

use super::{store_error, unusable};
use crate::StoreError;

/// The `application_id` of a store: `prom` in ASCII.
const APPLICATION_ID: i32 = 0x7072_6F6D;

/// The migrations, one for each version. A released migration never changes.
const STEPS: [&str; 8] = [
    "
CREATE TABLE blob (
    id INTEGER PRIMARY KEY,
    digest TEXT NOT NULL UNIQUE,
    bytes BLOB NOT NULL
) STRICT;
CREATE TABLE conversation (
    id TEXT PRIMARY KEY,
    epoch INTEGER NOT NULL,
    began_at INTEGER NOT NULL,
    opened_at INTEGER NOT NULL,
    cwd TEXT NOT NULL
) STRICT;
CREATE INDEX conversation_by_time ON conversation (opened_at, id);
CREATE TABLE epoch (
    conversation TEXT NOT NULL,
    number INTEGER NOT NULL,
    reason TEXT NOT NULL,
    digest TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    profile TEXT NOT NULL,
    engine TEXT NOT NULL,
    cwd TEXT NOT NULL,
    model TEXT,
    has_turn INTEGER NOT NULL,
    opened_at INTEGER NOT NULL,
    texts TEXT NOT NULL,
    description TEXT NOT NULL,
    request TEXT NOT NULL,
    PRIMARY KEY (conversation, number)
) STRICT;
CREATE TABLE compaction (
    token TEXT PRIMARY KEY,
    conversation TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    rebuilt TEXT,
    request TEXT NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT;
CREATE TABLE template (
    version INTEGER PRIMARY KEY,
    text TEXT NOT NULL,
    author TEXT,
    written_at INTEGER NOT NULL
) STRICT;
",
    // The epoch that a compaction opened, for a client that commits it again, and the digests of rows.
    "ALTER TABLE compaction ADD COLUMN opened INTEGER;
     ALTER TABLE epoch ADD COLUMN seal TEXT;
     ALTER TABLE template ADD COLUMN seal TEXT;",
    // The records of calls to providers.
    "CREATE TABLE call (
        conversation TEXT NOT NULL,
        number INTEGER NOT NULL,
        record TEXT NOT NULL,
        PRIMARY KEY (conversation, number)
    ) STRICT;",
    // The texts that a prune is about to remove, and the state of an interrupted prune.
    "CREATE TABLE doomed (
        digest TEXT PRIMARY KEY,
        run TEXT NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE prune (
        name TEXT PRIMARY KEY,
        bytes BLOB NOT NULL
    ) STRICT;",
    // The states of conversations.
    "CREATE TABLE state (
        conversation TEXT PRIMARY KEY REFERENCES conversation (id) ON DELETE CASCADE,
        version INTEGER NOT NULL,
        text TEXT NOT NULL,
        seal TEXT NOT NULL
    ) STRICT;",
    // The workspaces that requests brought, and the epochs that refer to them. The reference has no foreign key: an epoch of
    // an export may come without its workspace.
    "CREATE TABLE workspace (
        digest TEXT PRIMARY KEY,
        text TEXT NOT NULL,
        used_at INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX workspace_by_use ON workspace (used_at);
    CREATE TABLE workspace_use (
        conversation TEXT NOT NULL REFERENCES conversation (id) ON DELETE CASCADE,
        number INTEGER NOT NULL,
        digest TEXT NOT NULL,
        PRIMARY KEY (conversation, number)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX workspace_use_by_digest ON workspace_use (digest);",
    // The version of the template that an epoch begins with, and what its author says about a version.
    "ALTER TABLE epoch ADD COLUMN template_version INTEGER;
    CREATE INDEX epoch_by_template ON epoch (template_version, conversation) WHERE template_version IS NOT NULL;
    ALTER TABLE template ADD COLUMN message TEXT;
    ALTER TABLE template ADD COLUMN is_draft INTEGER NOT NULL DEFAULT 0;",
    // The calls of agents to providers: rows for some weeks, daily sums for ever, and chains of digests of live threads.
    "CREATE TABLE traffic_call (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        id TEXT NOT NULL UNIQUE,
        at INTEGER NOT NULL,
        conversation TEXT NOT NULL,
        agent TEXT NOT NULL,
        model TEXT NOT NULL,
        cwd TEXT NOT NULL,
        profile TEXT NOT NULL,
        version TEXT NOT NULL,
        verdict TEXT NOT NULL,
        owner TEXT NOT NULL,
        is_alarming INTEGER NOT NULL,
        calls INTEGER NOT NULL,
        read INTEGER NOT NULL,
        written INTEGER NOT NULL,
        uncached INTEGER NOT NULL,
        output INTEGER NOT NULL,
        unpriced INTEGER NOT NULL,
        list_price INTEGER NOT NULL,
        lost_tokens INTEGER NOT NULL,
        usd REAL NOT NULL,
        saved_usd REAL NOT NULL,
        lost_usd REAL NOT NULL,
        record TEXT NOT NULL
    ) STRICT;
    CREATE INDEX traffic_call_by_time ON traffic_call (at, number);
    CREATE INDEX traffic_call_by_conversation ON traffic_call (conversation, at, number);
    CREATE INDEX traffic_call_by_verdict ON traffic_call (verdict, at, number);
    CREATE INDEX traffic_call_by_model ON traffic_call (model, at, number);
    CREATE INDEX traffic_call_by_cwd ON traffic_call (cwd, at, number);
    CREATE TABLE traffic_usage (
        dimension TEXT NOT NULL,
        day INTEGER NOT NULL,
        key TEXT NOT NULL,
        verdict TEXT NOT NULL,
        owner TEXT NOT NULL,
        calls INTEGER NOT NULL,
        read INTEGER NOT NULL,
        written INTEGER NOT NULL,
        uncached INTEGER NOT NULL,
        output INTEGER NOT NULL,
        unpriced INTEGER NOT NULL,
        list_price INTEGER NOT NULL,
        lost_tokens INTEGER NOT NULL,
        usd REAL NOT NULL,
        saved_usd REAL NOT NULL,
        lost_usd REAL NOT NULL,
        PRIMARY KEY (dimension, day, key, verdict, owner)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE traffic_conversation (
        id TEXT PRIMARY KEY,
        session TEXT NOT NULL,
        agent TEXT,
        model TEXT,
        cwd TEXT,
        profile TEXT,
        calls INTEGER NOT NULL,
        read INTEGER NOT NULL,
        input INTEGER NOT NULL,
        usd REAL NOT NULL,
        lost_usd REAL NOT NULL,
        began_at INTEGER NOT NULL,
        active_at INTEGER NOT NULL,
        last_miss TEXT
    ) STRICT;
    CREATE INDEX traffic_conversation_by_time ON traffic_conversation (active_at, id);
    CREATE INDEX traffic_conversation_by_session ON traffic_conversation (session);
    CREATE TABLE traffic_chain (
        number INTEGER PRIMARY KEY,
        conversation TEXT NOT NULL,
        thread TEXT NOT NULL,
        first TEXT NOT NULL,
        at INTEGER NOT NULL,
        is_full INTEGER NOT NULL,
        link TEXT NOT NULL
    ) STRICT;
    CREATE INDEX traffic_chain_by_conversation ON traffic_chain (conversation, number);
    CREATE INDEX traffic_chain_by_thread ON traffic_chain (conversation, thread, at);
    CREATE INDEX traffic_chain_by_first ON traffic_chain (first);
    CREATE INDEX traffic_chain_by_time ON traffic_chain (at);
    CREATE TABLE store_key (
        name TEXT PRIMARY KEY,
        bytes BLOB NOT NULL
    ) STRICT;",
];

/// Returns the `application_id` and the version of the tables.
fn version(connection: &Connection) -> rusqlite::Result<(i32, i32)> {
    let application = connection.query_row("PRAGMA application_id", [], |row| row.get(0))?;
    let version = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    Ok((application, version))
}

/// Returns the version that this proem writes.
fn newest() -> i32 {
    i32::try_from(STEPS.len()).unwrap_or(i32::MAX)
}

/// Refuses a database of another program before anything is written to it.
pub(super) fn check_owner(connection: &Connection, path: &Path) -> Result<(), StoreError> {
    let look = || -> rusqlite::Result<(i32, i32, i64)> {
        let (application, version) = version(connection)?;
        let tables = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
        Ok((application, version, tables))
    };
    match look().map_err(|error| store_error(path, error))? {
        (APPLICATION_ID, ..) => check_version(connection, path),
        (0, 0, 0) => Ok(()),
        (0, 0, _) => Err(foreign(path)),
        _ => Err(not_a_store(path)),
    }
}

fn foreign(path: &Path) -> StoreError {
    unusable(path, "it is a database of another program", "choose another file")
}

fn not_a_store(path: &Path) -> StoreError {
    unusable(path, "it is not a proem store", "choose another file")
}

/// Refuses a file that is not a store, or that a newer proem has migrated.
pub(super) fn check_version(connection: &Connection, path: &Path) -> Result<(), StoreError> {
    let (application, version) = version(connection).map_err(|error| store_error(path, error))?;
    if application != APPLICATION_ID {
        return Err(not_a_store(path));
    }
    if version > newest() {
        let why =
            format!("its tables have version {version}, and this proem supports versions up to {}", newest());
        return Err(unusable(path, why, "use a newer proem, or restore a backup"));
    }
    Ok(())
}

/// Migrates the tables to the newest version. Processes that start together do so one after the other.
pub(super) fn migrate(connection: &Connection, path: &Path) -> Result<(), StoreError> {
    let work = || -> rusqlite::Result<Option<StoreError>> {
        let transaction = rusqlite::Transaction::new_unchecked(connection, TransactionBehavior::Immediate)?;
        let (application, from) = version(&transaction)?;
        let tables: i64 =
            transaction.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
        if application == 0 && from == 0 && tables > 0 {
            return Ok(Some(foreign(path)));
        }
        if application == 0 && from == 0 {
            transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
        }
        let done = usize::try_from(from).unwrap_or(0);
        for (index, step) in STEPS.iter().enumerate().skip(done) {
            transaction.execute_batch(step)?;
            transaction.pragma_update(None, "user_version", i32::try_from(index + 1).unwrap_or(i32::MAX))?;
        }
        transaction.commit()?;
        Ok(None)
    };
    match work() {
        Ok(None) => check_version(connection, path),
        Ok(Some(error)) => Err(error),
        Err(error) => Err(store_error(path, error)),
    }
}
