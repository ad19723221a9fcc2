//! Raw bodies: `UUID.request.json`, `REQUEST_ID.response.json`, and the index that pairs them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use proem_core::limit::COLLECT_BODY_BYTES_MAX;
use proem_core::note::Code;
use serde::Deserialize;
use serde_json::Value;

use super::super::files::{self, Lines, name, whole};
use super::super::identity::add_body;
use super::super::json::moment;
use super::super::merge::BodyOrigin;
use super::super::notebook::Problem;
use super::super::rules::CollectRules;
use super::super::{Sink, written};
use super::events::Events;
use super::{AGENT, NO_ANSWER, pairs};
use crate::inspect::traffic::call::{Call, CallingAgent, Purpose, Wire};
use crate::inspect::traffic::usage::ScannedAnswer;

const REQUEST: &str = ".request.json";
const RESPONSE: &str = ".response.json";
const NO_REQUEST: Problem = Problem::warning(Code::IncompleteCall, "the request of an answer is not there");
const NOT_A_BODY: Problem = Problem::warning(Code::SkippedRecord, "the file is not the body of a request");
const FILE_TIMES: Problem =
    Problem::info(Code::IncompleteCall, "no index and no event gives the time; the time of the file counts");

/// The files of raw bodies, by name.
#[derive(Debug, Default)]
pub(super) struct Bodies {
    requests: BTreeMap<String, PathBuf>,
    responses: BTreeMap<String, PathBuf>,
    indexes: Vec<PathBuf>,
}

/// A line of the index. Names of files are looked up among those that were found, never opened as they are.
#[derive(Debug, Deserialize)]
struct IndexLine {
    timestamp: Option<String>,
    session_id: Option<String>,
    query_source: Option<String>,
    model: Option<String>,
    request_id: String,
    request_file: String,
    response_file: Option<String>,
}

impl Bodies {
    /// Takes a file that is a body.
    pub(super) fn take(&mut self, file: &Path) -> bool {
        let name = name(file);
        if name.ends_with(REQUEST) {
            self.requests.insert(name.to_owned(), file.to_owned());
        } else if name.ends_with(RESPONSE) {
            self.responses.insert(name.to_owned(), file.to_owned());
        } else {
            return false;
        }
        true
    }

    /// Takes a file that pairs bodies.
    pub(super) fn add_index(&mut self, file: &Path) {
        self.indexes.push(file.to_owned());
    }
}

/// Reads all bodies.
pub(super) fn read(mut bodies: Bodies, events: &Events, sink: &mut Sink<'_>) {
    let mut paired = BTreeSet::new();
    for index in std::mem::take(&mut bodies.indexes) {
        sink.begin();
        read_index(&index, &mut bodies, &mut paired, sink);
    }
    bodies.requests.retain(|name, _| !paired.contains(name));
    sink.begin();
    read_by_events(&mut bodies, events, sink);
    sink.begin();
    read_by_content(&mut bodies, sink);
    for path in bodies.requests.values() {
        sink.note(NO_ANSWER, path.parent().unwrap_or(path), None);
    }
}

fn read_index(index: &Path, bodies: &mut Bodies, paired: &mut BTreeSet<String>, sink: &mut Sink<'_>) {
    let Some(mut lines) = Lines::open(index, &mut sink.notes) else { return };
    while let Some(line) = lines.next(&mut sink.notes) {
        let number = line.number;
        let Some(line) = line.parse::<IndexLine>(index, &mut sink.notes) else { continue };
        let mut call = new_call(&line.request_id);
        call.at = line.timestamp.as_deref().and_then(moment);
        call.conversation = line.session_id;
        call.model = line.model;
        if let Some(source) = line.query_source {
            call.purpose = CollectRules::built_in().purpose(AGENT, &source);
            // The index has no id of a sub-agent; agents of one kind share a thread unless another source knows more.
            call.thread = (call.purpose == Purpose::SubAgent).then_some(source);
        }
        let response = line.response_file.unwrap_or_else(|| format!("{}{RESPONSE}", line.request_id));
        match bodies.responses.remove(&response) {
            Some(path) => add_answer(&mut call, &path, sink),
            None => {
                sink.note(Problem::info(Code::IncompleteCall, "an answer is not there"), index, Some(number));
            }
        }
        match bodies.requests.get(&line.request_file) {
            Some(path) => add_request(&mut call, path, sink),
            None => sink.note(NO_REQUEST, index, Some(number)),
        }
        paired.insert(line.request_file);
        sink.call(call, BodyOrigin::Sent, index, Some(number));
    }
}

fn new_call(request_id: &str) -> Call {
    Call {
        id: request_id.to_owned(),
        agent: Some(CallingAgent { name: AGENT.to_owned(), version: None }),
        wire: Wire::Anthropic,
        ..Call::default()
    }
}

fn add_answer(call: &mut Call, path: &Path, sink: &mut Sink<'_>) {
    let Some(text) = whole(path, COLLECT_BODY_BYTES_MAX, &mut sink.notes) else { return };
    let Some(answer) = files::json::<Value>(path, &text, &mut sink.notes) else { return };
    let facts = ScannedAnswer::from_answer(&answer);
    call.usage = facts.usage;
    call.provider_reason = facts.reason;
    call.model = call.model.take().or(facts.model);
}

fn add_request(call: &mut Call, path: &Path, sink: &mut Sink<'_>) {
    let Some(text) = whole(path, COLLECT_BODY_BYTES_MAX, &mut sink.notes) else { return };
    if !add_body(call, text.into()) {
        sink.note(NOT_A_BODY, path, None);
    }
}

fn request_id(response: &str) -> &str {
    response.strip_suffix(RESPONSE).unwrap_or(response)
}

/// Reads the answers whose requests the events name.
fn read_by_events(bodies: &mut Bodies, events: &Events, sink: &mut Sink<'_>) {
    let named = |response: &String| {
        let event = events.get(request_id(response))?;
        Some((event.at(), response.clone(), event.request_file.clone()?))
    };
    let mut pairs: Vec<_> = bodies.responses.keys().filter_map(named).collect();
    pairs.sort();
    for (at, response, request) in pairs {
        let Some(path) = bodies.requests.remove(&request) else { continue };
        let Some(answer) = bodies.responses.remove(&response) else { continue };
        give(at, (&response, &answer), Some(&path), sink);
    }
}

/// Reads the other answers, each with the request that a later request continues.
fn read_by_content(bodies: &mut Bodies, sink: &mut Sink<'_>) {
    let pairs = pairs::by_content(&bodies.requests, &bodies.responses, &mut sink.notes);
    let mut responses: Vec<_> = std::mem::take(&mut bodies.responses).into_iter().collect();
    responses.sort_by_key(|(_, path)| written(path));
    for (response, answer) in responses {
        let request = pairs.get(&response).and_then(|name| bodies.requests.remove(name));
        if request.is_none() {
            sink.note(NO_REQUEST, &answer, None);
        }
        sink.note(FILE_TIMES, answer.parent().unwrap_or(&answer), None);
        let at = written(request.as_deref().unwrap_or(&answer));
        give(at, (&response, &answer), request.as_deref(), sink);
    }
}

fn give(at: Option<i64>, (response, answer): (&str, &Path), request: Option<&Path>, sink: &mut Sink<'_>) {
    let mut call = Call { at, ..new_call(request_id(response)) };
    add_answer(&mut call, answer, sink);
    if let Some(request) = request {
        add_request(&mut call, request, sink);
    }
    sink.call(call, BodyOrigin::Sent, request.unwrap_or(answer), None);
}
