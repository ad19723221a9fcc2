//! The steps of checks and prunes: short statements by primary key.

use std::collections::BTreeMap;

use proem_core::digest::Digest;
use rusqlite::{OptionalExtension, Row, params};

use super::{SqliteStore, states, templates, workspaces};
use crate::StoreError;
use crate::columns::{ColumnReader, row_limit, signed};
use crate::maintenance::digests_in;
use crate::record::EpochRow;
use crate::{Batch, EpochEntry, EpochKey, Maintenance, References};
use proem::epoch_row_columns;

/// Returns the key of an epoch as SQLite takes it.
fn key(after: &EpochKey) -> (&str, i64) {
    (&after.conversation, signed(after.number))
}

impl SqliteStore {
    /// Reads a value for each digest. Missing digests are left out.
    fn values_by_digest<T: rusqlite::types::FromSql>(
        &self,
        sql: &str,
        digests: &[&str],
    ) -> Result<BTreeMap<String, T>, StoreError> {
        self.read(|connection| {
            let mut statement = connection.prepare_cached(sql)?;
            let mut found = BTreeMap::new();
            for digest in digests {
                let value = statement.query_row([digest], |row| row.get(0)).optional()?;
                found.extend(value.map(|value| ((*digest).to_owned(), value)));
            }
            Ok(found)
        })
    }
}

impl Maintenance for SqliteStore {
    fn check_file(&self) -> Result<Vec<String>, StoreError> {
        self.read(|connection| {
            let mut statement = connection.prepare("PRAGMA integrity_check(100)")?;
            let mut found: Vec<String> =
                statement.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
            found.retain(|line| line != "ok");
            Ok(found)
        })
    }

    fn check_texts(&self, after: &str, most: usize) -> Result<Batch, StoreError> {
        self.read(|connection| {
            let sql = "SELECT digest, bytes FROM blob WHERE digest > ?1 ORDER BY digest LIMIT ?2";
            let mut statement = connection.prepare_cached(sql)?;
            let mut rows = statement.query(params![after, row_limit(most)])?;
            let mut batch = Batch::default();
            while let Some(row) = rows.next()? {
                let digest: String = row.get(0)?;
                // Compared in place: a large text is not copied.
                if Digest::new(row.get_ref(1)?.as_bytes().unwrap_or_default()).hex() != digest {
                    batch.found.push(format!("the text {digest}: its bytes do not match its digest"));
                }
                batch.rows += 1;
                batch.last = Some(digest);
            }
            Ok(batch)
        })
    }

    fn check_conversations(&self, after: &str, most: usize) -> Result<Batch, StoreError> {
        self.read(|connection| {
            let sql = "SELECT c.id, c.epoch, EXISTS \
                (SELECT 1 FROM epoch e WHERE e.conversation = c.id AND e.number = c.epoch) \
                FROM conversation c WHERE c.id > ?1 ORDER BY c.id LIMIT ?2";
            let mut statement = connection.prepare_cached(sql)?;
            let mut rows = statement.query(params![after, row_limit(most)])?;
            let mut batch = Batch::default();
            while let Some(row) = rows.next()? {
                let (id, number, has_epoch): (String, i64, bool) = (row.get(0)?, row.get(1)?, row.get(2)?);
                if !has_epoch {
                    batch.found.push(format!("epoch {number} of `{id}`: it is missing"));
                }
                batch.rows += 1;
                batch.last = Some(id);
            }
            Ok(batch)
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
        self.read(|connection| {
            let sql = concat!(
                "SELECT ",
                epoch_row_columns!(),
                ", EXISTS (SELECT 1 FROM conversation c WHERE c.id = e.conversation) FROM epoch e \
                 WHERE (conversation, number) > (?1, ?2) ORDER BY conversation, number LIMIT ?3"
            );
            let entry = |row: &Row<'_>| {
                let has_conversation = super::rows::Columns(row).flag(EpochRow::COLUMN_COUNT)?;
                Ok(EpochEntry { row: EpochRow::from_columns(&super::rows::Columns(row))?, has_conversation })
            };
            let (conversation, number) = key(after);
            let mut statement = connection.prepare_cached(sql)?;
            let rows = statement.query_map(params![conversation, number, row_limit(most)], entry)?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }

    fn text_sizes(&self, digests: &[&str]) -> Result<BTreeMap<String, u64>, StoreError> {
        self.values_by_digest("SELECT length(bytes) FROM blob WHERE digest = ?1", digests)
    }

    fn text_bytes(&self, digests: &[&str]) -> Result<BTreeMap<String, Vec<u8>>, StoreError> {
        self.values_by_digest("SELECT bytes FROM blob WHERE digest = ?1", digests)
    }

    fn references(&self, after: &EpochKey, most: usize) -> Result<References, StoreError> {
        self.read(|connection| {
            let sql = "SELECT conversation, number, description, request, texts FROM epoch \
                WHERE (conversation, number) > (?1, ?2) ORDER BY conversation, number LIMIT ?3";
            let (conversation, number) = key(after);
            let mut statement = connection.prepare_cached(sql)?;
            let mut rows = statement.query(params![conversation, number, row_limit(most)])?;
            let mut found = References::default();
            while let Some(row) = rows.next()? {
                found.rows += 1;
                found.digests.extend([row.get(2)?, row.get(3)?]);
                let texts: String = row.get(4)?;
                found.digests.extend(digests_in(&texts).map(str::to_owned));
                found.last = Some(EpochKey { conversation: row.get(0)?, number: row.get(1)? });
            }
            Ok(found)
        })
    }

    fn texts(&self, after: &str, most: usize) -> Result<Vec<String>, StoreError> {
        self.read(|connection| {
            let sql = "SELECT digest FROM blob WHERE digest > ?1 ORDER BY digest LIMIT ?2";
            let mut statement = connection.prepare_cached(sql)?;
            let rows = statement.query_map(params![after, row_limit(most)], |row| row.get(0))?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }

    fn text_count_estimate(&self) -> Result<u64, StoreError> {
        self.read(|connection| {
            let sql = "SELECT coalesce(max(id), 0) FROM blob";
            Ok(connection.query_row(sql, [], |row| row.get(0))?)
        })
    }

    fn doom(&self, run: &str, digests: &[String]) -> Result<(), StoreError> {
        self.write(|transaction| {
            let sql = "INSERT INTO doomed (digest, run) VALUES (?1, ?2) \
                ON CONFLICT (digest) DO UPDATE SET run = excluded.run";
            let mut statement = transaction.prepare_cached(sql)?;
            for digest in digests {
                statement.execute(params![digest, run])?;
            }
            Ok(())
        })
    }

    /// Does nothing: there is one writer at a time, and the writers before the list was stored have ended.
    fn settle(&self) -> Result<(), StoreError> {
        Ok(())
    }

    fn doomed(&self, run: &str, after: &str, most: usize) -> Result<Vec<String>, StoreError> {
        self.read(|connection| {
            let sql = "SELECT digest FROM doomed WHERE run = ?1 AND digest > ?2 ORDER BY digest LIMIT ?3";
            let mut statement = connection.prepare_cached(sql)?;
            let rows = statement.query_map(params![run, after, row_limit(most)], |row| row.get(0))?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }

    fn spare(&self, digests: &[String]) -> Result<(), StoreError> {
        self.write(|transaction| {
            let mut statement = transaction.prepare_cached("DELETE FROM doomed WHERE digest = ?1")?;
            for digest in digests {
                statement.execute([digest])?;
            }
            Ok(())
        })
    }

    fn remove_doomed(&self, run: &str, most: usize) -> Result<(u64, u64), StoreError> {
        self.write(|transaction| {
            let sql = "SELECT digest FROM doomed WHERE run = ?1 ORDER BY digest LIMIT ?2";
            let mut statement = transaction.prepare_cached(sql)?;
            let listed: Vec<String> = statement
                .query_map(params![run, row_limit(most)], |row| row.get(0))?
                .collect::<Result<_, _>>()?;
            let mut bytes = 0;
            for digest in &listed {
                let sql = "DELETE FROM blob WHERE digest = ?1 RETURNING length(bytes)";
                let removed: Option<u64> =
                    transaction.prepare_cached(sql)?.query_row([digest], |row| row.get(0)).optional()?;
                bytes += removed.unwrap_or(0);
                transaction.prepare_cached("DELETE FROM doomed WHERE digest = ?1")?.execute([digest])?;
            }
            Ok((listed.len() as u64, bytes))
        })
    }

    fn save_progress(&self, values: &[(String, Vec<u8>)]) -> Result<(), StoreError> {
        self.write(|transaction| {
            transaction.execute("DELETE FROM prune", [])?;
            for (name, bytes) in values {
                let sql = "INSERT INTO prune (name, bytes) VALUES (?1, ?2)";
                transaction.prepare_cached(sql)?.execute(params![name, bytes])?;
            }
            Ok(())
        })
    }

    fn take_progress(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        self.write(|transaction| {
            let sql = "DELETE FROM prune WHERE name = ?1 RETURNING bytes";
            let mut statement = transaction.prepare_cached(sql)?;
            Ok(statement.query_row([name], |row| row.get(0)).optional()?)
        })
    }
}
