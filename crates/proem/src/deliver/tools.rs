//! Tools in the providers' shapes: sorted by name, in one spelling. Caches compare their order and the order of their
//! keys.

use proem_core::note::{Code, Note, Severity};
use proem_core::source::Source;
use serde_json::{Value, json};

use super::Provider;
use crate::request::raw_json::Json;
use crate::request::{Tool, distinct_tools};

/// The tools by name; of two with one name the first counts.
pub(super) fn sorted(tools: &[Tool]) -> Vec<&Tool> {
    let mut sorted = distinct_tools(tools);
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

/// Notes tools that a provider refuses.
pub(super) fn notes(tools: &[&Tool], provider: Provider) -> Vec<Note> {
    let Some(rule) = provider.rules().tool_names.as_ref() else { return Vec::new() };
    let names = tools.iter().filter(|tool| !rule.allows(&tool.name)).map(|tool| {
        let name = &tool.name;
        note(name, format!("{provider} refuses the tool name `{name}`: {}", rule.words()))
    });
    let is_object = |tool: &&&Tool| {
        let kind = tool.input_schema.as_ref().map(|schema| schema.get("type").and_then(Value::as_str));
        kind.is_none_or(|kind| kind == Some("object"))
    };
    let schemas = tools.iter().filter(|tool| !is_object(tool)).map(|tool| {
        let name = &tool.name;
        note(name, format!("{provider} refuses the input schema of `{name}`: its `type` is not `object`"))
    });
    names.chain(schemas).collect()
}

/// The rule for a tool's name.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NameRule {
    pub(super) bytes_max: usize,
    /// Signs besides letters, digits, `_` and `-`.
    pub(super) signs: &'static str,
    pub(super) begins_with_letter: bool,
}

impl NameRule {
    fn allows(&self, name: &str) -> bool {
        let is_sign = |sign: char| matches!(sign, '_' | '-') || self.signs.contains(sign);
        let begins_well = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
        (1..=self.bytes_max).contains(&name.len())
            && name.chars().all(|sign| sign.is_ascii_alphanumeric() || is_sign(sign))
            && (begins_well || !self.begins_with_letter)
    }

    fn words(&self) -> String {
        let more: Vec<String> = self.signs.chars().map(|sign| format!(", `{sign}`")).collect();
        let more = more.concat();
        let begin = if self.begins_with_letter { ", a letter or `_` first" } else { "" };
        format!("it takes at most {} letters, digits, `_`, `-`{more}{begin}", self.bytes_max)
    }
}

fn note(name: &str, message: String) -> Note {
    let source = Source::Request { field: format!("tools.{name}").into(), place: None };
    Note::new(Code::NotAccepted, Severity::Warning, message).with_source(source)
}
