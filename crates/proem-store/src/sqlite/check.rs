//! Looking for damage, and removing what nobody needs.

use proem_core::digest::Digest;
use rusqlite::Connection;

use super::rows::Rows;
use super::{Failure, SqliteStore, templates};
use crate::StoreError;

pub(super) fn check(store: &SqliteStore) -> Result<Vec<String>, StoreError> {
    store.read(|connection| {
        let mut statement = connection.prepare("PRAGMA integrity_check(100)")?;
        let mut found: Vec<String> = statement.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
        found.retain(|line| line != "ok");
        found.extend(damaged_blobs(connection)?);
        found.extend(missing_blobs(connection)?);
        found.extend(missing_epochs(connection)?);
        found.extend(damaged_epochs(connection)?);
        found.extend(templates::damaged(connection)?);
        Ok(found)
    })
}

pub(super) fn prune(store: &SqliteStore) -> Result<u64, StoreError> {
    store.write(|transaction| {
        let freed: i64 = transaction.query_row(
            &format!("SELECT coalesce(sum(length(bytes)), 0) FROM blob WHERE digest NOT IN ({USED})"),
            [],
            |row| row.get(0),
        )?;
        transaction.execute(&format!("DELETE FROM blob WHERE digest NOT IN ({USED})"), [])?;
        Ok(u64::try_from(freed).unwrap_or(0))
    })
}

/// The digests that epochs refer to.
const USED: &str = "SELECT description FROM epoch UNION SELECT request FROM epoch \
    UNION SELECT value FROM epoch, json_each(CASE WHEN json_valid(epoch.texts) THEN epoch.texts ELSE '{}' END)";

/// Texts whose bytes are not those of their digest.
fn damaged_blobs(connection: &Connection) -> Result<Vec<String>, Failure> {
    let mut statement = connection.prepare("SELECT digest, bytes FROM blob")?;
    let mut rows = statement.query([])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let (digest, bytes): (String, Vec<u8>) = (row.get(0)?, row.get(1)?);
        if Digest::of(&bytes).hex() != digest {
            found.push(format!("the text {digest}: its bytes are not those of its digest"));
        }
    }
    Ok(found)
}

/// Texts that an epoch refers to and that are not there.
fn missing_blobs(connection: &Connection) -> Result<Vec<String>, Failure> {
    let mut statement = connection
        .prepare(&format!("SELECT digest FROM (SELECT description AS digest FROM ({USED})) WHERE digest NOT IN (SELECT digest FROM blob)"))?;
    let missing: Vec<String> = statement.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    Ok(missing.into_iter().map(|digest| format!("the text {digest}: it is gone")).collect())
}

/// Epochs that a conversation must have and has not, and conversations that have lost their head.
fn missing_epochs(connection: &Connection) -> Result<Vec<String>, Failure> {
    let mut statement = connection.prepare(
        "SELECT 'epoch ' || c.epoch || ' of `' || c.id || '`: it is gone' FROM conversation c \
         WHERE NOT EXISTS (SELECT 1 FROM epoch e WHERE e.conversation = c.id AND e.number = c.epoch) \
         UNION ALL SELECT DISTINCT 'conversation `' || e.conversation || '`: it is gone, and its epochs are not' \
         FROM epoch e WHERE e.conversation NOT IN (SELECT id FROM conversation)",
    )?;
    Ok(statement.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?)
}

/// Epochs whose texts are whole and still make no prompt.
fn damaged_epochs(connection: &Connection) -> Result<Vec<String>, Failure> {
    let mut statement =
        connection.prepare("SELECT conversation, number FROM epoch ORDER BY conversation, number")?;
    let all: Vec<(String, u64)> =
        statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<Result<_, _>>()?;
    let mut found = Vec::new();
    for (conversation, number) in all {
        // From the file: what is in memory is whole.
        let epoch = match (Rows { connection, texts: None }).numbered(&conversation, number) {
            Ok(epoch) => epoch.map(crate::Kept::of).transpose().map(drop),
            Err(Failure::Store(error)) => Err(error),
            Err(failure) => return Err(failure),
        };
        found.extend(epoch.err().map(|error| format!("epoch {number} of `{conversation}`: {error}")));
    }
    Ok(found)
}
