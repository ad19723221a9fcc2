//! The versions of the template.

use std::cell::Cell;
use std::collections::BTreeMap;

use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::link::Link;
use super::{Failure, PostgresStore, Value};
use crate::Batch;
use crate::columns::{row_limit, signed, unsigned};
use crate::record::{self, NewTemplate, TemplateHead, TemplateVersion};
use crate::{StoreError, TemplateStore};

impl TemplateStore for PostgresStore {
    fn template_versions(&self, below: Option<u64>, most: usize) -> Result<Vec<TemplateVersion>, StoreError> {
        self.run(|transaction| versions(transaction, below, most))
    }

    fn add_template(&self, new: &NewTemplate<'_>) -> Result<TemplateVersion, StoreError> {
        let written_at = record::now();
        let is_retried = Cell::new(false);
        let is_own = |newest: &TemplateVersion| *newest == new.version(newest.version, written_at);
        self.run(|transaction| {
            let current = newest_template(transaction)?;
            // The answer to a commit can be lost with the connection; then the work is done once more.
            if is_retried.replace(true)
                && let Some(own) = versions(transaction, None, 1)?.pop().filter(|newest| is_own(newest))
            {
                return Ok(own);
            }
            if new.expected.is_some_and(|expected| expected != current) {
                return Err(StoreError::Conflict { current }.into());
            }
            let template = new.version(current + 1, written_at);
            insert_template(transaction, &template)?;
            Ok(template)
        })
    }

    fn set_template_draft(&self, version: u64, is_draft: bool) -> Result<bool, StoreError> {
        let sql = "UPDATE proem_template SET is_draft = $2 WHERE version = $1";
        let version = signed(version);
        let values: [Value<'_>; 2] = [(&version, Type::INT8), (&is_draft, Type::BOOL)];
        Ok(self.run(|transaction| transaction.execute_typed(sql, &values))? > 0)
    }

    fn template_uses(&self) -> Result<BTreeMap<u64, u64>, StoreError> {
        let sql = "SELECT template_version, count(DISTINCT conversation) FROM proem_epoch \
            WHERE template_version IS NOT NULL GROUP BY template_version";
        let rows = self.run(|transaction| transaction.query_typed(sql, &[]))?;
        Ok(rows.iter().map(|row| (unsigned(row.get(0)), unsigned(row.get(1)))).collect())
    }

    fn restore_template(&self, template: &TemplateVersion) -> Result<(), StoreError> {
        self.run(|transaction| {
            let current = newest_template(transaction)?;
            if template.version != current + 1 {
                return Err(StoreError::Conflict { current }.into());
            }
            insert_template(transaction, template)
        })
    }

    fn template_heads(&self, below: Option<u64>, most: usize) -> Result<Vec<TemplateHead>, StoreError> {
        let below = below.map_or(i64::MAX, signed);
        let most = row_limit(most);
        let sql = "SELECT version, octet_length(text)::bigint, left(author, $3), written_at, message, is_draft \
            FROM proem_template \
            WHERE version < $1 ORDER BY version DESC LIMIT $2";
        let author_most = i32::try_from(TemplateHead::AUTHOR_READ).unwrap_or(i32::MAX);
        let values: [Value<'_>; 3] = [(&below, Type::INT8), (&most, Type::INT8), (&author_most, Type::INT4)];
        let rows = self.run(|transaction| transaction.query_typed(sql, &values))?;
        let head = |row: &Row| TemplateHead {
            version: unsigned(row.get(0)),
            bytes: unsigned(row.get(1)),
            author: row.get::<_, Option<String>>(2).map(TemplateHead::author),
            written_at: row.get(3),
            message: row.get(4),
            is_draft: row.get(5),
        };
        Ok(rows.iter().map(head).collect())
    }
}

fn versions(
    transaction: &mut Link,
    below: Option<u64>,
    most: usize,
) -> Result<Vec<TemplateVersion>, Failure> {
    let below = below.map_or(i64::MAX, signed);
    let most = row_limit(most);
    let sql = "SELECT version, text, author, written_at, seal, message, is_draft FROM proem_template WHERE version < $1 \
        ORDER BY version DESC LIMIT $2";
    let rows = transaction.query_typed(sql, &[(&below, Type::INT8), (&most, Type::INT8)])?;
    Ok(rows.iter().map(version).collect::<Result<_, _>>()?)
}

fn version(row: &Row) -> Result<TemplateVersion, StoreError> {
    let (version, text, author, written_at) = (unsigned(row.get(0)), row.get(1), row.get(2), row.get(3));
    let (message, is_draft) = (row.get(5), row.get(6));
    TemplateVersion { version, text, author, written_at, message, is_draft }.checked(row.get(4))
}

/// Compares the next versions with their seals.
pub(super) fn check(store: &PostgresStore, after: u64, most: usize) -> Result<Batch, StoreError> {
    let (after, most) = (signed(after), row_limit(most));
    let sql = "SELECT version, text, author, written_at, seal, message, is_draft FROM proem_template WHERE version > $1 \
        ORDER BY version LIMIT $2";
    let values: [Value<'_>; 2] = [(&after, Type::INT8), (&most, Type::INT8)];
    let rows = store.run(|transaction| transaction.query_typed(sql, &values))?;
    let found = rows.iter().filter_map(|row| version(row).err()).map(|error| error.to_string()).collect();
    let last = rows.last().map(|row| row.get::<_, i64>(0).to_string());
    Ok(Batch { rows: rows.len() as u64, last, found })
}

fn newest_template(transaction: &mut Link) -> Result<u64, Failure> {
    // One writer at a time: versions have no gaps.
    transaction.batch_execute("LOCK TABLE proem_template IN EXCLUSIVE MODE")?;
    let row = transaction.query_typed_one("SELECT coalesce(max(version), 0) FROM proem_template", &[])?;
    Ok(unsigned(row.get(0)))
}

fn insert_template(transaction: &mut Link, template: &TemplateVersion) -> Result<(), Failure> {
    let TemplateVersion { version, text, author, written_at, message, is_draft } = template;
    transaction.execute_typed(
        "INSERT INTO proem_template (version, text, author, written_at, seal, message, is_draft) \
         VALUES ($1, $2, $3, $4, $5, $6, $7)",
        &[
            (&signed(*version), Type::INT8),
            (text, Type::TEXT),
            (author, Type::TEXT),
            (written_at, Type::INT8),
            (&template.seal(), Type::TEXT),
            (message, Type::TEXT),
            (is_draft, Type::BOOL),
        ],
    )?;
    Ok(())
}
