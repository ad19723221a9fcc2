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

mod columns;
mod conversations;
mod error;
mod location;
mod maintenance;
mod memory;
mod record;
mod sqlite;
mod texts;
mod transfer;
mod url;

#[cfg(feature = "postgres")]
mod postgresql;

use std::ops::ControlFlow;

pub use conversations::{
    Answer, Begun, ConversationError, Conversations, Drift, Kept, Plan, Rebuilt, TIME_OF_COMPACTION,
};
pub use error::{Explanation, StoreError};
pub use location::{StoreLocation, redacted};
pub use maintenance::{
    Batch, Cursor, EpochEntry, EpochKey, Maintenance, OnProgress, Progress, PruneReport, References, check,
    prune,
};
pub use memory::MemoryStore;
#[cfg(feature = "postgres")]
pub use postgresql::PostgresStore;
pub use record::{
    CompactionRecord, ConversationHead, Epoch, EpochHead, EpochRow, History, Page, Query, TemplateHead,
    TemplateVersion, is_conversation_id, is_page_key,
};
pub use sqlite::SqliteStore;
pub use transfer::{ExportLine, TransferCounts, TransferError, export, import};

/// A store of prompts. Every method does all of its work durably, or none of it.
pub trait Store: CallStore + CompactionStore + TemplateStore + Send + Sync {
    /// A number of the store's state: as long as it is the same, nobody has written anything, in whatever process.
    /// What is read after it was asked for holds until it is another one. `None` when that cannot be told without
    /// asking for what is wanted.
    fn generation(&self) -> Result<Option<u64>, StoreError> {
        Ok(None)
    }

    /// Reads the current epoch of a conversation.
    fn current(&self, conversation: &str) -> Result<Option<Epoch>, StoreError>;

    /// Reads the current epoch of a conversation without its texts.
    fn current_head(&self, conversation: &str) -> Result<Option<EpochHead>, StoreError>;

    /// Reads the number of the current epoch; 0 when there is none.
    fn current_number(&self, conversation: &str) -> Result<u64, StoreError>;

    /// Reads one epoch of a conversation.
    fn epoch(&self, conversation: &str, number: u64) -> Result<Option<Epoch>, StoreError>;

    /// Reads all epochs of a conversation, the first one first.
    fn epochs(&self, conversation: &str) -> Result<Vec<EpochHead>, StoreError> {
        Ok(self.history(conversation)?.epochs)
    }

    /// Reads all epochs of a conversation and the number of the current one, as they are at one moment.
    fn history(&self, conversation: &str) -> Result<History, StoreError>;

    /// Stores an epoch if its number is the next one of its conversation. Returns the epoch that is stored under that
    /// number: that of another writer, if it was first.
    fn open(&self, epoch: &Epoch) -> Result<Epoch, StoreError>;

    /// Lists conversations, the one with the newest epoch first.
    fn conversations(&self, query: &Query) -> Result<Page<ConversationHead>, StoreError>;

    /// Removes a conversation; tells whether there was one.
    fn remove(&self, conversation: &str) -> Result<bool, StoreError>;

    /// Returns the steps of checks and prunes; `None` for a store without data that could be damaged or left over.
    fn maintenance(&self) -> Option<&dyn Maintenance> {
        None
    }

    /// Tells whether reads come from this machine's memory or disk within microseconds: then a caller that must not block
    /// may read directly.
    fn is_near(&self) -> bool {
        false
    }

    /// Returns the kind of the store and its place for people, without a password.
    fn describe(&self) -> String;
}

/// The compactions in a store.
pub trait CompactionStore {
    /// Stores a compaction that begins.
    fn begin_compaction(&self, compaction: &CompactionRecord) -> Result<(), StoreError>;

    /// Reads a compaction by its token.
    fn compaction(&self, token: &str) -> Result<Option<CompactionRecord>, StoreError>;

    /// Ends a compaction: stores the epoch that it opened until it expires, or removes it if it opened none. Tells
    /// whether there was one.
    fn end_compaction(&self, token: &str, opened: Option<u64>) -> Result<bool, StoreError>;
}

/// The records of calls to providers in a store, by conversation.
pub trait CallStore {
    /// Adds the record of a call to a conversation, and returns its number; `None` when there is no such conversation.
    fn add_call(&self, conversation: &str, record: &str) -> Result<Option<u64>, StoreError>;

    /// Reads the records of all calls of a conversation, the first one first.
    fn calls(&self, conversation: &str) -> Result<Vec<String>, StoreError>;

    /// Reads the record of the last call of a conversation.
    fn last_call(&self, conversation: &str) -> Result<Option<String>, StoreError>;
}

/// The versions of the template in a store.
pub trait TemplateStore {
    /// Reads the current template.
    fn template(&self) -> Result<Option<TemplateVersion>, StoreError> {
        Ok(self.template_versions(None, 1)?.into_iter().next())
    }

    /// Reads one version of the template.
    fn template_version(&self, version: u64) -> Result<Option<TemplateVersion>, StoreError> {
        let newest = self.template_versions(version.checked_add(1), 1)?.into_iter().next();
        Ok(newest.filter(|template| template.version == version))
    }

    /// Reads versions of the template, the newest first, below a version if one is given.
    fn template_versions(&self, below: Option<u64>, most: usize) -> Result<Vec<TemplateVersion>, StoreError>;

    /// Stores a new version. Fails with a conflict when `expected` is given and is not the current version.
    fn put_template(
        &self,
        text: &str,
        author: Option<&str>,
        expected: Option<u64>,
    ) -> Result<TemplateVersion, StoreError>;

    /// Stores a version of a backup as it was, if it is the next one.
    fn restore_template(&self, template: &TemplateVersion) -> Result<(), StoreError>;

    /// Reads versions of the template as [`template_versions`](Self::template_versions) does, without their texts.
    fn template_heads(&self, below: Option<u64>, most: usize) -> Result<Vec<TemplateHead>, StoreError>;
}

impl dyn Store + '_ {
    /// Looks for damage in the whole store: see [`check`].
    pub fn check(&self) -> Result<Vec<String>, StoreError> {
        let mut found = Vec::new();
        check(self, None, &mut |progress| {
            found.extend_from_slice(progress.found);
            ControlFlow::Continue(())
        })?;
        Ok(found)
    }

    /// Removes all texts that no epoch uses, and returns the number of their bytes: see [`prune`].
    pub fn prune(&self) -> Result<u64, StoreError> {
        Ok(prune(self, &mut |_| ControlFlow::Continue(()))?.bytes)
    }
}

/// Opens the store of a name; see [`StoreLocation::parse`] for the forms of names.
pub fn open(name: &str) -> Result<Box<dyn Store>, StoreError> {
    StoreLocation::parse(name)?.open()
}
