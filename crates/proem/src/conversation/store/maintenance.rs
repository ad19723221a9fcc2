//! The steps of checks and prunes that a store offers.

use std::collections::BTreeMap;

use super::StoreError;
use super::record::EpochRow;

/// The rows of one batch of a check.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Batch {
    /// The number of rows.
    pub rows: u64,
    /// The key of the last row; `None` after the end.
    pub last: Option<String>,
    /// The damage, one line each.
    pub found: Vec<String>,
}

/// The row of an epoch, as a check reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EpochEntry {
    /// The row.
    pub row: EpochRow,
    /// True if the store has its conversation.
    pub has_conversation: bool,
}

/// The digests of the texts of some epochs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct References {
    /// The number of epochs.
    pub rows: u64,
    /// The key of the last epoch; `None` after the end.
    pub last: Option<EpochKey>,
    /// The digests.
    pub digests: Vec<String>,
}

/// The primary key of an epoch. The default key comes before all others.
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

/// The short steps of checks and prunes, which each kind of store implements.
///
/// A prune is safe because of one guarantee. After [`doom`](Self::doom) and [`settle`](Self::settle) have returned, a
/// writer that opens an epoch with a listed text takes that text off the list in the same transaction. If the text is
/// already removed, the writer stores it again or fails as a whole. `prune` reads all epochs after that point, so no
/// epoch uses the texts that are then still on the list.
pub trait Maintenance {
    /// Looks for damage in the file itself, where there is one.
    fn check_file(&self) -> Result<Vec<String>, StoreError>;

    /// Compares the next texts with their digests. Keys are digests.
    fn check_texts(&self, after: &str, most: usize) -> Result<Batch, StoreError>;

    /// Checks that the next conversations have their current epochs. Keys are conversation ids.
    fn check_conversations(&self, after: &str, most: usize) -> Result<Batch, StoreError>;

    /// Compares the next states with their seals. Keys are conversation ids.
    fn check_states(&self, after: &str, most: usize) -> Result<Batch, StoreError>;

    /// Compares the next versions of the template with their seals. Keys are versions.
    fn check_templates(&self, after: u64, most: usize) -> Result<Batch, StoreError>;

    /// Compares the next workspaces with their digests, and looks for epochs without theirs. Keys are digests.
    fn check_workspaces(&self, after: &str, most: usize) -> Result<Batch, StoreError>;

    /// Reads the rows of the next epochs.
    fn epoch_rows(&self, after: &EpochKey, most: usize) -> Result<Vec<EpochEntry>, StoreError>;

    /// Reads the lengths of texts. Missing texts are left out.
    fn text_sizes(&self, digests: &[&str]) -> Result<BTreeMap<String, u64>, StoreError>;

    /// Reads texts. Missing texts are left out.
    fn text_bytes(&self, digests: &[&str]) -> Result<BTreeMap<String, Vec<u8>>, StoreError>;

    /// Reads the digests of the texts of the next epochs.
    fn references(&self, after: &EpochKey, most: usize) -> Result<References, StoreError>;

    /// Reads the digests of the next texts.
    fn texts(&self, after: &str, most: usize) -> Result<Vec<String>, StoreError>;

    /// Estimates the number of texts, rather too high than too low.
    fn text_count_estimate(&self) -> Result<u64, StoreError>;

    /// Adds texts to the list of a prune.
    fn doom(&self, run: &str, digests: &[String]) -> Result<(), StoreError>;

    /// Waits for the end of every transaction that stores an epoch and began before the list was complete.
    fn settle(&self) -> Result<(), StoreError>;

    /// Reads the next texts on the list of a prune.
    fn doomed(&self, run: &str, after: &str, most: usize) -> Result<Vec<String>, StoreError>;

    /// Takes texts off the list, because an epoch uses them.
    fn spare(&self, digests: &[String]) -> Result<(), StoreError>;

    /// Removes some texts on the list of a prune; returns their number and their bytes.
    fn remove_doomed(&self, run: &str, most: usize) -> Result<(u64, u64), StoreError>;

    /// Replaces the stored state of an interrupted prune: values by name.
    fn save_progress(&self, values: &[(String, Vec<u8>)]) -> Result<(), StoreError>;

    /// Removes and returns one value of the stored state of a prune. Of several concurrent callers one gets it.
    fn take_progress(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError>;
}
