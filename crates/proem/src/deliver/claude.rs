//! Claude, through Anthropic's Messages API and Bedrock's Converse: cache markers follow the last tool, the frozen
//! prompt, and the newest message.

use super::conversation::Conversation;
use super::{Lifetime, PayloadInput, is_blank, tools};
use crate::request::raw_json::{Fields, Json, object};

/// The lifetime of a cache entry, unless it is the default.
fn lifetime(input: &PayloadInput<'_>) -> Option<(String, Json)> {
    let is_taken = input.known.is_some() && input.options.lifetime == Lifetime::Hour;
    is_taken.then(|| ("ttl".to_owned(), "1h".into()))
}

/// The parts for Anthropic's messages.
pub(super) fn anthropic(
    input: &PayloadInput<'_>,
    mut conversation: Conversation,
) -> Result<Json, serde_json::Error> {
    let mark = |lifetime: Option<(String, Json)>| {
        let kind = ("type".to_owned(), "ephemeral".into());
        ("cache_control".to_owned(), Json::Object(std::iter::once(kind).chain(lifetime).collect()))
    };
    let mut payload: Fields = input.model_field("model").into_iter().collect();
    let mut definitions: Vec<Fields> = input
        .tools
        .iter()
        .map(|tool| {
            let mut fields = tools::head(tool);
            fields.push(("input_schema".to_owned(), tools::schema(tool)));
            fields
        })
        .collect();
    if let Some(last) = definitions.last_mut() {
        last.push(mark(lifetime(input)));
        payload.push(("tools".to_owned(), Json::List(definitions.into_iter().map(Json::Object).collect())));
    }
    let block = |text: &str| vec![("type".to_owned(), "text".into()), ("text".to_owned(), text.into())];
    let mut system: Vec<Fields> = input.texts.frozen().map(block).collect();
    if let Some(last) = system.last_mut() {
        last.push(mark(lifetime(input)));
    }
    system.extend(Some(input.texts.suffix).filter(|text| !is_blank(text)).map(block));
    if !system.is_empty() {
        payload.push(("system".to_owned(), Json::List(system.into_iter().map(Json::Object).collect())));
    }
    conversation.mark(input.lookback, |mut blocks| {
        if let Some(Json::Object(mut fields)) = blocks.pop().map(Json::opened).transpose()? {
            fields.push(mark(None));
            blocks.push(Json::Object(fields));
        }
        Ok(blocks)
    })?;
    let messages = conversation.into_json();
    if !messages.is_empty() {
        payload.push(("messages".to_owned(), Json::List(messages)));
    }
    Ok(Json::Object(payload))
}

/// The parts for Bedrock's Converse. Models that it does not know to cache refuse markers.
pub(super) fn bedrock(
    input: &PayloadInput<'_>,
    mut conversation: Conversation,
) -> Result<Json, serde_json::Error> {
    let point = |lifetime: Option<(String, Json)>| {
        let kind = ("type".to_owned(), "default".into());
        object([("cachePoint", Json::Object(std::iter::once(kind).chain(lifetime).collect()))])
    };
    let frozen_point = || input.known.map(|_| point(lifetime(input)));
    let mut payload: Fields = input.model_field("modelId").into_iter().collect();
    if !input.tools.is_empty() {
        let specification = |tool: &&crate::request::Tool| {
            let mut fields = tools::head(tool);
            fields.push(("inputSchema".to_owned(), object([("json", tools::schema(tool))])));
            object([("toolSpec", Json::Object(fields))])
        };
        let list = input.tools.iter().map(specification).chain(frozen_point()).collect();
        payload.push(("toolConfig".to_owned(), object([("tools", Json::List(list))])));
    }
    let block = |text: &str| object([("text", text.into())]);
    let mut system: Vec<Json> = input.texts.frozen().map(block).collect();
    if !system.is_empty() {
        system.extend(frozen_point());
    }
    system.extend(Some(input.texts.suffix).filter(|text| !is_blank(text)).map(block));
    if !system.is_empty() {
        payload.push(("system".to_owned(), Json::List(system)));
    }
    if input.known.is_some() {
        conversation.mark(input.lookback, |mut blocks| {
            blocks.push(point(None));
            Ok(blocks)
        })?;
    }
    let messages = conversation.into_json();
    if !messages.is_empty() {
        payload.push(("messages".to_owned(), Json::List(messages)));
    }
    Ok(Json::Object(payload))
}
