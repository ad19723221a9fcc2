//! A store that forgets everything when the program ends: for tests and for trying things out.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

use super::record::{
    self, Compaction, ConversationHead, Epoch, EpochHead, History, Page, Query, TemplateHead, TemplateVersion,
};
use super::{Store, StoreError};

/// Keeps everything in memory.
#[derive(Debug, Default)]
pub struct MemoryStore {
    kept: Mutex<Contents>,
}

#[derive(Debug, Default)]
struct Contents {
    conversations: BTreeMap<String, Vec<Epoch>>,
    compactions: BTreeMap<String, Compaction>,
    templates: Vec<TemplateVersion>,
    calls: BTreeMap<String, Vec<String>>,
    /// How often it was written to.
    writes: u64,
}

impl MemoryStore {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Nobody leaves it half changed: a panic elsewhere does no harm.
    fn kept(&self) -> MutexGuard<'_, Contents> {
        self.kept.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// The same for somebody who writes.
    fn changed(&self) -> MutexGuard<'_, Contents> {
        let mut kept = self.kept();
        kept.writes += 1;
        kept
    }
}

impl Store for MemoryStore {
    fn generation(&self) -> Result<Option<u64>, StoreError> {
        Ok(Some(self.kept().writes))
    }

    fn current(&self, conversation: &str) -> Result<Option<Epoch>, StoreError> {
        Ok(self.kept().conversations.get(conversation).and_then(|epochs| epochs.last()).cloned())
    }

    fn current_head(&self, conversation: &str) -> Result<Option<EpochHead>, StoreError> {
        let kept = self.kept();
        let last = kept.conversations.get(conversation).and_then(|epochs| epochs.last());
        Ok(last.map(|epoch| epoch.head.clone()))
    }

    fn current_number(&self, conversation: &str) -> Result<u64, StoreError> {
        let kept = self.kept();
        Ok(kept
            .conversations
            .get(conversation)
            .and_then(|epochs| epochs.last())
            .map_or(0, |last| last.head.number))
    }

    fn epoch(&self, conversation: &str, number: u64) -> Result<Option<Epoch>, StoreError> {
        let kept = self.kept();
        let epochs = kept.conversations.get(conversation).into_iter().flatten();
        Ok(epochs.into_iter().find(|epoch| epoch.head.number == number).cloned())
    }

    fn epochs(&self, conversation: &str) -> Result<Vec<EpochHead>, StoreError> {
        let kept = self.kept();
        Ok(kept
            .conversations
            .get(conversation)
            .into_iter()
            .flatten()
            .map(|epoch| epoch.head.clone())
            .collect())
    }

    fn history(&self, conversation: &str) -> Result<History, StoreError> {
        let kept = self.kept();
        let epochs: Vec<EpochHead> = kept
            .conversations
            .get(conversation)
            .into_iter()
            .flatten()
            .map(|epoch| epoch.head.clone())
            .collect();
        Ok(History { current: epochs.last().map_or(0, |last| last.number), epochs })
    }

    fn open(&self, epoch: &Epoch) -> Result<Epoch, StoreError> {
        let mut kept = self.changed();
        let epochs = kept.conversations.entry(epoch.head.conversation.clone()).or_default();
        let last = epochs.last().map_or(0, |last| last.head.number);
        if epoch.head.number == last + 1 {
            epochs.push(epoch.clone());
            return Ok(epoch.clone());
        }
        let known = epochs.iter().find(|known| known.head.number == epoch.head.number).cloned();
        if epochs.is_empty() {
            kept.conversations.remove(&epoch.head.conversation);
        }
        known.ok_or(StoreError::Conflict { current: last })
    }

    fn conversations(&self, query: &Query) -> Result<Page<ConversationHead>, StoreError> {
        let kept = self.kept();
        let mut heads: Vec<ConversationHead> =
            kept.conversations.values().filter_map(|epochs| head(epochs)).collect();
        heads.sort_by(|a, b| (b.opened_at, &b.conversation).cmp(&(a.opened_at, &a.conversation)));
        let after = query.after.as_deref().and_then(record::read_place);
        let is_wanted = |head: &ConversationHead| {
            let is_behind = after
                .as_ref()
                .is_none_or(|(time, name)| (head.opened_at, &head.conversation) < (*time, name));
            let is_found = query
                .search
                .as_deref()
                .is_none_or(|part| head.conversation.contains(part) || head.cwd.contains(part));
            is_behind && is_found
        };
        let mut items: Vec<ConversationHead> =
            heads.into_iter().filter(is_wanted).take(query.most + 1).collect();
        Ok(page(&mut items, query.most))
    }

    fn remove(&self, conversation: &str) -> Result<bool, StoreError> {
        let mut kept = self.changed();
        kept.calls.remove(conversation);
        kept.compactions.retain(|_, compaction| compaction.conversation != conversation);
        Ok(kept.conversations.remove(conversation).is_some())
    }

    fn begin_compaction(&self, compaction: &Compaction) -> Result<(), StoreError> {
        self.changed().compactions.insert(compaction.token.clone(), compaction.clone());
        Ok(())
    }

    fn compaction(&self, token: &str) -> Result<Option<Compaction>, StoreError> {
        Ok(self.kept().compactions.get(token).cloned())
    }

    fn end_compaction(&self, token: &str, opened: Option<u64>) -> Result<bool, StoreError> {
        let mut kept = self.changed();
        let Some(opened) = opened else { return Ok(kept.compactions.remove(token).is_some()) };
        let Some(compaction) = kept.compactions.get_mut(token) else { return Ok(false) };
        (compaction.opened, compaction.rebuilt) = (Some(opened), None);
        Ok(true)
    }

    fn add_call(&self, conversation: &str, record: &str) -> Result<Option<u64>, StoreError> {
        let mut kept = self.changed();
        if !kept.conversations.contains_key(conversation) {
            return Ok(None);
        }
        let calls = kept.calls.entry(conversation.to_owned()).or_default();
        calls.push(record.to_owned());
        Ok(Some(calls.len() as u64))
    }

    fn calls(&self, conversation: &str) -> Result<Vec<String>, StoreError> {
        Ok(self.kept().calls.get(conversation).cloned().unwrap_or_default())
    }

    fn last_call(&self, conversation: &str) -> Result<Option<String>, StoreError> {
        Ok(self.kept().calls.get(conversation).and_then(|calls| calls.last()).cloned())
    }

    fn template(&self) -> Result<Option<TemplateVersion>, StoreError> {
        Ok(self.kept().templates.last().cloned())
    }

    fn template_version(&self, version: u64) -> Result<Option<TemplateVersion>, StoreError> {
        Ok(self.kept().templates.iter().find(|template| template.version == version).cloned())
    }

    fn template_versions(&self, below: Option<u64>, most: usize) -> Result<Vec<TemplateVersion>, StoreError> {
        let kept = self.kept();
        let versions = kept.templates.iter().rev();
        Ok(versions
            .filter(|template| below.is_none_or(|below| template.version < below))
            .take(most)
            .cloned()
            .collect())
    }

    fn put_template(
        &self,
        text: &str,
        author: Option<&str>,
        expected: Option<u64>,
    ) -> Result<TemplateVersion, StoreError> {
        let mut kept = self.changed();
        let current = kept.templates.last().map_or(0, |template| template.version);
        if expected.is_some_and(|expected| expected != current) {
            return Err(StoreError::Conflict { current });
        }
        let author = author.map(str::to_owned);
        let template = TemplateVersion {
            version: current + 1,
            text: text.to_owned(),
            author,
            written_at: record::now(),
        };
        kept.templates.push(template.clone());
        Ok(template)
    }

    fn restore_template(&self, template: &TemplateVersion) -> Result<(), StoreError> {
        let mut kept = self.changed();
        let current = kept.templates.last().map_or(0, |last| last.version);
        if template.version != current + 1 {
            return Err(StoreError::Conflict { current });
        }
        kept.templates.push(template.clone());
        Ok(())
    }

    fn template_heads(&self, below: Option<u64>, most: usize) -> Result<Vec<TemplateHead>, StoreError> {
        let head = |template: &TemplateVersion| TemplateHead {
            version: template.version,
            bytes: template.text.len() as u64,
            author: template.author.clone().map(TemplateHead::author),
            written_at: template.written_at,
        };
        let kept = self.kept();
        let versions = kept.templates.iter().rev();
        let wanted = versions.filter(|template| below.is_none_or(|below| template.version < below));
        Ok(wanted.take(most).map(head).collect())
    }

    fn is_near(&self) -> bool {
        true
    }

    fn describe(&self) -> String {
        "memory".into()
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

/// A page of one item less than was asked for; the one too many says that there are more.
pub fn page(items: &mut Vec<ConversationHead>, most: usize) -> Page<ConversationHead> {
    let has_more = items.len() > most;
    items.truncate(most);
    let next =
        items.last().filter(|_| has_more).map(|last| record::place(last.opened_at, &last.conversation));
    Page { items: std::mem::take(items), next }
}
