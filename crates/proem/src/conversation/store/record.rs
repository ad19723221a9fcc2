//! The stored shapes: epochs, states, conversations, compactions and templates.
//!
//! The columns of an epoch are listed here once, for reading, for writing and for seals.

use std::collections::BTreeMap;

use proem_core::carrier::Carrier;
use proem_core::digest::Digest;
use proem_core::limit::CONVERSATION_ID_BYTES_MAX;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::columns::{ColumnReader, ColumnValue, signed, unsigned};
pub use super::template_record::{NewTemplate, TemplateHead, TemplateVersion};
use super::{Explanation, StoreError};
use crate::output::stored_prompt::StoredPrompt;

/// Tells whether a text is a valid conversation id: 1 to 128 letters, digits and `._:-`. One or two dots alone are not:
/// no client could send them in a path.
#[must_use]
pub fn is_conversation_id(id: &str) -> bool {
    !matches!(id, "." | "..")
        && (1..=CONVERSATION_ID_BYTES_MAX).contains(&id.len())
        && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b':' | b'-'))
}

/// The life of one frozen prompt in a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Epoch {
    /// The epoch without its texts.
    pub head: EpochHead,
    /// The prompt.
    pub prompt: StoredPrompt,
    /// The request that it was built for, as JSON, without the conversation's messages.
    pub request: String,
    /// Everything that the prompt was built from, as JSON. `None` if an earlier version of proem stored the epoch.
    pub sources: Option<String>,
}

impl Epoch {
    /// Returns the texts by their digests. The store keeps each of them once, for all epochs that have it.
    #[must_use]
    pub fn blobs(&self) -> BTreeMap<String, &[u8]> {
        let Self { prompt, request, sources, .. } = self;
        let texts = prompt.texts.values().chain([&prompt.description, request]).chain(sources);
        texts.map(|text| (Digest::new(text.as_bytes()).hex(), text.as_bytes())).collect()
    }
}

/// An epoch without its texts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EpochHead {
    /// The conversation.
    pub conversation: String,
    /// The number, from 1.
    pub number: u64,
    /// The reason for which it was opened.
    pub reason: String,
    /// The digest of the prefix, in hexadecimal.
    pub digest: String,
    /// The fingerprint of prefix and tools, in hexadecimal.
    pub fingerprint: String,
    /// The profile.
    pub profile: String,
    /// The version of proem that built it.
    pub engine: String,
    /// The working directory.
    pub cwd: String,
    /// The model, if one was named.
    pub model: Option<String>,
    /// True if each turn adds a part that is observed for it.
    pub has_turn: bool,
    /// The time at which it was opened, in milliseconds since 1970.
    pub opened_at: i64,
    /// The version of the stored template that is its base, if one is. Epochs of earlier versions of proem do not have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template_version: Option<u64>,
}

/// The columns of [`EpochHead`], as a literal for statements.
#[doc(hidden)]
#[macro_export]
macro_rules! epoch_head_columns {
    () => {
        "conversation, number, reason, digest, fingerprint, profile, engine, cwd, model, has_turn, opened_at, template_version"
    };
}

/// The columns of [`EpochRow`], as a literal for statements.
#[doc(hidden)]
#[macro_export]
macro_rules! epoch_row_columns {
    () => {
        concat!($crate::epoch_head_columns!(), ", texts, description, request, seal")
    };
}

impl EpochHead {
    /// The number of columns: the position of the first column after a head.
    pub const COLUMN_COUNT: usize = 12;

    /// The number of columns that the seal of a row covers: those of the first release.
    const SEALED_COUNT: usize = 11;

    /// Reads the first columns of a row.
    pub fn from_columns<R: ColumnReader>(row: &R) -> Result<Self, R::Error> {
        Ok(Self {
            conversation: row.text(0)?,
            number: unsigned(row.integer(1)?),
            reason: row.text(2)?,
            digest: row.text(3)?,
            fingerprint: row.text(4)?,
            profile: row.text(5)?,
            engine: row.text(6)?,
            cwd: row.text(7)?,
            model: row.optional_text(8)?,
            has_turn: row.flag(9)?,
            opened_at: row.integer(10)?,
            template_version: row.optional_integer(11)?.map(unsigned),
        })
    }

    /// Returns the values of the columns.
    fn values(&self) -> [ColumnValue<'_>; Self::COLUMN_COUNT] {
        use ColumnValue::{Flag, Integer, OptionalInteger, OptionalText, Text};
        let Self { conversation, number, reason, digest, fingerprint, profile, engine, cwd, .. } = self;
        [
            Text(conversation),
            Integer(signed(*number)),
            Text(reason),
            Text(digest),
            Text(fingerprint),
            Text(profile),
            Text(engine),
            Text(cwd),
            OptionalText(self.model.as_deref()),
            Flag(self.has_turn),
            Integer(self.opened_at),
            OptionalInteger(self.template_version.map(signed)),
        ]
    }

    /// Refuses a head that not every store can hold.
    pub fn check(&self) -> Result<(), String> {
        for (name, value) in epoch_head_columns!().split(", ").zip(self.values()) {
            if let ColumnValue::Text(text) | ColumnValue::OptionalText(Some(text)) = value {
                check_text(name, text)?;
            }
        }
        Ok(())
    }
}

/// An epoch as its row is stored, with the digests of its texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EpochRow {
    /// The epoch without its texts.
    pub head: EpochHead,
    /// The digests of the texts by carrier, and that of the sources, as JSON.
    pub texts: String,
    /// The digest of the description.
    pub description: String,
    /// The digest of the request.
    pub request: String,
    /// The digest of the other columns. Rows of the first version have none.
    pub seal: Option<String>,
}

/// The key of the sources in [`EpochRow::texts`]. No carrier has this name.
const SOURCES: &str = "sources";

/// The digests in [`EpochRow::texts`].
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct TextDigests {
    /// The digest of the sources. Rows of the first release have none.
    pub sources: Option<String>,
    /// The digests of the texts by carrier.
    #[serde(flatten)]
    pub carriers: BTreeMap<Carrier, String>,
}

impl EpochRow {
    /// The number of columns: the position of the first column after a row.
    pub const COLUMN_COUNT: usize = EpochHead::COLUMN_COUNT + 4;

    /// Creates the row of an epoch, with its seal.
    #[must_use]
    pub fn new(epoch: &Epoch) -> Self {
        let Epoch { head, prompt, request, sources } = epoch;
        let hex = |text: &str| Digest::new(text.as_bytes()).hex();
        let texts = prompt.texts.iter().map(|(carrier, text)| (carrier.word(), hex(text)));
        let sources = sources.iter().map(|text| (SOURCES, hex(text)));
        let texts: BTreeMap<&str, String> = texts.chain(sources).collect();
        let row = Self {
            head: head.clone(),
            // A map of texts can always be serialised.
            texts: serde_json::to_string(&texts).unwrap_or_default(),
            description: hex(&prompt.description),
            request: hex(request),
            seal: None,
        };
        Self { seal: Some(row.digest()), ..row }
    }

    /// Reads the first columns of a row.
    pub fn from_columns<R: ColumnReader>(row: &R) -> Result<Self, R::Error> {
        const NEXT: usize = EpochHead::COLUMN_COUNT;
        Ok(Self {
            head: EpochHead::from_columns(row)?,
            texts: row.text(NEXT)?,
            description: row.text(NEXT + 1)?,
            request: row.text(NEXT + 2)?,
            seal: row.optional_text(NEXT + 3)?,
        })
    }

    /// Returns the values of the columns.
    #[must_use]
    pub fn values(&self) -> Vec<ColumnValue<'_>> {
        let seal = ColumnValue::OptionalText(self.seal.as_deref());
        self.head.values().into_iter().chain(self.digests()).chain([seal]).collect()
    }

    fn digests(&self) -> [ColumnValue<'_>; 3] {
        [&self.texts, &self.description, &self.request].map(|digest| ColumnValue::Text(digest))
    }

    /// Returns the values that the seal covers. A column that a later version adds must not be one of them, because it
    /// would change the seals of older rows.
    fn sealed_values(&self) -> impl Iterator<Item = ColumnValue<'_>> {
        self.head.values().into_iter().take(EpochHead::SEALED_COUNT).chain(self.digests())
    }

    /// Computes the seal: texts are protected by their digests, and the columns of the row by this one.
    fn digest(&self) -> String {
        let values: Vec<ColumnValue<'_>> = self.sealed_values().collect();
        // Texts, numbers and truth values can always be serialised.
        Digest::new(&serde_json::to_vec(&values).unwrap_or_default()).hex()
    }

    /// Returns the digests of the texts.
    pub fn text_digests(&self) -> Result<TextDigests, StoreError> {
        serde_json::from_str(&self.texts).map_err(|error| {
            StoreError::damaged("the list of an epoch's texts", Explanation::from_error(error))
        })
    }

    /// Fails unless the row is the one that was sealed.
    pub fn check(&self) -> Result<(), StoreError> {
        let Self { head, seal, .. } = self;
        if seal.as_ref().is_none_or(|seal| *seal == self.digest()) {
            return Ok(());
        }
        let what = format!("epoch {} of `{}`", head.number, head.conversation);
        Err(StoreError::damaged(what, "its row does not match its seal"))
    }
}

/// Returns the text of stored bytes; fails unless they match their digest.
pub fn checked_text(digest: &str, bytes: Vec<u8>) -> Result<String, StoreError> {
    let what = format!("the text {digest}");
    if Digest::new(&bytes).hex() != digest {
        return Err(StoreError::damaged(what, "its bytes do not match its digest"));
    }
    String::from_utf8(bytes)
        .map_err(|error| StoreError::damaged(what, Explanation::new("it is not UTF-8", error.utf8_error())))
}

/// Returns the error about a text that an epoch uses and the store does not have.
#[must_use]
pub fn missing_text(digest: &str) -> StoreError {
    StoreError::damaged(format!("the text {digest}"), "it is missing")
}

/// The state of a conversation as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateRecord {
    /// Grows with every write.
    pub version: u64,
    /// The state as JSON.
    pub text: String,
}

impl StateRecord {
    /// Computes the digest of the row.
    #[must_use]
    pub fn seal(&self, conversation: &str) -> String {
        let Self { version, text } = self;
        Digest::new(json!([conversation, version, text]).to_string().as_bytes()).hex()
    }

    /// Fails unless the state is the one that was sealed.
    pub fn checked(self, conversation: &str, seal: &str) -> Result<Self, StoreError> {
        if seal == self.seal(conversation) {
            return Ok(self);
        }
        let what = format!("the state of `{conversation}`");
        Err(StoreError::damaged(what, "its row does not match its seal"))
    }
}

/// A conversation at one moment: its current epoch and its state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Current {
    /// The current epoch.
    pub epoch: Epoch,
    /// `None` if an earlier version of proem stored the conversation.
    pub state: Option<StateRecord>,
}

/// The same without texts. The version is not compared with the seal of the state, which covers its text, too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CurrentHead {
    /// The current epoch without its texts.
    pub head: EpochHead,
    /// The version of the state; 0 if there is none.
    pub state_version: u64,
}

/// A change of a conversation, done whole or not at all.
#[derive(Debug, Clone, Copy)]
pub struct Commit<'c> {
    /// The conversation.
    pub conversation: &'c str,
    /// The version of the state that the change is based on; 0 if none is stored.
    pub based_on: u64,
    /// The new state; its version must be greater than `based_on`.
    pub state: &'c StateRecord,
    /// The next epoch, if one is opened.
    pub epoch: Option<&'c Epoch>,
}

impl Commit<'_> {
    /// Tells whether the change fits a conversation with this current epoch and this version of its state. Both are 0
    /// for a conversation that does not exist.
    #[must_use]
    pub fn fits(&self, current: u64, state_version: u64) -> bool {
        let Self { conversation, based_on, state, epoch } = self;
        // No store has larger numbers.
        let is_version = *based_on < state.version && i64::try_from(state.version).is_ok();
        let is_next = |epoch: &&Epoch| {
            epoch.head.conversation == *conversation && epoch.head.number == current.saturating_add(1)
        };
        is_version && *based_on == state_version && epoch.as_ref().map_or(current > 0, is_next)
    }
}

/// A conversation in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ConversationHead {
    /// The conversation.
    pub conversation: String,
    /// The number of its current epoch.
    pub epoch: u64,
    /// The reason for which that epoch was opened.
    pub reason: String,
    /// The profile.
    pub profile: String,
    /// The working directory.
    pub cwd: String,
    /// The model, if one was named.
    pub model: Option<String>,
    /// The time at which the conversation began, in milliseconds since 1970.
    pub began_at: i64,
    /// The time at which the current epoch was opened.
    pub opened_at: i64,
}

impl ConversationHead {
    /// Reads the columns `id`, `epoch`, `reason`, `profile`, `cwd`, `model`, `began_at` and `opened_at`.
    pub fn from_columns<R: ColumnReader>(row: &R) -> Result<Self, R::Error> {
        Ok(Self {
            conversation: row.text(0)?,
            epoch: unsigned(row.integer(1)?),
            reason: row.text(2)?,
            profile: row.text(3)?,
            cwd: row.text(4)?,
            model: row.optional_text(5)?,
            began_at: row.integer(6)?,
            opened_at: row.integer(7)?,
        })
    }
}

/// A query for conversations.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Query {
    /// A part of the id or of the working directory.
    pub search: Option<String>,
    /// The key after which the page begins: [`Page::next`] of the page before it.
    pub after: Option<String>,
    /// The most conversations of the page.
    pub most: usize,
}

/// A part of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    /// The items.
    pub items: Vec<T>,
    /// The key of the next page, if there is one.
    pub next: Option<String>,
}

impl Page<ConversationHead> {
    /// Creates a page of at most `most` items. One item more than that says that there is another page.
    pub fn new(mut items: Vec<ConversationHead>, most: usize) -> Self {
        let has_more = items.len() > most;
        items.truncate(most);
        let next = items.last().filter(|_| has_more).map(PageKey::new).map(|key| key.to_string());
        Self { items, next }
    }
}

/// The position of a conversation in a list that is ordered by time and id, as text: `OPENED_AT~ID`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PageKey {
    pub opened_at: i64,
    pub conversation: String,
}

impl PageKey {
    /// Returns the key of a conversation.
    #[must_use]
    pub fn new(head: &ConversationHead) -> Self {
        Self { opened_at: head.opened_at, conversation: head.conversation.clone() }
    }

    /// Returns the key after which a query begins. A missing or invalid key is that of the newest conversation.
    pub fn from_query(query: &Query) -> Self {
        let newest = Self { opened_at: i64::MAX, conversation: String::new() };
        query.after.as_deref().and_then(Self::parse).unwrap_or(newest)
    }

    fn parse(text: &str) -> Option<Self> {
        let (time, conversation) = text.split_once('~')?;
        Some(Self { opened_at: time.parse().ok()?, conversation: conversation.to_owned() })
    }
}

impl std::fmt::Display for PageKey {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}~{}", self.opened_at, self.conversation)
    }
}

/// Tells whether a text is the key of a page of conversations.
#[must_use]
pub fn is_page_key(text: &str) -> bool {
    let is_id = |id: &str| id.is_empty() || is_conversation_id(id);
    super::traffic::ListKey::parse(text).is_some_and(|key| is_id(&key.conversation))
}

/// A compaction that was begun, and perhaps committed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompactionRecord {
    /// The token that names it.
    pub token: String,
    /// The conversation.
    pub conversation: String,
    /// The epoch that it starts from.
    pub from: u64,
    /// The prompt that was built when it was begun, if the policy builds one then.
    pub rebuilt: Option<Epoch>,
    /// The request for the next prompt, as JSON.
    pub request: String,
    /// The time at which it is forgotten, in milliseconds since 1970.
    pub expires_at: i64,
    /// The epoch that it opened, once it was committed.
    pub opened: Option<u64>,
}

/// The epochs of a conversation at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct History {
    /// The number of the current epoch; 0 when there is none.
    pub current: u64,
    /// All epochs, the first one first.
    pub epochs: Vec<EpochHead>,
}

/// Refuses a text that not every store can hold: PostgreSQL has no NUL.
pub fn check_text(name: &str, text: &str) -> Result<(), String> {
    match text.find('\0') {
        None => Ok(()),
        Some(place) => Err(format!("`{name}` has a NUL (U+0000) at byte {place}, which cannot be stored")),
    }
}

/// Returns the current time in milliseconds since 1970.
#[must_use]
pub fn now() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Stored rows have these seals: a change makes every store look damaged.
    #[test]
    fn the_seals_of_stored_rows_stay_the_same() {
        let head = EpochHead {
            conversation: "c".into(),
            number: 2,
            reason: "reload".into(),
            digest: "d".into(),
            fingerprint: "f".into(),
            profile: "default".into(),
            engine: "0.1.0".into(),
            cwd: "/é \"x\"".into(),
            model: None,
            has_turn: true,
            opened_at: -5,
            template_version: None,
        };
        let seal = |model: Option<&str>| {
            let head = EpochHead { model: model.map(str::to_owned), ..head.clone() };
            let texts = "{\"system\":\"00\"}".to_owned();
            EpochRow { head, texts, description: "01".into(), request: "02".into(), seal: None }.digest()
        };
        assert_eq!(seal(None), "7ab8841366b90ce85283335137e156a55c4606c7ec6e9df564528dbfa392a0e8");
        assert_eq!(seal(Some("m")), "d2be9c9f2fee28aba52b3a46a241c82a08942c18ce23474d9a629cbf58f4d185");
        let state = StateRecord { version: 7, text: "{\"é\":1}".into() };
        assert_eq!(state.seal("c"), "c62d084f605865c3f8a7c3bbe6fbbcc87ed3887a0a99a58d455d39a1384e4c0d");
    }
}
