//! Calls that are seen on their way: the facts of headers, path and body, without parsing all of a body.

use std::sync::Arc;

use serde_json::Value;

use super::codex;
use super::identity::read_headers;
use super::json::replace_field;
use super::rules::CollectRules;
use crate::inspect::traffic::call::{Call, CallHeaders, Purpose, Wire};
use crate::inspect::traffic::chain::json::{field, fields, items, text, text_field};

/// The header, and the key of a body, in which Codex describes a turn.
const TURN_METADATA: &str = "x-codex-turn-metadata";

/// Returns the format of a request by its path; `None` if it is not a call to a model.
#[must_use]
pub fn wire_of_path(path: &str) -> Option<Wire> {
    CollectRules::built_in().wire_of_path(path)
}

/// Takes from relevant headers what they say about agent, conversation, thread and purpose.
pub fn identify(call: &mut Call, headers: &CallHeaders) {
    read_headers(call, headers.iter());
    if let Some(metadata) = headers.get(TURN_METADATA) {
        take_turn(call, metadata);
    }
}

fn take_turn(call: &mut Call, metadata: &str) {
    let Ok(turn) = serde_json::from_str::<Value>(metadata) else { return };
    if let Some(kind) = turn.get("request_kind").and_then(Value::as_str) {
        call.purpose = CollectRules::built_in().purpose("codex", kind);
    }
    let cwd = turn.get("workspaces").and_then(Value::as_object).and_then(|folders| folders.keys().next());
    call.cwd = call.cwd.take().or_else(|| cwd.cloned());
}

/// Adds the body, with what its fields say; false if it is not an object. `path` names the model for some providers.
pub fn add_body(call: &mut Call, path: &str, body: Arc<str>) -> bool {
    let known = fields(&body);
    if known.is_empty() {
        return false;
    }
    let of = |name: &str| text_field(&known, name).map(std::borrow::Cow::into_owned);
    call.model = call.model.take().or_else(|| of("model")).or_else(|| model_of_path(path));
    let session = || {
        let user = text_field(&fields(field(&known, "metadata")?), "user_id")?.into_owned();
        text_field(&fields(&user), "session_id").map(std::borrow::Cow::into_owned)
    };
    call.conversation = call.conversation.take().or_else(session).or_else(|| of("prompt_cache_key"));
    if let Some(metadata) = field(&known, "client_metadata")
        && let Some(turn) = text_field(&fields(metadata), TURN_METADATA)
    {
        take_turn(call, &turn);
    }
    if let Some(input) = field(&known, "input") {
        let input: Vec<Arc<str>> = items(input).iter().map(|item| Arc::from(item.get())).collect();
        call.hints = codex::hints(&input);
    }
    drop(known);
    call.body = Some(body);
    true
}

/// Returns the model in a path such as `/v1beta/models/NAME:generateContent`.
fn model_of_path(path: &str) -> Option<String> {
    let (_, rest) = path.rsplit_once("/models/")?;
    let (name, _) = rest.split_once(':')?;
    (!name.is_empty()).then(|| name.to_owned())
}

/// A request in a WebSocket message of the Responses API.
#[derive(Debug, Clone)]
pub struct RequestMessage {
    text: Arc<str>,
    /// The response that it continues.
    pub previous: Option<String>,
    input: Vec<Arc<str>>,
    generates: bool,
}

impl RequestMessage {
    /// Reads a message; `None` if it is not a request.
    #[must_use]
    pub fn read(message: &str) -> Option<Self> {
        let known = fields(message);
        if text_field(&known, "type").as_deref() != Some("response.create") {
            return None;
        }
        let input = field(&known, "input").map(items).unwrap_or_default();
        Some(Self {
            text: Arc::from(message),
            previous: text_field(&known, "previous_response_id").map(std::borrow::Cow::into_owned),
            input: input.iter().map(|item| Arc::from(item.get())).collect(),
            generates: field(&known, "generate") != Some("false"),
        })
    }

    /// Returns all items of the input, after those of the response that it continues.
    #[must_use]
    pub fn items(&self, before: &[Arc<str>]) -> Vec<Arc<str>> {
        before.iter().chain(&self.input).cloned().collect()
    }

    /// Adds the body of the whole request; false if it cannot be written.
    pub fn complete(&self, call: &mut Call, items: &[Arc<str>]) -> bool {
        let joined = format!("[{}]", items.join(","));
        let whole = replace_field(&self.text, "input", Some(&joined))
            .and_then(|whole| replace_field(&whole, "previous_response_id", None))
            .and_then(|whole| replace_field(&whole, "generate", None))
            // The message's type is not part of the request.
            .and_then(|whole| replace_field(&whole, "type", None));
        let is_added = whole.is_some_and(|whole| add_body(call, "", Arc::from(whole)));
        if !self.generates {
            call.purpose = Purpose::Probe;
        }
        is_added
    }
}

/// An event of a response that arrived as a WebSocket message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResponseMessage {
    /// An item of the output.
    Item(Arc<str>),
    /// The end, with the id of the response.
    End(Option<String>),
    /// The provider refused the request.
    Failed,
    /// Anything else.
    Other,
}

impl ResponseMessage {
    /// Reads a message.
    #[must_use]
    pub fn read(message: &str) -> Self {
        // Most events are pieces of text, which need not be parsed.
        let is_known = [
            "response.output_item.done",
            "response.completed",
            "response.incomplete",
            "response.failed",
            "\"error\"",
        ];
        if !is_known.iter().any(|word| message.contains(word)) {
            return Self::Other;
        }
        let known = fields(message);
        match text_field(&known, "type").as_deref() {
            Some("response.output_item.done") => {
                field(&known, "item").map_or(Self::Other, |item| Self::Item(Arc::from(item)))
            }
            Some("response.completed" | "response.incomplete" | "response.failed") => {
                let id = field(&known, "response").map(fields).and_then(|response| {
                    field(&response, "id").and_then(text).map(std::borrow::Cow::into_owned)
                });
                Self::End(id)
            }
            Some("error") => Self::Failed,
            _ => Self::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_read_from_its_parts() {
        let mut headers = CallHeaders::default();
        headers.keep("user-agent", "codex_exec/0.169.0 (Debian)");
        headers.keep("session-id", "s-1");
        headers.keep(TURN_METADATA, r#"{"request_kind": "prewarm", "workspaces": {"/home/me": {}}}"#);
        let mut call = Call::default();
        identify(&mut call, &headers);
        assert_eq!((call.conversation.as_deref(), call.cwd.as_deref()), (Some("s-1"), Some("/home/me")));
        assert_eq!(call.purpose, Purpose::Probe);
        let path = "/v1beta/models/gemini-x:streamGenerateContent?alt=sse";
        assert!(add_body(&mut call, path, Arc::from(r#"{"contents": []}"#)));
        assert_eq!(call.model.as_deref(), Some("gemini-x"));
        assert!(!add_body(&mut Call::default(), path, Arc::from("[1]")));
        assert_eq!(wire_of_path(path), Some(Wire::Gemini));
        assert_eq!(wire_of_path("/v1/messages/count_tokens"), None);
    }

    #[test]
    fn a_message_continues_a_response() {
        let text = r#"{"type":"response.create","model":"m","previous_response_id":"r","generate":true,"input":[{"b":2.0}],"x":1}"#;
        let message = RequestMessage::read(text).expect("it is a request");
        assert_eq!(message.previous.as_deref(), Some("r"));
        let items = message.items(&[Arc::from("{\"a\":1}")]);
        let mut call = Call::default();
        assert!(message.complete(&mut call, &items));
        assert_eq!(call.body.as_deref(), Some(r#"{"model":"m","input":[{"a":1},{"b":2.0}],"x":1}"#));
        assert_eq!(call.purpose, Purpose::Main);
        assert!(RequestMessage::read(r#"{"type":"ping"}"#).is_none());
        for (message, expected) in [
            (
                r#"{"type":"response.output_item.done","item":{"x":1}}"#,
                ResponseMessage::Item(Arc::from("{\"x\":1}")),
            ),
            (
                r#"{"type":"response.completed","response":{"id":"r2"}}"#,
                ResponseMessage::End(Some("r2".into())),
            ),
            (r#"{"type":"error","error":{}}"#, ResponseMessage::Failed),
            (r#"{"type":"response.output_text.delta","delta":"response.completed"}"#, ResponseMessage::Other),
        ] {
            assert_eq!(ResponseMessage::read(message), expected, "{message}");
        }
    }
}
