//! The storage of conversations: the `Store` trait, its records, and a store in memory. The crate `proem-store` has the
//! drivers for databases.

#[doc(hidden)]
pub mod columns;
mod error;
mod listed;
mod maintenance;
mod memory;
#[doc(hidden)]
pub mod record;
mod template_record;
#[doc(hidden)]
pub mod traffic;
#[doc(hidden)]
pub mod workspace;

use std::collections::BTreeMap;

pub use error::{Explanation, StoreError};
pub use maintenance::{Batch, EpochEntry, EpochKey, Maintenance, References};
pub use memory::MemoryStore;
pub use record::{
    Commit, CompactionRecord, ConversationHead, Current, CurrentHead, Epoch, EpochHead, EpochRow, History,
    NewTemplate, Page, Query, StateRecord, TemplateHead, TemplateVersion, TextDigests, is_conversation_id,
    is_page_key,
};
pub use traffic::TrafficStore;
pub use workspace::WorkspaceRecord;

/// A store of prompts. Every method does all of its work durably, or none of it.
pub trait Store:
    CallStore + CompactionStore + TemplateStore + TrafficStore + WorkspaceStore + Send + Sync
{
    /// Returns a number that changes with every write of any process. A value that is read after it is current for as long
    /// as the number stays the same. `None` for a store that has no such number.
    fn generation(&self) -> Result<Option<u64>, StoreError> {
        Ok(None)
    }

    /// Reads the current epoch of a conversation and its state, as they are at one moment.
    fn current(&self, conversation: &str) -> Result<Option<Current>, StoreError>;

    /// Reads the current epoch of a conversation and the version of its state, without texts.
    fn current_head(&self, conversation: &str) -> Result<Option<CurrentHead>, StoreError>;

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

    /// Writes the state of a conversation, and its next epoch if the change has one. Tells whether it was written.
    ///
    /// Returns false, with nothing written, if the stored state does not have the version that the change is based on, if
    /// the epoch is not the next one of the conversation, if there is neither the conversation nor a first epoch, or if the
    /// version of the new state is not greater than the old one. Of several concurrent changes based on one version, one is
    /// written.
    fn commit(&self, change: &Commit<'_>) -> Result<bool, StoreError>;

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

/// The workspaces that requests brought, by digest. The store keeps each of them once. One that no epoch refers to is removed
/// when it was not used for some days.
pub trait WorkspaceStore {
    /// Stores a workspace, or marks it as used now. Removes expired ones.
    fn put_workspace(&self, workspace: &WorkspaceRecord) -> Result<(), StoreError>;

    /// Reads a workspace, and marks it as used now.
    fn workspace(&self, digest: &str) -> Result<Option<WorkspaceRecord>, StoreError>;

    /// Lists the digests of the next workspaces.
    fn workspaces(&self, after: &str, most: usize) -> Result<Vec<String>, StoreError>;

    /// Removes the workspaces that were last used before a time and that no epoch refers to. Returns their number.
    fn expire_workspaces(&self, before: i64) -> Result<u64, StoreError>;
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

    /// Reads the template that new conversations begin with: the newest version that is not a draft.
    fn live_template(&self) -> Result<Option<TemplateVersion>, StoreError> {
        /// The number of versions that are read at a time: drafts are few.
        const BATCH: usize = 4;
        let mut below = None;
        loop {
            let batch = self.template_versions(below, BATCH)?;
            let (is_last, oldest) = (batch.len() < BATCH, batch.last().map(|template| template.version));
            let live = batch.into_iter().find(|template| !template.is_draft);
            if live.is_some() || is_last {
                return Ok(live);
            }
            below = oldest;
        }
    }

    /// Reads the number of the version that new conversations begin with, without its text; `None` without one.
    fn live_version(&self) -> Result<Option<u64>, StoreError> {
        /// The number of versions that are read at a time.
        const BATCH: usize = 16;
        let mut below = None;
        loop {
            let batch = self.template_heads(below, BATCH)?;
            let live = batch.iter().find(|head| !head.is_draft).map(|head| head.version);
            if live.is_some() || batch.len() < BATCH {
                return Ok(live);
            }
            below = batch.last().map(|head| head.version);
        }
    }

    /// Stores a new version. Fails with a conflict when `expected` is given and is not the newest version.
    fn add_template(&self, new: &NewTemplate<'_>) -> Result<TemplateVersion, StoreError>;

    /// Stores a new version without a message, which is not a draft.
    fn put_template(
        &self,
        text: &str,
        author: Option<&str>,
        expected: Option<u64>,
    ) -> Result<TemplateVersion, StoreError> {
        self.add_template(&NewTemplate { text, author, expected, ..NewTemplate::default() })
    }

    /// Makes a version a draft, or a draft live. Tells whether there is such a version.
    fn set_template_draft(&self, version: u64, is_draft: bool) -> Result<bool, StoreError>;

    /// Counts the conversations that have an epoch with each version as its base.
    fn template_uses(&self) -> Result<BTreeMap<u64, u64>, StoreError>;

    /// Stores a version of a backup as it was, if it is the next one.
    fn restore_template(&self, template: &TemplateVersion) -> Result<(), StoreError>;

    /// Reads versions of the template as [`template_versions`](Self::template_versions) does, without their texts.
    fn template_heads(&self, below: Option<u64>, most: usize) -> Result<Vec<TemplateHead>, StoreError>;
}
