//! claude-tap: its database, its bundles, and lines of records. Records are compacted: large parts are references to
//! blobs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use proem_core::limit::{COLLECT_BODY_BYTES_MAX, COLLECT_FILE_BYTES_MAX, COLLECT_HELD_BYTES_MAX};
use proem_core::note::Code;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::files::{self, Lines, has_extension, is_sqlite, name, whole};
use super::har::request_id;
use super::identity::{add_body, host, read_headers};
use super::json::moment;
use super::jsonl::pairs;
use super::merge::BodyOrigin;
use super::notebook::Problem;
use super::rules::CollectRules;
use super::{NO_SQLITE, Sink};
use crate::inspect::traffic::call::{Call, Route};
use crate::inspect::traffic::usage::UsageScanner;

const NOT_A_RECORD: Problem = Problem::warning(Code::SkippedRecord, "a record has an unknown shape");
const OTHER: Problem = Problem::info(Code::SkippedRecord, "a record is not a call to a provider");
const NO_BLOB: Problem = Problem::warning(Code::IncompleteCall, "a record names a blob that is not there");
const OVER_BLOBS: Problem = Problem::warning(Code::OverLimit, "the blobs exceed `collect_held_bytes_max`");
const NO_ID: Problem =
    Problem::info(Code::IncompleteCall, "an answer has no id of the provider; that of claude-tap counts");

/// The beginning of a reference. Inside of a text the quotes would have backslashes.
const REFERENCE: &str = "{\"__claude_tap_blob_ref__\"";

/// Blobs by their hash: JSON text.
type Blobs = BTreeMap<String, Box<str>>;

#[derive(Debug, Deserialize)]
struct Bundle<'a> {
    #[serde(borrow)]
    records: Vec<&'a RawValue>,
    #[serde(borrow, default)]
    blobs: BTreeMap<String, Blob<'a>>,
}

#[derive(Debug, Deserialize)]
struct Blob<'a> {
    #[serde(borrow)]
    payload: &'a RawValue,
}

#[derive(Debug, Deserialize)]
struct Compact<'a> {
    #[serde(rename = "__claude_tap_compact_record__")]
    mark: Option<serde::de::IgnoredAny>,
    #[serde(borrow)]
    record: Option<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
struct Record<'a> {
    timestamp: Option<String>,
    request_id: Option<String>,
    #[serde(borrow)]
    request: Request<'a>,
    #[serde(borrow, default)]
    response: Option<Response<'a>>,
    upstream_base_url: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Request<'a> {
    #[serde(default)]
    method: String,
    #[serde(default)]
    path: String,
    #[serde(default)]
    headers: Value,
    #[serde(borrow)]
    body: Option<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
struct Response<'a> {
    #[serde(default)]
    headers: Value,
    #[serde(borrow)]
    body: Option<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
struct Reference {
    #[serde(rename = "__claude_tap_blob_ref__")]
    target: Target,
}

#[derive(Debug, Deserialize)]
struct Target {
    hash: String,
}

pub(super) fn read(files: &[PathBuf], sink: &mut Sink<'_>) {
    for file in files {
        sink.begin();
        let name = name(file);
        if name.ends_with(".ctap.json") {
            read_bundle(file, sink);
        } else if has_extension(file, "jsonl") {
            read_lines(file, sink);
        } else if is_sqlite(file) {
            read_store(file, sink);
        } else {
            sink.foreign(file);
        }
    }
}

fn read_bundle(file: &Path, sink: &mut Sink<'_>) {
    let Some(text) = whole(file, COLLECT_FILE_BYTES_MAX, &mut sink.notes) else { return };
    let Some(bundle) = files::json::<Bundle<'_>>(file, &text, &mut sink.notes) else { return };
    let blobs = bundle.blobs.into_iter().map(|(hash, blob)| (hash, blob.payload.get().into())).collect();
    for record in bundle.records {
        add(record.get(), &blobs, (file, None), sink);
    }
}

fn read_lines(file: &Path, sink: &mut Sink<'_>) {
    let Some(mut lines) = Lines::open(file, &mut sink.notes) else { return };
    while let Some(line) = lines.next(&mut sink.notes) {
        if line.parse::<serde::de::IgnoredAny>(file, &mut sink.notes).is_some() {
            add(line.text, &Blobs::new(), (file, Some(line.number)), sink);
        }
    }
}

fn read_store(file: &Path, sink: &mut Sink<'_>) {
    let queries = &CollectRules::built_in().sqlite;
    let (mut blobs, mut bytes, mut is_over) = (BTreeMap::<String, Blobs>::new(), 0_usize, false);
    sink.sqlite(file, &queries.claude_tap_blobs, &mut |row| {
        if let [Some(session), Some(hash), Some(payload)] = row.as_slice() {
            bytes += payload.len();
            is_over |= bytes > COLLECT_HELD_BYTES_MAX;
            if !is_over {
                blobs.entry(session.clone()).or_default().insert(hash.clone(), payload.as_str().into());
            }
        }
    });
    if is_over {
        sink.note(OVER_BLOBS, file, None);
    }
    let Some(rows) = sink.options.sqlite else { return };
    let none = Blobs::new();
    // One record at a time: a store may be larger than the memory.
    let read = rows(file, &queries.claude_tap_records, &mut |row| {
        if let [Some(session), Some(record)] = row.as_slice() {
            add(record, blobs.get(session).unwrap_or(&none), (file, None), sink);
        }
    });
    if read.is_err() {
        sink.note(NO_SQLITE, file, None);
    }
}

/// Adds the call of a record, which may be compacted.
fn add(text: &str, blobs: &Blobs, (file, line): (&Path, Option<usize>), sink: &mut Sink<'_>) {
    let compact = serde_json::from_str::<Compact<'_>>(text).ok();
    let inner = compact.filter(|compact| compact.mark.is_some()).and_then(|compact| compact.record);
    let Some(expanded) = expand(inner.map_or(text, RawValue::get), blobs) else {
        return sink.note(NO_BLOB, file, line);
    };
    let Ok(record) = serde_json::from_str::<Record<'_>>(&expanded) else {
        return sink.note(NOT_A_RECORD, file, line);
    };
    match CollectRules::built_in().wire_of_path(&record.request.path) {
        Some(wire) if record.request.method.eq_ignore_ascii_case("post") => {
            if let Some(call) = call(&record) {
                sink.call(Call { wire, ..call }, BodyOrigin::Sent, file, line);
            } else {
                sink.note(NOT_A_RECORD, file, line);
            }
            if provider_id(&record).is_none() {
                sink.note(NO_ID, file, line);
            }
        }
        _ => sink.note(OTHER, file, line),
    }
}

fn provider_id(record: &Record<'_>) -> Option<String> {
    record.response.as_ref().and_then(|response| request_id(&response.headers))
}

fn call(record: &Record<'_>) -> Option<Call> {
    let mut scanner = UsageScanner::default();
    if let Some(answer) = record.response.as_ref().and_then(|response| response.body) {
        match serde_json::from_str::<String>(answer.get()) {
            Ok(stream) => scanner.feed(stream.as_bytes()),
            Err(_) => scanner.feed(answer.get().as_bytes()),
        }
    }
    let facts = scanner.finish();
    let mut call = Call {
        id: provider_id(record).or_else(|| record.request_id.clone())?,
        at: record.timestamp.as_deref().and_then(moment),
        route: Route { host: record.upstream_base_url.as_deref().and_then(host), ..Route::default() },
        usage: facts.usage,
        provider_reason: facts.reason,
        ..Call::default()
    };
    read_headers(&mut call, pairs(&record.request.headers).into_iter());
    if let Some(body) = record.request.body.filter(|body| body.get().len() <= COLLECT_BODY_BYTES_MAX) {
        add_body(&mut call, body.get().into());
    }
    call.model = call.model.take().or(facts.model);
    Some(call)
}

/// Puts blobs in the place of their references; `None` if one is missing or the text becomes too long.
fn expand(text: &str, blobs: &Blobs) -> Option<String> {
    let mut expanded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(REFERENCE) {
        let (before, from) = rest.split_at(start);
        expanded.push_str(before);
        let mut values = serde_json::Deserializer::from_str(from).into_iter::<Reference>();
        let reference = values.next()?.ok()?;
        expanded.push_str(blobs.get(&reference.target.hash)?);
        if expanded.len() > COLLECT_FILE_BYTES_MAX {
            return None;
        }
        rest = from.get(values.byte_offset()..)?;
    }
    expanded.push_str(rest);
    Some(expanded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_in_texts_are_texts() {
        let blobs = Blobs::from([("sha256:1".to_owned(), "[1, 2.0]".into())]);
        let text = r#"{"a":{"__claude_tap_blob_ref__": {"hash":"sha256:1"}},"b":"{\"__claude_tap_blob_ref__\": {}}"}"#;
        let expected = r#"{"a":[1, 2.0],"b":"{\"__claude_tap_blob_ref__\": {}}"}"#;
        assert_eq!(expand(text, &blobs).unwrap(), expected);
        assert_eq!(expand(text, &Blobs::new()), None);
    }
}
