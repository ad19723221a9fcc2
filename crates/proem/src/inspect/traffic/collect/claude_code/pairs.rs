//! Pairs requests and answers by their content: an answer is the assistant message of a later request, and belongs to
//! the request whose messages come before it there.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use proem_core::digest::Digest;
use proem_core::limit::COLLECT_BODY_BYTES_MAX;
use serde_json::{Value, json};

use super::super::files::whole;
use super::super::notebook::Notebook;
use super::super::written;
use crate::request::canonical_json::canonical_json;

/// Returns the name of the request for each name of an answer that has one.
pub(super) fn by_content(
    requests: &BTreeMap<String, PathBuf>,
    responses: &BTreeMap<String, PathBuf>,
    notes: &mut Notebook,
) -> BTreeMap<String, String> {
    if requests.is_empty() || responses.is_empty() {
        return BTreeMap::new();
    }
    // The latest file first: attempts that failed have the same content, and the last one was answered.
    let mut ordered: Vec<(&String, Vec<Digest>)> =
        requests.iter().filter_map(|(name, path)| Some((name, message_digests(path, notes)?))).collect();
    ordered.sort_by_key(|(name, _)| {
        std::cmp::Reverse((requests.get(*name).and_then(|path| written(path)), *name))
    });
    let mut places: BTreeMap<Digest, Vec<(usize, usize)>> = BTreeMap::new();
    for (request, (_, messages)) in ordered.iter().enumerate() {
        for (index, digest) in messages.iter().enumerate() {
            places.entry(*digest).or_default().push((request, index));
        }
    }
    let (mut pairs, mut used) = (BTreeMap::new(), BTreeSet::new());
    for (response, path) in responses {
        let Some(answer) = answer_digest(path, notes) else { continue };
        let found = places.get(&answer).into_iter().flatten().find_map(|(later, index)| {
            let before = ordered.get(*later)?.1.get(..*index)?;
            let fits =
                |(name, messages): &&(&String, Vec<Digest>)| messages == before && !used.contains(*name);
            ordered.iter().find(fits).map(|(name, _)| *name)
        });
        if let Some(name) = found {
            used.insert(name);
            pairs.insert(response.clone(), name.clone());
        }
    }
    // The last answer of a conversation is in no request. If only one of each is left, they belong together.
    let mut left_requests = ordered.iter().filter(|(name, _)| !used.contains(*name));
    let mut left_responses = responses.keys().filter(|name| !pairs.contains_key(*name));
    if let (Some((request, _)), None) = (left_requests.next(), left_requests.next())
        && let (Some(response), None) = (left_responses.next(), left_responses.next())
    {
        let (request, response) = ((*request).clone(), response.clone());
        pairs.insert(response, request);
    }
    pairs
}

fn message_digests(path: &Path, notes: &mut Notebook) -> Option<Vec<Digest>> {
    let text = whole(path, COLLECT_BODY_BYTES_MAX, notes)?;
    let body: Value = serde_json::from_str(&text).ok()?;
    Some(body.get("messages")?.as_array()?.iter().map(comparable).collect())
}

fn answer_digest(path: &Path, notes: &mut Notebook) -> Option<Digest> {
    let text = whole(path, COLLECT_BODY_BYTES_MAX, notes)?;
    let answer: Value = serde_json::from_str(&text).ok()?;
    Some(comparable(&json!({"role": "assistant", "content": answer.get("content")?})))
}

/// Returns the digest of a message without what changes from call to call: its form, its markers, and the text of
/// thinking, which is redacted.
fn comparable(message: &Value) -> Digest {
    let content = match message.get("content") {
        Some(Value::String(text)) => vec![json!({"type": "text", "text": text})],
        Some(Value::Array(blocks)) => blocks.clone(),
        _ => Vec::new(),
    };
    let plain = |mut block: Value| {
        if let Some(fields) = block.as_object_mut() {
            fields.remove("cache_control");
            fields.remove("thinking");
        }
        block
    };
    let content: Vec<Value> = content.into_iter().map(plain).collect();
    Digest::new(canonical_json(&json!({"role": message.get("role"), "content": content})).as_bytes())
}
