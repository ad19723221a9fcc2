//! pi: logs of an extension (`{at, hook, event, ctx}`), and sessions.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use proem_core::limit::COLLECT_HINTS_MAX;
use proem_core::note::Code;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::Sink;
use super::files::{Line, Lines, has_extension};
use super::identity::add_body;
use super::json::{body, text, time};
use super::merge::BodyOrigin;
use super::notebook::Problem;
use super::rules::CollectRules;
use crate::inspect::traffic::call::{Call, CallUsage, CallingAgent, HintPlace, OwnerHint};

const AGENT: &str = "pi";
const NOT_A_BODY: Problem = Problem::warning(Code::SkippedRecord, "a payload is not the body of a request");
const NO_ANSWER: Problem =
    Problem::info(Code::IncompleteCall, "a request has no answer, and so is not counted as a call");

#[derive(Debug, Deserialize)]
struct LogLine<'a> {
    at: Option<Value>,
    hook: Option<String>,
    #[serde(borrow)]
    event: Option<&'a RawValue>,
    ctx: Option<Value>,
}

#[derive(Debug, Deserialize)]
struct SessionLine<'a> {
    #[serde(rename = "type")]
    kind: Option<String>,
    id: Option<String>,
    cwd: Option<String>,
    #[serde(rename = "parentSession")]
    parent: Option<String>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
struct Payload<'a> {
    #[serde(borrow)]
    payload: &'a RawValue,
}

/// The state of one file.
#[derive(Default)]
struct Session {
    id: Option<String>,
    parent: Option<String>,
    cwd: Option<String>,
    hints: Vec<OwnerHint>,
    pending: Option<Call>,
}

pub(super) fn read(files: &[PathBuf], sink: &mut Sink<'_>) {
    for file in files {
        if has_extension(file, "jsonl") { read_file(file, sink) } else { sink.foreign(file) }
    }
}

fn read_file(file: &Path, sink: &mut Sink<'_>) {
    let Some(mut lines) = Lines::open(file, &mut sink.notes) else { return };
    sink.begin();
    let (mut session, mut is_known) = (Session::default(), false);
    while let Some(line) = lines.next(&mut sink.notes) {
        is_known |= session.add(&line, file, sink);
    }
    if session.pending.is_some() {
        sink.note(NO_ANSWER, file, None);
    }
    if !is_known {
        sink.foreign(file);
    }
}

impl Session {
    /// Adds a line; returns false if it is of another format.
    fn add(&mut self, line: &Line<'_>, file: &Path, sink: &mut Sink<'_>) -> bool {
        let Some(logged) = line.parse::<LogLine<'_>>(file, &mut sink.notes) else { return false };
        if let (Some(hook), Some(event)) = (&logged.hook, logged.event) {
            match hook.as_str() {
                "before_provider_request" => {
                    if self.pending.is_some() {
                        sink.note(NO_ANSWER, file, Some(line.number));
                    }
                    self.pending = self.request(&logged, event);
                    if self.pending.is_none() {
                        sink.note(NOT_A_BODY, file, Some(line.number));
                    }
                }
                "message_end" => {
                    let message = serde_json::from_str::<Value>(event.get()).ok();
                    if let Some(message) = message.as_ref().and_then(|event| event.get("message")) {
                        self.answer(message, (file, line.number), sink);
                    }
                }
                _ => {}
            }
            return true;
        }
        let Ok(stored) = serde_json::from_str::<SessionLine<'_>>(line.text) else { return false };
        match (stored.kind.as_deref(), stored.message) {
            (Some("session"), _) => {
                self.id = stored.id;
                self.cwd = stored.cwd;
                self.parent = stored.parent;
                true
            }
            (Some("message"), Some(message)) => {
                if let Ok(message) = serde_json::from_str::<Value>(message.get()) {
                    self.add_sections(&message);
                    self.answer(&message, (file, line.number), sink);
                }
                true
            }
            (Some("model_change" | "thinking_level_change" | "compaction" | "branch_summary"), _) => true,
            _ => false,
        }
    }

    /// Returns the call of a payload, which waits for its answer.
    fn request(&self, line: &LogLine<'_>, event: &RawValue) -> Option<Call> {
        let payload: Payload<'_> = serde_json::from_str(event.get()).ok()?;
        let context = |key: &str| line.ctx.as_ref().and_then(|ctx| text(ctx, key)).map(str::to_owned);
        let mut call = Call {
            at: line.at.as_ref().and_then(time),
            conversation: context("sessionId").or_else(|| self.id.clone()),
            cwd: context("cwd").or_else(|| self.cwd.clone()),
            ..Call::default()
        };
        let is_body = add_body(&mut call, body(with_shared_markers(payload.payload.get()))?);
        is_body.then_some(call)
    }

    /// Reads a message of the assistant.
    fn answer(&mut self, message: &Value, (file, number): (&Path, usize), sink: &mut Sink<'_>) {
        if text(message, "role") != Some("assistant") {
            return;
        }
        let Some(id) = text(message, "responseId") else { return };
        let pending = self.pending.take();
        let origin = if pending.is_some() { BodyOrigin::Sent } else { BodyOrigin::Approximate };
        let known = pending.unwrap_or_else(|| Call {
            at: message.get("timestamp").and_then(time),
            conversation: self.id.clone(),
            parent: self.parent.clone(),
            cwd: self.cwd.clone(),
            ..Call::default()
        });
        let call = Call {
            id: id.to_owned(),
            agent: Some(CallingAgent { name: AGENT.to_owned(), version: None }),
            wire: text(message, "api")
                .map(|api| CollectRules::built_in().wire_of_pi(api))
                .unwrap_or_default(),
            model: known.model.or_else(|| text(message, "model").map(str::to_owned)),
            usage: message.get("usage").map(usage).unwrap_or_default(),
            hints: self.hints.clone(),
            ..known
        };
        sink.call(call, origin, file, Some(number));
    }

    /// Keeps the sections of a system message: each has an owner.
    fn add_sections(&mut self, message: &Value) {
        for (name, section) in message.get("sections").and_then(Value::as_object).into_iter().flatten() {
            let kind = CollectRules::built_in().owner(AGENT, name);
            if let (Some(kind), Some(section)) = (kind, section.as_str())
                && self.hints.len() < COLLECT_HINTS_MAX
            {
                let place = HintPlace::Text(Arc::from(section));
                self.hints.push(OwnerHint { place, kind, name: Some(name.clone()), path: None });
            }
        }
    }
}

fn usage(numbers: &Value) -> CallUsage {
    let get = |key: &str| numbers.get(key).and_then(Value::as_u64);
    CallUsage {
        read: get("cacheRead"),
        written: get("cacheWrite"),
        written_1h: get("cacheWrite1h"),
        uncached: get("input"),
        output: get("output"),
    }
}

/// Replaces the word that an extension's log has for an object which it has written before: markers are one object.
fn with_shared_markers(payload: &str) -> String {
    const SHARED: &str = "\"cache_control\":\"[circular]\"";
    const MARKER: &str = "\"cache_control\":{";
    let first = payload.find(MARKER).and_then(|start| {
        let rest = payload.get(start + MARKER.len() - 1..)?;
        let end = rest.find('}')?;
        rest.get(..=end)
    });
    match first {
        Some(marker) if payload.contains(SHARED) => {
            payload.replace(SHARED, &format!("\"cache_control\":{marker}"))
        }
        _ => payload.to_owned(),
    }
}
