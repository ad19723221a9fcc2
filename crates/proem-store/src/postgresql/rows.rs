//! Epochs as rows, and their texts, which are kept once however many epochs have them.

use std::collections::BTreeMap;

use proem::stored_prompt::StoredPrompt;
use proem_core::carrier::Carrier;
use proem_core::digest::Digest;
use tokio_postgres::types::Type;
use tokio_postgres::{Row, SimpleQueryRow};

use super::link::Link;
use super::{Failure, Value};
use crate::StoreError;
use crate::record::{Digests, Epoch, EpochHead};
use crate::texts::Texts;

pub(super) const HEAD: &str =
    "conversation, number, reason, digest, fingerprint, profile, engine, cwd, model, has_turn, opened_at";

pub(super) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(super) fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

pub(super) fn head(row: &Row) -> EpochHead {
    EpochHead {
        conversation: row.get(0),
        number: unsigned(row.get(1)),
        reason: row.get(2),
        digest: row.get(3),
        fingerprint: row.get(4),
        profile: row.get(5),
        engine: row.get(6),
        cwd: row.get(7),
        model: row.get(8),
        has_turn: row.get(9),
        opened_at: row.get(10),
    }
}

/// The epoch of a number.
pub(super) const NUMBERED: &str = "SELECT conversation, number, reason, digest, fingerprint, profile, engine, cwd, \
    model, has_turn, opened_at, texts, description, request, seal FROM proem_epoch \
    WHERE conversation = $1 AND number = $2";

/// The current epoch.
pub(super) const CURRENT: &str = "SELECT conversation, number, reason, digest, fingerprint, profile, engine, cwd, \
    model, has_turn, opened_at, texts, description, request, seal FROM proem_epoch \
    WHERE conversation = $1 AND number = (SELECT epoch FROM proem_conversation WHERE id = $1)";

/// The head of the current epoch, empty if it is gone, and the number that it should have.
pub(super) const CURRENT_HEAD: &str = "SELECT conversation, number, reason, digest, fingerprint, profile, engine, e.cwd, \
    model, has_turn, e.opened_at, c.epoch FROM proem_conversation c \
    LEFT JOIN (SELECT * FROM proem_epoch WHERE conversation = $1) e ON e.number = c.epoch WHERE c.id = $1";

/// Texts are held whoever writes: the server does not say whether anybody has, and they are right in any case.
const GENERATION: u64 = 0;

/// Texts that are kept once, each made sure to be the one.
fn blobs(
    client: &mut Link,
    held: Option<&Texts>,
    digests: &[&String],
) -> Result<BTreeMap<String, String>, Failure> {
    let known = |digest: &String| held.and_then(|held| held.get(GENERATION, digest));
    let (mut found, mut wanted) = (BTreeMap::new(), Vec::new());
    for digest in digests {
        match known(digest) {
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
        if Digest::new(&bytes).hex() != digest {
            return Err(damaged(&digest, "its bytes are not those of its digest").into());
        }
        let text = String::from_utf8(bytes).map_err(|_| damaged(&digest, "it is no text"))?;
        if let Some(held) = held {
            held.put(GENERATION, &digest, &text);
        }
        found.insert(digest, text);
    }
    Ok(found)
}

fn damaged(digest: &str, why: &str) -> StoreError {
    StoreError::Damaged { what: format!("the text {digest}"), why: why.to_owned() }
}

/// The row of an epoch: what is known about it, and the digests of its texts.
pub(super) struct EpochRow {
    head: EpochHead,
    texts: String,
    description: String,
    request: String,
    seal: Option<String>,
}

impl EpochRow {
    /// Reads the columns of [`NUMBERED`].
    pub(super) fn of(row: &Row) -> Self {
        Self {
            head: head(row),
            texts: row.get(11),
            description: row.get(12),
            request: row.get(13),
            seal: row.get(14),
        }
    }

    /// Reads the columns of [`CURRENT`], as text.
    pub(super) fn of_text(row: &SimpleQueryRow) -> Result<Self, StoreError> {
        let text = |column: usize| column_of(row, column);
        Ok(Self {
            head: head_of_text(row)?,
            texts: text(11)?,
            description: text(12)?,
            request: text(13)?,
            seal: row.get(14).map(str::to_owned),
        })
    }

    /// The epoch with its texts; those that are held need not be read.
    pub(super) fn whole(self, client: &mut Link, held: Option<&Texts>) -> Result<Epoch, Failure> {
        let Self { head, texts, description, request, seal } = self;
        let digests = Digests { texts: &texts, description: &description, request: &request };
        digests.check(&head, seal.as_deref())?;
        let carriers: BTreeMap<Carrier, String> = serde_json::from_str(&texts).map_err(|error| {
            StoreError::Damaged { what: "the list of an epoch's texts".into(), why: error.to_string() }
        })?;
        let digests: Vec<&String> = carriers.values().chain([&description, &request]).collect();
        let found = blobs(client, held, &digests)?;
        let find = |digest: &String| found.get(digest).cloned().ok_or_else(|| damaged(digest, "it is gone"));
        let texts = carriers.iter().map(|(carrier, digest)| Ok((*carrier, find(digest)?)));
        let texts = texts.collect::<Result<_, StoreError>>()?;
        // Each text was found to be that of its digest.
        let digest = carriers.get(&Carrier::System).and_then(|digest| Digest::from_hex(digest));
        let prompt = StoredPrompt::new(texts, find(&description)?).hashed(digest);
        Ok(Epoch { head, prompt, request: find(&request)? })
    }
}

/// A head whose values are texts.
pub(super) fn head_of_text(row: &SimpleQueryRow) -> Result<EpochHead, StoreError> {
    let text = |column: usize| column_of(row, column);
    let number = |column: usize| {
        let found = text(column)?.parse::<i64>();
        found.map_err(|_| not_read(column))
    };
    Ok(EpochHead {
        conversation: text(0)?,
        number: unsigned(number(1)?),
        reason: text(2)?,
        digest: text(3)?,
        fingerprint: text(4)?,
        profile: text(5)?,
        engine: text(6)?,
        cwd: text(7)?,
        model: row.get(8).map(str::to_owned),
        has_turn: text(9)? == "t",
        opened_at: number(10)?,
    })
}

fn column_of(row: &SimpleQueryRow, column: usize) -> Result<String, StoreError> {
    row.try_get(column).ok().flatten().map(str::to_owned).ok_or_else(|| not_read(column))
}

fn not_read(column: usize) -> StoreError {
    StoreError::Damaged { what: "an epoch".into(), why: format!("its column {column} cannot be read") }
}

/// An epoch with its texts.
pub(super) fn whole(
    client: &mut Link,
    known: Option<&Texts>,
    sql: &str,
    values: &[Value<'_>],
) -> Result<Option<Epoch>, Failure> {
    let found = client.query_typed_opt(sql, values)?;
    found.map(|row| EpochRow::of(&row).whole(client, known)).transpose()
}

/// Stores an epoch if its number is the next one; tells whether it did.
pub(super) fn insert(transaction: &mut Link, epoch: &Epoch) -> Result<bool, Failure> {
    let is_next = match epoch.head.number {
        1 => true,
        // Held until the end: a conversation that is being removed must not get another epoch.
        next => locked_number(transaction, &epoch.head.conversation)? + 1 == next,
    };
    if !is_next {
        return Ok(false);
    }
    let own = epoch.blobs();
    // In one order, so that two who store the same texts wait for each other instead of for ever.
    let all: BTreeMap<String, &[u8]> = own.all().map(|bytes| (Digest::new(bytes).hex(), bytes)).collect();
    for (digest, bytes) in &all {
        transaction.execute_typed(
            "INSERT INTO proem_blob (digest, bytes) VALUES ($1, $2) ON CONFLICT DO NOTHING",
            &[(digest, Type::TEXT), (bytes, Type::BYTEA)],
        )?;
    }
    let EpochHead {
        conversation,
        number,
        reason,
        digest,
        fingerprint,
        profile,
        engine,
        cwd,
        model,
        has_turn,
        opened_at,
    } = &epoch.head;
    let (number, texts) = (signed(*number), own.texts_json());
    let (description, request) = (Digest::new(own.description).hex(), Digest::new(own.request).hex());
    let seal = Digests { texts: &texts, description: &description, request: &request }.seal(&epoch.head);
    let sql = format!(
        "INSERT INTO proem_epoch ({HEAD}, texts, description, request, seal) \
         SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15 \
         WHERE $2 = 1 OR EXISTS (SELECT 1 FROM proem_epoch WHERE conversation = $1 AND number = $2 - 1) \
         ON CONFLICT DO NOTHING"
    );
    let values: [Value<'_>; 15] = [
        (conversation, Type::TEXT),
        (&number, Type::INT8),
        (reason, Type::TEXT),
        (digest, Type::TEXT),
        (fingerprint, Type::TEXT),
        (profile, Type::TEXT),
        (engine, Type::TEXT),
        (cwd, Type::TEXT),
        (model, Type::TEXT),
        (has_turn, Type::BOOL),
        (opened_at, Type::INT8),
        (&texts, Type::TEXT),
        (&description, Type::TEXT),
        (&request, Type::TEXT),
        (&seal, Type::TEXT),
    ];
    if transaction.execute_typed(&sql, &values)? == 0 {
        return Ok(false);
    }
    transaction.execute_typed(
        "INSERT INTO proem_conversation (id, epoch, began_at, opened_at, cwd) VALUES ($1, $2, $3, $3, $4) \
         ON CONFLICT (id) DO UPDATE SET epoch = $2, opened_at = $3, cwd = $4",
        &[(conversation, Type::TEXT), (&number, Type::INT8), (opened_at, Type::INT8), (cwd, Type::TEXT)],
    )?;
    transaction.execute_typed("SELECT pg_notify('proem_epoch', $1)", &[(conversation, Type::TEXT)])?;
    Ok(true)
}

pub(super) fn number(client: &mut Link, conversation: &str) -> Result<u64, Failure> {
    let sql = "SELECT epoch FROM proem_conversation WHERE id = $1";
    let row = client.query_typed_opt(sql, &[(&conversation, Type::TEXT)])?;
    Ok(row.map_or(0, |row| unsigned(row.get(0))))
}

/// The number of the current epoch, which nobody else can change until the transaction ends.
fn locked_number(transaction: &mut Link, conversation: &str) -> Result<u64, Failure> {
    let sql = "SELECT epoch FROM proem_conversation WHERE id = $1 FOR UPDATE";
    let row = transaction.query_typed_opt(sql, &[(&conversation, Type::TEXT)])?;
    Ok(row.map_or(0, |row| unsigned(row.get(0))))
}
