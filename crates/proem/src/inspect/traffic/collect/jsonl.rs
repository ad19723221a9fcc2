//! Lines of `{at, conversation?, request, response}` from any program, and HAR files.

use std::path::{Path, PathBuf};

use proem_core::note::Code;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::files::{Line, Lines, has_extension};
use super::identity::{add_body, read_headers};
use super::json::{body, time};
use super::merge::BodyOrigin;
use super::notebook::Problem;
use super::{Sink, har};
use crate::inspect::traffic::call::{Call, CallingAgent, Wire};
use crate::inspect::traffic::usage::{ScannedAnswer, UsageScanner};
use crate::observe::file::shown;

const NO_CALL: Problem = Problem::info(Code::SkippedRecord, "a line has neither `request` nor `response`");
const NOT_A_BODY: Problem =
    Problem::warning(Code::IncompleteCall, "the request of a line is not a JSON object");
const NO_ANSWER: Problem = Problem::info(Code::IncompleteCall, "a line has no answer");

/// One line. Headers are a map or a list of pairs.
#[derive(Debug, Deserialize)]
struct CallLine<'a> {
    id: Option<String>,
    at: Option<Value>,
    agent: Option<String>,
    conversation: Option<String>,
    thread: Option<String>,
    provider: Option<String>,
    model: Option<String>,
    #[serde(default)]
    headers: Value,
    #[serde(borrow)]
    request: Option<&'a RawValue>,
    #[serde(borrow)]
    response: Option<&'a RawValue>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
}

pub(super) fn read(files: &[PathBuf], sink: &mut Sink<'_>) {
    for file in files {
        sink.begin();
        if has_extension(file, "har") {
            har::read(file, sink);
        } else if has_extension(file, "jsonl") || has_extension(file, "ndjson") || files.len() == 1 {
            read_lines(file, sink);
        } else {
            sink.foreign(file);
        }
    }
}

fn read_lines(file: &Path, sink: &mut Sink<'_>) {
    let Some(mut lines) = Lines::open(file, &mut sink.notes) else { return };
    while let Some(line) = lines.next(&mut sink.notes) {
        let number = line.number;
        let Some(parsed) = line.parse::<CallLine<'_>>(file, &mut sink.notes) else { continue };
        if parsed.request.is_none() && parsed.response.is_none() && parsed.usage.is_none() {
            sink.note(NO_CALL, file, Some(number));
        } else {
            let call = call(parsed, &line, file, sink);
            sink.call(call, BodyOrigin::Sent, file, Some(number));
        }
    }
}

fn call(line: CallLine<'_>, text: &Line<'_>, file: &Path, sink: &mut Sink<'_>) -> Call {
    let facts = facts(&line);
    let mut call = Call {
        at: line.at.as_ref().and_then(time),
        agent: line.agent.map(|name| CallingAgent { name, version: None }),
        conversation: line.conversation,
        thread: line.thread,
        provider: line.provider,
        model: line.model,
        wire: Wire::Unknown,
        usage: facts.usage,
        provider_reason: facts.reason,
        ..Call::default()
    };
    read_headers(&mut call, pairs(&line.headers).into_iter());
    if let Some(request) = line.request {
        // A program may have logged the body as text.
        let inner = serde_json::from_str::<String>(request.get());
        let sent = inner.unwrap_or_else(|_| request.get().to_owned());
        if !body(sent).is_some_and(|sent| add_body(&mut call, sent)) {
            sink.note(NOT_A_BODY, file, Some(text.number));
        }
    }
    if line.response.is_none() && line.usage.is_none() {
        sink.note(NO_ANSWER, file, Some(text.number));
    }
    call.model = call.model.take().or(facts.model);
    call.id = line.id.or(facts.id).unwrap_or_else(|| format!("{}:{}", shown(file), text.number));
    call
}

/// Reads an answer: an object, a list of events, or the text of a stream.
fn facts(line: &CallLine<'_>) -> ScannedAnswer {
    let mut scanner = UsageScanner::default();
    if let Some(response) = line.response {
        match serde_json::from_str::<String>(response.get()) {
            Ok(stream) => scanner.feed(stream.as_bytes()),
            Err(_) => scanner.feed(response.get().as_bytes()),
        }
    }
    let mut facts = scanner.finish();
    if let Some(usage) = line.usage {
        let wrapped = format!("{{\"usage\":{}}}", usage.get());
        facts.usage = serde_json::from_str(&wrapped)
            .map_or(facts.usage, |value| ScannedAnswer::from_answer(&value).usage);
    }
    facts
}

/// Returns headers of either form: `{name: value}`, `[[name, value]]`, or `[{name, value}]`.
pub(super) fn pairs(headers: &Value) -> Vec<(&str, &str)> {
    match headers {
        Value::Object(fields) => {
            fields.iter().filter_map(|(name, value)| Some((name.as_str(), value.as_str()?))).collect()
        }
        Value::Array(list) => list.iter().filter_map(header).collect(),
        _ => Vec::new(),
    }
}

fn header(one: &Value) -> Option<(&str, &str)> {
    match one {
        Value::Array(pair) => Some((pair.first()?.as_str()?, pair.get(1)?.as_str()?)),
        pair => Some((pair.get("name")?.as_str()?, pair.get("value")?.as_str()?)),
    }
}
