//! Structured lines on standard error. Prompts are never among them: a digest and a length say enough.

use std::io::Write;

use serde_json::{Map, Value};

/// Writes one line. A reader that is gone is no reason to stop.
#[expect(clippy::let_underscore_must_use, reason = "there is nobody left to tell")]
pub(crate) fn line(level: &str, fields: &[(&str, &str)]) {
    let mut entry = Map::new();
    entry.insert("level".into(), level.into());
    for (key, value) in fields {
        entry.insert((*key).into(), Value::from(*value));
    }
    // In one go: standard error is not buffered, and other processes may write to it, too.
    let line = format!("{}\n", Value::Object(entry));
    let _ = std::io::stderr().lock().write_all(line.as_bytes());
}

/// A path without what gives power over a compaction.
pub(crate) fn path(path: &str) -> String {
    match path.split_once("/compaction/") {
        Some((before, token)) => {
            let behind = token.split_once('/').map_or(String::new(), |(_, behind)| format!("/{behind}"));
            format!("{before}/compaction/…{behind}")
        }
        None => path.to_owned(),
    }
}

/// 64 random bits, in hexadecimal.
pub(crate) fn random_id() -> String {
    let mut bytes = [0; 8];
    match getrandom::fill(&mut bytes) {
        Ok(()) => format!("{:016x}", u64::from_be_bytes(bytes)),
        Err(_) => "0000000000000000".into(),
    }
}
