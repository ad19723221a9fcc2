//! The storage of conversations: the `Store` trait, its records, and a store in memory. The crate `proem-store` has the
//! drivers for databases.

mod error;
mod maintenance;
mod memory;
#[doc(hidden)]
pub mod record;

pub use error::StoreError;
pub use maintenance::{Batch, EpochKey, EpochRow, Maintenance, References};
pub use memory::MemoryStore;
#[doc(hidden)]
pub use memory::page;
pub use record::{
    Compaction, ConversationHead, Epoch, EpochHead, History, Page, Query, TemplateHead, TemplateVersion,
    is_conversation_id, is_place,
};

/// What keeps prompts. Every method either did all of its work durably, or none of it.
pub trait Store: Send + Sync {
    /// A number of the store's state: as long as it is the same, nobody has written anything, in whatever process.
    /// What is read after it was asked for holds until it is another one. `None` when that cannot be told without
    /// asking for what is wanted.
    fn generation(&self) -> Result<Option<u64>, StoreError> {
        Ok(None)
    }

    /// The current epoch of a conversation.
    fn current(&self, conversation: &str) -> Result<Option<Epoch>, StoreError>;

    /// What is known about the current epoch without its texts.
    fn current_head(&self, conversation: &str) -> Result<Option<EpochHead>, StoreError>;

    /// The number of the current epoch; 0 when there is none.
    fn current_number(&self, conversation: &str) -> Result<u64, StoreError>;

    /// One epoch of a conversation.
    fn epoch(&self, conversation: &str, number: u64) -> Result<Option<Epoch>, StoreError>;

    /// All epochs of a conversation, the first one first.
    fn epochs(&self, conversation: &str) -> Result<Vec<EpochHead>, StoreError>;

    /// All epochs of a conversation and the number of the current one, as they were at one moment.
    fn history(&self, conversation: &str) -> Result<History, StoreError>;

    /// Opens an epoch: stores it if its number is the next one of its conversation. Returns what is stored under
    /// that number, which is another one's epoch if that one was first.
    fn open(&self, epoch: &Epoch) -> Result<Epoch, StoreError>;

    /// Conversations, the one with the newest epoch first.
    fn conversations(&self, query: &Query) -> Result<Page<ConversationHead>, StoreError>;

    /// Forgets a conversation; tells whether there was one.
    fn remove(&self, conversation: &str) -> Result<bool, StoreError>;

    /// Keeps a compaction that was begun.
    fn begin_compaction(&self, compaction: &Compaction) -> Result<(), StoreError>;

    /// A compaction that was begun.
    fn compaction(&self, token: &str) -> Result<Option<Compaction>, StoreError>;

    /// Ends a compaction: keeps which epoch it opened until its time is over, or forgets it if it opened none. Tells
    /// whether there was one.
    fn end_compaction(&self, token: &str, opened: Option<u64>) -> Result<bool, StoreError>;

    /// Keeps what is known about a call of a conversation, and gives it a number; `None` when there is no such
    /// conversation.
    fn add_call(&self, conversation: &str, record: &str) -> Result<Option<u64>, StoreError>;

    /// What is known about the calls of a conversation, the first one first.
    fn calls(&self, conversation: &str) -> Result<Vec<String>, StoreError>;

    /// What is known about the last call of a conversation.
    fn last_call(&self, conversation: &str) -> Result<Option<String>, StoreError>;

    /// The current template.
    fn template(&self) -> Result<Option<TemplateVersion>, StoreError>;

    /// One version of the template.
    fn template_version(&self, version: u64) -> Result<Option<TemplateVersion>, StoreError>;

    /// Versions of the template, the newest first, below a version if one is given.
    fn template_versions(&self, below: Option<u64>, most: usize) -> Result<Vec<TemplateVersion>, StoreError>;

    /// Stores a new version. Fails with a conflict when the current one is not `expected`, if that is said.
    fn put_template(
        &self,
        text: &str,
        author: Option<&str>,
        expected: Option<u64>,
    ) -> Result<TemplateVersion, StoreError>;

    /// Stores a version as it was, if it is the next one: for a restored backup.
    fn restore_template(&self, template: &TemplateVersion) -> Result<(), StoreError>;

    /// Versions of the template as [`template_versions`](Self::template_versions) gives them, without reading texts.
    fn template_heads(&self, below: Option<u64>, most: usize) -> Result<Vec<TemplateHead>, StoreError>;

    /// The steps of checks and prunes; `None` for a store that keeps nothing which could be damaged or left over.
    fn maintenance(&self) -> Option<&dyn Maintenance> {
        None
    }

    /// Tells whether reads come from this machine's memory or disk, in microseconds: then asking need not be
    /// left to a thread that may wait.
    fn is_near(&self) -> bool {
        false
    }

    /// What kind it is, and where, for people; without a password.
    fn describe(&self) -> String;
}
