//! Claude Code: raw bodies, telemetry events, and transcripts. All three may lie in one folder; they are joined by the
//! id of the request.

mod attachments;
mod events;
mod pairs;
mod raw;
mod rebuild;
mod transcript;

use std::path::PathBuf;

use proem_core::note::Code;
use serde_json::Value;

pub use self::events::EventCalls;
use self::events::Events;
use self::raw::Bodies;
use super::Sink;
use super::files::{Lines, has_extension, name};
use super::notebook::{Notebook, Problem};

/// The name that profiles and rules have for it.
const AGENT: &str = "claude-code";

const NO_ANSWER: Problem =
    Problem::info(Code::IncompleteCall, "a request has no answer, and so is not counted as a call");
const NO_BODY: Problem =
    Problem::warning(Code::IncompleteCall, "a request cannot be rebuilt, because a part of it is missing");

/// Lines of a file that are looked at to tell what it is.
const LOOKED_AT: usize = 20;

enum Kind {
    Events,
    Index,
    Transcript,
    Foreign,
}

pub(super) fn read(files: &[PathBuf], sink: &mut Sink<'_>) {
    let (mut events, mut bodies, mut transcripts) = (Events::default(), Bodies::default(), Vec::new());
    for file in files {
        if name(file).ends_with(".meta.json") {
            continue;
        }
        if bodies.take(file) {
            continue;
        }
        if !has_extension(file, "jsonl") {
            sink.foreign(file);
            continue;
        }
        match kind(file, &mut sink.notes) {
            Kind::Events => events.read(file, sink),
            Kind::Index => bodies.add_index(file),
            Kind::Transcript => transcripts.push(file),
            Kind::Foreign => sink.foreign(file),
        }
    }
    raw::read(bodies, &events, sink);
    for file in transcripts {
        transcript::read(file, sink);
    }
    events.give(sink);
}

/// Tells what a file of lines is, by its first lines.
fn kind(file: &std::path::Path, notes: &mut Notebook) -> Kind {
    let mut unseen = Notebook::default();
    let Some(mut lines) = Lines::open(file, notes) else { return Kind::Foreign };
    for _ in 0..LOOKED_AT {
        let Some(line) = lines.next(&mut unseen) else { break };
        let Ok(value) = serde_json::from_str::<Value>(line.text) else { continue };
        let has = |key: &str| value.get(key).is_some();
        if events::logs(&value).is_some() {
            return Kind::Events;
        }
        if has("request_file") && has("request_id") {
            return Kind::Index;
        }
        if has("type") && (has("sessionId") || has("uuid") || has("agentId") || has("leafUuid")) {
            return Kind::Transcript;
        }
    }
    Kind::Foreign
}
