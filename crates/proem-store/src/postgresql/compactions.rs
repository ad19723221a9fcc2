//! Compactions.

use tokio_postgres::types::Type;

use super::PostgresStore;
use crate::columns::{signed, unsigned};
use crate::record::{self, CompactionRecord};
use crate::transfer::{epoch_from_json, epoch_json};
use crate::{CompactionStore, StoreError};

impl CompactionStore for PostgresStore {
    fn begin_compaction(&self, compaction: &CompactionRecord) -> Result<(), StoreError> {
        let CompactionRecord { token, conversation, from, rebuilt, request, expires_at, opened } = compaction;
        let opened = opened.map(signed);
        let (from, rebuilt) = (signed(*from), rebuilt.as_ref().map(epoch_json).transpose()?);
        let now = record::now();
        self.run(|transaction| {
            transaction
                .execute_typed("DELETE FROM proem_compaction WHERE expires_at < $1", &[(&now, Type::INT8)])?;
            transaction.execute_typed(
                "INSERT INTO proem_compaction \
                 (token, conversation, epoch, rebuilt, request, expires_at, opened) \
                 VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING",
                &[
                    (token, Type::TEXT),
                    (conversation, Type::TEXT),
                    (&from, Type::INT8),
                    (&rebuilt, Type::TEXT),
                    (request, Type::TEXT),
                    (expires_at, Type::INT8),
                    (&opened, Type::INT8),
                ],
            )?;
            Ok(())
        })
    }

    fn compaction(&self, token: &str) -> Result<Option<CompactionRecord>, StoreError> {
        let sql = "SELECT token, conversation, epoch, rebuilt, request, expires_at, opened \
            FROM proem_compaction WHERE token = $1";
        let found = self.run(|transaction| transaction.query_typed_opt(sql, &[(&token, Type::TEXT)]))?;
        let Some(row) = found else { return Ok(None) };
        let rebuilt: Option<String> = row.get(3);
        Ok(Some(CompactionRecord {
            token: row.get(0),
            conversation: row.get(1),
            from: unsigned(row.get(2)),
            rebuilt: rebuilt.as_deref().map(epoch_from_json).transpose()?,
            request: row.get(4),
            expires_at: row.get(5),
            opened: row.get::<_, Option<i64>>(6).map(unsigned),
        }))
    }

    fn end_compaction(&self, token: &str, opened: Option<u64>) -> Result<bool, StoreError> {
        self.run(|transaction| {
            let changed = match opened.map(signed) {
                None => {
                    let sql = "DELETE FROM proem_compaction WHERE token = $1";
                    transaction.execute_typed(sql, &[(&token, Type::TEXT)])?
                }
                Some(opened) => {
                    // The rebuilt prompt is an epoch now, and is not stored twice.
                    let sql = "UPDATE proem_compaction SET opened = $2, rebuilt = NULL WHERE token = $1";
                    transaction.execute_typed(sql, &[(&token, Type::TEXT), (&opened, Type::INT8)])?
                }
            };
            Ok(changed > 0)
        })
    }
}
