//! Google's Gemini: caching is implicit, or by the name of a content that holds system prompt and tools.

use super::conversation::Conversation;
use super::{PayloadInput, is_blank, tools};
use crate::request::raw_json::{Fields, Json, object};

/// The parts for `generateContent`.
pub(super) fn gemini(input: &PayloadInput<'_>, conversation: Conversation) -> Json {
    let mut payload: Fields = Vec::new();
    match &input.options.cached_content {
        // Gemini rejects `systemInstruction` and `tools` next to `cachedContent`.
        Some(name) => payload.push(("cachedContent".to_owned(), name.as_str().into())),
        None => payload.extend(instructions(input).into_iter().chain(functions(input))),
    }
    let contents = conversation.into_json();
    if !contents.is_empty() {
        payload.push(("contents".to_owned(), Json::List(contents)));
    }
    Json::Object(payload)
}

fn instructions(input: &PayloadInput<'_>) -> Option<(String, Json)> {
    let suffix = Some(input.texts.suffix).filter(|text| !is_blank(text));
    let parts: Vec<Json> =
        input.texts.frozen().chain(suffix).map(|text| object([("text", text.into())])).collect();
    (!parts.is_empty()).then(|| ("systemInstruction".to_owned(), object([("parts", Json::List(parts))])))
}

fn functions(input: &PayloadInput<'_>) -> Option<(String, Json)> {
    let declaration = |tool: &&crate::request::Tool| {
        let mut fields = tools::head(tool);
        fields.push(("parametersJsonSchema".to_owned(), tools::schema(tool)));
        Json::Object(fields)
    };
    let declarations: Vec<Json> = input.tools.iter().map(declaration).collect();
    let list = || Json::List(vec![object([("functionDeclarations", Json::List(declarations.clone()))])]);
    (!declarations.is_empty()).then(|| ("tools".to_owned(), list()))
}
