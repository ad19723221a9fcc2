//! The records of calls to providers.

use proem_core::limit::CONVERSATION_CALLS_MAX;
use rusqlite::{OptionalExtension, params};

use super::SqliteStore;
use crate::{CallStore, StoreError};

impl CallStore for SqliteStore {
    fn add_call(&self, conversation: &str, record: &str) -> Result<Option<u64>, StoreError> {
        self.write(|transaction| {
            let known: Option<i64> = transaction
                .query_row("SELECT 1 FROM conversation WHERE id = ?1", [conversation], |row| row.get(0))
                .optional()?;
            if known.is_none() {
                return Ok(None);
            }
            let sql = "SELECT coalesce(max(number), 0) + 1 FROM call WHERE conversation = ?1";
            let number: u64 = transaction.query_row(sql, [conversation], |row| row.get(0))?;
            transaction.execute(
                "INSERT INTO call (conversation, number, record) VALUES (?1, ?2, ?3)",
                params![conversation, number, record],
            )?;
            transaction.execute(
                "DELETE FROM call WHERE conversation = ?1 AND number <= ?2",
                params![conversation, number.saturating_sub(CONVERSATION_CALLS_MAX)],
            )?;
            Ok(Some(number))
        })
    }

    fn calls(&self, conversation: &str) -> Result<Vec<String>, StoreError> {
        self.read(|connection| {
            let sql = "SELECT record FROM call WHERE conversation = ?1 ORDER BY number";
            let mut statement = connection.prepare_cached(sql)?;
            let rows = statement.query_map([conversation], |row| row.get(0))?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }

    fn last_call(&self, conversation: &str) -> Result<Option<String>, StoreError> {
        self.read(|connection| {
            let sql = "SELECT record FROM call WHERE conversation = ?1 ORDER BY number DESC LIMIT 1";
            let mut statement = connection.prepare_cached(sql)?;
            Ok(statement.query_row([conversation], |row| row.get(0)).optional()?)
        })
    }
}
