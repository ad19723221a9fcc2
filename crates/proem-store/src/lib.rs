//! Keeps what must not change: frozen prompts of conversations, epoch by epoch, and versions of templates.
//!
//! A [`Store`] keeps; [`Conversations`] decides when a prompt is built. Acknowledged means durable, and of
//! several who build the first prompt of a conversation at once, all get the bytes of the one that won.

mod maintenance;
mod place;
mod sqlite;
mod texts;
mod transfer;
mod url;

#[cfg(feature = "postgres")]
mod postgresql;

pub use maintenance::{Cursor, MaintainStore, Progress, Pruned, Tell, check, prune};
pub use place::{Place, redacted};
#[cfg(feature = "postgres")]
pub use postgresql::PostgresStore;
pub use proem::conversation::{
    Answer, ConversationError, Conversations, Drift, LoadedEpoch, Plan, Rebuilt, StartedCompaction,
    TIME_OF_COMPACTION,
};
use proem::store::record;
pub use proem::store::{
    Batch, Compaction, ConversationHead, Epoch, EpochHead, EpochKey, EpochRow, History, Maintenance,
    MemoryStore, Page, Query, References, Store, StoreError, TemplateHead, TemplateVersion,
    is_conversation_id, is_place,
};
pub use sqlite::SqliteStore;
pub use transfer::{Record, TransferError, Transferred, export, import};

/// Opens the store that a text names; [`Place::parse`] says how it may be named.
pub fn open(place: &str) -> Result<Box<dyn Store>, StoreError> {
    Place::parse(place)?.open()
}
