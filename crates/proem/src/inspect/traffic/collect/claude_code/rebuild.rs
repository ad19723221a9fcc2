//! Puts requests together from the lines of a transcript: shapes (system and tools), messages by their hash, and the
//! places of markers.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use proem_core::digest::Digest;
use proem_core::limit::COLLECT_SESSION_BYTES_MAX;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::super::json::{list, replace_field, with_field};
use crate::request::canonical_json::canonical_json;

/// Requests that a later one may build upon. It names the one before it, except after a side step.
const BASES: usize = 256;

/// A request, as its line describes it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RequestLine {
    pub(super) id: String,
    pub(super) query_source: Option<String>,
    shape_hash: String,
    pub(super) params: Option<Box<RawValue>>,
    base: Option<String>,
    #[serde(default)]
    keep: usize,
    #[serde(default)]
    tail: Vec<String>,
    #[serde(default)]
    cache_control: Vec<Marker>,
    request_digest: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Marker {
    path: Vec<Value>,
    value: Box<RawValue>,
}

/// The part of a request that seldom changes.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Shape {
    #[serde(default)]
    system: Option<Box<RawValue>>,
    #[serde(default)]
    tools: Option<Vec<Box<RawValue>>>,
}

/// The parts of one session that were read so far.
#[derive(Debug, Default)]
pub(super) struct Parts {
    messages: BTreeMap<String, Arc<str>>,
    shapes: BTreeMap<String, Shape>,
    requests: BTreeMap<String, Vec<Arc<str>>>,
    order: VecDeque<String>,
    /// Messages of the user whose hash nothing has asked for yet.
    unhashed: Vec<Arc<str>>,
    /// Messages of the assistant by id: their blocks, and the number of those that were hashed.
    answers: Vec<(String, Vec<Box<RawValue>>, usize)>,
    bytes: usize,
}

/// The reason why a request could not be rebuilt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Missing {
    /// A line that it needs was not there.
    Part,
    /// Its digest is another one than that of the rebuilt request.
    Digest,
}

impl Parts {
    /// Forgets everything: parts begin again after a compaction.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Returns true once the limit of a session is exceeded; the parts are then forgotten.
    pub(super) fn is_over(&mut self) -> bool {
        let is_over = self.bytes > COLLECT_SESSION_BYTES_MAX;
        if is_over {
            self.clear();
        }
        is_over
    }

    pub(super) fn add_shape(&mut self, hash: String, text: &RawValue) -> bool {
        let Ok(shape) = serde_json::from_str(text.get()) else { return false };
        self.bytes += text.get().len();
        self.shapes.insert(hash, shape);
        true
    }

    pub(super) fn add_message(&mut self, hash: String, message: &RawValue) {
        self.bytes += message.get().len();
        self.messages.insert(hash, message.get().into());
    }

    /// Adds the message of a `user` line.
    pub(super) fn add_user(&mut self, message: &RawValue) {
        self.bytes += message.get().len();
        self.unhashed.push(message.get().into());
    }

    /// Adds the blocks of an `assistant` line. The lines of one message are joined.
    pub(super) fn add_answer(&mut self, id: &str, blocks: Vec<Box<RawValue>>) {
        self.bytes += blocks.iter().map(|block| block.get().len()).sum::<usize>();
        match self.answers.iter_mut().rev().find(|(other, ..)| other == id) {
            Some((_, all, _)) => all.extend(blocks),
            None => self.answers.push((id.to_owned(), blocks, 0)),
        }
    }

    /// Puts a request together.
    pub(super) fn rebuild(&mut self, line: &RequestLine) -> Result<String, Missing> {
        let messages = self.messages_of(line).ok_or(Missing::Part)?;
        self.order.push_back(line.id.clone());
        if self.order.len() > BASES
            && let Some(oldest) = self.order.pop_front()
        {
            self.requests.remove(&oldest);
        }
        self.requests.insert(line.id.clone(), messages.clone());
        let shape = self.shapes.get(&line.shape_hash).ok_or(Missing::Part)?;
        let body = body(line, shape, messages).ok_or(Missing::Part)?;
        let is_same =
            line.request_digest.as_ref().is_none_or(|digest| request_digest(&body).as_ref() == Some(digest));
        if is_same { Ok(body) } else { Err(Missing::Digest) }
    }

    fn messages_of(&mut self, line: &RequestLine) -> Option<Vec<Arc<str>>> {
        let mut messages = match &line.base {
            Some(base) => self.requests.get(base)?.get(..line.keep)?.to_vec(),
            None => Vec::new(),
        };
        for hash in &line.tail {
            if !self.messages.contains_key(hash) {
                self.hash();
            }
            messages.push(Arc::clone(self.messages.get(hash)?));
        }
        Some(messages)
    }

    /// Hashes the messages that lines of the conversation give.
    fn hash(&mut self) {
        for message in std::mem::take(&mut self.unhashed) {
            if let Some(hash) = message_hash(&message) {
                self.messages.insert(hash, message);
            }
        }
        for (_, blocks, hashed) in &mut self.answers {
            if blocks.len() > *hashed {
                *hashed = blocks.len();
                let texts: Vec<&str> = blocks.iter().map(|block| block.get()).collect();
                let message = format!("{{\"role\":\"assistant\",\"content\":{}}}", list(&texts));
                if let Some(hash) = message_hash(&message) {
                    self.messages.insert(hash, message.into());
                }
            }
        }
    }
}

/// Returns the body of a request, with its markers.
fn body(line: &RequestLine, shape: &Shape, messages: Vec<Arc<str>>) -> Option<String> {
    let mut system = shape.system.as_ref().map(|system| system.get().to_owned());
    let mut tools: Option<Vec<String>> =
        shape.tools.as_ref().map(|tools| tools.iter().map(|tool| tool.get().to_owned()).collect());
    let mut messages = messages;
    for marker in &line.cache_control {
        let index = |place: usize| usize::try_from(marker.path.get(place)?.as_u64()?).ok();
        match marker.path.first()?.as_str()? {
            "system" => system = Some(mark_block(&system?, index(1)?, marker.value.get())?),
            "tools" => {
                let tool = tools.as_mut()?.get_mut(index(1)?)?;
                *tool = with_field(tool, "cache_control", marker.value.get())?;
            }
            "messages" => {
                let message = messages.get_mut(index(1)?)?;
                *message = mark_message(message, index(3)?, marker.value.get())?.into();
            }
            _ => return None,
        }
    }
    let mut text = line.params.as_ref().map_or("{}", |params| params.get()).to_owned();
    text = with_field(&text, "messages", &list(&messages))?;
    for (key, value) in [("system", system), ("tools", tools.as_deref().map(list))] {
        if let Some(value) = value {
            text = with_field(&text, key, &value)?;
        }
    }
    Some(text)
}

/// Adds a marker to a block of a list, or to a text, which then becomes a list.
fn mark_block(content: &str, index: usize, marker: &str) -> Option<String> {
    if content.starts_with('"') {
        let block = format!("{{\"type\":\"text\",\"text\":{content},\"cache_control\":{marker}}}");
        return (index == 0).then(|| list(&[block]));
    }
    let blocks: Vec<Box<RawValue>> = serde_json::from_str(content).ok()?;
    let mut texts: Vec<String> = blocks.iter().map(|block| block.get().to_owned()).collect();
    let block = texts.get_mut(index)?;
    *block = with_field(block, "cache_control", marker)?;
    Some(list(&texts))
}

fn mark_message(message: &str, index: usize, marker: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Message<'a> {
        #[serde(borrow)]
        content: &'a RawValue,
    }
    let parsed: Message<'_> = serde_json::from_str(message).ok()?;
    let content = mark_block(parsed.content.get(), index, marker)?;
    replace_field(message, "content", Some(&content))
}

/// Returns the hash by which transcripts name a message.
fn message_hash(message: &str) -> Option<String> {
    let mut message: Value = serde_json::from_str(message).ok()?;
    for block in list_form(&mut message) {
        if let Some(fields) = block.as_object_mut() {
            fields.remove("cache_control");
        }
    }
    Some(Digest::new(canonical_json(&message).as_bytes()).hex())
}

/// Brings the content of a message into the form of a list, and returns its blocks.
fn list_form(message: &mut Value) -> impl Iterator<Item = &mut Value> {
    let content = message.get_mut("content");
    let content = content.map(|content| {
        if let Value::String(text) = content {
            *content = json!([{"type": "text", "text": text}]);
        }
        content
    });
    content.and_then(Value::as_array_mut).into_iter().flatten()
}

/// Returns the digest by which transcripts verify a request. It has markers, and content in the form of lists.
fn request_digest(body: &str) -> Option<String> {
    let mut body: Value = serde_json::from_str(body).ok()?;
    for message in body.get_mut("messages").and_then(Value::as_array_mut).into_iter().flatten() {
        list_form(message).for_each(drop);
    }
    Some(Digest::new(canonical_json(&body).as_bytes()).hex())
}
