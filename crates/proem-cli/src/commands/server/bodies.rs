//! Requests that `--keep bodies` writes: lines that `proem report` reads, one file for each day, with secrets masked.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::PathBuf;

use jiff::Timestamp;
use proem::traffic::Call;
use proem_core::limit::GATEWAY_DAY_BYTES_MAX;
use proem_core::text_safety::secret::Scanner;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// A line, as `proem report` reads it.
#[derive(Serialize)]
struct Line<'c> {
    id: &'c str,
    at: String,
    conversation: Option<&'c str>,
    thread: Option<&'c str>,
    agent: Option<&'c str>,
    request: Box<RawValue>,
    response: Value,
}

/// The folder of the files.
#[derive(Debug)]
pub(crate) struct Bodies {
    folder: PathBuf,
    scanner: Scanner,
}

impl Bodies {
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self { folder, scanner: Scanner::new() }
    }

    /// Appends a call.
    pub(crate) fn add(&self, call: &Call) -> io::Result<()> {
        let Some(body) = &call.body else { return Ok(()) };
        let at = call.at.and_then(|at| Timestamp::from_millisecond(at).ok()).unwrap_or_else(Timestamp::now);
        // Line breaks in JSON are white space. Masking inside of strings leaves JSON; else the text is kept as a string.
        let masked = self.scanner.without_secrets(body).replace(['\n', '\r'], " ");
        let request =
            RawValue::from_string(masked.clone()).or_else(|_| serde_json::value::to_raw_value(&masked))?;
        let usage = call.usage;
        let line = Line {
            id: &call.id,
            at: at.to_string(),
            conversation: call.conversation.as_deref(),
            thread: call.thread.as_deref(),
            agent: call.agent.as_ref().map(|agent| agent.name.as_str()),
            request,
            response: json!({"model": call.model, "usage": {
                "cache_read_input_tokens": usage.read,
                "cache_creation_input_tokens": usage.written,
                "input_tokens": usage.uncached,
                "output_tokens": usage.output,
            }}),
        };
        let line = serde_json::to_string(&line)?;
        let line = format!("{line}\n");
        let mut file = self.file(&at.strftime("%Y-%m-%d").to_string())?;
        if file.metadata()?.len().saturating_add(line.len() as u64) > GATEWAY_DAY_BYTES_MAX {
            return Err(io::Error::other("the file of this day is full"));
        }
        file.write_all(line.as_bytes())
    }

    fn file(&self, day: &str) -> io::Result<File> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
        let path = self.folder.join(format!("{day}.jsonl"));
        OpenOptions::new().create(true).append(true).mode(0o600).open(path)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn requests_are_kept_without_secrets() {
        let folder = tempfile::tempdir().expect("a folder");
        let bodies = Bodies::new(folder.path().join("bodies"));
        let key = ["sk-ant-api03-", &"a1B2c3D4e5".repeat(9), "-AAAAAAAA"].concat();
        let body =
            format!(r#"{{"model": "m", "n": 1.0, "messages": [{{"role": "user", "content": "{key}"}}]}}"#);
        let call = Call { id: "r".into(), at: Some(0), body: Some(body.into()), ..Call::default() };
        bodies.add(&call).expect("it is written");
        bodies.add(&call).expect("it is written");
        let path = folder.path().join("bodies/1970-01-01.jsonl");
        let text = std::fs::read_to_string(&path).expect("a file");
        assert_eq!(text.lines().count(), 2);
        assert!(!text.contains(&key) && text.contains("\"n\": 1.0"), "{text}");
        let mode =
            |path: &std::path::Path| path.metadata().expect("it is there").permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(path.parent().expect("a folder"))), (0o600, 0o700));
    }
}
