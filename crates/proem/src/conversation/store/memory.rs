//! A store in the memory of the process, for tests and experiments.

mod traffic;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard};

use super::record::{
    self, Commit, CompactionRecord, ConversationHead, Current, CurrentHead, Epoch, EpochHead, History,
    NewTemplate, Page, PageKey, Query, StateRecord, TemplateHead, TemplateVersion,
};
use super::{CallStore, CompactionStore, Store, StoreError, TemplateStore, WorkspaceRecord, WorkspaceStore};

/// A store in memory. Its content is lost when the process ends.
#[derive(Debug, Default)]
pub struct MemoryStore {
    content: Mutex<Content>,
}

#[derive(Debug, Default)]
struct Content {
    conversations: BTreeMap<String, Vec<Epoch>>,
    states: BTreeMap<String, StateRecord>,
    compactions: BTreeMap<String, CompactionRecord>,
    templates: Vec<TemplateVersion>,
    calls: BTreeMap<String, Vec<String>>,
    traffic: traffic::Traffic,
    /// The workspaces by digest, with the time of their last use.
    workspaces: BTreeMap<String, (String, i64)>,
    /// The number of writes.
    writes: u64,
}

impl MemoryStore {
    /// Creates an empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Locks the content for reading. Ignores a panic of another thread: no method leaves the content half changed.
    fn read(&self) -> MutexGuard<'_, Content> {
        self.content.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Locks the content for a write, and counts it.
    fn write(&self) -> MutexGuard<'_, Content> {
        let mut content = self.read();
        content.writes += 1;
        content
    }
}

impl Content {
    /// Returns the current epoch of a conversation.
    fn last(&self, conversation: &str) -> Option<&Epoch> {
        self.conversations.get(conversation).and_then(|epochs| epochs.last())
    }

    /// Returns the number of the current epoch; 0 when there is none.
    fn current_number(&self, conversation: &str) -> u64 {
        self.last(conversation).map_or(0, |epoch| epoch.head.number)
    }

    /// Returns the version of the state; 0 when there is none.
    fn state_version(&self, conversation: &str) -> u64 {
        self.states.get(conversation).map_or(0, |state| state.version)
    }
}

impl Store for MemoryStore {
    fn generation(&self) -> Result<Option<u64>, StoreError> {
        Ok(Some(self.read().writes))
    }

    fn current(&self, conversation: &str) -> Result<Option<Current>, StoreError> {
        let content = self.read();
        let state = content.states.get(conversation);
        Ok(content.last(conversation).map(|epoch| Current { epoch: epoch.clone(), state: state.cloned() }))
    }

    fn current_head(&self, conversation: &str) -> Result<Option<CurrentHead>, StoreError> {
        let content = self.read();
        let state_version = content.state_version(conversation);
        Ok(content.last(conversation).map(|epoch| CurrentHead { head: epoch.head.clone(), state_version }))
    }

    fn current_number(&self, conversation: &str) -> Result<u64, StoreError> {
        Ok(self.read().current_number(conversation))
    }

    fn epoch(&self, conversation: &str, number: u64) -> Result<Option<Epoch>, StoreError> {
        let content = self.read();
        let epochs = content.conversations.get(conversation).into_iter().flatten();
        Ok(epochs.into_iter().find(|epoch| epoch.head.number == number).cloned())
    }

    fn history(&self, conversation: &str) -> Result<History, StoreError> {
        let content = self.read();
        let epochs: Vec<EpochHead> = content
            .conversations
            .get(conversation)
            .into_iter()
            .flatten()
            .map(|epoch| epoch.head.clone())
            .collect();
        Ok(History { current: epochs.last().map_or(0, |last| last.number), epochs })
    }

    fn open(&self, epoch: &Epoch) -> Result<Epoch, StoreError> {
        let mut content = self.write();
        let epochs = content.conversations.entry(epoch.head.conversation.clone()).or_default();
        let last = epochs.last().map_or(0, |last| last.head.number);
        if epoch.head.number == last + 1 {
            epochs.push(epoch.clone());
            return Ok(epoch.clone());
        }
        let known = epochs.iter().find(|known| known.head.number == epoch.head.number).cloned();
        if epochs.is_empty() {
            content.conversations.remove(&epoch.head.conversation);
        }
        known.ok_or(StoreError::Conflict { current: last })
    }

    fn commit(&self, change: &Commit<'_>) -> Result<bool, StoreError> {
        let Commit { conversation, state, epoch, .. } = *change;
        let mut content = self.read();
        if !change.fits(content.current_number(conversation), content.state_version(conversation)) {
            return Ok(false);
        }
        content.writes += 1;
        content.states.insert(conversation.to_owned(), state.clone());
        if let Some(epoch) = epoch {
            content.conversations.entry(conversation.to_owned()).or_default().push(epoch.clone());
        }
        Ok(true)
    }

    fn conversations(&self, query: &Query) -> Result<Page<ConversationHead>, StoreError> {
        let content = self.read();
        let mut heads: Vec<ConversationHead> =
            content.conversations.values().filter_map(|epochs| head(epochs)).collect();
        heads.sort_by(|a, b| (b.opened_at, &b.conversation).cmp(&(a.opened_at, &a.conversation)));
        let after = PageKey::from_query(query);
        let is_wanted = |head: &ConversationHead| {
            let is_found = query
                .search
                .as_deref()
                .is_none_or(|part| head.conversation.contains(part) || head.cwd.contains(part));
            is_found && PageKey::new(head) < after
        };
        Ok(Page::new(heads.into_iter().filter(is_wanted).take(query.most + 1).collect(), query.most))
    }

    fn remove(&self, conversation: &str) -> Result<bool, StoreError> {
        let mut content = self.write();
        content.calls.remove(conversation);
        content.states.remove(conversation);
        content.compactions.retain(|_, compaction| compaction.conversation != conversation);
        let is_observed = content.traffic.remove_conversation(conversation);
        Ok(content.conversations.remove(conversation).is_some() || is_observed)
    }

    fn is_near(&self) -> bool {
        true
    }

    fn describe(&self) -> String {
        "memory".into()
    }
}

impl CompactionStore for MemoryStore {
    fn begin_compaction(&self, compaction: &CompactionRecord) -> Result<(), StoreError> {
        self.write().compactions.insert(compaction.token.clone(), compaction.clone());
        Ok(())
    }

    fn compaction(&self, token: &str) -> Result<Option<CompactionRecord>, StoreError> {
        Ok(self.read().compactions.get(token).cloned())
    }

    fn end_compaction(&self, token: &str, opened: Option<u64>) -> Result<bool, StoreError> {
        let mut content = self.write();
        let Some(opened) = opened else { return Ok(content.compactions.remove(token).is_some()) };
        let Some(compaction) = content.compactions.get_mut(token) else { return Ok(false) };
        (compaction.opened, compaction.rebuilt) = (Some(opened), None);
        Ok(true)
    }
}

impl WorkspaceStore for MemoryStore {
    fn put_workspace(&self, workspace: &WorkspaceRecord) -> Result<(), StoreError> {
        self.expire_workspaces(WorkspaceRecord::expiry())?;
        let WorkspaceRecord { digest, text } = workspace.clone();
        self.write().workspaces.insert(digest, (text, record::now()));
        Ok(())
    }

    fn workspace(&self, digest: &str) -> Result<Option<WorkspaceRecord>, StoreError> {
        let mut content = self.read();
        let Some((text, used_at)) = content.workspaces.get_mut(digest) else { return Ok(None) };
        *used_at = record::now();
        WorkspaceRecord { digest: digest.to_owned(), text: text.clone() }.checked().map(Some)
    }

    fn workspaces(&self, after: &str, most: usize) -> Result<Vec<String>, StoreError> {
        let content = self.read();
        let digests = content.workspaces.keys().filter(|digest| digest.as_str() > after);
        Ok(digests.take(most).cloned().collect())
    }

    fn expire_workspaces(&self, before: i64) -> Result<u64, StoreError> {
        let mut content = self.read();
        let used: BTreeSet<String> =
            content.conversations.values().flatten().filter_map(Epoch::workspace).collect();
        let known = content.workspaces.len();
        content.workspaces.retain(|digest, (_, used_at)| *used_at >= before || used.contains(digest));
        Ok((known - content.workspaces.len()) as u64)
    }
}

impl CallStore for MemoryStore {
    fn add_call(&self, conversation: &str, record: &str) -> Result<Option<u64>, StoreError> {
        let mut content = self.write();
        if !content.conversations.contains_key(conversation) {
            return Ok(None);
        }
        let calls = content.calls.entry(conversation.to_owned()).or_default();
        calls.push(record.to_owned());
        Ok(Some(calls.len() as u64))
    }

    fn calls(&self, conversation: &str) -> Result<Vec<String>, StoreError> {
        Ok(self.read().calls.get(conversation).cloned().unwrap_or_default())
    }

    fn last_call(&self, conversation: &str) -> Result<Option<String>, StoreError> {
        Ok(self.read().calls.get(conversation).and_then(|calls| calls.last()).cloned())
    }
}

impl TemplateStore for MemoryStore {
    fn template_versions(&self, below: Option<u64>, most: usize) -> Result<Vec<TemplateVersion>, StoreError> {
        let content = self.read();
        let versions = content.templates.iter().rev();
        Ok(versions
            .filter(|template| below.is_none_or(|below| template.version < below))
            .take(most)
            .cloned()
            .collect())
    }

    fn add_template(&self, new: &NewTemplate<'_>) -> Result<TemplateVersion, StoreError> {
        let mut content = self.write();
        let current = content.templates.last().map_or(0, |template| template.version);
        if new.expected.is_some_and(|expected| expected != current) {
            return Err(StoreError::Conflict { current });
        }
        let template = new.version(current + 1, record::now());
        content.templates.push(template.clone());
        Ok(template)
    }

    fn set_template_draft(&self, version: u64, is_draft: bool) -> Result<bool, StoreError> {
        let mut content = self.write();
        let found = content.templates.iter_mut().find(|template| template.version == version);
        Ok(found.map(|template| template.is_draft = is_draft).is_some())
    }

    fn template_uses(&self) -> Result<BTreeMap<u64, u64>, StoreError> {
        let content = self.read();
        let mut counts = BTreeMap::new();
        for epochs in content.conversations.values() {
            let versions: BTreeSet<u64> =
                epochs.iter().filter_map(|epoch| epoch.head.template_version).collect();
            for version in versions {
                *counts.entry(version).or_default() += 1;
            }
        }
        Ok(counts)
    }

    fn restore_template(&self, template: &TemplateVersion) -> Result<(), StoreError> {
        let mut content = self.write();
        let current = content.templates.last().map_or(0, |last| last.version);
        if template.version != current + 1 {
            return Err(StoreError::Conflict { current });
        }
        content.templates.push(template.clone());
        Ok(())
    }

    fn template_heads(&self, below: Option<u64>, most: usize) -> Result<Vec<TemplateHead>, StoreError> {
        let head = |template: &TemplateVersion| TemplateHead {
            version: template.version,
            bytes: template.text.len() as u64,
            author: template.author.clone().map(TemplateHead::author),
            written_at: template.written_at,
            message: template.message.clone(),
            is_draft: template.is_draft,
        };
        let content = self.read();
        let versions = content.templates.iter().rev();
        let wanted = versions.filter(|template| below.is_none_or(|below| template.version < below));
        Ok(wanted.take(most).map(head).collect())
    }
}

fn head(epochs: &[Epoch]) -> Option<ConversationHead> {
    let (first, last) = (&epochs.first()?.head, &epochs.last()?.head);
    Some(ConversationHead {
        conversation: last.conversation.clone(),
        epoch: last.number,
        reason: last.reason.clone(),
        profile: last.profile.clone(),
        cwd: last.cwd.clone(),
        model: last.model.clone(),
        began_at: first.opened_at,
        opened_at: last.opened_at,
    })
}
