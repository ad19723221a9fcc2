//! Epochs as rows, and their texts, which are stored once for all epochs that have them.

use std::collections::BTreeMap;

use proem::stored_prompt::StoredPrompt;
use proem_core::carrier::Carrier;
use proem_core::digest::Digest;
use tokio_postgres::types::{FromSql, Type};
use tokio_postgres::{Row, SimpleQueryRow};

use super::link::Link;
use super::schema::FORM;
use super::{Failure, Value};
use crate::columns::{ColumnReader, ColumnValue, signed, unsigned};
use crate::record::{Epoch, EpochHead, EpochRow, TextDigests, checked_text, missing_text};
use crate::texts::TextCache;
use crate::{Explanation, StoreError};
use proem::{epoch_head_columns, epoch_row_columns};

/// The epoch of a number.
pub(super) const NUMBERED: &str =
    concat!("SELECT ", epoch_row_columns!(), " FROM proem_epoch WHERE conversation = $1 AND number = $2");

/// The current epoch, and the state.
pub(super) const CURRENT: &str = concat!(
    "SELECT ",
    epoch_row_columns!(),
    ", state_version, state_text, state_seal FROM (SELECT * FROM proem_epoch \
     WHERE conversation = $1 AND number = (SELECT epoch FROM proem_conversation WHERE id = $1)) e \
     LEFT JOIN (SELECT version AS state_version, text AS state_text, seal AS state_seal \
     FROM proem_state WHERE conversation = $1) s ON true"
);

/// The head of the current epoch, NULL if its row is missing, its number, and the version of the state.
pub(super) const CURRENT_HEAD: &str = concat!(
    "SELECT ",
    epoch_head_columns!(),
    ", c.epoch, coalesce((SELECT version FROM proem_state WHERE conversation = $1), 0) FROM (SELECT epoch FROM proem_conversation WHERE id = $1) c \
     LEFT JOIN (SELECT * FROM proem_epoch WHERE conversation = $1) e ON e.number = c.epoch"
);

/// All epochs of a conversation, each with the number of the current one.
pub(super) const HISTORY: &str = concat!(
    "SELECT ",
    epoch_head_columns!(),
    ", (SELECT epoch FROM proem_conversation WHERE id = $1) \
     FROM proem_epoch WHERE conversation = $1 ORDER BY number"
);

/// Stores an epoch if the one before it exists and no other epoch has its number.
const INSERT: &str = concat!(
    "INSERT INTO proem_epoch (",
    epoch_row_columns!(),
    ", form) SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17 \
     WHERE $2 = 1 OR EXISTS (SELECT 1 FROM proem_epoch WHERE conversation = $1 AND number = $2 - 1) \
     ON CONFLICT DO NOTHING"
);

/// The generation of all cached texts: PostgreSQL does not report writes, and texts never change.
const GENERATION: u64 = 0;

/// The columns of a row.
pub(super) struct Columns<'r>(pub(super) &'r Row);

impl ColumnReader for Columns<'_> {
    type Error = StoreError;

    fn text(&self, column: usize) -> Result<String, StoreError> {
        read_column(self.0, column)
    }

    fn optional_text(&self, column: usize) -> Result<Option<String>, StoreError> {
        read_column(self.0, column)
    }

    fn integer(&self, column: usize) -> Result<i64, StoreError> {
        read_column(self.0, column)
    }

    fn optional_integer(&self, column: usize) -> Result<Option<i64>, StoreError> {
        read_column(self.0, column)
    }

    fn flag(&self, column: usize) -> Result<bool, StoreError> {
        read_column(self.0, column)
    }
}

fn read_column<'r, T: FromSql<'r>>(row: &'r Row, column: usize) -> Result<T, StoreError> {
    row.try_get(column).map_err(|error| unreadable(column, Some(error)))
}

/// The columns of a row of the simple protocol, whose values are all texts.
pub(super) struct TextColumns<'r>(pub(super) &'r SimpleQueryRow);

impl ColumnReader for TextColumns<'_> {
    type Error = StoreError;

    fn text(&self, column: usize) -> Result<String, StoreError> {
        self.optional_text(column)?.ok_or_else(|| unreadable(column, None))
    }

    fn optional_text(&self, column: usize) -> Result<Option<String>, StoreError> {
        let text = self.0.try_get(column).map_err(|error| unreadable(column, Some(error)))?;
        Ok(text.map(str::to_owned))
    }

    fn integer(&self, column: usize) -> Result<i64, StoreError> {
        self.text(column)?.parse().map_err(|_| unreadable(column, None))
    }

    fn optional_integer(&self, column: usize) -> Result<Option<i64>, StoreError> {
        let text = self.optional_text(column)?;
        text.map(|text| text.parse().map_err(|_| unreadable(column, None))).transpose()
    }

    fn flag(&self, column: usize) -> Result<bool, StoreError> {
        Ok(self.text(column)? == "t")
    }
}

fn unreadable(column: usize, error: Option<tokio_postgres::Error>) -> StoreError {
    let why = format!("its column {column} cannot be read");
    let why = match error {
        Some(error) => Explanation::new(why, error),
        None => why.into(),
    };
    StoreError::damaged("a row", why)
}

/// Returns a value as a parameter of a statement.
fn parameter<'v>(value: &'v ColumnValue<'_>) -> Value<'v> {
    match value {
        ColumnValue::Text(text) => (text, Type::TEXT),
        ColumnValue::OptionalText(text) => (text, Type::TEXT),
        ColumnValue::Integer(number) => (number, Type::INT8),
        ColumnValue::OptionalInteger(number) => (number, Type::INT8),
        ColumnValue::Flag(flag) => (flag, Type::BOOL),
    }
}

/// Reads the epoch of a statement.
pub(super) fn epoch(
    client: &mut Link,
    cache: &TextCache,
    sql: &str,
    values: &[Value<'_>],
) -> Result<Option<Epoch>, Failure> {
    let Some(row) = client.query_typed_opt(sql, values)? else { return Ok(None) };
    with_texts(EpochRow::from_columns(&Columns(&row))?, client, cache).map(Some)
}

/// Reads the texts of an epoch.
pub(super) fn with_texts(row: EpochRow, client: &mut Link, cache: &TextCache) -> Result<Epoch, Failure> {
    row.check()?;
    let TextDigests { sources, carriers } = row.text_digests()?;
    let digests: Vec<&String> = carriers.values().chain([&row.description, &row.request]).collect();
    let found = texts(client, cache, &digests, sources.as_ref())?;
    let find = |digest: &str| found.get(digest).cloned().ok_or_else(|| missing_text(digest));
    let texts = carriers.iter().map(|(carrier, digest)| Ok((*carrier, find(digest)?)));
    let texts = texts.collect::<Result<_, StoreError>>()?;
    // Each text was compared with its digest.
    let system = carriers.get(&Carrier::System).and_then(|digest| Digest::from_hex(digest));
    let prompt = StoredPrompt::new(texts, find(&row.description)?).hashed(system);
    let sources = sources.map(|digest| find(&digest)).transpose()?;
    Ok(Epoch { head: row.head, prompt, request: find(&row.request)?, sources })
}

/// Reads texts, and compares them with their digests. The text of `uncached` does not enter the cache.
fn texts(
    client: &mut Link,
    cache: &TextCache,
    digests: &[&String],
    uncached: Option<&String>,
) -> Result<BTreeMap<String, String>, Failure> {
    let (mut found, mut wanted) = (BTreeMap::new(), Vec::from_iter(uncached));
    for digest in digests {
        match cache.get(GENERATION, digest) {
            Some(text) => drop(found.insert((*digest).clone(), text.as_ref().to_owned())),
            None => wanted.push(*digest),
        }
    }
    if wanted.is_empty() {
        return Ok(found);
    }
    let sql = "SELECT digest, bytes FROM proem_blob WHERE digest = ANY($1)";
    for row in client.query_typed(sql, &[(&wanted, Type::TEXT_ARRAY)])? {
        let (digest, bytes): (String, Vec<u8>) = (row.get(0), row.get(1));
        let text = checked_text(&digest, bytes)?;
        if Some(&digest) != uncached {
            cache.put(GENERATION, &digest, &text);
        }
        found.insert(digest, text);
    }
    Ok(found)
}

/// Stores an epoch and makes it the current one, if its number is the next one; does nothing otherwise.
pub(super) fn insert_next(transaction: &mut Link, epoch: &Epoch) -> Result<(), Failure> {
    let EpochHead { conversation, number, .. } = &epoch.head;
    // The row stays locked until the end: a conversation that is being removed must not get another epoch.
    if *number == 1 || locked_number(transaction, conversation)? + 1 == *number {
        insert(transaction, epoch)?;
    }
    Ok(())
}

/// Stores an epoch and makes it the current one. Tells whether it did: not if another writer was first. The caller has
/// locked the conversation, unless the epoch is its first one.
pub(super) fn insert(transaction: &mut Link, epoch: &Epoch) -> Result<bool, Failure> {
    let EpochHead { conversation, number, opened_at, cwd, .. } = &epoch.head;
    // In the order of digests, so that two writers of the same texts cannot deadlock.
    for (digest, bytes) in epoch.blobs() {
        transaction.execute_typed(
            "INSERT INTO proem_blob (digest, bytes) VALUES ($1, $2) ON CONFLICT DO NOTHING",
            &[(&digest, Type::TEXT), (&bytes, Type::BYTEA)],
        )?;
    }
    let row = EpochRow::new(epoch);
    let values = row.values();
    let form: Value<'_> = (&FORM, Type::INT4);
    let values: Vec<Value<'_>> = values.iter().map(parameter).chain([form]).collect();
    if transaction.execute_typed(INSERT, &values)? == 0 {
        return Ok(false);
    }
    transaction.execute_typed(
        "INSERT INTO proem_conversation (id, epoch, began_at, opened_at, cwd) VALUES ($1, $2, $3, $3, $4) \
         ON CONFLICT (id) DO UPDATE SET epoch = $2, opened_at = $3, cwd = $4",
        &[
            (conversation, Type::TEXT),
            (&signed(*number), Type::INT8),
            (opened_at, Type::INT8),
            (cwd, Type::TEXT),
        ],
    )?;
    super::workspaces::refer(transaction, epoch)?;
    transaction.execute_typed("SELECT pg_notify('proem_epoch', $1)", &[(conversation, Type::TEXT)])?;
    Ok(true)
}

/// Reads the number of the current epoch of a conversation; 0 when there is none.
pub(super) fn current_number(client: &mut Link, conversation: &str) -> Result<u64, Failure> {
    let sql = "SELECT epoch FROM proem_conversation WHERE id = $1";
    let row = client.query_typed_opt(sql, &[(&conversation, Type::TEXT)])?;
    Ok(row.map_or(0, |row| unsigned(row.get(0))))
}

/// Reads the number of the current epoch, and locks it until the transaction ends.
pub(super) fn locked_number(transaction: &mut Link, conversation: &str) -> Result<u64, Failure> {
    let sql = "SELECT epoch FROM proem_conversation WHERE id = $1 FOR UPDATE";
    let row = transaction.query_typed_opt(sql, &[(&conversation, Type::TEXT)])?;
    Ok(row.map_or(0, |row| unsigned(row.get(0))))
}
