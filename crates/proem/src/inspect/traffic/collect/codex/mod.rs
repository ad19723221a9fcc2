//! Codex: traces of requests, and rollouts. Both may lie in one folder; they are joined by the id of the response.

mod owners;
mod rollout;
mod trace;

use std::path::PathBuf;

pub(super) use trace::hints;

use super::Sink;
use super::files::{has_extension, name};

/// The name that profiles and rules have for it.
const AGENT: &str = "codex";

pub(super) fn read(files: &[PathBuf], sink: &mut Sink<'_>) {
    for file in files {
        let name = name(file);
        if name == "trace.jsonl" {
            trace::read(file, sink);
        } else if name.starts_with("rollout-") && has_extension(file, "jsonl") {
            rollout::read(file, sink);
        } else if name != "manifest.json" && !is_payload(file) {
            sink.foreign(file);
        }
    }
}

/// Tells if a file is a payload that a trace names.
fn is_payload(file: &std::path::Path) -> bool {
    file.parent().and_then(|folder| folder.file_name()).is_some_and(|folder| folder == "payloads")
}
