//! Epochs as rows, and their texts, which are stored once for all epochs that have them.

use std::collections::BTreeMap;

use proem::stored_prompt::StoredPrompt;
use proem_core::carrier::Carrier;
use proem_core::digest::Digest;
use rusqlite::types::ToSqlOutput;
use rusqlite::{Connection, OptionalExtension, Row, ToSql, Transaction, params, params_from_iter};

use super::{Failure, states};
use crate::columns::{ColumnReader, ColumnValue, signed, unsigned};
use crate::record::{Epoch, EpochHead, EpochRow, History, TextDigests, checked_text, missing_text};
use crate::texts::TextCache;
use crate::{Current, CurrentHead};
use proem::{epoch_head_columns, epoch_row_columns};

/// The epoch of a number.
const NUMBERED: &str =
    concat!("SELECT ", epoch_row_columns!(), " FROM epoch WHERE conversation = ?1 AND number = ?2");

/// The current epoch. A subquery, because SQLite would plan a join again for every value.
const CURRENT: &str = concat!(
    "SELECT ",
    epoch_row_columns!(),
    " FROM epoch WHERE conversation = ?1 AND number = (SELECT epoch FROM conversation WHERE id = ?1)"
);

/// The head of the current epoch, and the version of the state.
const CURRENT_HEAD: &str = concat!(
    "SELECT ",
    epoch_head_columns!(),
    ", coalesce((SELECT version FROM state WHERE conversation = ?1), 0) FROM epoch \
     WHERE conversation = ?1 AND number = (SELECT epoch FROM conversation WHERE id = ?1)"
);

/// All epochs of a conversation, each with the number of the current one.
const HISTORY: &str = concat!(
    "SELECT ",
    epoch_head_columns!(),
    ", (SELECT epoch FROM conversation WHERE id = ?1) FROM epoch WHERE conversation = ?1 ORDER BY number"
);

const INSERT: &str = concat!(
    "INSERT INTO epoch (",
    epoch_row_columns!(),
    ") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)"
);

/// The columns of a row.
pub(super) struct Columns<'r>(pub(super) &'r Row<'r>);

impl ColumnReader for Columns<'_> {
    type Error = rusqlite::Error;

    fn text(&self, column: usize) -> rusqlite::Result<String> {
        self.0.get(column)
    }

    fn optional_text(&self, column: usize) -> rusqlite::Result<Option<String>> {
        self.0.get(column)
    }

    fn integer(&self, column: usize) -> rusqlite::Result<i64> {
        self.0.get(column)
    }

    fn optional_integer(&self, column: usize) -> rusqlite::Result<Option<i64>> {
        self.0.get(column)
    }

    fn flag(&self, column: usize) -> rusqlite::Result<bool> {
        self.0.get(column)
    }
}

/// A value that is written to a column.
struct Parameter<'v>(ColumnValue<'v>);

impl ToSql for Parameter<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        match &self.0 {
            ColumnValue::Text(text) => text.to_sql(),
            ColumnValue::OptionalText(text) => text.to_sql(),
            ColumnValue::Integer(number) => number.to_sql(),
            ColumnValue::OptionalInteger(number) => number.to_sql(),
            ColumnValue::Flag(flag) => flag.to_sql(),
        }
    }
}

/// Reads epochs with their texts.
#[derive(Clone, Copy)]
pub(super) struct EpochReader<'r> {
    pub(super) connection: &'r Connection,
    /// The cache of texts, and the generation of the store; `None` to read every text from the store.
    pub(super) texts: Option<(&'r TextCache, u64)>,
}

impl EpochReader<'_> {
    /// Reads the current epoch of a conversation, and its state.
    pub(super) fn current(self, conversation: &str) -> Result<Option<Current>, Failure> {
        self.epoch(CURRENT, &[&conversation], |epoch| {
            Ok(Current { epoch, state: states::read(self.connection, conversation)? })
        })
    }

    /// Reads one epoch of a conversation.
    pub(super) fn numbered(self, conversation: &str, number: u64) -> Result<Option<Epoch>, Failure> {
        // SQLite has no larger numbers, and so no such epoch.
        let Ok(number) = i64::try_from(number) else { return Ok(None) };
        self.epoch(NUMBERED, &[&conversation, &number], Ok)
    }

    /// Reads the epoch of a statement, and with `finish` what belongs to the same moment.
    fn epoch<T>(
        self,
        sql: &str,
        values: &[&dyn ToSql],
        finish: impl FnOnce(Epoch) -> Result<T, Failure>,
    ) -> Result<Option<T>, Failure> {
        let mut statement = self.connection.prepare_cached(sql)?;
        // The statement stays open until the rest is read: SQLite shows one moment for as long as it is open.
        let mut rows = statement.query(values)?;
        let Some(row) = rows.next()? else { return Ok(None) };
        let row = EpochRow::from_columns(&Columns(row))?;
        row.check()?;
        let TextDigests { sources, carriers } = row.text_digests()?;
        let system = carriers.get(&Carrier::System).and_then(|digest| Digest::from_hex(digest));
        let texts = carriers.into_iter().map(|(carrier, digest)| Ok((carrier, self.text(&digest)?)));
        let texts = texts.collect::<Result<BTreeMap<Carrier, String>, Failure>>()?;
        // Each text was compared with its digest.
        let prompt = StoredPrompt::new(texts, self.text(&row.description)?).hashed(system);
        let sources = sources.map(|digest| self.stored_text(&digest)).transpose()?;
        finish(Epoch { head: row.head, prompt, request: self.text(&row.request)?, sources }).map(Some)
    }

    /// Returns a text from the cache or the store.
    fn text(self, digest: &str) -> Result<String, Failure> {
        if let Some(known) = self.texts.and_then(|(texts, generation)| texts.get(generation, digest)) {
            return Ok(known.as_ref().to_owned());
        }
        let text = self.stored_text(digest)?;
        if let Some((texts, generation)) = self.texts {
            texts.put(generation, digest, &text);
        }
        Ok(text)
    }

    /// Reads a text from the store, and compares it with its digest.
    fn stored_text(self, digest: &str) -> Result<String, Failure> {
        let mut statement = self.connection.prepare_cached("SELECT bytes FROM blob WHERE digest = ?1")?;
        let bytes: Option<Vec<u8>> = statement.query_row([digest], |row| row.get(0)).optional()?;
        Ok(checked_text(digest, bytes.ok_or_else(|| missing_text(digest))?)?)
    }
}

/// Stores an epoch with its texts, and makes it the current one.
pub(super) fn insert(transaction: &Transaction<'_>, epoch: &Epoch) -> Result<(), Failure> {
    for (digest, bytes) in epoch.blobs() {
        let sql = "INSERT INTO blob (digest, bytes) VALUES (?1, ?2) ON CONFLICT DO NOTHING";
        transaction.prepare_cached(sql)?.execute(params![digest, bytes])?;
        // A prune must not remove a text that an epoch has.
        transaction.prepare_cached("DELETE FROM doomed WHERE digest = ?1")?.execute([&digest])?;
    }
    let row = EpochRow::new(epoch);
    transaction.prepare_cached(INSERT)?.execute(params_from_iter(row.values().into_iter().map(Parameter)))?;
    let EpochHead { conversation, number, opened_at, cwd, .. } = &epoch.head;
    let sql = "INSERT INTO conversation (id, epoch, began_at, opened_at, cwd) VALUES (?1, ?2, ?3, ?3, ?4) \
        ON CONFLICT (id) DO UPDATE SET epoch = ?2, opened_at = ?3, cwd = ?4";
    transaction.prepare_cached(sql)?.execute(params![conversation, signed(*number), opened_at, cwd])?;
    super::workspaces::refer(transaction, epoch)
}

/// Reads all epochs of a conversation and the number of the current one, in one statement.
pub(super) fn history(connection: &Connection, conversation: &str) -> Result<History, Failure> {
    let mut statement = connection.prepare_cached(HISTORY)?;
    let mut rows = statement.query([conversation])?;
    let mut history = History::default();
    while let Some(row) = rows.next()? {
        history.current = row.get::<_, Option<u64>>(EpochHead::COLUMN_COUNT)?.unwrap_or(0);
        history.epochs.push(EpochHead::from_columns(&Columns(row))?);
    }
    Ok(history)
}

/// Reads the number of the current epoch of a conversation; 0 when there is none.
pub(super) fn current_number(connection: &Connection, conversation: &str) -> Result<u64, Failure> {
    let mut statement = connection.prepare_cached("SELECT epoch FROM conversation WHERE id = ?1")?;
    Ok(statement.query_row([conversation], |row| row.get(0)).optional()?.unwrap_or(0))
}

/// Reads the head of the current epoch of a conversation, and the version of its state.
pub(super) fn current_head(
    connection: &Connection,
    conversation: &str,
) -> Result<Option<CurrentHead>, Failure> {
    let mut statement = connection.prepare_cached(CURRENT_HEAD)?;
    let found = statement.query_row([conversation], |row| {
        let head = EpochHead::from_columns(&Columns(row))?;
        Ok(CurrentHead { head, state_version: unsigned(row.get(EpochHead::COLUMN_COUNT)?) })
    });
    Ok(found.optional()?)
}
