//! opencode: logs of a plugin (`{at, hook, input, output}`), exports of sessions, and the session database.
//!
//! No hook sees the final body. It is put together from the system prompt, the messages and the tools that hooks see, in
//! the shape of Anthropic's API, without markers. Of `chat.params` only the agent is read: it holds the key.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use proem_core::limit::{COLLECT_FILE_BYTES_MAX, COLLECT_SESSION_BYTES_MAX};
use proem_core::note::Code;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::files::{Line, Lines, has_extension, is_sqlite, whole};
use super::json::{body, text, time};
use super::merge::BodyOrigin;
use super::notebook::Problem;
use super::rules::CollectRules;
use super::{NO_SQLITE, Sink};
use crate::inspect::traffic::call::{Call, CallUsage, CallingAgent, Wire};

const AGENT: &str = "opencode";
const NO_ANSWER: Problem =
    Problem::info(Code::IncompleteCall, "a request has no answer, and so is not counted as a call");
const OVER_SESSION: Problem = Problem::warning(
    Code::OverLimit,
    "the requests that wait for answers exceed `collect_session_bytes_max`",
);
const UNKNOWN: Problem = Problem::warning(Code::SkippedRecord, "a line has an unknown shape");

#[derive(Debug, Deserialize)]
struct LogLine<'a> {
    at: Option<Value>,
    hook: Option<String>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
    #[serde(borrow)]
    output: Option<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Input {
    #[serde(rename = "sessionID")]
    session: Option<String>,
    #[serde(rename = "toolID")]
    tool: Option<String>,
    agent: Option<String>,
    #[serde(rename = "type")]
    kind: Option<String>,
    properties: Option<Value>,
    directory: Option<String>,
    model: Option<Model>,
}

#[derive(Debug, Clone, Deserialize)]
struct Model {
    id: Option<String>,
    #[serde(rename = "providerID")]
    provider: Option<String>,
}

/// The facts of an assistant's message about its call.
#[derive(Debug, Clone)]
struct Info {
    created: i64,
    is_complete: bool,
    call: Call,
}

/// A request, until the message that answers it is known.
struct Pending {
    at: i64,
    session: String,
    purpose: Option<String>,
    model: Option<Model>,
    body: Option<Arc<str>>,
}

/// The state of one log.
#[derive(Default)]
struct Log {
    cwd: Option<String>,
    version: Option<String>,
    tools: BTreeMap<String, Value>,
    messages: BTreeMap<String, Vec<Value>>,
    pending: Vec<Pending>,
    /// Messages of the assistant by session and id.
    infos: BTreeMap<String, BTreeMap<String, Info>>,
    bytes: usize,
}

pub(super) fn read(files: &[PathBuf], sink: &mut Sink<'_>) {
    for file in files {
        sink.begin();
        if has_extension(file, "jsonl") {
            read_log(file, sink);
        } else if has_extension(file, "json") {
            read_export(file, sink);
        } else if is_sqlite(file) {
            read_store(file, sink);
        } else {
            sink.foreign(file);
        }
    }
}

fn read_log(file: &Path, sink: &mut Sink<'_>) {
    let Some(mut lines) = Lines::open(file, &mut sink.notes) else { return };
    let (mut log, mut is_known) = (Log::default(), false);
    while let Some(line) = lines.next(&mut sink.notes) {
        let number = line.number;
        let Some(parsed) = line.parse::<LogLine<'_>>(file, &mut sink.notes) else { continue };
        if parsed.hook.is_none() {
            is_known |= read_row(&line, file, sink);
            continue;
        }
        is_known = true;
        if log.add(&parsed).is_none() {
            sink.note(UNKNOWN, file, Some(number));
        }
        if log.bytes > COLLECT_SESSION_BYTES_MAX {
            sink.note(OVER_SESSION, file, Some(number));
            log.give(file, sink);
        }
    }
    log.give(file, sink);
    if !is_known {
        sink.foreign(file);
    }
}

impl Log {
    /// Adds a line; `None` if a part of it has an unknown shape.
    fn add(&mut self, line: &LogLine<'_>) -> Option<()> {
        let hook = line.hook.as_deref()?;
        let at = line.at.as_ref().and_then(time).unwrap_or_default();
        let input = || serde_json::from_str::<Input>(line.input?.get()).ok();
        let output = || serde_json::from_str::<Value>(line.output?.get()).ok();
        match hook {
            "init" => self.cwd = input()?.directory.or(self.cwd.take()),
            "tool.definition" => {
                self.tools.insert(input()?.tool?, output()?);
            }
            "experimental.chat.messages.transform" => self.add_messages(output()?)?,
            "experimental.chat.system.transform" => self.add_request(at, input()?, &output()?),
            "chat.params" => {
                let input = input()?;
                let last =
                    self.pending.iter_mut().rev().find(|one| Some(&one.session) == input.session.as_ref());
                if let Some(last) = last {
                    last.purpose = input.agent;
                }
            }
            "event" => {
                let input = input()?;
                let properties = input.properties?;
                match input.kind.as_deref() {
                    Some("message.updated") => self.add_info(properties.get("info")?),
                    Some("session.created") => {
                        let about = properties.get("info")?;
                        self.version = text(about, "version").map(str::to_owned).or(self.version.take());
                    }
                    _ => {}
                }
            }
            _ => {}
        }
        Some(())
    }

    fn add_messages(&mut self, mut output: Value) -> Option<()> {
        let Value::Array(messages) = output.get_mut("messages")?.take() else { return None };
        let infos: Vec<&Value> = messages.iter().filter_map(|message| message.get("info")).collect();
        let session = text(infos.first()?, "sessionID")?.to_owned();
        for info in infos {
            self.add_info(info);
        }
        self.messages.insert(session, messages);
        Some(())
    }

    fn add_info(&mut self, info: &Value) {
        if let Some((session, found)) = answer(info) {
            let known = self.infos.entry(session).or_default();
            // The first event of a message has zeros for numbers; a later one replaces it.
            if known.get(&found.call.id).is_none_or(|known| !known.is_complete) {
                known.insert(found.call.id.clone(), found);
            }
        }
    }

    fn add_request(&mut self, at: i64, input: Input, output: &Value) {
        let Some(session) = input.session else { return };
        let system = output.get("system").and_then(Value::as_array).into_iter().flatten();
        let system: Vec<Value> =
            system.filter_map(Value::as_str).map(|text| json!({"type": "text", "text": text})).collect();
        let messages = self.messages.remove(&session);
        let model = input.model.as_ref().and_then(|model| model.id.clone());
        // A title has no messages in the log; its system prompt alone says nothing.
        let sent = messages.map(|messages| {
            let messages: Vec<Value> = messages.iter().flat_map(wire_messages).collect();
            let tools: Vec<Value> = self.tools.iter().map(|(name, tool)| definition(name, tool)).collect();
            json!({"model": model, "system": system, "tools": tools, "messages": messages}).to_string()
        });
        self.tools.clear();
        let sent = sent.and_then(body);
        self.bytes += sent.as_deref().map_or(0, str::len);
        self.pending.push(Pending { at, session, purpose: None, model: input.model, body: sent });
    }

    /// Hands on all calls. A request belongs to the message that was begun last before it in its session.
    fn give(&mut self, file: &Path, sink: &mut Sink<'_>) {
        self.bytes = 0;
        let mut calls: Vec<Call> = Vec::new();
        for pending in std::mem::take(&mut self.pending) {
            let purpose = pending.purpose.as_deref().unwrap_or_default();
            let purpose = CollectRules::built_in().purpose(AGENT, purpose);
            // Titles are not messages.
            if pending.body.is_none() {
                continue;
            }
            let infos = self.infos.get_mut(&pending.session);
            let found = infos.and_then(|infos| {
                let begun = infos.values().filter(|info| info.created <= pending.at);
                let id = begun.max_by_key(|info| info.created)?.call.id.clone();
                infos.remove(&id)
            });
            let Some(info) = found else {
                sink.note(NO_ANSWER, file, None);
                continue;
            };
            let provider = pending.model.and_then(|model| model.provider);
            calls.push(Call {
                purpose,
                body: pending.body,
                at: Some(pending.at),
                provider,
                wire: Wire::Anthropic,
                ..info.call
            });
        }
        for infos in std::mem::take(&mut self.infos).into_values() {
            calls.extend(infos.into_values().filter(|info| info.is_complete).map(|info| info.call));
        }
        calls.sort_by_key(|call| call.at);
        for mut call in calls {
            call.cwd = call.cwd.or_else(|| self.cwd.clone());
            if let (Some(agent), Some(version)) = (&mut call.agent, &self.version) {
                agent.version = Some(version.clone());
            }
            sink.call(call, BodyOrigin::Approximate, file, None);
        }
    }
}

/// Returns the call of a message of the assistant, and its session.
fn answer(info: &Value) -> Option<(String, Info)> {
    if text(info, "role") != Some("assistant") {
        return None;
    }
    let session = text(info, "sessionID")?.to_owned();
    let created = info.get("time")?.get("created").and_then(time)?;
    let tokens = info.get("tokens");
    let get = |key: &str| tokens.and_then(|tokens| tokens.get(key)?.as_u64());
    let cache = |key: &str| tokens.and_then(|tokens| tokens.get("cache")?.get(key)?.as_u64());
    let is_complete = info.get("time")?.get("completed").is_some();
    let usage = CallUsage {
        read: cache("read"),
        written: cache("write"),
        written_1h: None,
        uncached: get("input"),
        output: get("output"),
    };
    let call = Call {
        id: text(info, "id")?.to_owned(),
        at: Some(created),
        agent: Some(CallingAgent { name: AGENT.to_owned(), version: None }),
        conversation: Some(session.clone()),
        purpose: CollectRules::built_in().purpose(AGENT, text(info, "agent").unwrap_or_default()),
        provider: text(info, "providerID").map(str::to_owned),
        model: text(info, "modelID").map(str::to_owned),
        usage: if is_complete { usage } else { CallUsage::default() },
        cwd: info.get("path").and_then(|path| text(path, "cwd")).map(str::to_owned),
        ..Call::default()
    };
    Some((session, Info { created, is_complete, call }))
}

fn definition(name: &str, tool: &Value) -> Value {
    let schema = tool.get("parameters").filter(|schema| schema.is_object()).cloned();
    json!({"name": name, "description": tool.get("description"), "input_schema": schema.unwrap_or_else(|| json!({}))})
}

/// Returns a message in the shape of Anthropic's API: results of tools become a message of the user.
fn wire_messages(message: &Value) -> Vec<Value> {
    let role = message.get("info").and_then(|info| text(info, "role")).unwrap_or("user");
    let (mut content, mut results) = (Vec::new(), Vec::new());
    for part in message.get("parts").and_then(Value::as_array).into_iter().flatten() {
        match text(part, "type") {
            Some("text") => {
                content.extend(text(part, "text").map(|text| json!({"type": "text", "text": text})));
            }
            Some("reasoning") => {
                content.extend(text(part, "text").map(|text| json!({"type": "thinking", "thinking": text})));
            }
            Some("tool") => {
                let state = |key: &str| part.get("state").and_then(|state| state.get(key)).cloned();
                let id = part.get("callID").cloned();
                content.push(
                    json!({"type": "tool_use", "id": id, "name": part.get("tool"), "input": state("input")}),
                );
                let output = state("output").or_else(|| state("error"));
                results.push(json!({"type": "tool_result", "tool_use_id": id, "content": output}));
            }
            _ => {}
        }
    }
    let of = |role: &str, content: Vec<Value>| {
        (!content.is_empty()).then(|| json!({"role": role, "content": content}))
    };
    of(role, content).into_iter().chain(of("user", results)).collect()
}

#[derive(Debug, Deserialize)]
struct Export {
    info: Value,
    messages: Vec<Value>,
}

/// Reads what `opencode export` prints. It has no requests.
fn read_export(file: &Path, sink: &mut Sink<'_>) {
    let Some(content) = whole(file, COLLECT_FILE_BYTES_MAX, &mut sink.notes) else { return };
    let Ok(export) = serde_json::from_str::<Export>(&content) else { return sink.foreign(file) };
    let about = About::new(&export.info);
    for message in &export.messages {
        if let Some(info) = message.get("info") {
            about.give(info, file, None, sink);
        }
    }
}

/// The facts of a session about all of its calls.
#[derive(Debug, Default)]
struct About {
    version: Option<String>,
    cwd: Option<String>,
    parent: Option<String>,
}

impl About {
    fn new(session: &Value) -> Self {
        let of = |key: &str| text(session, key).map(str::to_owned);
        Self {
            version: of("version"),
            cwd: of("directory"),
            parent: of("parentID").or_else(|| of("parent_id")),
        }
    }

    fn give(&self, info: &Value, file: &Path, line: Option<usize>, sink: &mut Sink<'_>) {
        if let Some((_, info)) = answer(info).filter(|(_, info)| info.is_complete) {
            let mut call = info.call;
            call.cwd = call.cwd.or_else(|| self.cwd.clone());
            call.parent.clone_from(&self.parent);
            call.agent = Some(CallingAgent { name: AGENT.to_owned(), version: self.version.clone() });
            sink.call(call, BodyOrigin::Approximate, file, line);
        }
    }
}

/// Reads a line that holds a row of the table of messages; returns false for other lines.
fn read_row(line: &Line<'_>, file: &Path, sink: &mut Sink<'_>) -> bool {
    let Ok(row) = serde_json::from_str::<Value>(line.text) else { return false };
    let (Some(id), Some(session), Some(data)) =
        (text(&row, "id"), text(&row, "session_id"), text(&row, "data"))
    else {
        return text(&row, "project_id").is_some();
    };
    give_row(&About::default(), [id, session, data], (file, Some(line.number)), sink);
    true
}

fn give_row(
    about: &About,
    [id, session, data]: [&str; 3],
    (file, line): (&Path, Option<usize>),
    sink: &mut Sink<'_>,
) {
    let Ok(mut info) = serde_json::from_str::<Value>(data) else { return sink.note(UNKNOWN, file, line) };
    if let Some(fields) = info.as_object_mut() {
        fields.insert("id".to_owned(), id.into());
        fields.insert("sessionID".to_owned(), session.into());
    }
    about.give(&info, file, line, sink);
}

fn read_store(file: &Path, sink: &mut Sink<'_>) {
    let queries = &CollectRules::built_in().sqlite;
    let mut sessions = BTreeMap::new();
    sink.sqlite(file, &queries.opencode_sessions, &mut |row| {
        if let [Some(id), parent, cwd, version] = row.as_slice() {
            let about = About { version: version.clone(), cwd: cwd.clone(), parent: parent.clone() };
            sessions.insert(id.clone(), about);
        }
    });
    let Some(rows) = sink.options.sqlite else { return };
    let none = About::default();
    let read = rows(file, &queries.opencode_messages, &mut |row| {
        if let [Some(id), Some(session), Some(data)] = row.as_slice() {
            let about = sessions.get(session).unwrap_or(&none);
            give_row(about, [id.as_str(), session.as_str(), data.as_str()], (file, None), sink);
        }
    });
    if read.is_err() {
        sink.note(NO_SQLITE, file, None);
    }
}
