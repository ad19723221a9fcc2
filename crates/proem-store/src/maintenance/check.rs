//! Looks for damage: stored data must be readable, complete, and match its digests.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt;

use proem::Request;
use proem::stored_prompt::StoredPrompt;
use proem_core::digest::Digest;

use super::{OnProgress, Progress, within_time};
use crate::record::{EpochRow, TextDigests, checked_text, missing_text};
use crate::{Batch, EpochEntry, EpochKey, Maintenance};
use crate::{Explanation, Store, StoreError};

/// The most rows of a batch.
const TEXTS: usize = 1_000;
const EPOCHS: usize = 1_000;
const CONVERSATIONS: usize = 5_000;
const STATES: usize = 100;
const TEMPLATES: usize = 20;
const WORKSPACES: usize = 5;

/// The most bytes of texts that are read at a time, unless one text alone has more.
const BYTES_MAX: u64 = 16 << 20;

/// The most prompts and requests that are remembered as sound.
const SOUND_MAX: usize = 200_000;

/// A position in a check: a part of the store, and the key after which the check continues.
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
    States,
    Templates,
    Workspaces,
}

impl Part {
    const ALL: [Self; 7] = [
        Self::File,
        Self::Texts,
        Self::Epochs,
        Self::Conversations,
        Self::States,
        Self::Templates,
        Self::Workspaces,
    ];

    const fn word(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Texts => "texts",
            Self::Epochs => "epochs",
            Self::Conversations => "conversations",
            Self::States => "states",
            Self::Templates => "templates",
            Self::Workspaces => "workspaces",
        }
    }

    fn next(self) -> Option<Self> {
        Self::ALL.into_iter().skip_while(|part| *part != self).nth(1)
    }
}

impl Cursor {
    /// Parses a cursor that [`check`] returned.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (word, key) = text.split_once('/').unwrap_or((text, ""));
        let part = Part::ALL.into_iter().find(|part| part.word() == word)?;
        let is_key = match part {
            Part::File => key.is_empty(),
            Part::Texts | Part::Workspaces => key.is_empty() || Digest::from_hex(key).is_some(),
            Part::Epochs => key.is_empty() || EpochKey::parse(key).is_some(),
            Part::Conversations | Part::States => key.is_empty() || crate::is_conversation_id(key),
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

/// Checks the next rows of one part after a key, up to a number of rows.
type Step = fn(&dyn Maintenance, &str, usize, &mut SoundDigests) -> Result<Batch, StoreError>;

/// Looks for damage from a cursor on, or from the beginning. The progress reports the damage. Returns `None` at the end,
/// or the cursor at which the caller stopped the check.
pub fn check(
    store: &dyn Store,
    after: Option<&Cursor>,
    on_progress: OnProgress<'_>,
) -> Result<Option<Cursor>, StoreError> {
    let Some(store) = store.maintenance() else { return Ok(None) };
    let mut cursor = after.cloned().unwrap_or(Cursor { part: Part::File, key: String::new() });
    let (mut sound, mut rows, mut most) = (SoundDigests::default(), 0, 0);
    loop {
        let part = cursor.part;
        let (batch, most_rows): (Step, usize) = match part {
            Part::File => (file, 1),
            Part::Texts => (|store, key, most, _| store.check_texts(key, most), TEXTS),
            Part::Epochs => (epochs, EPOCHS),
            Part::Conversations => {
                (|store, key, most, _| store.check_conversations(key, most), CONVERSATIONS)
            }
            Part::States => (|store, key, most, _| store.check_states(key, most), STATES),
            Part::Templates => (templates, TEMPLATES),
            Part::Workspaces => (|store, key, most, _| store.check_workspaces(key, most), WORKSPACES),
        };
        most = if rows == 0 { most_rows } else { most };
        let done: Batch =
            within_time(&mut most, most_rows, |most| batch(store, &cursor.key, most, &mut sound))?;
        rows += done.rows;
        cursor = match (done.last, part.next()) {
            (Some(key), _) => Cursor { part, key },
            (None, Some(part)) => Cursor { part, key: String::new() },
            (None, None) => {
                let _ = on_progress(&Progress { part: part.word(), rows, found: &done.found, cursor: "" });
                return Ok(None);
            }
        };
        let progress = Progress { part: part.word(), rows, found: &done.found, cursor: &cursor.to_string() };
        if on_progress(&progress).is_break() {
            return Ok(Some(cursor));
        }
        rows = if cursor.part == part { rows } else { 0 };
    }
}

fn file(store: &dyn Maintenance, _: &str, _: usize, _: &mut SoundDigests) -> Result<Batch, StoreError> {
    Ok(Batch { rows: 0, last: None, found: store.check_file()? })
}

fn templates(
    store: &dyn Maintenance,
    key: &str,
    most: usize,
    _: &mut SoundDigests,
) -> Result<Batch, StoreError> {
    store.check_templates(key.parse().unwrap_or(0), most)
}

/// The prompts and requests that this run found to be sound. Many epochs share one prompt.
#[derive(Default)]
struct SoundDigests {
    prompts: HashSet<Digest>,
    requests: HashSet<String>,
}

impl SoundDigests {
    fn keep_small(&mut self) {
        if self.prompts.len() + self.requests.len() > SOUND_MAX {
            *self = Self::default();
        }
    }
}

/// Checks the next epochs, each with its texts.
fn epochs(
    store: &dyn Maintenance,
    key: &str,
    most: usize,
    sound: &mut SoundDigests,
) -> Result<Batch, StoreError> {
    let mut after = EpochKey::parse(key).unwrap_or_default();
    let rows = store.epoch_rows(&after, most)?;
    let mut batch = Batch { rows: rows.len() as u64, last: None, found: Vec::new() };
    sound.keep_small();
    let wanted: BTreeSet<&str> = rows.iter().flat_map(|entry| entry.row.wanted(sound)).collect();
    let sizes = store.text_sizes(&wanted.into_iter().collect::<Vec<_>>())?;
    let mut loaded = BTreeMap::new();
    for (index, entry) in rows.iter().enumerate() {
        let EpochEntry { row, has_conversation } = entry;
        let own = row.wanted(sound);
        if own.iter().any(|digest| sizes.contains_key(*digest) && !loaded.contains_key(*digest)) {
            loaded = store.text_bytes(&group(rows.get(index..).unwrap_or_default(), sound, &sizes))?;
        }
        let name = format!("epoch {} of `{}`", row.head.number, row.head.conversation);
        let is_first = after.conversation != row.head.conversation;
        let damage = row.damage(&loaded, sound);
        // The conversation may have been removed, and its texts pruned, since the row was read.
        if (damage.is_some() || !has_conversation) && is_unchanged(store, &after, entry)? {
            batch.found.extend(damage.map(|why| format!("{name}: {why}")));
            if !has_conversation && is_first {
                let missing =
                    format!("conversation `{}`: it is missing, but its epochs exist", row.head.conversation);
                batch.found.push(missing);
            }
        }
        after = EpochKey { conversation: row.head.conversation.clone(), number: row.head.number };
    }
    batch.last = (!rows.is_empty()).then(|| after.text());
    Ok(batch)
}

/// Tells whether a row is still as it was read.
fn is_unchanged(store: &dyn Maintenance, before: &EpochKey, entry: &EpochEntry) -> Result<bool, StoreError> {
    Ok(store.epoch_rows(before, 1)?.first() == Some(entry))
}

/// Returns the texts of the first of some epochs, and of as many more as may be read together.
fn group<'r>(entries: &'r [EpochEntry], sound: &SoundDigests, sizes: &BTreeMap<String, u64>) -> Vec<&'r str> {
    let (mut wanted, mut bytes) = (BTreeSet::new(), 0);
    for (index, entry) in entries.iter().enumerate() {
        let own: Vec<&str> =
            entry.row.wanted(sound).into_iter().filter(|digest| !wanted.contains(digest)).collect();
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
    /// Returns a digest that names the prompt of the row.
    fn prompt_key(&self) -> Digest;

    /// Returns the digests of texts that must be read to find out whether the epoch is sound.
    fn wanted(&self, sound: &SoundDigests) -> Vec<&str>;

    /// Describes the damage of an epoch whose texts are loaded.
    fn damage(&self, loaded: &BTreeMap<String, Vec<u8>>, sound: &mut SoundDigests) -> Option<String>;

    /// Compares the prompt and its sources with their digests.
    fn check_prompt(&self, loaded: &BTreeMap<String, Vec<u8>>) -> Result<(), StoreError>;
}

impl CheckRow for EpochRow {
    fn prompt_key(&self) -> Digest {
        Digest::new(format!("{}\n{}\n{}", self.head.digest, self.description, self.texts).as_bytes())
    }

    fn wanted(&self, sound: &SoundDigests) -> Vec<&str> {
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

    fn damage(&self, loaded: &BTreeMap<String, Vec<u8>>, sound: &mut SoundDigests) -> Option<String> {
        let check = || -> Result<(), StoreError> {
            self.check()?;
            if !sound.prompts.contains(&self.prompt_key()) {
                self.check_prompt(loaded)?;
            }
            if !sound.requests.contains(&self.request) {
                let json = loaded_text(loaded, &self.request)?;
                Request::from_json(&json)
                    .map_err(|error| StoreError::damaged("its request", Explanation::from_error(error)))?;
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

    fn check_prompt(&self, loaded: &BTreeMap<String, Vec<u8>>) -> Result<(), StoreError> {
        let TextDigests { sources, carriers } = self.text_digests()?;
        sources.map(|digest| loaded_text(loaded, &digest)).transpose()?;
        let texts = carriers.iter().map(|(carrier, digest)| Ok((*carrier, loaded_text(loaded, digest)?)));
        let texts = texts.collect::<Result<_, StoreError>>()?;
        let prompt = StoredPrompt::new(texts, loaded_text(loaded, &self.description)?);
        let damaged = |why| StoreError::damaged("its prompt", why);
        let frozen = prompt.frozen().map_err(|error| damaged(Explanation::from_error(error)))?;
        if frozen.digest().hex() == self.head.digest {
            return Ok(());
        }
        Err(damaged("it does not match its digest".into()))
    }
}

fn loaded_text(loaded: &BTreeMap<String, Vec<u8>>, digest: &str) -> Result<String, StoreError> {
    let bytes = loaded.get(digest).ok_or_else(|| missing_text(digest))?;
    checked_text(digest, bytes.clone())
}

/// Returns the digests in a list of texts, also in a damaged list that is not valid JSON.
pub(crate) fn digests_in(texts: &str) -> impl Iterator<Item = &str> {
    texts.split(|character: char| !character.is_ascii_hexdigit()).filter(|part| part.len() == 64)
}
