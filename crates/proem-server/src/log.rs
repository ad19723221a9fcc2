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
    let _ = writeln!(std::io::stderr().lock(), "{}", Value::Object(entry));
}

/// 64 random bits, in hexadecimal.
pub(crate) fn random_id() -> String {
    let mut bytes = [0; 8];
    match getrandom::fill(&mut bytes) {
        Ok(()) => format!("{:016x}", u64::from_be_bytes(bytes)),
        Err(_) => "0000000000000000".into(),
    }
}
