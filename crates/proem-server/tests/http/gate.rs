//! A store that calls a function before some of its operations.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use proem::store::traffic::{
    CallInsert, CallQuery, ChainRow, ListPage, ListQuery, StoredCall, UsageQuery, UsageRow,
};
use proem_store::{
    CallStore, Commit, CompactionRecord, CompactionStore, ConversationHead, Current, CurrentHead, Epoch,
    EpochHead, History, MemoryStore, NewTemplate, Page, Query, Store, StoreError, TemplateHead,
    TemplateStore, TemplateVersion, TrafficStore, WorkspaceRecord, WorkspaceStore,
};

type StoreResult<T> = Result<T, StoreError>;

/// A store in memory that calls `before` when the template is read.
pub(crate) struct Gate {
    pub(crate) store: MemoryStore,
    pub(crate) before: Box<dyn Fn() -> Result<(), StoreError> + Send + Sync>,
    /// Called between the read of the current epoch and the answer.
    pub(crate) then: Box<dyn Fn(&MemoryStore) + Send + Sync>,
    /// The answer to `is_near` outside of work threads.
    pub(crate) near: fn() -> bool,
    /// Refuses writes, as a full disk does.
    pub(crate) is_full: AtomicBool,
    /// The number of refused writes.
    pub(crate) refused: AtomicUsize,
}

impl Gate {
    pub(crate) fn new(before: impl Fn() -> Result<(), StoreError> + Send + Sync + 'static) -> Self {
        let (is_full, refused) = (AtomicBool::new(false), AtomicUsize::new(0));
        Self {
            store: MemoryStore::default(),
            before: Box::new(before),
            then: Box::new(|_| ()),
            near: || false,
            is_full,
            refused,
        }
    }

    /// Refuses a write while there is no room for it.
    fn write(&self) -> StoreResult<()> {
        if !self.is_full.load(Ordering::Relaxed) {
            return Ok(());
        }
        self.refused.fetch_add(1, Ordering::Relaxed);
        Err(StoreError::Unavailable { place: "the gate".into(), why: "no room".into() })
    }
}

impl Store for Gate {
    fn current(&self, conversation: &str) -> StoreResult<Option<Current>> {
        let found = self.store.current(conversation);
        (self.then)(&self.store);
        found
    }
    fn current_number(&self, conversation: &str) -> StoreResult<u64> {
        let found = self.store.current_number(conversation);
        (self.then)(&self.store);
        found
    }
    fn current_head(&self, conversation: &str) -> StoreResult<Option<CurrentHead>> {
        let found = self.store.current_head(conversation);
        (self.then)(&self.store);
        found
    }
    fn epoch(&self, conversation: &str, number: u64) -> StoreResult<Option<Epoch>> {
        self.store.epoch(conversation, number)
    }
    fn epochs(&self, conversation: &str) -> StoreResult<Vec<EpochHead>> {
        self.store.epochs(conversation)
    }
    fn history(&self, conversation: &str) -> StoreResult<History> {
        self.store.history(conversation)
    }
    fn open(&self, epoch: &Epoch) -> StoreResult<Epoch> {
        self.write()?;
        self.store.open(epoch)
    }
    fn commit(&self, change: &Commit<'_>) -> StoreResult<bool> {
        self.write()?;
        self.store.commit(change)
    }
    fn conversations(&self, query: &Query) -> StoreResult<Page<ConversationHead>> {
        self.store.conversations(query)
    }
    fn remove(&self, conversation: &str) -> StoreResult<bool> {
        self.store.remove(conversation)
    }
    fn is_near(&self) -> bool {
        (self.near)()
    }
    fn describe(&self) -> String {
        self.store.describe()
    }
}

impl CompactionStore for Gate {
    fn begin_compaction(&self, compaction: &CompactionRecord) -> StoreResult<()> {
        self.write()?;
        self.store.begin_compaction(compaction)
    }
    fn compaction(&self, token: &str) -> StoreResult<Option<CompactionRecord>> {
        self.store.compaction(token)
    }
    fn end_compaction(&self, token: &str, opened: Option<u64>) -> StoreResult<bool> {
        self.write()?;
        self.store.end_compaction(token, opened)
    }
}

impl WorkspaceStore for Gate {
    fn put_workspace(&self, workspace: &WorkspaceRecord) -> StoreResult<()> {
        self.write()?;
        self.store.put_workspace(workspace)
    }
    fn workspace(&self, digest: &str) -> StoreResult<Option<WorkspaceRecord>> {
        self.store.workspace(digest)
    }
    fn workspaces(&self, after: &str, most: usize) -> StoreResult<Vec<String>> {
        self.store.workspaces(after, most)
    }
    fn expire_workspaces(&self, before: i64) -> StoreResult<u64> {
        self.store.expire_workspaces(before)
    }
}

impl CallStore for Gate {
    fn add_call(&self, conversation: &str, record: &str) -> StoreResult<Option<u64>> {
        self.store.add_call(conversation, record)
    }
    fn calls(&self, conversation: &str) -> StoreResult<Vec<String>> {
        self.store.calls(conversation)
    }
    fn last_call(&self, conversation: &str) -> StoreResult<Option<String>> {
        self.store.last_call(conversation)
    }
}

impl TrafficStore for Gate {
    fn put_calls(&self, calls: &[CallInsert]) -> StoreResult<Vec<Option<u64>>> {
        self.write()?;
        self.store.put_calls(calls)
    }
    fn stored_call(&self, id: &str) -> StoreResult<Option<StoredCall>> {
        self.store.stored_call(id)
    }
    fn list_calls(&self, query: &CallQuery) -> StoreResult<Page<StoredCall>> {
        self.store.list_calls(query)
    }
    fn chains(&self, conversation: &str, after: u64) -> StoreResult<Vec<ChainRow>> {
        self.store.chains(conversation, after)
    }
    fn conversations_of_first(&self, first: &str, most: usize) -> StoreResult<Vec<String>> {
        self.store.conversations_of_first(first, most)
    }
    fn usage(&self, query: &UsageQuery) -> StoreResult<Vec<UsageRow>> {
        self.store.usage(query)
    }
    fn list_conversations(&self, query: &ListQuery) -> StoreResult<ListPage> {
        self.store.list_conversations(query)
    }
    fn expire_calls(&self, rows_before: i64, chains_before: i64, most: usize) -> StoreResult<u64> {
        self.store.expire_calls(rows_before, chains_before, most)
    }
    fn forget_calls(&self, before: i64) -> StoreResult<u64> {
        self.store.forget_calls(before)
    }
    fn account_key(&self) -> StoreResult<Vec<u8>> {
        self.store.account_key()
    }
}

impl TemplateStore for Gate {
    fn template(&self) -> StoreResult<Option<TemplateVersion>> {
        (self.before)()?;
        self.store.template()
    }
    fn template_version(&self, version: u64) -> StoreResult<Option<TemplateVersion>> {
        self.store.template_version(version)
    }
    fn template_versions(&self, below: Option<u64>, most: usize) -> StoreResult<Vec<TemplateVersion>> {
        (self.before)()?;
        self.store.template_versions(below, most)
    }
    fn live_template(&self) -> StoreResult<Option<TemplateVersion>> {
        (self.before)()?;
        self.store.live_template()
    }
    fn add_template(&self, new: &NewTemplate<'_>) -> StoreResult<TemplateVersion> {
        self.store.add_template(new)
    }
    fn set_template_draft(&self, version: u64, is_draft: bool) -> StoreResult<bool> {
        self.store.set_template_draft(version, is_draft)
    }
    fn template_uses(&self) -> StoreResult<BTreeMap<u64, u64>> {
        self.store.template_uses()
    }
    fn restore_template(&self, template: &TemplateVersion) -> StoreResult<()> {
        self.store.restore_template(template)
    }
    fn template_heads(&self, below: Option<u64>, most: usize) -> StoreResult<Vec<TemplateHead>> {
        self.store.template_heads(below, most)
    }
}
