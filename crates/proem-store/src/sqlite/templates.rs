//! The versions of the template.

use std::collections::BTreeMap;

use rusqlite::{Row, Transaction, params};

use super::{Failure, SqliteStore};
use crate::Batch;
use crate::columns::{row_limit, signed};
use crate::record::{self, NewTemplate, TemplateHead, TemplateVersion};
use crate::{StoreError, TemplateStore};

impl TemplateStore for SqliteStore {
    fn template_versions(&self, below: Option<u64>, most: usize) -> Result<Vec<TemplateVersion>, StoreError> {
        let below = below.map_or(i64::MAX, signed);
        let most = row_limit(most);
        self.read(|connection| {
            let mut statement = connection.prepare_cached(
                "SELECT version, text, author, written_at, seal, message, is_draft FROM template \
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

    fn add_template(&self, new: &NewTemplate<'_>) -> Result<TemplateVersion, StoreError> {
        self.write(|transaction| {
            let current = newest_template(transaction)?;
            if new.expected.is_some_and(|expected| expected != current) {
                return Err(StoreError::Conflict { current }.into());
            }
            let template = new.version(current + 1, record::now());
            insert_template(transaction, &template)?;
            Ok(template)
        })
    }

    fn set_template_draft(&self, version: u64, is_draft: bool) -> Result<bool, StoreError> {
        // SQLite has no larger numbers, and so no such version.
        let Ok(version) = i64::try_from(version) else { return Ok(false) };
        self.write(|transaction| {
            let sql = "UPDATE template SET is_draft = ?2 WHERE version = ?1";
            Ok(transaction.execute(sql, params![version, is_draft])? > 0)
        })
    }

    fn template_uses(&self) -> Result<BTreeMap<u64, u64>, StoreError> {
        self.read(|connection| {
            let mut statement = connection.prepare_cached(
                "SELECT template_version, count(DISTINCT conversation) FROM epoch \
                 WHERE template_version IS NOT NULL GROUP BY template_version",
            )?;
            let uses = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
            Ok(uses.collect::<rusqlite::Result<_>>()?)
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
                "SELECT version, octet_length(text), substr(author, 1, ?3), written_at, message, is_draft FROM template \
                 WHERE version < ?1 ORDER BY version DESC LIMIT ?2",
            )?;
            let author_most = row_limit(TemplateHead::AUTHOR_READ);
            let head = |row: &Row<'_>| {
                Ok(TemplateHead {
                    version: row.get(0)?,
                    bytes: row.get(1)?,
                    author: row.get::<_, Option<String>>(2)?.map(TemplateHead::author),
                    written_at: row.get(3)?,
                    message: row.get(4)?,
                    is_draft: row.get(5)?,
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
    let (message, is_draft) = (row.get(5)?, row.get(6)?);
    Ok(TemplateVersion { version, text, author, written_at, message, is_draft }.checked(seal.as_deref())?)
}

/// Compares the next versions with their seals.
pub(super) fn check(store: &SqliteStore, after: u64, most: usize) -> Result<Batch, StoreError> {
    let after = signed(after);
    let most = row_limit(most);
    store.read(|connection| {
        let mut statement = connection.prepare_cached(
            "SELECT version, text, author, written_at, seal, message, is_draft FROM template \
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
    let TemplateVersion { version, text, author, written_at, message, is_draft } = template;
    transaction.execute(
        "INSERT INTO template (version, text, author, written_at, seal, message, is_draft) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        params![version, text, author, written_at, template.seal(), message, is_draft],
    )?;
    Ok(())
}
