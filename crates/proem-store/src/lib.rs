//! Stores frozen prompts: the epochs of conversations, and versions of templates.
//!
//! A [`Store`] holds them; [`Conversations`] decides when a prompt is built. A write is durable when it is acknowledged.
//! Concurrent first turns of a conversation all get the bytes of the turn that was stored first.
//!
//! ```
//! use std::sync::Arc;
//!
//! use proem::{Caller, Engine, Request};
//! use proem_core::carrier::Carrier;
//! use proem_store::Conversations;
//!
//! // A path opens a file of SQLite, and `postgres://…` a database of PostgreSQL.
//! let store: Arc<dyn proem_store::Store> = proem_store::open("memory:")?.into();
//! store.put_template("You answer briefly.", Some("docs"), None)?;
//!
//! let conversations = Conversations::new(Arc::clone(&store), Engine::new());
//! let request = Request { profile: Some("template".into()), ..Request::default() };
//! let first = conversations.turn("c-1", &request, Caller::User)?;
//! assert_eq!(first.text(Carrier::System), Some("You answer briefly."));
//!
//! // A later turn gets the same bytes, although the template has changed.
//! store.put_template("You answer at length.", Some("docs"), None)?;
//! let later = conversations.turn("c-1", &request, Caller::User)?;
//! assert_eq!(later.text(Carrier::System), first.text(Carrier::System));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod call_sql;
mod location;
mod maintenance;
mod sqlite;
mod sqlite_rows;
mod texts;
mod transfer;
mod url;

#[cfg(feature = "postgres")]
mod postgresql;

pub use location::{StoreLocation, redacted};
pub use maintenance::{Cursor, MaintainStore, OnProgress, Progress, PruneReport, check, prune};
#[cfg(feature = "postgres")]
pub use postgresql::PostgresStore;
pub use proem::conversation::{
    BranchKind, BranchShape, Branched, Branches, Changed, CheaperAfter, Child, Conversation,
    ConversationError, Conversations, Drift, LoadedEpoch, NoticePrice, Parent, Plan, RebuildPrice,
    StartedCompaction, TIME_OF_COMPACTION,
};
pub use proem::store::{
    Batch, CallStore, Commit, CompactionRecord, CompactionStore, ConversationHead, Current, CurrentHead,
    Epoch, EpochEntry, EpochHead, EpochKey, EpochRow, Explanation, History, Maintenance, MemoryStore,
    NewTemplate, Page, Query, References, StateRecord, Store, StoreError, TemplateHead, TemplateStore,
    TemplateVersion, TrafficStore, WorkspaceRecord, WorkspaceStore, is_conversation_id, is_page_key,
};
use proem::store::{columns, record, workspace};
pub use sqlite::SqliteStore;
pub use sqlite_rows::read_sqlite_rows;
pub use transfer::{ExportLine, TransferCounts, TransferError, export, import};

/// Opens the store of a name; see [`StoreLocation::parse`] for the forms of names.
pub fn open(name: &str) -> Result<Box<dyn Store>, StoreError> {
    StoreLocation::parse(name)?.open()
}
