//! Calls in memory.

use std::collections::{BTreeMap, BTreeSet};

use super::{Content, MemoryStore, head};
use crate::conversation::store::columns::{signed, unsigned};
use crate::conversation::store::record::Page;
use crate::conversation::store::traffic::{
    CallInsert, CallKey, CallQuery, CallRow, CallSums, ChainInsert, ChainRow, DAY_MILLIS, ListKey, ListPage,
    ListQuery, ListedConversation, StoredCall, TrafficStore, UsageBy, UsageQuery, UsageRow, new_key,
    oldest_row,
};
use crate::conversation::store::{ConversationHead, StoreError};

/// Dimension, day, key, verdict, owner.
type SumKey = (UsageBy, i64, String, String, String);

/// The calls of a store.
#[derive(Debug, Default)]
pub(super) struct Traffic {
    rows: BTreeMap<u64, CallRow>,
    chains: BTreeMap<u64, (String, i64, ChainInsert)>,
    sums: BTreeMap<SumKey, CallSums>,
    heads: BTreeMap<String, ListedConversation>,
    last: u64,
    key: Option<Vec<u8>>,
}

impl Traffic {
    fn find(&self, id: &str) -> Option<(u64, &CallRow)> {
        self.rows.iter().find(|(_, row)| row.id == id).map(|(number, row)| (*number, row))
    }

    fn count(&mut self, row: &CallRow, sums: &CallSums) {
        for (by, key) in row.groups() {
            let key = (by, row.day(), key.to_owned(), row.verdict.clone(), row.owner.clone());
            let sum = self.sums.entry(key.clone()).or_default();
            sum.add(sums);
            if sum.calls <= 0 {
                self.sums.remove(&key);
            }
        }
        let head = self.heads.entry(row.conversation.clone()).or_insert_with(|| ListedConversation {
            conversation: row.conversation.clone(),
            began_at: row.at,
            active_at: row.at,
            ..ListedConversation::default()
        });
        head.calls = unsigned(signed(head.calls) + sums.calls);
        head.read = unsigned(signed(head.read) + sums.read);
        head.input = unsigned(signed(head.input) + sums.read + sums.written + sums.uncached);
        head.usd += sums.usd;
        head.lost_usd += sums.lost_usd;
    }

    fn touch(&mut self, row: &CallRow) {
        let Some(head) = self.heads.get_mut(&row.conversation) else { return };
        let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        head.began_at = head.began_at.min(row.at);
        if row.at >= head.active_at {
            head.agent = text(&row.agent).or(head.agent.take());
            head.model = text(&row.model).or(head.model.take());
            head.cwd = text(&row.cwd).unwrap_or_else(|| std::mem::take(&mut head.cwd));
            head.profile = text(&row.profile).unwrap_or_else(|| std::mem::take(&mut head.profile));
            head.active_at = row.at;
            head.last_miss = row.miss().or(head.last_miss.take());
        }
    }

    fn remove(&mut self, number: u64) {
        if let Some(row) = self.rows.remove(&number) {
            self.count(&row, &row.sums.negated());
            self.chains.remove(&number);
        }
    }

    /// Removes a conversation with its calls; the daily sums stay.
    pub(super) fn remove_conversation(&mut self, conversation: &str) -> bool {
        self.rows.retain(|_, row| row.conversation != conversation);
        self.chains.retain(|_, (owner, ..)| owner != conversation);
        self.heads.remove(conversation).is_some()
    }
}

impl MemoryStore {
    fn listed(content: &Content) -> Vec<ListedConversation> {
        let own: BTreeMap<String, ConversationHead> = content
            .conversations
            .iter()
            .filter_map(|(id, epochs)| Some((id.clone(), head(epochs)?)))
            .collect();
        let calls = |id: &str| content.traffic.heads.get(id).cloned().unwrap_or_default();
        let of_own = own.iter().map(|(id, head)| {
            let calls = calls(id);
            ListedConversation {
                conversation: id.clone(),
                is_observed: false,
                epoch: head.epoch,
                reason: head.reason.clone(),
                profile: head.profile.clone(),
                cwd: head.cwd.clone(),
                model: calls.model.clone().or_else(|| head.model.clone()),
                began_at: head.began_at,
                opened_at: head.opened_at,
                active_at: head.opened_at.max(calls.active_at),
                ..calls
            }
        });
        let observed = content.traffic.heads.iter().filter(|(id, _)| !own.contains_key(*id));
        let observed = observed.map(|(_, head)| ListedConversation {
            is_observed: true,
            opened_at: head.active_at,
            ..head.clone()
        });
        of_own.chain(observed).collect()
    }
}

impl TrafficStore for MemoryStore {
    fn put_calls(&self, calls: &[CallInsert]) -> Result<Vec<Option<u64>>, StoreError> {
        let mut content = self.write();
        let traffic = &mut content.traffic;
        let mut numbers = Vec::new();
        for CallInsert { row, chain, replaces } in calls {
            let known = traffic.find(&row.id).map(|(number, _)| number);
            if known.is_some() && !replaces {
                numbers.push(None);
                continue;
            }
            if let Some(number) = known {
                traffic.remove(number);
            }
            traffic.last += 1;
            let number = traffic.last;
            traffic.rows.insert(number, row.clone());
            if let Some(chain) = chain {
                traffic.chains.insert(number, (row.conversation.clone(), row.at, chain.clone()));
            }
            traffic.count(row, &row.sums);
            traffic.touch(row);
            numbers.push(Some(number));
        }
        Ok(numbers)
    }

    fn stored_call(&self, id: &str) -> Result<Option<StoredCall>, StoreError> {
        Ok(self.read().traffic.find(id).map(|(number, row)| stored(number, row)))
    }

    fn list_calls(&self, query: &CallQuery) -> Result<Page<StoredCall>, StoreError> {
        let content = self.read();
        let after = query.after.as_deref().and_then(CallKey::parse).unwrap_or(CallKey::NEWEST);
        let is = |wanted: &Option<String>, own: &str| wanted.as_deref().is_none_or(|wanted| wanted == own);
        let mut found: Vec<StoredCall> = Vec::new();
        for (number, row) in &content.traffic.rows {
            let session = row.conversation.split_once(':').map(|(_, session)| session);
            let is_of = query
                .conversation
                .as_deref()
                .is_none_or(|wanted| wanted == row.conversation || session == Some(wanted));
            let is_found = is_of
                && query.since.is_none_or(|since| row.at >= since)
                && query.until.is_none_or(|until| row.at < until)
                && (query.verdicts.is_empty() || query.verdicts.contains(&row.verdict))
                && is(&query.model, &row.model)
                && is(&query.cwd, &row.cwd)
                && is(&query.owner, &row.owner)
                && query.is_alarming.is_none_or(|wanted| wanted == row.is_alarming)
                && CallKey { at: row.at, number: signed(*number) } < after;
            if is_found {
                found.push(stored(*number, row));
            }
        }
        found.sort_by_key(|call| std::cmp::Reverse((call.at, call.number)));
        found.truncate(query.most + 1);
        Ok(Page::of_calls(found, query.most))
    }

    fn chains(&self, conversation: &str, after: u64) -> Result<Vec<ChainRow>, StoreError> {
        let content = self.read();
        let chains = content.traffic.chains.range(after + 1..);
        let own = chains.filter(|(_, (owner, ..))| owner == conversation);
        Ok(own
            .map(|(number, (_, _, chain))| ChainRow { number: *number, link: chain.link.clone() })
            .collect())
    }

    fn conversations_of_first(&self, first: &str, most: usize) -> Result<Vec<String>, StoreError> {
        let content = self.read();
        let found = content.traffic.chains.values().rev().filter(|(_, _, chain)| chain.first == first);
        let mut conversations: Vec<String> = Vec::new();
        for (conversation, ..) in found {
            if conversations.len() < most && !conversations.contains(conversation) {
                conversations.push(conversation.clone());
            }
        }
        Ok(conversations)
    }

    fn usage(&self, query: &UsageQuery) -> Result<Vec<UsageRow>, StoreError> {
        let content = self.read();
        let spans = query.spans(oldest_row());
        let by = query.by.stored();
        let mut sums: BTreeMap<(i64, String, String, String), CallSums> = BTreeMap::new();
        for ((dimension, day, key, verdict, owner), sum) in &content.traffic.sums {
            if *dimension == by && (spans.days.0..spans.days.1).contains(day) {
                let key = (*day, key.clone(), verdict.clone(), owner.clone());
                sums.entry(key).or_default().add(sum);
            }
        }
        for row in content.traffic.rows.values() {
            if spans.parts.iter().any(|(from, to)| (*from..*to).contains(&row.at)) {
                let key = row.groups().into_iter().find(|(group, _)| *group == by).map_or("", |(_, key)| key);
                let key = (row.day(), key.to_owned(), row.verdict.clone(), row.owner.clone());
                sums.entry(key).or_default().add(&row.sums);
            }
        }
        let row = |((day, key, verdict, owner), sums)| UsageRow { day, key, verdict, owner, sums };
        Ok(sums.into_iter().map(row).collect())
    }

    fn list_conversations(&self, query: &ListQuery) -> Result<ListPage, StoreError> {
        let content = self.read();
        let mut found = Self::listed(&content);
        found.retain(|one| one.is_found(query));
        let total = found.len() as u64;
        let order = |a: &ListKey, b: &ListKey| {
            let ascending = a.value.total_cmp(&b.value).then_with(|| a.conversation.cmp(&b.conversation));
            if query.is_ascending { ascending } else { ascending.reverse() }
        };
        if let Some(after) = query.after.as_deref().and_then(ListKey::parse) {
            found.retain(|one| order(&one.key(query.sort), &after).is_gt());
        }
        found.sort_by(|a, b| order(&a.key(query.sort), &b.key(query.sort)));
        found.truncate(query.most + 1);
        Ok(ListPage::new(found, query, total))
    }

    fn expire_calls(&self, rows_before: i64, chains_before: i64, most: usize) -> Result<u64, StoreError> {
        let mut content = self.read();
        let traffic = &mut content.traffic;
        let old = traffic.rows.iter().filter(|(_, row)| row.at < rows_before).map(|(number, _)| *number);
        let old: Vec<u64> = old.take(most).collect();
        for number in &old {
            traffic.rows.remove(number);
        }
        let live: BTreeSet<(String, String)> = traffic
            .chains
            .values()
            .filter(|(_, at, _)| *at >= chains_before)
            .map(|(conversation, _, chain)| (conversation.clone(), chain.thread.clone()))
            .collect();
        let dead = traffic.chains.iter().filter(|(_, (conversation, _, chain))| {
            !live.contains(&(conversation.clone(), chain.thread.clone()))
        });
        let dead: Vec<u64> = dead.map(|(number, _)| *number).take(most).collect();
        for number in &dead {
            traffic.chains.remove(number);
        }
        Ok((old.len() + dead.len()) as u64)
    }

    fn forget_calls(&self, before: i64) -> Result<u64, StoreError> {
        let mut content = self.write();
        let traffic = &mut content.traffic;
        let old = traffic.rows.iter().filter(|(_, row)| row.at < before).map(|(number, _)| *number);
        let old: Vec<u64> = old.collect();
        for number in &old {
            traffic.remove(*number);
        }
        traffic.chains.retain(|_, (_, at, _)| *at >= before);
        let days = before.div_euclid(DAY_MILLIS);
        traffic.sums.retain(|(_, day, ..), _| *day >= days);
        traffic.heads.retain(|_, head| head.active_at >= before);
        Ok(old.len() as u64)
    }

    fn account_key(&self) -> Result<Vec<u8>, StoreError> {
        let fresh = new_key()?;
        Ok(self.read().traffic.key.get_or_insert(fresh).clone())
    }
}

fn stored(number: u64, row: &CallRow) -> StoredCall {
    StoredCall { number, at: row.at, record: row.record.clone() }
}
