//! Agents that are launched or spoken to as a whole: they keep the conversation themselves, and take the
//! system prompt when a session begins.

use proem_core::note::{Code, Note, Severity};
use proem_core::text::is_javascript_space;

use super::PayloadInput;
use super::conversation::Conversation;
use crate::request::raw_json::{Fields, Json, object};

/// Longest argument of a program on Linux, its end included.
const ARGUMENT_BYTES_MAX: usize = 128 << 10;

/// The frozen prompt as one text: the parts that are not empty, with a blank line between them.
fn whole_prompt(input: &PayloadInput<'_>) -> String {
    let parts = [input.texts.prefix, input.texts.developer.unwrap_or_default()];
    let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join("\n\n").trim_matches(is_javascript_space).to_owned()
}

/// The start of a session of the Agent Client Protocol, and the blocks of its prompt.
pub(super) fn acp(input: &PayloadInput<'_>, conversation: &Conversation) -> Result<Json, serde_json::Error> {
    let prompt = whole_prompt(input);
    let mut payload: Fields = Vec::new();
    if !prompt.is_empty() {
        payload.push(("_meta".to_owned(), object([("systemPrompt", Json::Text(prompt))])));
    }
    let blocks = conversation.newest_blocks()?;
    if !blocks.is_empty() {
        payload.push(("prompt".to_owned(), Json::List(blocks)));
    }
    Ok(Json::Object(payload))
}

/// The launch arguments of Codex, which has no parameter for a system prompt, and the text of the prompt.
pub(super) fn codex(
    input: &PayloadInput<'_>,
    conversation: &Conversation,
    notes: &mut Vec<Note>,
) -> Result<Json, serde_json::Error> {
    let prompt = whole_prompt(input);
    let mut arguments: Vec<Json> = Vec::new();
    if !prompt.is_empty() {
        let argument = format!("developer_instructions={}", toml_string(&prompt));
        notes.extend((argument.len() >= ARGUMENT_BYTES_MAX).then(|| too_long(argument.len())));
        arguments.extend([Json::Text("-c".into()), Json::Text(argument)]);
    }
    let mut payload: Fields = vec![("args".to_owned(), Json::List(arguments))];
    let (texts, others) = conversation.newest_texts()?;
    if others > 0 {
        let message = format!("{others} of the newest message's blocks are not text, and are left out");
        notes.push(Note::new(Code::NotAccepted, Severity::Warning, message));
    }
    if !texts.is_empty() {
        payload.push(("prompt".to_owned(), Json::Text(texts.join("\n\n"))));
    }
    Ok(Json::Object(payload))
}

fn too_long(bytes: usize) -> Note {
    let message = format!("the argument has {bytes} bytes, and Linux takes less than {ARGUMENT_BYTES_MAX}");
    Note::new(Code::NotAccepted, Severity::Warning, message)
        .with_hint("shorten the system carrier, or move a section to `first_user`")
}

/// A text as a basic string of TOML, on one line.
pub(crate) fn toml_string(text: &str) -> String {
    let mut string = String::with_capacity(text.len() + 2);
    string.push('"');
    for character in text.chars() {
        match character {
            '"' => string.push_str("\\\""),
            '\\' => string.push_str("\\\\"),
            '\n' => string.push_str("\\n"),
            '\r' => string.push_str("\\r"),
            '\t' => string.push_str("\\t"),
            control if control.is_control() => string.push_str(&format!("\\u{:04X}", u32::from(control))),
            other => string.push(other),
        }
    }
    string.push('"');
    string
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read_back(text: &str) -> String {
        let document: toml::Table = toml::from_str(&format!("x={}", toml_string(text))).unwrap();
        document["x"].as_str().unwrap().to_owned()
    }

    #[test]
    fn every_character_survives_toml() {
        let all: String = (char::MIN..=char::MAX).collect();
        assert_eq!(read_back(&all), all);
        assert!(!toml_string(&all).contains(['\n', '\r', '\u{7F}']));
    }

    proptest! {
        #[test]
        fn every_text_survives_toml(text in any::<String>()) {
            prop_assert_eq!(read_back(&text), text);
        }
    }
}
