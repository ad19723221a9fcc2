//! Looking for damage, and removing what nobody needs.

use tokio_postgres::types::Type;

use super::link::Link;
use super::rows::{NUMBERED, unsigned, whole};
use super::{Failure, PostgresStore, Value, templates};
use crate::StoreError;

pub(super) fn check(store: &PostgresStore) -> Result<Vec<String>, StoreError> {
    store.run(|transaction| {
        let mut found = Vec::new();
        let wrong = "SELECT digest FROM proem_blob WHERE encode(sha256(bytes), 'hex') <> digest";
        for row in transaction.query_typed(wrong, &[])? {
            let digest: String = row.get(0);
            found.push(format!("the text {digest}: its bytes are not those of its digest"));
        }
        let missing =
            format!("SELECT digest FROM ({USED}) used WHERE digest NOT IN (SELECT digest FROM proem_blob)");
        for row in transaction.query_typed(&missing, &[])? {
            let digest: String = row.get(0);
            found.push(format!("the text {digest}: it is gone"));
        }
        found.extend(missing_epochs(transaction)?);
        found.extend(damaged_epochs(transaction)?);
        found.extend(templates::damaged(transaction)?);
        Ok(found)
    })
}

/// Epochs that a conversation must have and has not, and conversations that have lost their head.
fn missing_epochs(transaction: &mut Link) -> Result<Vec<String>, Failure> {
    let sql = "SELECT 'epoch ' || c.epoch || ' of `' || c.id || '`: it is gone' FROM proem_conversation c \
        WHERE NOT EXISTS (SELECT 1 FROM proem_epoch e WHERE e.conversation = c.id AND e.number = c.epoch) \
        UNION ALL SELECT DISTINCT 'conversation `' || e.conversation || '`: it is gone, and its epochs are not' \
        FROM proem_epoch e WHERE e.conversation NOT IN (SELECT id FROM proem_conversation)";
    Ok(transaction.query_typed(sql, &[])?.iter().map(|row| row.get(0)).collect())
}

/// Epochs whose texts are whole and still make no prompt.
fn damaged_epochs(transaction: &mut Link) -> Result<Vec<String>, Failure> {
    let sql = "SELECT conversation, number FROM proem_epoch ORDER BY conversation, number";
    let mut found = Vec::new();
    for row in transaction.query_typed(sql, &[])? {
        let (conversation, number): (String, i64) = (row.get(0), row.get(1));
        let values: [Value<'_>; 2] = [(&conversation, Type::TEXT), (&number, Type::INT8)];
        // From the database: what is in memory is whole.
        let epoch = match whole(transaction, None, NUMBERED, &values) {
            Ok(epoch) => epoch.map(crate::Kept::of).transpose().map(drop),
            Err(Failure::Store(error)) => Err(error),
            Err(failure) => return Err(failure),
        };
        found.extend(epoch.err().map(|error| format!("epoch {number} of `{conversation}`: {error}")));
    }
    Ok(found)
}

pub(super) fn prune(store: &PostgresStore) -> Result<u64, StoreError> {
    let sql = format!(
        "WITH gone AS (DELETE FROM proem_blob WHERE digest NOT IN (SELECT digest FROM ({USED}) used) \
         RETURNING octet_length(bytes) AS size) SELECT coalesce(sum(size), 0)::bigint FROM gone"
    );
    store.run(|transaction| {
        // Nobody may store an epoch whose texts are about to go.
        transaction.batch_execute("LOCK TABLE proem_blob, proem_epoch IN EXCLUSIVE MODE")?;
        Ok(unsigned(transaction.query_typed_one(&sql, &[])?.get(0)))
    })
}

/// The digests that epochs refer to.
const USED: &str = "SELECT description AS digest FROM proem_epoch UNION SELECT request FROM proem_epoch \
    UNION SELECT (jsonb_each_text(texts::jsonb)).value FROM proem_epoch";
