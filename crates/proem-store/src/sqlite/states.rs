//! The states of conversations.

use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};

use super::{Failure, SqliteStore};
use crate::columns::{row_limit, signed, unsigned};
use crate::{Batch, StateRecord, StoreError};

/// Reads the state of a conversation.
pub(super) fn read(connection: &Connection, conversation: &str) -> Result<Option<StateRecord>, Failure> {
    let sql = "SELECT version, text, seal FROM state WHERE conversation = ?1";
    let mut statement = connection.prepare_cached(sql)?;
    let found = statement.query_row([conversation], state).optional()?;
    Ok(found.map(|(state, seal)| state.checked(conversation, &seal)).transpose()?)
}

/// Reads the columns `version`, `text` and `seal`.
fn state(row: &Row<'_>) -> rusqlite::Result<(StateRecord, String)> {
    Ok((StateRecord { version: unsigned(row.get(0)?), text: row.get(1)? }, row.get(2)?))
}

/// Stores the state of a conversation in place of the one before it.
pub(super) fn write(
    transaction: &Transaction<'_>,
    conversation: &str,
    state: &StateRecord,
) -> Result<(), Failure> {
    let sql = "INSERT INTO state (conversation, version, text, seal) VALUES (?1, ?2, ?3, ?4) \
        ON CONFLICT (conversation) DO UPDATE SET version = ?2, text = ?3, seal = ?4";
    let values = params![conversation, signed(state.version), state.text, state.seal(conversation)];
    transaction.prepare_cached(sql)?.execute(values)?;
    Ok(())
}

/// Compares the next states with their seals.
pub(super) fn check(store: &SqliteStore, after: &str, most: usize) -> Result<Batch, StoreError> {
    store.read(|connection| {
        let sql = "SELECT version, text, seal, conversation FROM state WHERE conversation > ?1 \
            ORDER BY conversation LIMIT ?2";
        let mut statement = connection.prepare_cached(sql)?;
        let mut rows = statement.query(params![after, row_limit(most)])?;
        let mut batch = Batch::default();
        while let Some(row) = rows.next()? {
            let (conversation, (state, seal)): (String, _) = (row.get(3)?, state(row)?);
            batch.found.extend(state.checked(&conversation, &seal).err().map(|error| error.to_string()));
            batch.rows += 1;
            batch.last = Some(conversation);
        }
        Ok(batch)
    })
}
