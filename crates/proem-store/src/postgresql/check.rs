//! The steps of checks and prunes: short statements by primary key.

use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};

use proem_core::limit::POSTGRES_WRITERS_TIME_MAX;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::{PostgresStore, Value, states, templates, workspaces};
use crate::columns::{ColumnReader, row_limit, signed, unsigned};
use crate::maintenance::digests_in;
use crate::record::EpochRow;
use crate::{Batch, EpochEntry, EpochKey, Maintenance, References};
use crate::{Store, StoreError};
use proem::epoch_row_columns;

/// The time between two queries for open transactions.
const WRITERS_STEP: Duration = Duration::from_millis(20);

impl PostgresStore {
    /// Reads the rows after a text key.
    pub(super) fn rows_after(&self, sql: &str, after: &str, most: usize) -> Result<Vec<Row>, StoreError> {
        let most = row_limit(most);
        let values: [Value<'_>; 2] = [(&after, Type::TEXT), (&most, Type::INT8)];
        self.run(|transaction| transaction.query_typed(sql, &values))
    }

    /// Reads the rows of epochs after a key.
    fn epoch_rows_after(&self, sql: &str, after: &EpochKey, most: usize) -> Result<Vec<Row>, StoreError> {
        let (conversation, number, most) = (&after.conversation, signed(after.number), row_limit(most));
        let values: [Value<'_>; 3] = [(conversation, Type::TEXT), (&number, Type::INT8), (&most, Type::INT8)];
        self.run(|transaction| transaction.query_typed(sql, &values))
    }

    /// Reads the rows of some digests.
    fn rows_by_digest(&self, sql: &str, digests: &[&str]) -> Result<Vec<Row>, StoreError> {
        self.run(|transaction| transaction.query_typed(sql, &[(&digests, Type::TEXT_ARRAY)]))
    }

    /// Lists the transactions that write epochs at this moment.
    fn writers(&self) -> Result<Vec<String>, StoreError> {
        let sql = "SELECT virtualtransaction FROM pg_locks WHERE locktype = 'relation' AND granted \
            AND mode = 'RowExclusiveLock' AND relation = 'proem_epoch'::regclass \
            AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
        let rows = self.run(|transaction| transaction.query_typed(sql, &[]))?;
        Ok(rows.iter().map(|row| row.get(0)).collect())
    }
}

impl Maintenance for PostgresStore {
    fn check_file(&self) -> Result<Vec<String>, StoreError> {
        Ok(Vec::new())
    }

    fn check_texts(&self, after: &str, most: usize) -> Result<Batch, StoreError> {
        let sql = "SELECT digest, encode(sha256(bytes), 'hex') = digest FROM \
            (SELECT digest, bytes FROM proem_blob WHERE digest > $1 ORDER BY digest LIMIT $2) texts ORDER BY digest";
        let rows = self.rows_after(sql, after, most)?;
        let wrong = rows
            .iter()
            .filter(|row| !row.get::<_, bool>(1))
            .map(|row| format!("the text {}: its bytes do not match its digest", row.get::<_, String>(0)));
        Ok(Batch { rows: rows.len() as u64, found: wrong.collect(), last: rows.last().map(|row| row.get(0)) })
    }

    fn check_conversations(&self, after: &str, most: usize) -> Result<Batch, StoreError> {
        let sql = "SELECT c.id, c.epoch, EXISTS \
            (SELECT 1 FROM proem_epoch e WHERE e.conversation = c.id AND e.number = c.epoch) FROM \
            (SELECT id, epoch FROM proem_conversation WHERE id > $1 ORDER BY id LIMIT $2) c ORDER BY c.id";
        let rows = self.rows_after(sql, after, most)?;
        let missing = rows.iter().filter(|row| !row.get::<_, bool>(2)).map(|row| {
            format!("epoch {} of `{}`: it is missing", row.get::<_, i64>(1), row.get::<_, String>(0))
        });
        Ok(Batch {
            rows: rows.len() as u64,
            found: missing.collect(),
            last: rows.last().map(|row| row.get(0)),
        })
    }

    fn check_states(&self, after: &str, most: usize) -> Result<Batch, StoreError> {
        states::check(self, after, most)
    }

    fn check_templates(&self, after: u64, most: usize) -> Result<Batch, StoreError> {
        templates::check(self, after, most)
    }

    fn check_workspaces(&self, after: &str, most: usize) -> Result<Batch, StoreError> {
        workspaces::check(self, after, most)
    }

    fn epoch_rows(&self, after: &EpochKey, most: usize) -> Result<Vec<EpochEntry>, StoreError> {
        let sql = concat!(
            "SELECT ",
            epoch_row_columns!(),
            ", EXISTS (SELECT 1 FROM proem_conversation c WHERE c.id = e.conversation) FROM \
             (SELECT * FROM proem_epoch WHERE (conversation, number) > ($1, $2) \
              ORDER BY conversation, number LIMIT $3) e ORDER BY conversation, number"
        );
        let rows = self.epoch_rows_after(sql, after, most)?;
        let entry = |row: &Row| {
            let has_conversation = super::rows::Columns(row).flag(EpochRow::COLUMN_COUNT)?;
            Ok(EpochEntry { row: EpochRow::from_columns(&super::rows::Columns(row))?, has_conversation })
        };
        rows.iter().map(entry).collect()
    }

    fn text_sizes(&self, digests: &[&str]) -> Result<BTreeMap<String, u64>, StoreError> {
        let sql = "SELECT digest, octet_length(bytes)::bigint FROM proem_blob WHERE digest = ANY($1)";
        let rows = self.rows_by_digest(sql, digests)?;
        Ok(rows.iter().map(|row| (row.get(0), unsigned(row.get(1)))).collect())
    }

    fn text_bytes(&self, digests: &[&str]) -> Result<BTreeMap<String, Vec<u8>>, StoreError> {
        let sql = "SELECT digest, bytes FROM proem_blob WHERE digest = ANY($1)";
        Ok(self.rows_by_digest(sql, digests)?.iter().map(|row| (row.get(0), row.get(1))).collect())
    }

    fn references(&self, after: &EpochKey, most: usize) -> Result<References, StoreError> {
        let sql = "SELECT conversation, number, description, request, texts FROM proem_epoch \
            WHERE (conversation, number) > ($1, $2) ORDER BY conversation, number LIMIT $3";
        let rows = self.epoch_rows_after(sql, after, most)?;
        let mut found = References { rows: rows.len() as u64, ..References::default() };
        for row in &rows {
            found.digests.extend([row.get(2), row.get(3)]);
            found.digests.extend(digests_in(row.get(4)).map(str::to_owned));
        }
        found.last =
            rows.last().map(|row| EpochKey { conversation: row.get(0), number: unsigned(row.get(1)) });
        Ok(found)
    }

    fn texts(&self, after: &str, most: usize) -> Result<Vec<String>, StoreError> {
        let sql = "SELECT digest FROM proem_blob WHERE digest > $1 ORDER BY digest LIMIT $2";
        Ok(self.rows_after(sql, after, most)?.iter().map(|row| row.get(0)).collect())
    }

    fn text_count_estimate(&self) -> Result<u64, StoreError> {
        // The planner's count, or an estimate by size where the table was never analysed: a row takes at least 100 bytes.
        let sql = "SELECT greatest(reltuples::bigint, pg_relation_size(oid) / 256) FROM pg_class \
            WHERE oid = 'proem_blob'::regclass";
        let row = self.run(|transaction| transaction.query_typed_one(sql, &[]))?;
        Ok(unsigned(row.get(0)))
    }

    fn doom(&self, run: &str, digests: &[String]) -> Result<(), StoreError> {
        let sql = "INSERT INTO proem_doomed (digest, run) SELECT digest, $1 FROM unnest($2) AS digest \
            ORDER BY digest ON CONFLICT (digest) DO UPDATE SET run = excluded.run";
        let values: [Value<'_>; 2] = [(&run, Type::TEXT), (&digests, Type::TEXT_ARRAY)];
        self.run(|transaction| transaction.execute_typed(sql, &values).map(drop))
    }

    /// Waits for the locks of writers that began before the list was complete, because they may not have seen it. Later
    /// writers see the list, and no writer waits for this.
    fn settle(&self) -> Result<(), StoreError> {
        let begun = Instant::now();
        let mut before = self.writers()?;
        while !before.is_empty() {
            if begun.elapsed() > POSTGRES_WRITERS_TIME_MAX {
                return Err(StoreError::TimedOut {
                    place: self.describe(),
                    why: format!(
                        "a transaction that writes epochs is open for more than {} seconds",
                        POSTGRES_WRITERS_TIME_MAX.as_secs()
                    )
                    .into(),
                });
            }
            thread::sleep(WRITERS_STEP);
            let now = self.writers()?;
            before.retain(|writer| now.contains(writer));
        }
        Ok(())
    }

    fn doomed(&self, run: &str, after: &str, most: usize) -> Result<Vec<String>, StoreError> {
        let sql = "SELECT digest FROM proem_doomed WHERE run = $1 AND digest > $2 ORDER BY digest LIMIT $3";
        let most = row_limit(most);
        let values: [Value<'_>; 3] = [(&run, Type::TEXT), (&after, Type::TEXT), (&most, Type::INT8)];
        let rows = self.run(|transaction| transaction.query_typed(sql, &values))?;
        Ok(rows.iter().map(|row| row.get(0)).collect())
    }

    fn spare(&self, digests: &[String]) -> Result<(), StoreError> {
        let values: [Value<'_>; 1] = [(&digests, Type::TEXT_ARRAY)];
        self.run(|transaction| {
            // Locks in the order of digests, so that two transactions with the same texts cannot deadlock.
            let sql = "SELECT 1 FROM proem_doomed WHERE digest = ANY($1) ORDER BY digest FOR UPDATE";
            transaction.execute_typed(sql, &values)?;
            transaction.execute_typed("DELETE FROM proem_doomed WHERE digest = ANY($1)", &values)?;
            Ok(())
        })
    }

    fn remove_doomed(&self, run: &str, most: usize) -> Result<(u64, u64), StoreError> {
        // A writer that opens an epoch with such a text has locked its row on the list, which is skipped here. A later
        // writer waits for this statement, does not find the text, and stores it again.
        let sql = "WITH listed AS (SELECT digest FROM proem_doomed WHERE run = $1 ORDER BY digest LIMIT $2 \
             FOR UPDATE SKIP LOCKED), \
            gone AS (DELETE FROM proem_blob b USING listed WHERE b.digest = listed.digest \
             RETURNING octet_length(b.bytes)::bigint AS size), \
            off AS (DELETE FROM proem_doomed d USING listed WHERE d.digest = listed.digest RETURNING 1) \
            SELECT (SELECT count(*) FROM off), (SELECT coalesce(sum(size), 0)::bigint FROM gone)";
        let most = row_limit(most);
        let values: [Value<'_>; 2] = [(&run, Type::TEXT), (&most, Type::INT8)];
        let row = self.run(|transaction| transaction.query_typed_one(sql, &values))?;
        Ok((unsigned(row.get(0)), unsigned(row.get(1))))
    }

    fn save_progress(&self, values: &[(String, Vec<u8>)]) -> Result<(), StoreError> {
        self.run(|transaction| {
            transaction.batch_execute("DELETE FROM proem_prune")?;
            for (name, bytes) in values {
                let sql = "INSERT INTO proem_prune (name, bytes) VALUES ($1, $2) \
                    ON CONFLICT (name) DO UPDATE SET bytes = excluded.bytes";
                transaction.execute_typed(sql, &[(name, Type::TEXT), (bytes, Type::BYTEA)])?;
            }
            Ok(())
        })
    }

    fn take_progress(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let sql = "DELETE FROM proem_prune WHERE name = $1 RETURNING bytes";
        let row = self.run(|transaction| transaction.query_typed_opt(sql, &[(&name, Type::TEXT)]))?;
        Ok(row.map(|row| row.get(0)))
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error;

    use super::*;

    #[test]
    fn a_statement_that_takes_too_long_is_not_called_silence() {
        let Some(server) = proem_testkit::PostgresServer::start() else { return };
        let store = PostgresStore::connect(&server.database("slow")).expect("it answers");
        let slow = "SET LOCAL statement_timeout = '10ms'; SELECT pg_sleep(600)";
        let error = store.run(|transaction| transaction.batch_execute(slow)).expect_err("it is too slow");
        assert!(matches!(error, StoreError::TimedOut { .. }), "{error}");
        assert!(error.to_string().contains("timed out: canceling statement"), "{error}");
        let source = error.source().expect("it has a source");
        assert!(source.is::<tokio_postgres::Error>(), "{source:?}");
    }
}
