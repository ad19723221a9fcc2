//! Calls of a conversation, as reported by providers, judged by its epochs.

use std::sync::Arc;

use super::conversations::{Conversations, LoadedEpoch, check_id};
use super::error::ConversationError;
use crate::conversation::store::StoreError;
use crate::conversation::store::record::now;
use crate::inspect::compare::{Snapshot, compare};
use crate::inspect::evidence::{Defaults, EpochFact, JudgedCall, KeptCall, judge};
use crate::settings::models::Models;
use crate::settings::tokens::Tokenizer;

impl Conversations {
    /// Keeps what a provider said about one call, and judges it. What was sent is not kept: only digests of it.
    pub fn add_call(&self, id: &str, line: &str, models: &Models) -> Result<JudgedCall, ConversationError> {
        let kept = Arc::clone(&self.known(id)?.epoch);
        let defaults = Defaults { model: kept.head.model.clone(), ..Defaults::default() };
        let mut fresh = KeptCall::read(line, &defaults, models).map_err(ConversationError::BadCall)?;
        fresh.call.conversation = None;
        fresh.call.at.get_or_insert_with(now);
        fresh.call.epoch.get_or_insert(kept.head.number);
        if fresh.call.epoch == Some(kept.head.number) {
            fresh.compare_prefix(kept.frozen.prefix());
        }
        let last = self.store.last_call(id)?.map(|record| read(&record)).transpose()?;
        fresh.follow(last.as_ref(), models);
        let record = serde_json::to_string(&fresh.call)
            .map_err(|error| StoreError::Damaged { what: "a call".into(), why: error.to_string().into() })?;
        let number = self.store.add_call(id, &record)?;
        let number = number.ok_or_else(|| ConversationError::NoConversation(id.to_owned()))?;
        let calls: Vec<KeptCall> = last.into_iter().chain([fresh.call]).collect();
        let mut judged = self.judged(id, &calls, models)?.pop().ok_or(ConversationError::BadId)?;
        judged.call = usize::try_from(number).unwrap_or(usize::MAX);
        Ok(judged)
    }

    /// All calls that are kept of a conversation, judged.
    pub fn calls(&self, id: &str, models: &Models) -> Result<Vec<JudgedCall>, ConversationError> {
        check_id(id)?;
        let calls = self.store.calls(id)?;
        let calls: Vec<KeptCall> = calls.iter().map(|record| read(record)).collect::<Result<_, _>>()?;
        self.judged(id, &calls, models)
    }

    /// Judges calls by the epochs of a conversation; where another epoch is why, says what made it another.
    pub fn judged(
        &self,
        id: &str,
        calls: &[KeptCall],
        models: &Models,
    ) -> Result<Vec<JudgedCall>, ConversationError> {
        check_id(id)?;
        let fact = |head: crate::conversation::store::EpochHead| EpochFact {
            number: head.number,
            opened_at: head.opened_at,
            digest: head.digest,
            fingerprint: head.fingerprint,
        };
        let epochs: Vec<EpochFact> = self.store.epochs(id)?.into_iter().map(fact).collect();
        let mut judged = judge(calls, &epochs, models);
        let mut before = None;
        for one in &mut judged {
            let is_other = matches!(one.reason.as_deref(), Some("system_changed" | "tools_changed"));
            if let (Some(from), Some(to), true) = (before, one.epoch, is_other)
                && from != to
                && let Some(cause) = self.cause(id, from, to)?
            {
                one.why = one.why.take().map(|why| format!("{why}: {cause}"));
            }
            before = one.epoch;
        }
        Ok(judged)
    }

    /// Returns the cause of the difference between two epochs.
    fn cause(&self, id: &str, from: u64, to: u64) -> Result<Option<String>, ConversationError> {
        let (Some(from), Some(to)) = (self.epoch(id, from)?, self.epoch(id, to)?) else { return Ok(None) };
        let snapshot = |kept: &LoadedEpoch| {
            let snapshot = Snapshot::new("", &kept.frozen, &kept.request, Some(&kept.head.engine));
            snapshot.with_template(kept.head.template_version, None)
        };
        let found = compare(&snapshot(&from), &snapshot(&to), Tokenizer::Estimate);
        Ok(found.differences.first().map(|first| first.cause.to_string()))
    }
}

fn read(record: &str) -> Result<KeptCall, StoreError> {
    serde_json::from_str(record)
        .map_err(|error| StoreError::Damaged { what: "a call".into(), why: error.to_string().into() })
}
