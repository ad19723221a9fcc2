//! Compactions.

use rusqlite::{OptionalExtension, Row, params};

use super::SqliteStore;
use crate::record::{self, CompactionRecord};
use crate::transfer::{epoch_from_json, epoch_json};
use crate::{CompactionStore, StoreError};

impl CompactionStore for SqliteStore {
    fn begin_compaction(&self, compaction: &CompactionRecord) -> Result<(), StoreError> {
        let CompactionRecord { token, conversation, from, rebuilt, request, expires_at, opened } = compaction;
        let rebuilt = rebuilt.as_ref().map(epoch_json).transpose()?;
        self.write(|transaction| {
            transaction.execute("DELETE FROM compaction WHERE expires_at < ?1", [record::now()])?;
            transaction.execute(
                "INSERT INTO compaction (token, conversation, epoch, rebuilt, request, expires_at, opened) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
                params![token, conversation, from, rebuilt, request, expires_at, opened],
            )?;
            Ok(())
        })
    }

    fn compaction(&self, token: &str) -> Result<Option<CompactionRecord>, StoreError> {
        let found = self.read(|connection| {
            let mut statement = connection.prepare_cached(
                "SELECT token, conversation, epoch, rebuilt, request, expires_at, opened FROM compaction \
                 WHERE token = ?1",
            )?;
            let row = |row: &Row<'_>| {
                let rebuilt: Option<String> = row.get(3)?;
                let compaction = CompactionRecord {
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
        let rebuilt = rebuilt.as_deref().map(epoch_from_json).transpose()?;
        Ok(Some(CompactionRecord { rebuilt, ..compaction }))
    }

    fn end_compaction(&self, token: &str, opened: Option<u64>) -> Result<bool, StoreError> {
        self.write(|transaction| {
            let changed = match opened {
                None => transaction.execute("DELETE FROM compaction WHERE token = ?1", [token])?,
                // The rebuilt prompt is an epoch now, and is not stored twice.
                Some(opened) => transaction.execute(
                    "UPDATE compaction SET opened = ?2, rebuilt = NULL WHERE token = ?1",
                    params![token, opened],
                )?,
            };
            Ok(changed > 0)
        })
    }
}
