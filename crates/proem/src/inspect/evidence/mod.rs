//! Compares the cache usage that providers report with what they should have read.
//!
//! A verdict is never a guess: it is *ours* when a part of our request is known to have changed, *the provider's*
//! when everything is known to be the same and should have been read by its own rules, and *unknown* otherwise, with
//! the missing information.

mod trace;
mod usage;

use jiff::Timestamp;
use proem_core::text::Places;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

pub use trace::Trace;
pub use usage::ReportedUsage;

use crate::costs::simulate::{Payload, rules};
use crate::error::Error;
use crate::inspect::traffic::CallVerdict;
use crate::inspect::traffic::call::CallUsage;
use crate::inspect::traffic::verdict::{CacheVerdict, ChangeOwner, ChangePlace};
use crate::settings::models::{CacheKind, CacheRules, Models};
use trace::TracedRequest;

/// One call, as it is kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KeptCall {
    /// The conversation, where the line names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<String>,
    /// The epoch, where the line names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epoch: Option<u64>,
    /// The time of the call, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<i64>,
    /// The provider of the cache.
    pub provider: String,
    /// The model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The usage that the provider reported.
    pub usage: ReportedUsage,
    /// The trace of the request, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<Trace>,
    /// The change since the previous call, if both requests are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<String>,
    /// The reason why a marker of this request cannot find the entry of the previous call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub out_of_reach: Option<String>,
    /// True if the previous request was known, so that `change` is meaningful.
    #[serde(default)]
    pub is_compared: bool,
    /// True if the system prompt that was sent begins with the frozen one, if both are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_frozen_sent: Option<bool>,
    /// The version of the stored shape. Version 1 had no analysis.
    #[serde(default = "first_version")]
    pub version: u32,
    /// The call as the analysis judged it when it was stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub analysis: Option<Box<CallVerdict>>,
}

/// The version of stored calls that this proem writes.
pub const KEPT_CALL_VERSION: u32 = 2;

const fn first_version() -> u32 {
    1
}

/// A line of the input file.
#[derive(Debug, Deserialize)]
struct CallLine {
    conversation: Option<String>,
    epoch: Option<u64>,
    at: Option<Value>,
    provider: Option<String>,
    model: Option<String>,
    request: Option<Box<RawValue>>,
    response: Option<Value>,
    created: Option<Value>,
    created_at: Option<Value>,
}

/// Values for all lines that do not have their own.
#[derive(Debug, Clone, Default)]
pub struct Defaults {
    /// The conversation.
    pub conversation: Option<String>,
    /// The provider.
    pub provider: Option<String>,
    /// The model.
    pub model: Option<String>,
}

/// A call together with its request, before the request is forgotten.
#[derive(Debug)]
pub struct NewCall {
    /// The call.
    pub call: KeptCall,
    looked: Option<TracedRequest>,
}

impl NewCall {
    /// Compares it with the call before it in its conversation.
    pub fn follow(&mut self, before: Option<&KeptCall>, models: &Models) {
        let Some(looked) = &self.looked else { return };
        let Some(earlier) = before.and_then(|call| call.trace.as_ref()) else { return };
        self.call.is_compared = true;
        self.call.change = looked.change(earlier).map(str::to_owned);
        let rules = self.call.rules(models).ok();
        self.call.out_of_reach =
            rules.and_then(|rules| looked.out_of_reach(earlier, rules)).map(str::to_owned);
    }

    /// Compares the system prompt that was sent with the frozen one.
    pub fn compare_prefix(&mut self, frozen: &str) {
        // Blocks of a system prompt are wrapped in the shape's syntax; the text itself is in one piece.
        let sent = self.looked.as_ref().map(|looked| looked.system.contains(frozen));
        self.call.is_frozen_sent = sent;
    }
}

impl KeptCall {
    /// Creates a call of which only the numbers are known.
    #[must_use]
    pub fn new(provider: &str, model: Option<String>, at: Option<i64>, usage: &CallUsage) -> Self {
        let usage = ReportedUsage {
            input: usage.input().unwrap_or(0),
            read: usage.read.unwrap_or(0),
            written: usage.written,
        };
        Self {
            conversation: None,
            epoch: None,
            at,
            provider: provider.to_owned(),
            model,
            usage,
            trace: None,
            change: None,
            out_of_reach: None,
            is_compared: false,
            is_frozen_sent: None,
            version: KEPT_CALL_VERSION,
            analysis: None,
        }
    }

    /// Parses one line: a response of a provider, or an object with `response` or `usage` and further fields.
    pub fn read(text: &str, defaults: &Defaults, models: &Models) -> Result<NewCall, String> {
        let value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let line: CallLine = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let response = line.response.as_ref().unwrap_or(&value);
        let (usage, shape) = usage::find(response)?;
        let text_of = |key: &str| response.get(key).and_then(Value::as_str).map(str::to_owned);
        let provider = line.provider.or_else(|| defaults.provider.clone());
        let provider = provider.unwrap_or_else(|| shape.provider().to_owned());
        let model = line.model.or_else(|| text_of("model")).or_else(|| text_of("modelVersion"));
        let model = model.or_else(|| defaults.model.clone());
        let inner = |key: &str| response.get(key).cloned();
        let at = line.at.or(line.created_at).or(line.created);
        let at = at.or_else(|| inner("created_at")).or_else(|| inner("created"));
        let mut call = Self {
            conversation: line.conversation.or_else(|| defaults.conversation.clone()),
            epoch: line.epoch,
            at: at.as_ref().map(moment).transpose()?,
            provider,
            model,
            usage,
            trace: None,
            change: None,
            out_of_reach: None,
            is_compared: false,
            is_frozen_sent: None,
            version: KEPT_CALL_VERSION,
            analysis: None,
        };
        call.rules(models).map_err(|error| error.to_string())?;
        let looked = match &line.request {
            None => None,
            Some(raw) => {
                let payload = Payload::from_json(raw.get()).map_err(|why| format!("`request`: {why}"))?;
                let is_chat_template = call.rules(models).is_ok_and(CacheRules::is_chat_template);
                TracedRequest::from_payload(&payload, is_chat_template)
            }
        };
        call.trace = looked.as_ref().map(|looked| looked.trace.clone());
        Ok(NewCall { call, looked })
    }

    /// Reads a file of lines.
    pub fn read_lines(text: &str, defaults: &Defaults, models: &Models) -> Result<Vec<NewCall>, Error> {
        let mut values = serde_json::Deserializer::from_str(text).into_iter::<Box<RawValue>>();
        let (mut calls, mut places) = (Vec::new(), Places::new(text));
        loop {
            let rest = text.get(values.byte_offset()..).unwrap_or_default();
            let line = places.at(text.len() - rest.trim_start().len()).line;
            let Some(value) = values.next() else { return Ok(calls) };
            let value = value.map_err(|error| error.to_string());
            let call = value.and_then(|value| Self::read(value.get(), defaults, models));
            calls.push(call.map_err(|why| {
                Error::usage(
                    format!("cannot read call {}, from line {line} on: {why}", calls.len() + 1),
                    "write responses as the provider gives them, or {\"response\": …, \"at\": …, \"request\": …}",
                )
            })?);
        }
    }

    fn rules<'m>(&self, models: &'m Models) -> Result<&'m CacheRules, Error> {
        let known = self.model.as_deref().and_then(|name| models.find(name));
        rules(&self.provider, known, models)
    }
}

/// A time as RFC 3339, or as seconds since 1970.
fn moment(value: &Value) -> Result<i64, String> {
    let wrong = || format!("`at` is {value}: write RFC 3339, or seconds since 1970");
    match value {
        Value::String(text) => text.parse::<Timestamp>().map(Timestamp::as_millisecond).map_err(|_| wrong()),
        Value::Number(_) => {
            let seconds = value.as_f64().filter(|seconds| seconds.is_finite()).ok_or_else(wrong)?;
            let time = jiff::SignedDuration::try_from_secs_f64(seconds).map_err(|_| wrong())?;
            i64::try_from(time.as_millis()).map_err(|_| wrong())
        }
        _ => Err(wrong()),
    }
}

/// The known facts of an epoch.
#[derive(Debug, Clone)]
pub struct EpochFact {
    /// The number.
    pub number: u64,
    /// The time at which it was opened, in milliseconds since 1970.
    pub opened_at: i64,
    /// The digest of the frozen prompt.
    pub digest: String,
    /// The digest of prompt and tools.
    pub fingerprint: String,
}

/// The side that caused a miss.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Blame {
    /// Something of ours changed.
    Ours,
    /// Everything was the same, and by its own rules it should have been read.
    Provider,
    /// The necessary information is missing.
    Unknown,
}

/// A call, and the part that should have been read.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct JudgedCall {
    /// Its number among the calls of its conversation, from 1.
    pub call: usize,
    /// The epoch, where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epoch: Option<u64>,
    /// The time of the call, in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<i64>,
    /// All input tokens.
    pub input: u64,
    /// The tokens that the call before left in the cache.
    pub expected: u64,
    /// The tokens that were read.
    pub reported: u64,
    /// The side that caused it, if less was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blame: Option<Blame>,
    /// The verdict of the analysis.
    pub verdict: CacheVerdict,
    /// The reason, in the providers' terms if they have one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The reason, in a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The id of the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The place of the change.
    #[serde(default, rename = "where", skip_serializing_if = "Option::is_none")]
    pub place: Option<ChangePlace>,
    /// The owner of the change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<ChangeOwner>,
    /// Tokens that were expected and not read.
    pub lost_tokens: u64,
    /// Their price, less that of reading them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_usd: Option<f64>,
    /// The price of the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usd: Option<f64>,
    /// The advice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
}

impl JudgedCall {
    /// Takes what the analysis found when the call was stored. Where it had no request to compare, the epochs decide.
    #[must_use]
    fn analysed(mut self, analysis: Option<&CallVerdict>) -> Self {
        let Some(found) = analysis else { return self };
        let found = found.clone();
        (self.id, self.usd, self.advice) = (Some(found.id), found.usd, found.advice);
        (self.place, self.owner) = (found.place, found.owner);
        (self.lost_tokens, self.lost_usd) = (found.lost_tokens, found.lost_usd);
        if found.verdict == CacheVerdict::Unknown {
            return self;
        }
        self.verdict = found.verdict;
        self.blame = blame(found.verdict);
        if let Some(expected) = found.expected_read {
            self.expected = expected;
        }
        match self.blame {
            None => (self.reason, self.why) = (None, None),
            Some(_) if self.why.is_none() || self.reason.as_deref() != Some(found.verdict.word()) => {
                (self.reason, self.why) = (Some(found.verdict.word().to_owned()), Some(found.why));
            }
            Some(_) => {}
        }
        self
    }
}

/// Returns the side that a verdict blames.
fn blame(verdict: CacheVerdict) -> Option<Blame> {
    match verdict {
        CacheVerdict::Hit | CacheVerdict::ColdStart => None,
        CacheVerdict::Provider => Some(Blame::Provider),
        CacheVerdict::Unknown => Some(Blame::Unknown),
        _ => Some(Blame::Ours),
    }
}

/// Returns the verdict for the reason of a comparison without requests.
#[must_use]
pub fn verdict_of(blame: Option<Blame>, reason: Option<&str>, is_first: bool) -> CacheVerdict {
    match (blame, reason) {
        (None, _) if is_first => CacheVerdict::ColdStart,
        (None, _) => CacheVerdict::Hit,
        (Some(Blame::Provider), _) => CacheVerdict::Provider,
        (Some(Blame::Ours), Some(reason)) => match reason {
            "model_changed" => CacheVerdict::ModelChanged,
            "tools_changed" => CacheVerdict::ToolsRedefined,
            "system_changed" => CacheVerdict::SystemChanged,
            "messages_changed" => CacheVerdict::MessageEdited,
            "no_marker" => CacheVerdict::MarkerMissing,
            "too_short" => CacheVerdict::BelowMinimum,
            "expired" => CacheVerdict::Expired,
            "beyond_lookback" => CacheVerdict::LookbackExceeded,
            _ => CacheVerdict::Unknown,
        },
        (Some(Blame::Unknown), _) | (Some(Blame::Ours), None) => CacheVerdict::Unknown,
    }
}

/// Judges the calls of one conversation, in order.
#[must_use]
pub fn judge(calls: &[KeptCall], epochs: &[EpochFact], models: &Models) -> Vec<JudgedCall> {
    let mut judged: Vec<JudgedCall> = Vec::new();
    let mut before: Option<(&KeptCall, Option<u64>)> = None;
    for (index, call) in calls.iter().enumerate() {
        let epoch = call.epoch.or_else(|| epoch_at(call.at?, epochs));
        let case = Case { call, epoch, before, epochs, models };
        let expected = before.map_or(0, |(earlier, _)| left(earlier, models));
        let opinion = case.opinion(expected);
        let (blame, reason, why) = match opinion {
            Some(Opinion { verdict, reason, why }) => (Some(verdict), reason, Some(why)),
            None => (None, None, None),
        };
        let verdict = verdict_of(blame, reason.as_deref(), before.is_none());
        let lost = expected.saturating_sub(call.usage.read);
        let one = JudgedCall {
            call: index + 1,
            epoch,
            at: call.at,
            input: call.usage.input,
            expected,
            reported: call.usage.read,
            blame,
            verdict,
            reason,
            why,
            id: None,
            place: None,
            owner: None,
            lost_tokens: if blame.is_some() { lost } else { 0 },
            lost_usd: None,
            usd: None,
            advice: None,
        };
        judged.push(one.analysed(call.analysis.as_deref()));
        before = Some((call, epoch));
    }
    judged
}

fn epoch_at(at: i64, epochs: &[EpochFact]) -> Option<u64> {
    epochs.iter().rev().find(|epoch| epoch.opened_at <= at).map(|epoch| epoch.number)
}

/// Returns the tokens that a call leaves in the cache, by the provider's own numbers.
fn left(call: &KeptCall, models: &Models) -> u64 {
    let ReportedUsage { input, read, written } = call.usage;
    let Ok(rules) = call.rules(models) else { return read };
    match rules.kind {
        CacheKind::Breakpoints => read + written.unwrap_or(0),
        CacheKind::Prefix | CacheKind::Units => {
            let step = rules.step.max(1) as u64;
            let whole = input.saturating_sub(rules.leaves as u64) / step * step;
            if whole < least(call, rules, models) { 0 } else { whole }
        }
    }
}

fn least(call: &KeptCall, rules: &CacheRules, models: &Models) -> u64 {
    let model = call.model.as_deref().and_then(|name| models.find(name));
    model.and_then(|model| model.min_tokens).unwrap_or(rules.min_tokens) as u64
}

struct Opinion {
    verdict: Blame,
    reason: Option<String>,
    why: String,
}

fn ours(reason: &str, why: impl Into<String>) -> Opinion {
    Opinion { verdict: Blame::Ours, reason: Some(reason.to_owned()), why: why.into() }
}

fn unknown(why: impl Into<String>) -> Opinion {
    Opinion { verdict: Blame::Unknown, reason: None, why: why.into() }
}

fn changed(change: &str) -> &'static str {
    match change {
        "model_changed" => "this request is for another model than the one before",
        "tools_changed" => "the tools are not those of the request before",
        "system_changed" => "the system prompt is not that of the request before",
        _ => "the messages of the request before are not all at the beginning of this one",
    }
}

/// Calls that are closer may have been made at once: an entry can be read when the first answer has begun.
const CLOSE_MILLIS: i64 = 1_000;

/// One call and everything that it is judged by.
struct Case<'c> {
    call: &'c KeptCall,
    epoch: Option<u64>,
    before: Option<(&'c KeptCall, Option<u64>)>,
    epochs: &'c [EpochFact],
    models: &'c Models,
}

impl Case<'_> {
    fn opinion(&self, expected: u64) -> Option<Opinion> {
        let rules = self.call.rules(self.models).ok()?;
        let Some((before, epoch_before)) = self.before else { return self.first(rules) };
        let is_marked = rules.kind == CacheKind::Breakpoints;
        // A cache that counts in steps may end one step earlier.
        let slack = if is_marked { 0 } else { rules.step.max(1) as u64 };
        if expected == 0 {
            return self.first(rules);
        }
        if self.call.usage.read + slack >= expected {
            return None;
        }
        if let (Some(a), Some(b)) = (&before.model, &self.call.model)
            && a != b
        {
            return Some(ours(
                "model_changed",
                format!("the model was {a} and is {b}: each has a cache of its own"),
            ));
        }
        Some(self.other_epoch(epoch_before).unwrap_or_else(|| self.other_request(before, rules)))
    }

    /// A call that found nothing in the cache to read: did it leave anything?
    fn first(&self, rules: &CacheRules) -> Option<Opinion> {
        let ReportedUsage { input, read, written } = self.call.usage;
        let least = least(self.call, rules, self.models);
        if read > 0 || written.is_some_and(|written| written > 0) {
            return None;
        }
        if input < least {
            let why = format!("the request has {input} tokens, and nothing below {least} is cached");
            return Some(ours("too_short", why));
        }
        if rules.kind != CacheKind::Breakpoints || rules.marks_last {
            return None;
        }
        Some(match &self.call.trace {
            Some(trace) if !trace.has_marks() => {
                ours("no_marker", "the request marks no block, and nothing else is cached")
            }
            Some(_) => unknown(
                "the request marks a block, and nothing was written: what stands before the marker may be too short",
            ),
            None => unknown(
                "nothing was written to the cache; with the request in the line it could be said whether it has a marker",
            ),
        })
    }

    /// Another frozen prompt than in the call before.
    fn other_epoch(&self, before: Option<u64>) -> Option<Opinion> {
        let (before, now) = (before?, self.epoch?);
        if before == now {
            return None;
        }
        let find = |number: u64| self.epochs.iter().find(|epoch| epoch.number == number);
        let (old, new) = (find(before)?, find(now)?);
        if old.digest != new.digest {
            return Some(ours(
                "system_changed",
                format!("epoch {now} has another frozen prompt than epoch {before}"),
            ));
        }
        if old.fingerprint != new.fingerprint {
            return Some(ours("tools_changed", format!("epoch {now} has other tools than epoch {before}")));
        }
        None
    }

    /// Judges a call with the same frozen prompt: the verdict depends on the bytes that were sent, and on the time.
    fn other_request(&self, before: &KeptCall, rules: &CacheRules) -> Opinion {
        if !self.call.is_compared
            && (before.is_frozen_sent, self.call.is_frozen_sent) == (Some(true), Some(false))
        {
            return ours(
                "system_changed",
                "the system prompt that was sent does not have the frozen one in it, and the one before had",
            );
        }
        if let Some(change) = &self.call.change {
            return ours(change, changed(change));
        }
        if !self.call.is_compared {
            return unknown(
                "whether both requests began with the same is not known: put them into the lines as `request`",
            );
        }
        if let Some(reason) = &self.call.out_of_reach {
            return ours(reason, "no marker of this request reaches back to what the one before left");
        }
        let (Some(then), Some(now)) = (before.at, self.call.at) else {
            return unknown(
                "both requests begin with the same; when they were sent is not known, so it may have expired",
            );
        };
        let Some((least, longest)) = before.trace.as_ref().and_then(|trace| trace.lifetimes(rules)) else {
            return unknown(
                "both requests begin with the same; how long this cache keeps anything is not published",
            );
        };
        let (millis, gap) = (now - then, u64::try_from((now - then) / 1000).unwrap_or(0));
        if millis < CLOSE_MILLIS {
            return unknown(
                "both requests begin with the same, and were sent so close that nothing may have been written yet",
            );
        }
        if gap >= longest {
            return ours(
                "expired",
                format!("the calls lie {gap} s apart, and an entry is kept for {longest} s"),
            );
        }
        if gap >= least {
            return unknown(format!(
                "the calls lie {gap} s apart; some markers keep an entry for {least} s and others for {longest} s"
            ));
        }
        let why = format!(
            "both requests begin with the same, {gap} s apart; an entry is kept for {least} s and should have been read"
        );
        Opinion { verdict: Blame::Provider, reason: None, why }
    }
}

#[cfg(test)]
mod tests;
