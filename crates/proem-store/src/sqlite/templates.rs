//! The versions of the template.

use rusqlite::{Row, Transaction, params};

use super::{Failure, SqliteStore};
use crate::Batch;
use crate::columns::{row_limit, signed};
use crate::record::{self, TemplateHead, TemplateVersion};
use crate::{StoreError, TemplateStore};

impl TemplateStore for SqliteStore {
    fn template_versions(&self, below: Option<u64>, most: usize) -> Result<Vec<TemplateVersion>, StoreError> {
        let below = below.map_or(i64::MAX, signed);
        let most = row_limit(most);
        self.read(|connection| {
            let mut statement = connection.prepare_cached(
                "SELECT version, text, author, written_at, seal FROM template \
                 WHERE version < ?1 ORDER BY version DESC LIMIT ?2",
            )?;
            let mut rows = statement.query(params![below, most])?;
            let mut versions = Vec::new();
            while let Some(row) = rows.next()? {
                versions.push(version(row)?);
            }
            Ok(versions)
        })
    }

    fn put_template(
        &self,
        text: &str,
        author: Option<&str>,
        expected: Option<u64>,
    ) -> Result<TemplateVersion, StoreError> {
        self.write(|transaction| {
            let current = newest_template(transaction)?;
            if expected.is_some_and(|expected| expected != current) {
                return Err(StoreError::Conflict { current }.into());
            }
            let template = TemplateVersion {
                version: current + 1,
                text: text.to_owned(),
                author: author.map(str::to_owned),
                written_at: record::now(),
            };
            insert_template(transaction, &template)?;
            Ok(template)
        })
    }

    fn restore_template(&self, template: &TemplateVersion) -> Result<(), StoreError> {
        self.write(|transaction| {
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
        self.read(|connection| {
            let mut statement = connection.prepare_cached(
                "SELECT version, octet_length(text), substr(author, 1, ?3), written_at FROM template \
                 WHERE version < ?1 ORDER BY version DESC LIMIT ?2",
            )?;
            let author_most = row_limit(TemplateHead::AUTHOR_READ);
            let head = |row: &Row<'_>| {
                Ok(TemplateHead {
                    version: row.get(0)?,
                    bytes: row.get(1)?,
                    author: row.get::<_, Option<String>>(2)?.map(TemplateHead::author),
                    written_at: row.get(3)?,
                })
            };
            let rows = statement.query_map(params![below, most, author_most], head)?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }
}

fn version(row: &Row<'_>) -> Result<TemplateVersion, Failure> {
    let (version, text, author, written_at) = (row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?);
    let seal: Option<String> = row.get(4)?;
    Ok(TemplateVersion { version, text, author, written_at }.checked(seal.as_deref())?)
}

/// Compares the next versions with their seals.
pub(super) fn check(store: &SqliteStore, after: u64, most: usize) -> Result<Batch, StoreError> {
    let after = signed(after);
    let most = row_limit(most);
    store.read(|connection| {
        let mut statement = connection.prepare_cached(
            "SELECT version, text, author, written_at, seal FROM template \
             WHERE version > ?1 ORDER BY version LIMIT ?2",
        )?;
        let mut rows = statement.query(params![after, most])?;
        let mut batch = Batch::default();
        while let Some(row) = rows.next()? {
            batch.rows += 1;
            batch.last = Some(row.get::<_, i64>(0)?.to_string());
            match version(row) {
                Ok(_) => {}
                Err(Failure::Store(error)) => batch.found.push(error.to_string()),
                Err(failure) => return Err(failure),
            }
        }
        Ok(batch)
    })
}

fn newest_template(transaction: &Transaction<'_>) -> Result<u64, Failure> {
    Ok(transaction.query_row("SELECT coalesce(max(version), 0) FROM template", [], |row| row.get(0))?)
}

fn insert_template(transaction: &Transaction<'_>, template: &TemplateVersion) -> Result<(), Failure> {
    let TemplateVersion { version, text, author, written_at } = template;
    transaction.execute(
        "INSERT INTO template (version, text, author, written_at, seal) VALUES (?1, ?2, ?3, ?4, ?5)",
        params![version, text, author, written_at, template.seal()],
    )?;
    Ok(())
}
