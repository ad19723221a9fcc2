//! The records of calls to providers.

use proem_core::limit::CONVERSATION_CALLS_MAX;
use tokio_postgres::types::Type;

use super::PostgresStore;
use crate::columns::{signed, unsigned};
use crate::{CallStore, StoreError};

impl CallStore for PostgresStore {
    fn add_call(&self, conversation: &str, record: &str) -> Result<Option<u64>, StoreError> {
        let most = signed(CONVERSATION_CALLS_MAX);
        self.run(|transaction| {
            // The lock orders concurrent writers, so that numbers have no gaps and no duplicates.
            let sql = "SELECT 1 FROM proem_conversation WHERE id = $1 FOR UPDATE";
            if transaction.query_typed_opt(sql, &[(&conversation, Type::TEXT)])?.is_none() {
                return Ok(None);
            }
            let sql = "INSERT INTO proem_call (conversation, number, record) \
                SELECT $1, coalesce(max(number), 0) + 1, $2 FROM proem_call WHERE conversation = $1 \
                RETURNING number";
            let row =
                transaction.query_typed_one(sql, &[(&conversation, Type::TEXT), (&record, Type::TEXT)])?;
            let number: i64 = row.get(0);
            let sql = "DELETE FROM proem_call WHERE conversation = $1 AND number <= $2";
            transaction.execute_typed(sql, &[(&conversation, Type::TEXT), (&(number - most), Type::INT8)])?;
            Ok(Some(unsigned(number)))
        })
    }

    fn calls(&self, conversation: &str) -> Result<Vec<String>, StoreError> {
        let sql = "SELECT record FROM proem_call WHERE conversation = $1 ORDER BY number";
        let rows = self.run(|transaction| transaction.query_typed(sql, &[(&conversation, Type::TEXT)]))?;
        Ok(rows.iter().map(|row| row.get(0)).collect())
    }

    fn last_call(&self, conversation: &str) -> Result<Option<String>, StoreError> {
        let sql = "SELECT record FROM proem_call WHERE conversation = $1 ORDER BY number DESC LIMIT 1";
        let row = self.run(|transaction| transaction.query_typed_opt(sql, &[(&conversation, Type::TEXT)]))?;
        Ok(row.map(|row| row.get(0)))
    }
}
