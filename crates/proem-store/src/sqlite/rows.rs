//! Epochs as rows, and their texts, which are kept once however many epochs have them.

use std::collections::BTreeMap;

use proem::stored_prompt::StoredPrompt;
use proem_core::carrier::Carrier;
use proem_core::digest::Digest;
use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};

use super::Failure;
use crate::StoreError;
use crate::record::{Digests, Epoch, EpochHead, History};
use crate::texts::Texts;

pub(super) const HEAD: &str =
    "conversation, number, reason, digest, fingerprint, profile, engine, cwd, model, has_turn, opened_at";

pub(super) fn head(row: &Row<'_>) -> rusqlite::Result<EpochHead> {
    Ok(EpochHead {
        conversation: row.get(0)?,
        number: row.get(1)?,
        reason: row.get(2)?,
        digest: row.get(3)?,
        fingerprint: row.get(4)?,
        profile: row.get(5)?,
        engine: row.get(6)?,
        cwd: row.get(7)?,
        model: row.get(8)?,
        has_turn: row.get(9)?,
        opened_at: row.get(10)?,
    })
}

/// The epoch of a number.
const NUMBERED: &str = "SELECT conversation, number, reason, digest, fingerprint, profile, engine, cwd, \
    model, has_turn, opened_at, texts, description, request, seal FROM epoch WHERE conversation = ?1 AND number = ?2";

/// The current epoch. One plain statement: a join would be planned anew for every value.
const CURRENT: &str = "SELECT conversation, number, reason, digest, fingerprint, profile, engine, cwd, model, has_turn, \
    opened_at, texts, description, request, seal FROM epoch \
    WHERE conversation = ?1 AND number = (SELECT epoch FROM conversation WHERE id = ?1)";

/// Where epochs are read from.
#[derive(Clone, Copy)]
pub(super) struct Rows<'r> {
    pub(super) connection: &'r Connection,
    /// Texts that need not be read again, and the generation for which that holds; none for somebody who wants to
    /// know whether they can be read.
    pub(super) texts: Option<(&'r Texts, u64)>,
}

impl Rows<'_> {
    /// The current epoch of a conversation with its texts.
    pub(super) fn current(self, conversation: &str) -> Result<Option<Epoch>, Failure> {
        self.whole(CURRENT, &[&conversation])
    }

    /// One epoch of a conversation with its texts.
    pub(super) fn numbered(self, conversation: &str, number: u64) -> Result<Option<Epoch>, Failure> {
        // SQLite has no larger numbers, and so no such epoch.
        let Ok(number) = i64::try_from(number) else { return Ok(None) };
        self.whole(NUMBERED, &[&conversation, &number])
    }

    fn whole(self, sql: &str, values: &[&dyn rusqlite::ToSql]) -> Result<Option<Epoch>, Failure> {
        let mut statement = self.connection.prepare_cached(sql)?;
        // Held until the texts are read: SQLite shows one moment for as long as a statement is not at its end.
        let mut rows = statement.query(values)?;
        let Some(row) = rows.next()? else { return Ok(None) };
        let (texts, description, request): (String, String, String) =
            (row.get(11)?, row.get(12)?, row.get(13)?);
        let (head, seal) = (head(row)?, row.get::<_, Option<String>>(14)?);
        let digests = Digests { texts: &texts, description: &description, request: &request };
        digests.check(&head, seal.as_deref())?;
        let (texts, digest) = self.texts_of(&texts)?;
        let prompt = StoredPrompt::new(texts, self.text(&description)?).hashed(digest);
        Ok(Some(Epoch { head, prompt, request: self.text(&request)? }))
    }

    /// The texts of an epoch, and the digest of the system carrier's: each was found to be that of its digest.
    fn texts_of(self, digests: &str) -> Result<(BTreeMap<Carrier, String>, Option<Digest>), Failure> {
        let digests: BTreeMap<Carrier, String> = serde_json::from_str(digests).map_err(|error| {
            StoreError::Damaged { what: "the list of an epoch's texts".into(), why: error.to_string() }
        })?;
        let system = digests.get(&Carrier::System).and_then(|digest| Digest::from_hex(digest));
        let texts = digests.into_iter().map(|(carrier, digest)| Ok((carrier, self.text(&digest)?)));
        Ok((texts.collect::<Result<_, Failure>>()?, system))
    }

    /// Reads a text that is kept once, and makes sure that it is the one.
    fn text(self, digest: &str) -> Result<String, Failure> {
        if let Some(known) = self.texts.and_then(|(texts, generation)| texts.get(generation, digest)) {
            return Ok(known.as_ref().to_owned());
        }
        let mut statement = self.connection.prepare_cached("SELECT bytes FROM blob WHERE digest = ?1")?;
        let bytes: Option<Vec<u8>> = statement.query_row([digest], |row| row.get(0)).optional()?;
        let damaged =
            |why: &str| StoreError::Damaged { what: format!("the text {digest}"), why: why.to_owned() };
        let bytes = bytes.ok_or_else(|| damaged("it is gone"))?;
        if Digest::new(&bytes).hex() != digest {
            return Err(damaged("its bytes are not those of its digest").into());
        }
        let text = String::from_utf8(bytes).map_err(|_| damaged("it is no text"))?;
        if let Some((texts, generation)) = self.texts {
            texts.put(generation, digest, &text);
        }
        Ok(text)
    }
}

fn keep(transaction: &Transaction<'_>, bytes: &[u8]) -> Result<String, Failure> {
    let digest = Digest::new(bytes).hex();
    let mut statement = transaction
        .prepare_cached("INSERT INTO blob (digest, bytes) VALUES (?1, ?2) ON CONFLICT DO NOTHING")?;
    statement.execute(params![digest, bytes])?;
    // A prune must not remove what an epoch has.
    transaction.prepare_cached("DELETE FROM doomed WHERE digest = ?1")?.execute([&digest])?;
    Ok(digest)
}

pub(super) fn insert(transaction: &Transaction<'_>, epoch: &Epoch) -> Result<(), Failure> {
    let blobs = epoch.blobs();
    for bytes in blobs.all() {
        keep(transaction, bytes)?;
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
    let (texts, description) = (blobs.texts_json(), Digest::new(blobs.description).hex());
    let request = Digest::new(blobs.request).hex();
    let seal = Digests { texts: &texts, description: &description, request: &request }.seal(&epoch.head);
    transaction
        .prepare_cached(&format!(
            "INSERT INTO epoch ({HEAD}, texts, description, request, seal) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)"
        ))?
        .execute(params![
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
            texts,
            description,
            request,
            seal,
        ])?;
    transaction
        .prepare_cached(
            "INSERT INTO conversation (id, epoch, began_at, opened_at, cwd) VALUES (?1, ?2, ?3, ?3, ?4) \
             ON CONFLICT (id) DO UPDATE SET epoch = ?2, opened_at = ?3, cwd = ?4",
        )?
        .execute(params![conversation, number, opened_at, cwd])?;
    Ok(())
}

/// All epochs of a conversation and the number of the current one, in one statement.
pub(super) fn history(connection: &Connection, conversation: &str) -> Result<History, Failure> {
    let sql = format!(
        "SELECT {HEAD}, (SELECT epoch FROM conversation WHERE id = ?1) FROM epoch \
         WHERE conversation = ?1 ORDER BY number"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query([conversation])?;
    let mut history = History::default();
    while let Some(row) = rows.next()? {
        history.current = row.get::<_, Option<u64>>(11)?.unwrap_or(0);
        history.epochs.push(head(row)?);
    }
    Ok(history)
}

pub(super) fn number(connection: &Connection, conversation: &str) -> Result<u64, Failure> {
    let mut statement = connection.prepare_cached("SELECT epoch FROM conversation WHERE id = ?1")?;
    Ok(statement.query_row([conversation], |row| row.get(0)).optional()?.unwrap_or(0))
}

/// The head of a conversation's current epoch.
pub(super) fn current(connection: &Connection, conversation: &str) -> Result<Option<EpochHead>, Failure> {
    let mut statement = connection.prepare_cached(
        "SELECT conversation, number, reason, digest, fingerprint, profile, engine, cwd, model, has_turn, opened_at \
         FROM epoch WHERE conversation = ?1 AND number = (SELECT epoch FROM conversation WHERE id = ?1)",
    )?;
    Ok(statement.query_row([conversation], head).optional()?)
}
