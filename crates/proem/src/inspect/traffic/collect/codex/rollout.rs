//! Rollouts: all input items of a session, and the usage of each answer.

use std::path::Path;
use std::sync::Arc;

use proem_core::limit::{COLLECT_HINTS_MAX, COLLECT_SESSION_BYTES_MAX};
use proem_core::note::Code;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::super::Sink;
use super::super::files::Lines;
use super::super::json::{body, list, moment, string, text};
use super::super::merge::BodyOrigin;
use super::super::notebook::Problem;
use super::super::rules::CollectRules;
use super::{AGENT, owners};
use crate::inspect::traffic::call::{Call, CallingAgent, OwnerHint, Wire};
use crate::inspect::traffic::usage::usage_of;

const NO_TOOLS: Problem =
    Problem::info(Code::IncompleteCall, "the rollout does not hold the tools of its requests");
const NO_HISTORY: Problem = Problem::warning(
    Code::IncompleteCall,
    "the rollout continues another one, so its requests cannot be put together",
);
const OVER_SESSION: Problem =
    Problem::warning(Code::OverLimit, "the texts of the session exceed `collect_session_bytes_max`");
const UNKNOWN: Problem = Problem::warning(Code::SkippedRecord, "a line has an unknown shape");

#[derive(Debug, Deserialize)]
struct RolloutLine<'a> {
    timestamp: Option<String>,
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(borrow)]
    payload: Option<&'a RawValue>,
}

/// The state of one file.
#[derive(Default)]
struct Rollout {
    session: Option<String>,
    parent: Option<String>,
    version: Option<String>,
    cwd: Option<String>,
    model: Option<String>,
    effort: Option<Value>,
    instructions: Option<String>,
    is_subscription: bool,
    items: Vec<Arc<str>>,
    /// True for each item that is an output of the model.
    outputs: Vec<bool>,
    /// The number of items at the end of the last call.
    answered: usize,
    /// The time of the first line after the last call: that of the request is not written.
    sent: Option<i64>,
    hints: Vec<OwnerHint>,
    bytes: usize,
    /// True if items are missing at the beginning.
    is_partial: bool,
}

pub(super) fn read(file: &Path, sink: &mut Sink<'_>) {
    let Some(mut lines) = Lines::open(file, &mut sink.notes) else { return };
    sink.begin();
    let mut rollout = Rollout::default();
    while let Some(line) = lines.next(&mut sink.notes) {
        let number = line.number;
        let Some(parsed) = line.parse::<RolloutLine<'_>>(file, &mut sink.notes) else { continue };
        let Some(payload) = parsed.payload else {
            sink.note(UNKNOWN, file, Some(number));
            continue;
        };
        let at = parsed.timestamp.as_deref().and_then(moment);
        if let Some(problem) = rollout.add(&parsed.kind, payload, at) {
            sink.note(problem, file, Some(number));
        }
        if parsed.kind == "token_usage_record" {
            match rollout.call(payload, at) {
                Some(call) => sink.call(call, BodyOrigin::Rebuilt, file, Some(number)),
                None => sink.note(UNKNOWN, file, Some(number)),
            }
            if rollout.has_no_tools() {
                sink.note(NO_TOOLS, file, Some(number));
            }
        }
    }
}

impl Rollout {
    /// Adds a line; returns a problem with it.
    fn add(&mut self, kind: &str, payload: &RawValue, at: Option<i64>) -> Option<Problem> {
        match kind {
            "response_item" => return self.add_item(payload, at),
            "session_meta" => {
                let meta: Value = serde_json::from_str(payload.get()).ok()?;
                let of = |key: &str| text(&meta, key).map(str::to_owned);
                // A fork begins with the line of the session that it was forked from, too.
                self.session = self.session.take().or_else(|| of("id"));
                self.parent = self.parent.take().or_else(|| of("forked_from_id"));
                self.version = of("cli_version");
                self.cwd = of("cwd");
                self.instructions =
                    meta.get("base_instructions").and_then(|base| text(base, "text")).map(str::to_owned);
                self.is_partial = meta.get("history_base").is_some_and(|base| !base.is_null());
                return self.is_partial.then_some(NO_HISTORY);
            }
            "turn_context" => {
                let context: Value = serde_json::from_str(payload.get()).ok()?;
                self.model = text(&context, "model").map(str::to_owned).or(self.model.take());
                self.cwd = text(&context, "cwd").map(str::to_owned).or(self.cwd.take());
                self.effort = context.get("effort").cloned().filter(|effort| !effort.is_null());
            }
            "event_msg" if payload.get().contains("rate_limits") => {
                let event: Value = serde_json::from_str(payload.get()).ok()?;
                let plan = event.get("rate_limits").and_then(|limits| limits.get("plan_type"));
                self.is_subscription |= plan.is_some_and(Value::is_string);
            }
            "compacted" => {
                let compacted: Value = serde_json::from_str(payload.get()).ok()?;
                let history = compacted.get("replacement_history").and_then(Value::as_array);
                self.clear();
                self.is_partial = history.is_none();
                for item in history.into_iter().flatten() {
                    let item = item.to_string();
                    self.bytes += item.len();
                    self.items.push(item.into());
                    self.outputs.push(false);
                }
                self.answered = self.items.len();
                return self.is_partial.then_some(NO_HISTORY);
            }
            _ => {}
        }
        None
    }

    fn clear(&mut self) {
        self.items.clear();
        self.outputs.clear();
        self.answered = 0;
        self.bytes = 0;
    }

    fn add_item(&mut self, payload: &RawValue, at: Option<i64>) -> Option<Problem> {
        let Ok(item) = serde_json::from_str::<Value>(payload.get()) else { return Some(UNKNOWN) };
        let is_answer = text(&item, "type") == Some("message") && text(&item, "role") == Some("assistant");
        let kind = text(&item, "type").unwrap_or_default();
        self.sent = self.sent.or(at);
        self.outputs.push(is_answer || CollectRules::built_in().is_output_item(kind));
        self.items.push(payload.get().into());
        self.bytes += payload.get().len();
        for hint in owners::hints(&item) {
            if self.hints.len() < COLLECT_HINTS_MAX && !self.hints.contains(&hint) {
                self.hints.push(hint);
            }
        }
        if self.bytes <= COLLECT_SESSION_BYTES_MAX {
            return None;
        }
        self.clear();
        self.is_partial = true;
        Some(OVER_SESSION)
    }

    fn has_no_tools(&self) -> bool {
        !self.items.first().is_some_and(|first| first.contains("\"additional_tools\""))
    }

    /// Returns the call that a line about usage ends.
    fn call(&mut self, record: &RawValue, at: Option<i64>) -> Option<Call> {
        let record: Value = serde_json::from_str(record.get()).ok()?;
        let id = text(&record, "response_id")?.to_owned();
        let thread = text(&record, "thread_id").filter(|thread| Some(*thread) != text(&record, "session_id"));
        // What the model said since the last call is the answer; the input is what stands before it.
        let is_output = |index: &usize| self.outputs.get(*index).copied().unwrap_or_default();
        let answer = (self.answered..self.items.len()).rev().take_while(is_output).count();
        let input = self.items.get(..self.items.len() - answer).unwrap_or_default();
        let call = Call {
            id,
            at: self.sent.or(at),
            agent: Some(CallingAgent { name: AGENT.to_owned(), version: self.version.clone() }),
            conversation: self.session.clone().or_else(|| text(&record, "session_id").map(str::to_owned)),
            thread: thread.map(str::to_owned),
            parent: self.parent.clone(),
            wire: Wire::Responses,
            model: self.model.clone(),
            body: (!self.is_partial && !input.is_empty()).then(|| self.body(input)).and_then(body),
            usage: record.get("usage").map(usage_of).unwrap_or_default(),
            cwd: self.cwd.clone(),
            is_subscription: self.is_subscription,
            hints: self.hints.clone(),
            ..Call::default()
        };
        self.answered = self.items.len();
        // The next request is sent once what it needs is there: after the last line of this answer.
        self.sent = None;
        Some(call)
    }

    /// Returns the body, as far as the file holds it.
    fn body(&self, input: &[Arc<str>]) -> String {
        let mut items: Vec<Arc<str>> = Vec::with_capacity(input.len() + 1);
        if let (true, Some(instructions)) = (self.has_no_tools(), &self.instructions) {
            let content = format!("[{{\"type\":\"input_text\",\"text\":{}}}]", string(instructions));
            items.push(
                format!("{{\"type\":\"message\",\"role\":\"developer\",\"content\":{content}}}").into(),
            );
        }
        items.extend(input.iter().cloned());
        let mut fields = vec![format!("\"input\":{}", list(&items))];
        fields.extend(self.model.as_ref().map(|model| format!("\"model\":{}", string(model))));
        fields.extend(self.effort.as_ref().map(|effort| format!("\"reasoning\":{{\"effort\":{effort}}}")));
        fields.extend(self.session.as_ref().map(|key| format!("\"prompt_cache_key\":{}", string(key))));
        format!("{{{}}}", fields.join(","))
    }
}
