//! Telemetry events in OTLP's JSON: which body belongs to which request, and who made the call.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};

use proem_core::limit::{COLLECT_HINTS_MAX, COLLECT_LINE_BYTES_MAX};
use serde_json::Value;

use super::super::Sink;
use super::super::files::Lines;
use super::super::identity::add_body;
use super::super::json::{moment, number, text};
use super::super::merge::BodyOrigin;
use super::super::rules::CollectRules;
use super::AGENT;
use crate::inspect::traffic::call::{Call, CallUsage, CallingAgent, HintPlace, OwnerHint, OwnerKind, Wire};

/// The facts of the events, by the id of the request.
#[derive(Debug, Default)]
pub(super) struct Events {
    by_request: BTreeMap<String, EventCall>,
    /// The last request of each session and kind of query: versions without ids answer it before they send another.
    open: BTreeMap<(String, String), Sent>,
    by_body: BTreeMap<String, Sent>,
}

/// A request body that was announced.
#[derive(Debug, Clone, Default)]
struct Sent {
    file: Option<String>,
    at: Option<i64>,
    body: Option<String>,
}

/// One call, as events tell it.
#[derive(Debug, Default)]
pub(super) struct EventCall {
    /// The name of the file with the request.
    pub(super) request_file: Option<String>,
    call: Call,
    body: Option<String>,
    place: Option<(PathBuf, usize)>,
}

impl EventCall {
    /// Returns the time of the request.
    pub(super) fn at(&self) -> Option<i64> {
        self.call.at
    }
}

/// Returns the logs of an OTLP line, which may be wrapped as `body`.
pub(super) fn logs(line: &Value) -> Option<&Vec<Value>> {
    let inner = line.get("body").unwrap_or(line);
    line.get("resourceLogs").or_else(|| inner.get("resourceLogs"))?.as_array()
}

impl Events {
    /// Reads a file.
    pub(super) fn read(&mut self, file: &Path, sink: &mut Sink<'_>) {
        let Some(mut lines) = Lines::open(file, &mut sink.notes) else { return };
        while let Some(line) = lines.next(&mut sink.notes) {
            let number = line.number;
            let Some(value) = line.parse::<Value>(file, &mut sink.notes) else { continue };
            self.add_logs(&value, (file, number));
        }
    }

    /// Reads the records of one line.
    fn add_logs(&mut self, value: &Value, place: (&Path, usize)) {
        for resource in logs(value).into_iter().flatten() {
            let version = attributes(resource.get("resource")).remove("service.version");
            let version = version.and_then(|version| version.as_str().map(str::to_owned));
            let scopes = resource.get("scopeLogs").and_then(Value::as_array);
            let records =
                scopes.into_iter().flatten().filter_map(|scope| scope.get("logRecords")?.as_array());
            for record in records.flatten() {
                self.add(&attributes(Some(record)), version.as_deref(), place);
            }
        }
    }

    fn add(&mut self, event: &BTreeMap<&str, &Value>, version: Option<&str>, place: (&Path, usize)) {
        let get = |key: &str| event.get(key).and_then(|value| value.as_str());
        let key = || {
            (
                get("session.id").unwrap_or_default().to_owned(),
                get("query_source").unwrap_or_default().to_owned(),
            )
        };
        match get("event.name").unwrap_or_default() {
            "api_request_body" => {
                let sent = Sent {
                    file: get("body_ref").map(file_name),
                    at: get("event.timestamp").and_then(moment),
                    body: get("body").filter(|_| !event.contains_key("body_truncated")).map(str::to_owned),
                };
                match get("request_body_id") {
                    Some(id) => self.by_body.insert(id.to_owned(), sent),
                    None => self.open.insert(key(), sent),
                };
            }
            "api_response_body" => {
                let sent = match get("request_body_id") {
                    Some(id) => self.by_body.remove(id),
                    None => self.open.remove(&key()),
                };
                let Some(id) = get("request_id") else { return };
                let one = self.by_request.entry(id.to_owned()).or_default();
                // A repeated event must not forget what the first one knew.
                if let Some(sent) = sent {
                    one.request_file = sent.file.or(one.request_file.take());
                    one.call.at = sent.at.or(one.call.at);
                    one.body = sent.body.or(one.body.take());
                }
                describe(&mut one.call, event, version);
            }
            "api_request" => {
                let Some(id) = get("request_id") else { return };
                let one = self.by_request.entry(id.to_owned()).or_default();
                one.place = Some((place.0.to_owned(), place.1));
                one.call.at = one.call.at.or_else(|| get("event.timestamp").and_then(moment));
                describe(&mut one.call, event, version);
                let tokens = |key: &str| event.get(key).and_then(|value| number(value));
                one.call.usage = CallUsage {
                    read: tokens("cache_read_tokens"),
                    written: tokens("cache_creation_tokens"),
                    written_1h: tokens("cache_creation_1h_tokens"),
                    uncached: tokens("input_tokens"),
                    output: tokens("output_tokens"),
                };
            }
            _ => {}
        }
    }

    /// Returns what is known of a request.
    pub(super) fn get(&self, request_id: &str) -> Option<&EventCall> {
        self.by_request.get(request_id)
    }

    /// Hands on all calls that the events tell of; those with bodies are joined with them.
    pub(super) fn give(self, sink: &mut Sink<'_>) {
        sink.begin();
        let mut all: Vec<_> = self.by_request.into_iter().collect();
        all.sort_by_key(|(_, one)| one.call.at);
        for (id, one) in all {
            let mut call = Call { id, wire: Wire::Anthropic, ..one.call };
            if let Some(body) = one.body {
                add_body(&mut call, body.into());
            }
            let (path, line) = one.place.unwrap_or_default();
            sink.call(call, BodyOrigin::Sent, &path, (line > 0).then_some(line));
        }
    }
}

/// Calls that telemetry events tell of, while the events arrive.
///
/// Events of one call come in several batches. A call is given when its numbers have come, and again when its request has
/// come later; a request that is only named by a file is not read.
#[derive(Debug, Default)]
pub struct EventCalls {
    events: Events,
    /// The calls that were given, with the size of their requests, the oldest first.
    given: VecDeque<(String, usize)>,
    bytes: usize,
}

impl EventCalls {
    /// Reads logs of OTLP, and returns the calls that are complete enough, in the order of time.
    pub fn take(&mut self, logs: &Value) -> Vec<Call> {
        self.events.add_logs(logs, (Path::new(""), 0));
        let mut calls = Vec::new();
        for (id, one) in &mut self.events.by_request {
            let is_new = !self.given.iter().any(|(given, _)| given == id);
            let has_numbers = one.call.usage.input().is_some();
            if !has_numbers || !is_new && one.body.is_none() {
                continue;
            }
            let mut call = Call { id: id.clone(), wire: Wire::Anthropic, ..one.call.clone() };
            let bytes = one.body.as_ref().map_or(0, String::len);
            if let Some(body) = one.body.take() {
                add_body(&mut call, body.into());
            }
            if is_new {
                self.given.push_back((id.clone(), bytes));
            }
            calls.push(call);
        }
        calls.sort_by_key(|call| call.at);
        self.forget();
        calls
    }

    /// Forgets the oldest calls, and requests without an answer, beyond the limits.
    fn forget(&mut self) {
        while self.given.len() > COLLECT_HINTS_MAX
            && let Some((id, _)) = self.given.pop_front()
        {
            self.events.by_request.remove(&id);
        }
        let waiting = |sent: &Sent| sent.body.as_ref().map_or(0, String::len);
        self.bytes = self.events.by_body.values().chain(self.events.open.values()).map(waiting).sum();
        let unanswered = self.events.by_request.values().filter_map(|one| one.body.as_ref());
        self.bytes += unanswered.map(String::len).sum::<usize>();
        if self.bytes > COLLECT_LINE_BYTES_MAX || self.events.by_body.len() > COLLECT_HINTS_MAX {
            self.events.by_body.clear();
            self.events.open.clear();
        }
        if self.events.by_request.len() > 2 * COLLECT_HINTS_MAX || self.bytes > 2 * COLLECT_LINE_BYTES_MAX {
            self.events.by_request.clear();
            self.given.clear();
        }
    }
}

/// Adds what an event says about the origin of a call.
fn describe(call: &mut Call, event: &BTreeMap<&str, &Value>, version: Option<&str>) {
    let get = |key: &str| event.get(key).and_then(|value| value.as_str()).map(str::to_owned);
    call.agent = Some(CallingAgent { name: AGENT.to_owned(), version: version.map(str::to_owned) });
    call.conversation = get("session.id").or(call.conversation.take());
    call.model = get("model").or(call.model.take());
    call.thread = get("agent_id").or(call.thread.take());
    call.parent = get("parent_agent_id").or(call.parent.take());
    if let Some(source) = get("query_source") {
        call.purpose = CollectRules::built_in().purpose(AGENT, &source);
    }
    for (key, kind) in [("skill.name", OwnerKind::Skill), ("mcp_server.name", OwnerKind::McpServer)] {
        if let Some(name) = get(key) {
            let place = HintPlace::Text(name.as_str().into());
            let hint = OwnerHint { place, kind, name: Some(name), path: None };
            if !call.hints.contains(&hint) {
                call.hints.push(hint);
            }
        }
    }
}

fn file_name(path: &str) -> String {
    path.rsplit(['/', '\\']).next().unwrap_or_default().to_owned()
}

/// Returns the attributes of a record by their names.
fn attributes(holder: Option<&Value>) -> BTreeMap<&str, &Value> {
    let list = holder.and_then(|holder| holder.get("attributes")?.as_array());
    list.into_iter().flatten().filter_map(one).collect()
}

fn one(attribute: &Value) -> Option<(&str, &Value)> {
    let value = attribute.get("value")?.as_object()?.values().next()?;
    Some((text(attribute, "key")?, value))
}
