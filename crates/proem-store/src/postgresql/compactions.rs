//! Compactions that were begun.

use tokio_postgres::types::Type;

use super::PostgresStore;
use super::rows::{signed, unsigned};
use crate::StoreError;
use crate::record::{self, Compaction};

pub(super) fn begin(store: &PostgresStore, compaction: &Compaction) -> Result<(), StoreError> {
    let Compaction { token, conversation, from, rebuilt, request, expires_at, opened } = compaction;
    let opened = opened.map(signed);
    let (from, rebuilt) = (signed(*from), rebuilt.as_ref().map(crate::transfer::epoch_json).transpose()?);
    let now = record::now();
    store.run(|transaction| {
        transaction
            .execute_typed("DELETE FROM proem_compaction WHERE expires_at < $1", &[(&now, Type::INT8)])?;
        transaction.execute_typed(
            "INSERT INTO proem_compaction (token, conversation, epoch, rebuilt, request, expires_at, opened) \
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

pub(super) fn find(store: &PostgresStore, token: &str) -> Result<Option<Compaction>, StoreError> {
    let sql = "SELECT token, conversation, epoch, rebuilt, request, expires_at, opened \
        FROM proem_compaction WHERE token = $1";
    let found = store.run(|transaction| transaction.query_typed_opt(sql, &[(&token, Type::TEXT)]))?;
    let Some(row) = found else { return Ok(None) };
    let rebuilt: Option<String> = row.get(3);
    Ok(Some(Compaction {
        token: row.get(0),
        conversation: row.get(1),
        from: unsigned(row.get(2)),
        rebuilt: rebuilt.as_deref().map(crate::transfer::epoch_of_json).transpose()?,
        request: row.get(4),
        expires_at: row.get(5),
        opened: row.get::<_, Option<i64>>(6).map(unsigned),
    }))
}

pub(super) fn end(store: &PostgresStore, token: &str, opened: Option<u64>) -> Result<bool, StoreError> {
    store.run(|transaction| {
        let changed = match opened.map(signed) {
            None => {
                let sql = "DELETE FROM proem_compaction WHERE token = $1";
                transaction.execute_typed(sql, &[(&token, Type::TEXT)])?
            }
            Some(opened) => {
                // The rebuilt prompt is an epoch now, and need not be kept twice.
                let sql = "UPDATE proem_compaction SET opened = $2, rebuilt = NULL WHERE token = $1";
                transaction.execute_typed(sql, &[(&token, Type::TEXT), (&opened, Type::INT8)])?
            }
        };
        Ok(changed > 0)
    })
}
