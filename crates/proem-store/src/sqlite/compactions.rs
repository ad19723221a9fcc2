//! Compactions that were begun.

use rusqlite::{OptionalExtension, Row, params};

use super::SqliteStore;
use crate::StoreError;
use crate::record::{self, Compaction};

pub(super) fn begin(store: &SqliteStore, compaction: &Compaction) -> Result<(), StoreError> {
    let Compaction { token, conversation, from, rebuilt, request, expires_at, opened } = compaction;
    let rebuilt = rebuilt.as_ref().map(crate::transfer::epoch_json).transpose()?;
    store.write(|transaction| {
        transaction.execute("DELETE FROM compaction WHERE expires_at < ?1", [record::now()])?;
        transaction.execute(
            "INSERT INTO compaction (token, conversation, epoch, rebuilt, request, expires_at, opened) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            params![token, conversation, from, rebuilt, request, expires_at, opened],
        )?;
        Ok(())
    })
}

pub(super) fn find(store: &SqliteStore, token: &str) -> Result<Option<Compaction>, StoreError> {
    let found = store.read(|connection| {
        let mut statement = connection.prepare_cached(
            "SELECT token, conversation, epoch, rebuilt, request, expires_at, opened FROM compaction WHERE token = ?1",
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
                opened: row.get(6)?,
            };
            Ok((compaction, rebuilt))
        };
        Ok(statement.query_row([token], row).optional()?)
    })?;
    let Some((compaction, rebuilt)) = found else { return Ok(None) };
    let rebuilt = rebuilt.as_deref().map(crate::transfer::epoch_of_json).transpose()?;
    Ok(Some(Compaction { rebuilt, ..compaction }))
}

pub(super) fn end(store: &SqliteStore, token: &str, opened: Option<u64>) -> Result<bool, StoreError> {
    store.write(|transaction| {
        let changed = match opened {
            None => transaction.execute("DELETE FROM compaction WHERE token = ?1", [token])?,
            // The rebuilt prompt is an epoch now, and need not be kept twice.
            Some(opened) => transaction.execute(
                "UPDATE compaction SET opened = ?2, rebuilt = NULL WHERE token = ?1",
                params![token, opened],
            )?,
        };
        Ok(changed > 0)
    })
}
