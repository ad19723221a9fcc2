//! The steps of checks and prunes that a store offers.

use std::collections::BTreeMap;

use super::StoreError;
use super::record::EpochHead;

/// The rows that one batch looked at.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Batch {
    /// The number of rows.
    pub rows: u64,
    /// The key of the last row; `None` behind the end.
    pub last: Option<String>,
    /// Damage, a line each.
    pub found: Vec<String>,
}

/// An epoch as its row is stored, texts by digest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EpochRow {
    /// The head.
    pub head: EpochHead,
    /// The digests of the texts, as JSON.
    pub texts: String,
    /// The digest of the description.
    pub description: String,
    /// The digest of the request.
    pub request: String,
    /// The digest of the row.
    pub seal: Option<String>,
    /// True if its conversation is there.
    pub has_conversation: bool,
}

/// The digests that some epochs refer to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct References {
    /// The number of epochs.
    pub rows: u64,
    /// The key of the last epoch; `None` behind the end.
    pub last: Option<EpochKey>,
    /// The digests.
    pub digests: Vec<String>,
}

/// The primary key of an epoch. The default one stands before all others.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct EpochKey {
    /// The conversation.
    pub conversation: String,
    /// The number.
    pub number: u64,
}

impl EpochKey {
    /// Writes the key as text.
    #[must_use]
    pub fn text(&self) -> String {
        format!("{}/{}", self.conversation, self.number)
    }

    /// Reads a key that [`text`](Self::text) wrote.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (conversation, number) = text.rsplit_once('/')?;
        Some(Self { conversation: conversation.to_owned(), number: number.parse().ok()? })
    }
}

/// The short steps that a store offers for checks and prunes.
///
/// The steps of a prune rest on one promise. After [`doom`](Self::doom) and [`settle`](Self::settle) have returned,
/// a writer that opens an epoch with a doomed text takes that text off the list in the same transaction, or, if the
/// text is gone already, stores it again or fails as a whole. `prune` reads all epochs after that point, and so nothing
/// that is still on its list when it is done has an epoch.
pub trait Maintenance {
    /// Looks for damage in the file itself, where there is one.
    fn check_file(&self) -> Result<Vec<String>, StoreError>;

    /// Compares the next texts with their digests. Keys are digests.
    fn check_texts(&self, after: &str, most: usize) -> Result<Batch, StoreError>;

    /// Checks that the next conversations have their current epochs. Keys are names.
    fn check_conversations(&self, after: &str, most: usize) -> Result<Batch, StoreError>;

    /// Compares the next versions of the template with their seals. Keys are versions.
    fn check_templates(&self, after: u64, most: usize) -> Result<Batch, StoreError>;

    /// Reads the rows of the next epochs.
    fn epoch_rows(&self, after: &EpochKey, most: usize) -> Result<Vec<EpochRow>, StoreError>;

    /// Reads the lengths of texts; those that are not there are left out.
    fn text_sizes(&self, digests: &[&str]) -> Result<BTreeMap<String, u64>, StoreError>;

    /// Reads texts; those that are not there are left out.
    fn text_bytes(&self, digests: &[&str]) -> Result<BTreeMap<String, Vec<u8>>, StoreError>;

    /// Reads what the next epochs refer to.
    fn references(&self, after: &EpochKey, most: usize) -> Result<References, StoreError>;

    /// Reads the digests of the next texts.
    fn texts(&self, after: &str, most: usize) -> Result<Vec<String>, StoreError>;

    /// Estimates how many texts there are; rather too many than too few.
    fn texts_about(&self) -> Result<u64, StoreError>;

    /// Puts texts on the list of a prune.
    fn doom(&self, run: &str, digests: &[String]) -> Result<(), StoreError>;

    /// Waits until every epoch whose writer may not have seen the list is stored.
    fn settle(&self) -> Result<(), StoreError>;

    /// Reads the next texts on the list of a prune.
    fn doomed(&self, run: &str, after: &str, most: usize) -> Result<Vec<String>, StoreError>;

    /// Takes texts off the list.
    fn spare(&self, digests: &[String]) -> Result<(), StoreError>;

    /// Removes some texts that are on the list of a prune; tells how many, and their bytes.
    fn remove_doomed(&self, run: &str, most: usize) -> Result<(u64, u64), StoreError>;

    /// Replaces what is kept about an interrupted prune: values by name.
    fn keep_progress(&self, values: &[(String, Vec<u8>)]) -> Result<(), StoreError>;

    /// Takes a value that is kept about an interrupted prune: of several that ask for it, one gets it.
    fn take_progress(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError>;
}
