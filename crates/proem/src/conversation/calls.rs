//! Calls of a conversation, as reported by providers, judged by its epochs.

pub mod recorder;
pub mod usage;

use std::sync::Arc;

use self::recorder::{Proof, Recorder};
use super::conversations::{Conversations, LoadedEpoch, check_id};
use super::error::ConversationError;
use crate::conversation::store::StoreError;
use crate::conversation::store::record::now;
use crate::inspect::compare::{Snapshot, compare};
use crate::inspect::evidence::{Defaults, EpochFact, JudgedCall, KEPT_CALL_VERSION, KeptCall, judge};
use crate::inspect::traffic::lines::{LineDefaults, call_of_line};
use crate::settings::models::Models;
use crate::settings::tokens::Tokenizer;

impl Conversations {
    /// Stores the numbers of one call and digests of its request, and judges it.
    pub fn add_call(
        &self,
        id: &str,
        line: &str,
        recorder: &Recorder,
    ) -> Result<JudgedCall, ConversationError> {
        let kept = Arc::clone(&self.known(id)?.epoch);
        let models = &recorder.models();
        let defaults = Defaults { model: kept.head.model.clone(), ..Defaults::default() };
        let mut fresh = KeptCall::read(line, &defaults, models).map_err(ConversationError::BadCall)?;
        fresh.call.conversation = None;
        let at = *fresh.call.at.get_or_insert_with(now);
        let epoch = *fresh.call.epoch.get_or_insert(kept.head.number);
        if epoch == kept.head.number {
            fresh.compare_prefix(kept.frozen.prefix());
        }
        let last = self.store.last_call(id)?.map(|record| read(&record)).transpose()?;
        fresh.follow(last.as_ref(), models);
        let mut calls: Vec<KeptCall> = last.into_iter().chain([fresh.call]).collect();
        let proven = self.judged(id, &calls, models)?.pop().ok_or(ConversationError::BadId)?;
        let defaults = LineDefaults { model: kept.head.model.clone(), ..LineDefaults::default() };
        if let Ok(mut call) = call_of_line(line, 0, &defaults) {
            // The same line twice is two calls here, as it always was.
            (call.id, call.agent) = (String::new(), None);
            (call.conversation, call.at, call.epoch) = (Some(id.to_owned()), Some(at), Some(epoch));
            let proof = Proof {
                verdict: proven.verdict,
                why: proven.why.clone().unwrap_or_else(|| "all that was expected was read".to_owned()),
                expected: proven.expected,
            };
            let analysed = recorder.record_own(call, &proof)?;
            if let Some(fresh) = calls.last_mut() {
                fresh.analysis = Some(Box::new(analysed.call.call));
            }
        }
        let fresh = calls.last().ok_or(ConversationError::BadId)?;
        let record = serde_json::to_string(fresh)
            .map_err(|error| StoreError::Damaged { what: "a call".into(), why: error.to_string().into() })?;
        let number = self.store.add_call(id, &record)?;
        let number = number.ok_or_else(|| ConversationError::NoConversation(id.to_owned()))?;
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
            let is_other = one.place.is_none()
                && matches!(
                    one.reason.as_deref(),
                    Some("system_changed" | "tools_changed" | "tools_redefined")
                );
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
    let damaged = |why: String| StoreError::Damaged { what: "a call".into(), why: why.into() };
    let call: KeptCall = serde_json::from_str(record).map_err(|error| damaged(error.to_string()))?;
    if call.version > KEPT_CALL_VERSION {
        let (version, newest) = (call.version, KEPT_CALL_VERSION);
        return Err(damaged(format!(
            "its form has version {version}, and this proem reads versions up to {newest}"
        )));
    }
    Ok(call)
}
