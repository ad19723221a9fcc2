//! Tools as providers take them: sorted by name, in one spelling. Their order and the order of their keys
//! are part of what caches compare.

use proem_core::note::{Code, Note, Severity};
use proem_core::source::Source;
use serde_json::{Value, json};

use super::Provider;
use super::json::Json;
use crate::request::Tool;

/// The tools by name; of two with one name the first counts.
pub(super) fn sorted(tools: &[Tool]) -> Vec<&Tool> {
    let mut sorted: Vec<&Tool> = Vec::new();
    for tool in tools {
        if !sorted.iter().any(|known| known.name == tool.name) {
            sorted.push(tool);
        }
    }
    sorted.sort_by(|a, b| a.name.cmp(&b.name));
    sorted
}

/// The schema of a tool's input; one that has none takes nothing.
pub(super) fn schema(tool: &Tool) -> Json {
    let nothing = json!({ "properties": {}, "type": "object" });
    Json::canonical(tool.input_schema.as_ref().unwrap_or(&nothing))
}

/// Name and description.
pub(super) fn head(tool: &Tool) -> Vec<(String, Json)> {
    let description = tool.description.as_deref().filter(|text| !text.is_empty());
    let description = description.map(|text| ("description".to_owned(), text.into()));
    std::iter::once(("name".to_owned(), tool.name.as_str().into())).chain(description).collect()
}

/// Notes what a provider refuses.
pub(super) fn notes(tools: &[&Tool], provider: Provider) -> Vec<Note> {
    let name_max = match provider {
        Provider::Anthropic | Provider::Gemini => 128,
        _ => 64,
    };
    let is_good = |name: &str| {
        (1..=name_max).contains(&name.len())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
    };
    let has_names = !matches!(provider, Provider::Acp | Provider::Codex);
    let names = tools.iter().filter(|tool| has_names && !is_good(&tool.name)).map(|tool| {
        let name = &tool.name;
        note(
            name,
            format!(
                "{provider} refuses the tool name `{name}`: it takes at most {name_max} letters, digits, `_` and `-`"
            ),
        )
    });
    let is_object = |tool: &&&Tool| {
        tool.input_schema
            .as_ref()
            .is_none_or(|schema| schema.get("type").and_then(Value::as_str) == Some("object"))
    };
    let schemas = tools.iter().filter(|tool| has_names && !is_object(tool)).map(|tool| {
        let name = &tool.name;
        note(name, format!("{provider} refuses the input schema of `{name}`: its `type` is not `object`"))
    });
    names.chain(schemas).collect()
}

fn note(name: &str, message: String) -> Note {
    let source = Source::Request { field: format!("tools.{name}"), place: None };
    Note::new(Code::NotAccepted, Severity::Warning, message).with_source(source)
}
