//! Traces: `trace.jsonl` names the files with requests and answers. Over a WebSocket a request holds only what is new;
//! it is put together with the request and the answer before it.

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::sync::Arc;

use proem_core::limit::COLLECT_BODY_BYTES_MAX;
use proem_core::note::Code;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::super::Sink;
use super::super::files::{self, Lines, whole};
use super::super::identity::read_body;
use super::super::json::{body, list, replace_field, text};
use super::super::merge::BodyOrigin;
use super::super::notebook::Problem;
use super::super::rules::CollectRules;
use super::{AGENT, owners};
use crate::inspect::traffic::call::{Call, CallingAgent, OwnerHint, Wire};
use crate::inspect::traffic::usage::ScannedAnswer;

const NO_PAYLOAD: Problem =
    Problem::warning(Code::IncompleteCall, "a payload that the trace names is not there");
const NO_BASE: Problem = Problem::warning(
    Code::IncompleteCall,
    "a request continues one that is not in the trace, and is left out",
);
const NO_ANSWER: Problem =
    Problem::info(Code::IncompleteCall, "a request has no answer, and so is not counted as a call");

/// Answers that a later request may continue.
const BASES: usize = 64;

#[derive(Debug, Deserialize)]
struct TraceLine {
    wall_time_unix_ms: Option<i64>,
    rollout_id: Option<String>,
    thread_id: Option<String>,
    payload: Option<Event>,
}

#[derive(Debug, Default, Deserialize)]
struct Event {
    #[serde(rename = "type", default)]
    kind: String,
    inference_call_id: Option<String>,
    response_id: Option<String>,
    metadata_payload: Option<Named>,
    request_payload: Option<Named>,
    response_payload: Option<Named>,
}

#[derive(Debug, Deserialize)]
struct Named {
    path: String,
}

#[derive(Debug, Deserialize)]
struct Request {
    previous_response_id: Option<String>,
    #[serde(default)]
    input: Vec<Box<RawValue>>,
}

#[derive(Debug, Deserialize)]
struct Output {
    #[serde(default)]
    output_items: Vec<Box<RawValue>>,
}

/// The items of a conversation, shared by the requests that hold them.
type Items = Vec<Arc<str>>;

#[derive(Default)]
struct Trace {
    cwd: Option<String>,
    /// Requests by the id of their inference.
    open: BTreeMap<String, (Call, Option<Items>)>,
    /// Input and output of answered requests, by the id of the answer.
    answered: VecDeque<(String, Items)>,
}

pub(super) fn read(file: &Path, sink: &mut Sink<'_>) {
    let Some(mut lines) = Lines::open(file, &mut sink.notes) else { return };
    sink.begin();
    let mut trace = Trace::default();
    let folder = file.parent().unwrap_or(file);
    while let Some(line) = lines.next(&mut sink.notes) {
        let number = line.number;
        let Some(mut parsed) = line.parse::<TraceLine>(file, &mut sink.notes) else { continue };
        let event = parsed.payload.take().unwrap_or_default();
        match event.kind.as_str() {
            "thread_started" => trace.start_thread(&event, folder, sink),
            "inference_started" => trace.start(&parsed, &event, folder, sink),
            "inference_completed" => {
                if let Some(call) = trace.complete(&event, folder, sink) {
                    sink.call(call, BodyOrigin::Sent, file, Some(number));
                }
            }
            _ => {}
        }
    }
    for _ in &trace.open {
        sink.note(NO_ANSWER, file, None);
    }
}

/// Reads a payload. Its path must stay in the folder of the trace.
fn payload(
    named: Option<&Named>,
    folder: &Path,
    sink: &mut Sink<'_>,
) -> Option<(std::path::PathBuf, String)> {
    let relative = Path::new(&named?.path);
    let is_inside = relative.components().all(|part| matches!(part, std::path::Component::Normal(_)));
    let path = folder.join(relative);
    if !is_inside || !crate::observe::file::exists(&path) {
        sink.note(NO_PAYLOAD, folder, None);
        return None;
    }
    let text = whole(&path, COLLECT_BODY_BYTES_MAX, &mut sink.notes)?;
    Some((path, text))
}

impl Trace {
    fn start_thread(&mut self, event: &Event, folder: &Path, sink: &mut Sink<'_>) {
        let Some((path, text_of)) = payload(event.metadata_payload.as_ref(), folder, sink) else { return };
        let about = files::json::<Value>(&path, &text_of, &mut sink.notes);
        self.cwd = about.as_ref().and_then(|about| text(about, "cwd")).map(str::to_owned).or(self.cwd.take());
    }

    fn start(&mut self, line: &TraceLine, event: &Event, folder: &Path, sink: &mut Sink<'_>) {
        let Some(id) = event.inference_call_id.clone() else { return };
        let mut call = Call {
            at: line.wall_time_unix_ms,
            agent: Some(CallingAgent { name: AGENT.to_owned(), version: None }),
            conversation: line.rollout_id.clone(),
            thread: line.thread_id.clone().filter(|thread| Some(thread) != line.rollout_id.as_ref()),
            parent: line
                .rollout_id
                .clone()
                .filter(|_| line.thread_id != line.rollout_id && line.thread_id.is_some()),
            wire: Wire::Responses,
            cwd: self.cwd.clone(),
            ..Call::default()
        };
        let items = payload(event.request_payload.as_ref(), folder, sink)
            .and_then(|(path, text)| self.add_request(&mut call, &path, &text, sink));
        self.open.insert(id, (call, items));
    }

    /// Adds the body, and returns the items of its input.
    fn add_request(&self, call: &mut Call, path: &Path, text_of: &str, sink: &mut Sink<'_>) -> Option<Items> {
        let request = files::json::<Request>(path, text_of, &mut sink.notes)?;
        let value: Value = serde_json::from_str(text_of).ok()?;
        read_body(call, &value);
        let metadata = value.get("client_metadata").and_then(|about| text(about, "x-codex-turn-metadata"));
        let metadata = metadata.and_then(|metadata| serde_json::from_str::<Value>(metadata).ok());
        if let Some(kind) = metadata.as_ref().and_then(|metadata| text(metadata, "request_kind")) {
            call.purpose = CollectRules::built_in().purpose(AGENT, kind);
        }
        let new = request.input.iter().map(|item| Arc::from(item.get()));
        let items: Items = match &request.previous_response_id {
            None => new.collect(),
            Some(previous) => {
                let Some((_, before)) = self.answered.iter().find(|(id, _)| id == previous) else {
                    sink.note(NO_BASE, path, None);
                    return None;
                };
                before.iter().cloned().chain(new).collect()
            }
        };
        call.hints = hints(&items);
        call.body = if request.previous_response_id.is_none() {
            body(text_of.to_owned())
        } else {
            let whole = replace_field(text_of, "input", Some(&list(&items)));
            let whole = whole.and_then(|whole| replace_field(&whole, "previous_response_id", None));
            // The frame's type is not part of the request.
            whole.and_then(|whole| replace_field(&whole, "type", None)).and_then(body)
        };
        Some(items)
    }

    fn complete(&mut self, event: &Event, folder: &Path, sink: &mut Sink<'_>) -> Option<Call> {
        let (mut call, items) = self.open.remove(event.inference_call_id.as_ref()?)?;
        call.id = event.response_id.clone()?;
        if let Some((path, text)) = payload(event.response_payload.as_ref(), folder, sink) {
            if let Some(answer) = files::json::<Value>(&path, &text, &mut sink.notes) {
                let facts = ScannedAnswer::from_answer(&answer);
                call.usage = facts.usage;
                call.provider_reason = facts.reason;
            }
            if let (Some(mut items), Ok(output)) = (items, serde_json::from_str::<Output>(&text)) {
                items.extend(output.output_items.iter().map(|item| Arc::from(item.get())));
                self.answered.push_back((call.id.clone(), items));
                if self.answered.len() > BASES {
                    self.answered.pop_front();
                }
            }
        }
        Some(call)
    }
}

/// Returns what the items say about owners.
pub(in super::super) fn hints(items: &[Arc<str>]) -> Vec<OwnerHint> {
    let with_kinds = items.iter().filter(|item| item.contains("content_item_kinds"));
    let hints = with_kinds
        .filter_map(|item| serde_json::from_str(item).ok())
        .flat_map(|item: Value| owners::hints(&item));
    hints.take(proem_core::limit::COLLECT_HINTS_MAX).collect()
}
