//! What is kept.

use std::collections::BTreeMap;

use crate::output::stored_prompt::StoredPrompt;
use proem_core::carrier::Carrier;
use proem_core::digest::Digest;
use proem_core::limit::{AUTHOR_BYTES_MAX, CONVERSATION_ID_BYTES_MAX};
use proem_core::text::clip;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::StoreError;

/// Tells whether a text can name a conversation: 1 to 128 letters, digits and `._:-`. A dot alone, or two, cannot:
/// no client could send it in a path.
#[must_use]
pub fn is_conversation_id(id: &str) -> bool {
    !matches!(id, "." | "..")
        && (1..=CONVERSATION_ID_BYTES_MAX).contains(&id.len())
        && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b':' | b'-'))
}

/// The life of one frozen prompt in a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Epoch {
    /// What is known about it without its texts.
    pub head: EpochHead,
    /// The prompt.
    pub prompt: StoredPrompt,
    /// The request that it was built for, as JSON, without the conversation's messages.
    pub request: String,
}

/// What is known about an epoch without its texts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EpochHead {
    /// The conversation.
    pub conversation: String,
    /// The number, from 1.
    pub number: u64,
    /// Why it was opened.
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
    /// Whether something is made anew each turn beside it.
    pub has_turn: bool,
    /// When it was opened, in milliseconds since 1970.
    pub opened_at: i64,
}

impl Epoch {
    /// The digests of everything that is kept once, however many epochs have it: texts by carrier, then the
    /// description and the request.
    pub fn blobs(&self) -> Blobs<'_> {
        let texts = self.prompt.texts.iter().map(|(carrier, text)| (*carrier, text.as_bytes())).collect();
        Blobs { texts, description: self.prompt.description.as_bytes(), request: self.request.as_bytes() }
    }
}

/// The bytes of an epoch that are kept once.
pub struct Blobs<'e> {
    pub texts: BTreeMap<Carrier, &'e [u8]>,
    pub description: &'e [u8],
    pub request: &'e [u8],
}

impl<'e> Blobs<'e> {
    pub fn all(&self) -> impl Iterator<Item = &'e [u8]> {
        self.texts.values().copied().chain([self.description, self.request])
    }

    /// The digests of the texts, as they are written beside an epoch.
    pub fn texts_json(&self) -> String {
        let digests: BTreeMap<&str, String> =
            self.texts.iter().map(|(carrier, bytes)| (carrier.word(), Digest::new(bytes).hex())).collect();
        serde_json::to_string(&digests).unwrap_or_default()
    }
}

/// What stands beside an epoch's texts: their digests.
pub struct Digests<'d> {
    pub texts: &'d str,
    pub description: &'d str,
    pub request: &'d str,
}

impl Digests<'_> {
    /// The digest of a row: texts have their own, and everything else in an epoch is to be as safe as they are.
    pub fn seal(&self, head: &EpochHead) -> String {
        let EpochHead { conversation, number, reason, digest, fingerprint, profile, .. } = head;
        let EpochHead { engine, cwd, model, has_turn, opened_at, .. } = head;
        let Self { texts, description, request } = self;
        // Field by field: what a later version adds must not change the seal of an older row.
        let whole = (
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
        );
        // Texts, numbers and truths are always written.
        Digest::new(&serde_json::to_vec(&whole).unwrap_or_default()).hex()
    }

    /// Makes sure that a row is the one that was sealed. Rows of the first version have no seal.
    pub fn check(&self, head: &EpochHead, seal: Option<&str>) -> Result<(), StoreError> {
        if seal.is_none_or(|seal| seal == self.seal(head)) {
            return Ok(());
        }
        let what = format!("epoch {} of `{}`", head.number, head.conversation);
        Err(StoreError::Damaged { what, why: "what is said about it is not what was written".into() })
    }
}

impl TemplateVersion {
    /// The digest of a version.
    pub fn seal(&self) -> String {
        let Self { version, text, author, written_at } = self;
        Digest::new(json!([version, text, author, written_at]).to_string().as_bytes()).hex()
    }

    /// Makes sure that a version is the one that was sealed.
    pub fn checked(self, seal: Option<&str>) -> Result<Self, StoreError> {
        if seal.is_none_or(|seal| seal == self.seal()) {
            return Ok(self);
        }
        let what = format!("version {} of the template", self.version);
        Err(StoreError::Damaged { what, why: "it is not what was written".into() })
    }
}

/// A conversation in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ConversationHead {
    /// The conversation.
    pub conversation: String,
    /// The number of its current epoch.
    pub epoch: u64,
    /// Why that was opened.
    pub reason: String,
    /// The profile.
    pub profile: String,
    /// The working directory.
    pub cwd: String,
    /// The model, if one was named.
    pub model: Option<String>,
    /// When the conversation began, in milliseconds since 1970.
    pub began_at: i64,
    /// When the current epoch was opened.
    pub opened_at: i64,
}

/// Which conversations are wanted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Query {
    /// A part of the name or of the working directory.
    pub search: Option<String>,
    /// Behind this place, which a page before gave.
    pub after: Option<String>,
    /// At most so many.
    pub most: usize,
}

/// Some of a list, and where it goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    /// The items.
    pub items: Vec<T>,
    /// Where the next page begins, if there is one.
    pub next: Option<String>,
}

/// A compaction that was begun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compaction {
    /// What names it.
    pub token: String,
    /// The conversation.
    pub conversation: String,
    /// The epoch that it starts from.
    pub from: u64,
    /// The prompt that was built when it was begun, if the policy builds one then.
    pub rebuilt: Option<Epoch>,
    /// The request for the next prompt, as JSON.
    pub request: String,
    /// When it is forgotten, in milliseconds since 1970.
    pub expires_at: i64,
    /// The epoch that it opened, once it was committed.
    pub opened: Option<u64>,
}

/// One version of the template.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TemplateVersion {
    /// The version, from 1.
    pub version: u64,
    /// The text.
    pub text: String,
    /// Who wrote it, as they said.
    pub author: Option<String>,
    /// When, in milliseconds since 1970.
    pub written_at: i64,
}

/// A version of the template without its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateHead {
    /// The version, from 1.
    pub version: u64,
    /// The length of its text.
    pub bytes: u64,
    /// The author as given; the beginning of it, and an ellipsis, if an older proem took more than is allowed.
    pub author: Option<String>,
    /// The time, in milliseconds since 1970.
    pub written_at: i64,
}

impl TemplateHead {
    /// Most characters of an author that are read: one more than may be shown.
    pub const AUTHOR_READ: usize = AUTHOR_BYTES_MAX + 1;

    /// An author as it is shown.
    pub fn author(read: String) -> String {
        if read.len() <= AUTHOR_BYTES_MAX { read } else { format!("{}…", clip(&read, AUTHOR_BYTES_MAX)) }
    }
}

/// The epochs of a conversation at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct History {
    /// The number of the current epoch; 0 when there is none.
    pub current: u64,
    /// All epochs, the first one first.
    pub epochs: Vec<EpochHead>,
}

/// Refuses what not every store can keep as text: PostgreSQL has no NUL.
pub fn check_text(name: &str, text: &str) -> Result<(), String> {
    match text.find('\0') {
        None => Ok(()),
        Some(place) => Err(format!("`{name}` has a NUL (U+0000) at byte {place}, which cannot be stored")),
    }
}

impl EpochHead {
    /// Refuses a head that not every store can keep.
    pub fn check(&self) -> Result<(), String> {
        let Self { reason, digest, fingerprint, profile, engine, cwd, model, .. } = self;
        let texts = [
            ("reason", reason),
            ("digest", digest),
            ("fingerprint", fingerprint),
            ("profile", profile),
            ("engine", engine),
            ("cwd", cwd),
        ];
        let model = model.as_ref().map(|model| ("model", model));
        texts.into_iter().chain(model).try_for_each(|(name, text)| check_text(name, text))
    }
}

impl TemplateVersion {
    /// Refuses a template and its author if not every store can keep them, or if the author is too long.
    pub fn check(text: &str, author: Option<&str>) -> Result<(), String> {
        check_text("template", text)?;
        let Some(author) = author else { return Ok(()) };
        check_text("author", author)?;
        let length = author.len();
        if length > AUTHOR_BYTES_MAX {
            return Err(format!("`author` has {length} bytes, and {AUTHOR_BYTES_MAX} are allowed"));
        }
        Ok(())
    }
}

/// The place of an item in a list that is ordered by time and name.
pub fn place(opened_at: i64, conversation: &str) -> String {
    format!("{opened_at}~{conversation}")
}

/// Tells whether a text is a place in a list of conversations, as a page gives it.
#[must_use]
pub fn is_place(place: &str) -> bool {
    read_place(place).is_some_and(|(_, name)| name.is_empty() || is_conversation_id(&name))
}

/// Reads a place; one that nobody gave is the beginning.
pub fn read_place(place: &str) -> Option<(i64, String)> {
    let (time, name) = place.split_once('~')?;
    Some((time.parse().ok()?, name.to_owned()))
}

/// The moment, in milliseconds since 1970.
pub fn now() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}
