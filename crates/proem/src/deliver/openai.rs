//! OpenAI's responses and chat completions, and servers that speak the latter.

use super::conversation::Conversation;
use super::{PayloadInput, is_blank, tools};
use crate::request::raw_json::{Fields, Json, object};

/// Tells whether the API takes markers for this model; older ones refuse the request.
fn takes_breakpoints(input: &PayloadInput<'_>) -> bool {
    input.known.is_some_and(|model| model.breakpoints == Some(true))
}

/// A part of text; the last frozen one carries the marker.
fn part(kind: &str, text: &str, is_marked: bool) -> Json {
    let mut fields: Fields = vec![("type".to_owned(), kind.into()), ("text".to_owned(), text.into())];
    if is_marked {
        fields.push(("prompt_cache_breakpoint".to_owned(), object([("mode", "explicit".into())])));
    }
    Json::Object(fields)
}

/// The messages of the system prompt: the system's, the developer's, and the text for this turn after both, so that
/// it invalidates nothing frozen.
fn instructions(input: &PayloadInput<'_>, role: &str, kind: &str) -> Vec<Json> {
    let frozen: Vec<&str> = input.texts.frozen().collect();
    let is_marked = takes_breakpoints(input);
    let mut contents: Vec<Vec<Json>> = Vec::new();
    for (index, text) in frozen.iter().enumerate() {
        contents.push(vec![part(kind, text, is_marked && index + 1 == frozen.len())]);
    }
    if !is_blank(input.texts.suffix) {
        let suffix = part(kind, input.texts.suffix, false);
        match contents.last_mut() {
            Some(last) if frozen.len() == 1 => last.push(suffix),
            _ => contents.push(vec![suffix]),
        }
    }
    let message = |content| object([("role", role.into()), ("content", Json::List(content))]);
    contents.into_iter().map(message).collect()
}

fn cache_key(input: &PayloadInput<'_>) -> Option<(String, Json)> {
    takes_breakpoints(input).then(|| ("prompt_cache_key".to_owned(), input.cache_key.as_str().into()))
}

/// The parts for OpenAI's responses. The top-level `instructions` cannot carry a marker.
pub(super) fn responses(input: &PayloadInput<'_>, conversation: Conversation) -> Json {
    let mut payload: Fields = input.model_field("model").into_iter().chain(cache_key(input)).collect();
    if !input.tools.is_empty() {
        let definition = |tool: &&crate::request::Tool| {
            let mut fields: Fields = vec![("type".to_owned(), "function".into())];
            fields.extend(tools::head(tool));
            fields.push(("parameters".to_owned(), tools::schema(tool)));
            fields.push(("strict".to_owned(), Json::Bool(false)));
            Json::Object(fields)
        };
        payload.push(("tools".to_owned(), Json::List(input.tools.iter().map(definition).collect())));
    }
    let mut input = instructions(input, "developer", "input_text");
    input.extend(conversation.into_json());
    if !input.is_empty() {
        payload.push(("input".to_owned(), Json::List(input)));
    }
    Json::Object(payload)
}

/// The parts for chat completions. Servers other than OpenAI's get plain texts and the role `system`.
pub(super) fn chat(is_plain: bool, input: &PayloadInput<'_>, conversation: Conversation) -> Json {
    let mut payload: Fields = input.model_field("model").into_iter().chain(cache_key(input)).collect();
    if !input.tools.is_empty() {
        let definition = |tool: &&crate::request::Tool| {
            let mut fields = tools::head(tool);
            fields.push(("parameters".to_owned(), tools::schema(tool)));
            object([("type", "function".into()), ("function", Json::Object(fields))])
        };
        payload.push(("tools".to_owned(), Json::List(input.tools.iter().map(definition).collect())));
    }
    let mut messages = if is_plain {
        plain_instructions(input)
    } else {
        let role = input.known.and_then(|model| model.role.as_deref()).unwrap_or("system");
        instructions(input, role, "text")
    };
    messages.extend(conversation.into_json());
    if !messages.is_empty() {
        payload.push(("messages".to_owned(), Json::List(messages)));
    }
    Json::Object(payload)
}

/// Plain texts in the role that every server accepts: one message, or several if a developer's text separates the
/// frozen part from the text for the turn.
fn plain_instructions(input: &PayloadInput<'_>) -> Vec<Json> {
    let (prefix, suffix) = (input.texts.prefix, input.texts.suffix);
    let texts: Vec<String> = match input.texts.developer {
        None => vec![format!("{prefix}{suffix}")],
        Some(developer) => [prefix, developer, suffix].map(str::to_owned).into(),
    };
    let texts = texts.iter().filter(|text| !is_blank(text));
    texts.map(|text| object([("role", "system".into()), ("content", text.as_str().into())])).collect()
}
