//! The states of conversations, and changes of whole conversations.

use std::cell::Cell;

use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::link::Link;
use super::{Failure, PostgresStore, rows};
use crate::columns::{ColumnReader, signed, unsigned};
use crate::record::EpochRow;
use crate::{Batch, Commit, StateRecord, StoreError};

/// Stores a change of a conversation; tells whether it was stored.
pub(super) fn commit(store: &PostgresStore, change: &Commit<'_>) -> Result<bool, StoreError> {
    let has_tried = Cell::new(false);
    store.with_client(|client| {
        // If the connection broke, the change may be stored although it was not acknowledged.
        let was_tried = has_tried.replace(true);
        super::retry_pruned(|| {
            let work = |transaction: &mut Link| {
                Ok((was_tried && is_stored(transaction, change)?) || write(transaction, change)?)
            };
            client.transact_if(work, |is_written| *is_written)
        })
    })
}

/// Tells whether exactly this change is stored.
fn is_stored(transaction: &mut Link, change: &Commit<'_>) -> Result<bool, Failure> {
    let Commit { conversation, state, epoch, .. } = *change;
    if read(transaction, conversation)?.as_ref() != Some(state) {
        return Ok(false);
    }
    let Some(epoch) = epoch else { return Ok(true) };
    let sql = "SELECT seal FROM proem_epoch WHERE conversation = $1 AND number = $2";
    let number = signed(epoch.head.number);
    let row = transaction.query_typed_opt(sql, &[(&conversation, Type::TEXT), (&number, Type::INT8)])?;
    Ok(row.is_some_and(|row| row.get::<_, Option<String>>(0) == EpochRow::new(epoch).seal))
}

/// Writes a change unless another writer was first. The caller rolls back when this returns false.
fn write(transaction: &mut Link, change: &Commit<'_>) -> Result<bool, Failure> {
    let Commit { conversation, epoch, .. } = *change;
    // The row of the conversation stays locked until the end, so that its writers follow one another.
    let current = rows::locked_number(transaction, conversation)?;
    let known = read(transaction, conversation)?.map_or(0, |state| state.version);
    if !change.fits(current, known) {
        return Ok(false);
    }
    if let Some(epoch) = epoch
        && !rows::insert(transaction, epoch)?
    {
        check_epochs(transaction, conversation)?;
        return Ok(false);
    }
    write_state(transaction, change)
}

/// Stores the state of a conversation, if the one before it is still that of the change.
fn write_state(transaction: &mut Link, change: &Commit<'_>) -> Result<bool, Failure> {
    let Commit { conversation, based_on, state, .. } = *change;
    let sql = "INSERT INTO proem_state AS known (conversation, version, text, seal) VALUES ($1, $2, $3, $4) \
        ON CONFLICT (conversation) DO UPDATE SET version = $2, text = $3, seal = $4 WHERE known.version = $5";
    let written = transaction.execute_typed(
        sql,
        &[
            (&conversation, Type::TEXT),
            (&signed(state.version), Type::INT8),
            (&state.text, Type::TEXT),
            (&state.seal(conversation), Type::TEXT),
            (&signed(based_on), Type::INT8),
        ],
    )?;
    Ok(written > 0)
}

/// Fails if a conversation has epochs and no row: then no writer was first, and none will ever be.
fn check_epochs(transaction: &mut Link, conversation: &str) -> Result<(), Failure> {
    let sql = "SELECT EXISTS (SELECT 1 FROM proem_epoch WHERE conversation = $1) \
        AND NOT EXISTS (SELECT 1 FROM proem_conversation WHERE id = $1)";
    let row = transaction.query_typed_one(sql, &[(&conversation, Type::TEXT)])?;
    if row.get(0) {
        let what = format!("conversation `{conversation}`");
        return Err(StoreError::damaged(what, "it is missing, but its epochs exist").into());
    }
    Ok(())
}

/// Reads the state of a conversation.
fn read(transaction: &mut Link, conversation: &str) -> Result<Option<StateRecord>, Failure> {
    let sql = "SELECT version, text, seal FROM proem_state WHERE conversation = $1";
    let row = transaction.query_typed_opt(sql, &[(&conversation, Type::TEXT)])?;
    Ok(row.map(|row| from_columns(&rows::Columns(&row), 0, conversation)).transpose()?.flatten())
}

/// Reads the columns `version`, `text` and `seal` from a position on; `None` if they are NULL.
pub(super) fn from_columns<R>(
    row: &R,
    first: usize,
    conversation: &str,
) -> Result<Option<StateRecord>, StoreError>
where
    R: ColumnReader<Error = StoreError>,
{
    let Some(seal) = row.optional_text(first + 2)? else { return Ok(None) };
    let state = StateRecord { version: unsigned(row.integer(first)?), text: row.text(first + 1)? };
    state.checked(conversation, &seal).map(Some)
}

/// Compares the next states with their seals.
pub(super) fn check(store: &PostgresStore, after: &str, most: usize) -> Result<Batch, StoreError> {
    let sql = "SELECT version, text, seal, conversation FROM proem_state WHERE conversation > $1 \
        ORDER BY conversation LIMIT $2";
    let rows = store.rows_after(sql, after, most)?;
    let damage = |row: &Row| from_columns(&rows::Columns(row), 0, row.get(3)).err();
    let found = rows.iter().filter_map(damage).map(|error| error.to_string()).collect();
    Ok(Batch { rows: rows.len() as u64, last: rows.last().map(|row| row.get(3)), found })
}
