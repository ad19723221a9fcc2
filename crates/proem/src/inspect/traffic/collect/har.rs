//! HAR files, which browsers and proxies save.

use std::path::Path;

use proem_core::limit::COLLECT_FILE_BYTES_MAX;
use proem_core::note::Code;
use serde::Deserialize;
use serde_json::Value;

use super::Sink;
use super::files::{self, whole};
use super::identity::{add_body, host, read_headers};
use super::json::{body, moment};
use super::jsonl::pairs;
use super::merge::BodyOrigin;
use super::notebook::Problem;
use super::rules::CollectRules;
use crate::inspect::traffic::call::{Call, Route};
use crate::inspect::traffic::usage::UsageScanner;
use crate::observe::file::shown;

const OTHER: Problem = Problem::info(Code::SkippedRecord, "an entry is not a call to a provider");
const NO_BODY: Problem = Problem::warning(Code::IncompleteCall, "an entry has no body that is a JSON object");
const NOT_TEXT: Problem = Problem::warning(Code::SkippedRecord, "the answer of an entry is not base64");

#[derive(Debug, Deserialize)]
struct Har {
    log: Log,
}

#[derive(Debug, Deserialize)]
struct Log {
    #[serde(default)]
    entries: Vec<Entry>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    started_date_time: Option<String>,
    #[serde(default)]
    request: Request,
    #[serde(default)]
    response: Response,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Request {
    #[serde(default)]
    method: String,
    #[serde(default)]
    url: String,
    #[serde(default)]
    headers: Value,
    post_data: Option<Content>,
}

#[derive(Debug, Default, Deserialize)]
struct Response {
    #[serde(default)]
    headers: Value,
    content: Option<Content>,
}

#[derive(Debug, Default, Deserialize)]
struct Content {
    text: Option<String>,
    encoding: Option<String>,
}

pub(super) fn read(file: &Path, sink: &mut Sink<'_>) {
    let Some(text) = whole(file, COLLECT_FILE_BYTES_MAX, &mut sink.notes) else { return };
    let Some(har) = files::json::<Har>(file, &text, &mut sink.notes) else { return };
    for (index, entry) in har.log.entries.into_iter().enumerate() {
        let path = entry.request.url.split_once("://").map_or("", |(_, rest)| rest);
        match CollectRules::built_in().wire_of_path(path) {
            Some(wire) if entry.request.method.eq_ignore_ascii_case("post") => {
                let call = Call { wire, ..call(entry, index, file, sink) };
                sink.call(call, BodyOrigin::Sent, file, None);
            }
            _ => sink.note(OTHER, file, None),
        }
    }
}

fn call(entry: Entry, index: usize, file: &Path, sink: &mut Sink<'_>) -> Call {
    let mut scanner = UsageScanner::default();
    if let Some(Content { text: Some(text), encoding }) = &entry.response.content {
        match encoding.as_deref() {
            Some("base64") => match decode_base64(text) {
                Some(bytes) => scanner.feed(&bytes),
                None => sink.note(NOT_TEXT, file, None),
            },
            _ => scanner.feed(text.as_bytes()),
        }
    }
    let facts = scanner.finish();
    let mut call = Call {
        at: entry.started_date_time.as_deref().and_then(moment),
        route: Route { host: host(&entry.request.url), ..Route::default() },
        usage: facts.usage,
        provider_reason: facts.reason,
        ..Call::default()
    };
    read_headers(&mut call, pairs(&entry.request.headers).into_iter());
    let sent = entry.request.post_data.and_then(|data| data.text).and_then(body);
    if !sent.is_some_and(|sent| add_body(&mut call, sent)) {
        sink.note(NO_BODY, file, None);
    }
    call.model = call.model.take().or(facts.model);
    let id = request_id(&entry.response.headers).or(facts.id);
    call.id = id.unwrap_or_else(|| format!("{}#{index}", shown(file)));
    call
}

/// Returns the id that the provider gave a request.
pub(super) fn request_id(headers: &Value) -> Option<String> {
    let headers = pairs(headers);
    CollectRules::built_in().headers.request_id.iter().find_map(|wanted| {
        let found = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case(wanted))?;
        Some(found.1.to_owned())
    })
}

/// Decodes standard base64; white space is passed over.
fn decode_base64(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut count) = (0_u32, 0_u32);
    for byte in text.bytes().filter(|byte| !byte.is_ascii_whitespace() && *byte != b'=') {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count & 0xFF) as u8);
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_decoded() {
        for (text, expected) in [("", ""), ("Zg==", "f"), ("Zm8=", "fo"), ("Zm9v\nYmFy", "foobar")] {
            assert_eq!(decode_base64(text).unwrap(), expected.as_bytes());
        }
        assert_eq!(decode_base64("Zm9-"), None);
    }
}
