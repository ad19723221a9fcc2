//! Versions of the template.

use rusqlite::{Connection, Row, Transaction, params};

use super::{Failure, SqliteStore};
use crate::StoreError;
use crate::record::{self, TemplateVersion};

pub(super) fn list(
    store: &SqliteStore,
    below: Option<u64>,
    most: usize,
) -> Result<Vec<TemplateVersion>, StoreError> {
    let below = below.and_then(|below| i64::try_from(below).ok()).unwrap_or(i64::MAX);
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    store.read(|connection| {
        let mut statement = connection.prepare_cached(
            "SELECT version, text, author, written_at, seal FROM template WHERE version < ?1 ORDER BY version DESC LIMIT ?2",
        )?;
        let mut rows = statement.query(params![below, most])?;
        let mut versions = Vec::new();
        while let Some(row) = rows.next()? {
            versions.push(version(row)?);
        }
        Ok(versions)
    })
}

fn version(row: &Row<'_>) -> Result<TemplateVersion, Failure> {
    let (version, text, author, written_at) = (row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?);
    let seal: Option<String> = row.get(4)?;
    Ok(TemplateVersion { version, text, author, written_at }.checked(seal.as_deref())?)
}

/// Versions that are not what was written.
pub(super) fn damaged(connection: &Connection) -> Result<Vec<String>, Failure> {
    let mut statement = connection
        .prepare("SELECT version, text, author, written_at, seal FROM template ORDER BY version")?;
    let mut rows = statement.query([])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        match version(row) {
            Ok(_) => {}
            Err(Failure::Store(error)) => found.push(error.to_string()),
            Err(failure) => return Err(failure),
        }
    }
    Ok(found)
}

pub(super) fn put(
    store: &SqliteStore,
    text: &str,
    author: Option<&str>,
    expected: Option<u64>,
) -> Result<TemplateVersion, StoreError> {
    store.write(|transaction| {
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

pub(super) fn restore(store: &SqliteStore, template: &TemplateVersion) -> Result<(), StoreError> {
    store.write(|transaction| {
        let current = newest_template(transaction)?;
        if template.version != current + 1 {
            return Err(StoreError::Conflict { current }.into());
        }
        insert_template(transaction, template)
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
