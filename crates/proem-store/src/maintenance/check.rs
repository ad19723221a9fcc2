//! Looking for damage: what is kept must be readable, whole, and what its digest says.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt;

use proem::Request;
use proem::stored_prompt::StoredPrompt;
use proem_core::carrier::Carrier;
use proem_core::digest::Digest;

use super::{Progress, Tell, within_time};
use crate::record::Digests;
use crate::{Batch, EpochKey, EpochRow, Maintenance};
use crate::{Store, StoreError};

/// Most rows in a batch.
const TEXTS: usize = 1_000;
const EPOCHS: usize = 1_000;
const CONVERSATIONS: usize = 5_000;
const TEMPLATES: usize = 20;

/// Most bytes of texts that are read at a time, unless one text alone has more.
const BYTES_MAX: u64 = 16 << 20;

/// Most prompts and requests that are remembered as sound.
const SOUND_MAX: usize = 200_000;

/// A place in a check: a part of the store, and the key behind which it goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cursor {
    part: Part,
    key: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    File,
    Texts,
    Epochs,
    Conversations,
    Templates,
}

impl Part {
    const ALL: [Self; 5] = [Self::File, Self::Texts, Self::Epochs, Self::Conversations, Self::Templates];

    const fn word(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Texts => "texts",
            Self::Epochs => "epochs",
            Self::Conversations => "conversations",
            Self::Templates => "templates",
        }
    }

    fn next(self) -> Option<Self> {
        Self::ALL.into_iter().skip_while(|part| *part != self).nth(1)
    }
}

impl Cursor {
    /// Reads a cursor as [`check`] gives it.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (word, key) = text.split_once('/').unwrap_or((text, ""));
        let part = Part::ALL.into_iter().find(|part| part.word() == word)?;
        let is_key = match part {
            Part::File => key.is_empty(),
            Part::Texts => key.is_empty() || Digest::from_hex(key).is_some(),
            Part::Epochs => key.is_empty() || EpochKey::parse(key).is_some(),
            Part::Conversations => key.is_empty() || crate::is_conversation_id(key),
            Part::Templates => key.is_empty() || key.parse::<u64>().is_ok(),
        };
        is_key.then(|| Self { part, key: key.to_owned() })
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.part.word(), self.key)
    }
}

/// Checks the rows of one part behind a key, at most so many.
type Step = fn(&dyn Maintenance, &str, usize, &mut Sound) -> Result<Batch, StoreError>;

/// Looks for damage from a cursor on, or from the beginning. Returns `None` at the end, or the cursor at which the
/// caller has stopped it. Damage is told with the progress.
pub fn check(
    store: &dyn Store,
    after: Option<&Cursor>,
    tell: Tell<'_>,
) -> Result<Option<Cursor>, StoreError> {
    let Some(store) = store.maintenance() else { return Ok(None) };
    let mut cursor = after.cloned().unwrap_or(Cursor { part: Part::File, key: String::new() });
    let (mut sound, mut rows, mut most) = (Sound::default(), 0, 0);
    loop {
        let part = cursor.part;
        let (batch, most_ever): (Step, usize) = match part {
            Part::File => (file, 1),
            Part::Texts => (|store, key, most, _| store.check_texts(key, most), TEXTS),
            Part::Epochs => (epochs, EPOCHS),
            Part::Conversations => {
                (|store, key, most, _| store.check_conversations(key, most), CONVERSATIONS)
            }
            Part::Templates => (templates, TEMPLATES),
        };
        most = if rows == 0 { most_ever } else { most };
        let done: Batch =
            within_time(&mut most, most_ever, |most| batch(store, &cursor.key, most, &mut sound))?;
        rows += done.rows;
        cursor = match (done.last, part.next()) {
            (Some(key), _) => Cursor { part, key },
            (None, Some(part)) => Cursor { part, key: String::new() },
            (None, None) => {
                let _ = tell(&Progress { part: part.word(), rows, found: &done.found, cursor: "" });
                return Ok(None);
            }
        };
        let progress = Progress { part: part.word(), rows, found: &done.found, cursor: &cursor.to_string() };
        if tell(&progress).is_break() {
            return Ok(Some(cursor));
        }
        rows = if cursor.part == part { rows } else { 0 };
    }
}

fn file(store: &dyn Maintenance, _: &str, _: usize, _: &mut Sound) -> Result<Batch, StoreError> {
    Ok(Batch { rows: 0, last: None, found: store.check_file()? })
}

fn templates(store: &dyn Maintenance, key: &str, most: usize, _: &mut Sound) -> Result<Batch, StoreError> {
    store.check_templates(key.parse().unwrap_or(0), most)
}

/// Prompts and requests that were found to be sound in this run: many epochs have one prompt.
#[derive(Default)]
struct Sound {
    prompts: HashSet<Digest>,
    requests: HashSet<String>,
}

impl Sound {
    fn keep_small(&mut self) {
        if self.prompts.len() + self.requests.len() > SOUND_MAX {
            *self = Self::default();
        }
    }
}

/// Checks the next epochs, each with its texts.
fn epochs(store: &dyn Maintenance, key: &str, most: usize, sound: &mut Sound) -> Result<Batch, StoreError> {
    let mut after = EpochKey::parse(key).unwrap_or_default();
    let rows = store.epoch_rows(&after, most)?;
    let mut batch = Batch { rows: rows.len() as u64, last: None, found: Vec::new() };
    sound.keep_small();
    let wanted: BTreeSet<&str> = rows.iter().flat_map(|row| row.wanted(sound)).collect();
    let sizes = store.text_sizes(&wanted.into_iter().collect::<Vec<_>>())?;
    let mut held = BTreeMap::new();
    for (index, row) in rows.iter().enumerate() {
        let own = row.wanted(sound);
        if own.iter().any(|digest| sizes.contains_key(*digest) && !held.contains_key(*digest)) {
            held = store.text_bytes(&group(rows.get(index..).unwrap_or_default(), sound, &sizes))?;
        }
        let name = format!("epoch {} of `{}`", row.head.number, row.head.conversation);
        let is_first = after.conversation != row.head.conversation;
        let damage = row.damage(&held, sound);
        // A conversation may have been removed, and its texts pruned, since the row was read.
        if (damage.is_some() || !row.has_conversation) && is_still(store, &after, row)? {
            batch.found.extend(damage.map(|why| format!("{name}: {why}")));
            if !row.has_conversation && is_first {
                let gone =
                    format!("conversation `{}`: it is gone, and its epochs are not", row.head.conversation);
                batch.found.push(gone);
            }
        }
        after = EpochKey { conversation: row.head.conversation.clone(), number: row.head.number };
    }
    batch.last = (!rows.is_empty()).then(|| after.text());
    Ok(batch)
}

/// Tells whether a row is there as it was read.
fn is_still(store: &dyn Maintenance, before: &EpochKey, row: &EpochRow) -> Result<bool, StoreError> {
    Ok(store.epoch_rows(before, 1)?.first() == Some(row))
}

/// The texts of the first of some epochs, and of as many more as may be read together.
fn group<'r>(rows: &'r [EpochRow], sound: &Sound, sizes: &BTreeMap<String, u64>) -> Vec<&'r str> {
    let (mut wanted, mut bytes) = (BTreeSet::new(), 0);
    for (index, row) in rows.iter().enumerate() {
        let own: Vec<&str> =
            row.wanted(sound).into_iter().filter(|digest| !wanted.contains(digest)).collect();
        bytes += own.iter().filter_map(|digest| sizes.get(*digest)).sum::<u64>();
        if index > 0 && bytes > BYTES_MAX {
            break;
        }
        wanted.extend(own);
    }
    wanted.into_iter().collect()
}

/// The checks of one row.
trait CheckRow {
    /// Returns a key of the row's prompt.
    fn prompt_key(&self) -> Digest;

    /// Returns the digests of the texts that must be read to check the row.
    fn wanted(&self, sound: &Sound) -> Vec<&str>;

    /// Describes the damage of a row whose texts are at hand.
    fn damage(&self, held: &BTreeMap<String, Vec<u8>>, sound: &mut Sound) -> Option<String>;

    /// Compares the prompt with its digest.
    fn check_prompt(&self, held: &BTreeMap<String, Vec<u8>>) -> Result<(), StoreError>;
}

impl CheckRow for EpochRow {
    fn prompt_key(&self) -> Digest {
        Digest::new(format!("{}\n{}\n{}", self.head.digest, self.description, self.texts).as_bytes())
    }

    fn wanted(&self, sound: &Sound) -> Vec<&str> {
        let mut wanted = Vec::new();
        if !sound.prompts.contains(&self.prompt_key()) {
            wanted.push(self.description.as_str());
            wanted.extend(digests_in(&self.texts));
        }
        if !sound.requests.contains(&self.request) {
            wanted.push(self.request.as_str());
        }
        wanted
    }

    fn damage(&self, held: &BTreeMap<String, Vec<u8>>, sound: &mut Sound) -> Option<String> {
        let check = || -> Result<(), StoreError> {
            let Self { texts, description, request, .. } = self;
            Digests { texts, description, request }.check(&self.head, self.seal.as_deref())?;
            if !sound.prompts.contains(&self.prompt_key()) {
                self.check_prompt(held)?;
            }
            if !sound.requests.contains(request) {
                let json = text_of(held, request)?;
                Request::from_json(&json).map_err(|error| damaged("its request", error.to_string()))?;
            }
            Ok(())
        };
        let found = check().err().map(|error| error.to_string());
        if found.is_none() {
            sound.prompts.insert(self.prompt_key());
            sound.requests.insert(self.request.clone());
        }
        found
    }

    fn check_prompt(&self, held: &BTreeMap<String, Vec<u8>>) -> Result<(), StoreError> {
        let carriers: BTreeMap<Carrier, String> = serde_json::from_str(&self.texts)
            .map_err(|error| damaged("the list of an epoch's texts", error.to_string()))?;
        let texts = carriers.iter().map(|(carrier, digest)| Ok((*carrier, text_of(held, digest)?)));
        let texts = texts.collect::<Result<_, StoreError>>()?;
        let prompt = StoredPrompt::new(texts, text_of(held, &self.description)?);
        let frozen = prompt.frozen().map_err(|error| damaged("its prompt", error.to_string()))?;
        if frozen.digest().hex() == self.head.digest {
            return Ok(());
        }
        Err(damaged("its prompt", "it is not that of its digest".into()))
    }
}

fn text_of(held: &BTreeMap<String, Vec<u8>>, digest: &str) -> Result<String, StoreError> {
    let what = format!("the text {digest}");
    let bytes = held.get(digest).ok_or_else(|| damaged(&what, "it is gone".into()))?;
    if Digest::new(bytes).hex() != digest {
        return Err(damaged(&what, "its bytes are not those of its digest".into()));
    }
    String::from_utf8(bytes.clone()).map_err(|_| damaged(&what, "it is not UTF-8".into()))
}

fn damaged(what: &str, why: String) -> StoreError {
    StoreError::Damaged { what: what.to_owned(), why }
}

/// The digests in a list of texts, also in one that is not JSON any more.
pub(crate) fn digests_in(texts: &str) -> impl Iterator<Item = &str> {
    texts.split(|character: char| !character.is_ascii_hexdigit()).filter(|part| part.len() == 64)
}
