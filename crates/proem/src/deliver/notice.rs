//! The place of a notice in a call: with the words of the user, or behind everything as a message of the system.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Provider;
use super::conversation::Conversation;
use super::turn::provider_of;
use crate::error::Error;
use crate::request::Request;
use crate::request::message::RawMessage;
use crate::request::raw_json::{Json, field, object};
use crate::settings::models::Models;

/// A message that was appended to a conversation: what changed since the prompt was frozen, or the role of a fork.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Notice {
    /// The name of its tag, behind `notice-`. It occurs nowhere else in the text.
    pub id: String,
    /// Its number in the epoch, from 1.
    pub number: u64,
    /// The sections whose sources changed, in the order of the prompt; empty for a role.
    #[serde(default)]
    pub sections: Vec<String>,
    /// The text, with its tags.
    pub text: String,
}

/// The place of a notice in a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoticePlace {
    /// Before the prompt of the user.
    BeforePrompt,
    /// Before the words of the user that end the messages.
    BeforeLast,
    /// At the end, as a message of the system.
    Behind,
    /// There is none in this call.
    Nowhere,
}

impl NoticePlace {
    /// Returns the place by the words of the user alone.
    pub(crate) fn of_words(request: &Request) -> Self {
        if request.prompt.is_some() {
            return Self::BeforePrompt;
        }
        let last = request.messages.as_ref().and_then(|messages| messages.last());
        if last.is_some_and(says_words) { Self::BeforeLast } else { Self::Nowhere }
    }

    /// Returns the place in a call to a provider.
    pub(crate) fn of_call(request: &Request, models: &Models) -> Result<Self, Error> {
        let words = Self::of_words(request);
        if !takes_system(request, models)? {
            return Ok(words);
        }
        let last = request.messages.as_ref().and_then(|messages| messages.last());
        // Behind the user or the result of a tool; never between a call of a tool and its result.
        let may_follow = words != Self::Nowhere || last.is_some_and(is_result);
        Ok(if may_follow { Self::Behind } else { words })
    }
}

/// Tells whether the model of a call takes messages of the system between the others.
fn takes_system(request: &Request, models: &Models) -> Result<bool, Error> {
    let Some(provider) = provider_of(request)? else { return Ok(false) };
    let known = request.model.as_deref().and_then(|name| models.find(name));
    let known = known.filter(|model| provider.runs(&model.vendor));
    let takes_system = known.is_some_and(|model| model.system_messages == Some(true));
    let shape = provider.rules().shape.for_model(false, takes_system);
    // Converse has no such role.
    let has_role = provider != Provider::Bedrock && !provider.is_launched();
    Ok(takes_system && has_role && shape.roles.contains(&"system"))
}

fn blocks_of(message: &RawMessage) -> Option<(String, Vec<Value>)> {
    let map = message.to_map().ok()?;
    let role = map.get("role").and_then(Value::as_str)?.to_owned();
    let blocks = match map.get("content").or_else(|| map.get("parts")) {
        Some(Value::Array(blocks)) => blocks.clone(),
        _ => Vec::new(),
    };
    Some((role, blocks))
}

fn has_result(blocks: &[Value]) -> bool {
    let is_result = |block: &Value| {
        block.get("type").and_then(Value::as_str) == Some("tool_result")
            || ["toolResult", "functionResponse"].iter().any(|key| block.get(key).is_some())
    };
    blocks.iter().any(is_result)
}

/// Tells whether a message has words of the user.
fn says_words(message: &RawMessage) -> bool {
    blocks_of(message).is_some_and(|(role, blocks)| role == "user" && !has_result(&blocks))
}

/// Tells whether a message is the result of a tool.
fn is_result(message: &RawMessage) -> bool {
    let kind = || message.fields().ok().and_then(|fields| field(&fields, "type").and_then(Json::text));
    blocks_of(message).is_some_and(|(role, blocks)| role == "tool" || (role == "user" && has_result(&blocks)))
        || kind().as_deref() == Some("function_call_output")
}

/// Adds notices to messages of a neutral shape. `words` is the index of the user's words, or the end.
pub(super) fn add_neutral(
    messages: &mut Vec<RawMessage>,
    notices: &[&str],
    place: NoticePlace,
    words: usize,
) {
    if notices.is_empty() {
        return;
    }
    let text = notices.join("\n\n");
    match place {
        NoticePlace::BeforePrompt | NoticePlace::BeforeLast => {
            messages.insert(words.min(messages.len()), RawMessage::from_user(&text));
        }
        NoticePlace::Behind => messages.push(RawMessage::plain("system", &text)),
        NoticePlace::Nowhere => {}
    }
}

impl Conversation {
    /// Adds notices: blocks before the user's words at an index, or a message of the system at the end.
    pub(super) fn add_notices(
        &mut self,
        notices: &[&str],
        place: NoticePlace,
        words: usize,
    ) -> Result<(), serde_json::Error> {
        match place {
            _ if notices.is_empty() => Ok(()),
            NoticePlace::BeforePrompt | NoticePlace::BeforeLast => {
                // Each goes before the one that was added last.
                notices.iter().rev().try_for_each(|notice| self.add_before(words, notice))
            }
            NoticePlace::Behind => {
                self.push_system(notices);
                Ok(())
            }
            NoticePlace::Nowhere => Ok(()),
        }
    }
}

/// Makes a message of the system: text, or blocks for Claude.
pub(super) fn system_message(notices: &[&str], is_of_claude: bool) -> Json {
    if is_of_claude {
        let block = |text: &&str| object([("type", "text".into()), ("text", (*text).into())]);
        return object([
            ("role", "system".into()),
            ("content", Json::List(notices.iter().map(block).collect())),
        ]);
    }
    object([("role", "system".into()), ("content", notices.join("\n\n").as_str().into())])
}

/// Returns a message of the system that is a notice as one of the user, for a model that takes none of the system.
pub(super) fn as_user(message: &RawMessage) -> Option<RawMessage> {
    let fields = message.fields().ok()?;
    if field(&fields, "role").and_then(Json::text)? != "system" || !message.get().contains("<notice-") {
        return None;
    }
    let renamed = fields.into_iter().map(|(key, value)| {
        let value = if key == "role" { "user".into() } else { value };
        (key, value)
    });
    let text = serde_json::to_string(&Json::Object(renamed.collect())).ok()?;
    serde_json::from_str(&text).ok()
}
