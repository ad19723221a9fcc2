//! Answers of all doors in one form, in which they can be compared.

use std::collections::BTreeMap;

use serde_json::Value;
use serde_json::value::RawValue;

/// Codes of notes that depend on the door: a server does not read above the workspace, and says so.
const NOTES_OF_DOORS: [&str; 1] = ["root_not_allowed"];

/// A result of an action, by field. Each value is JSON text in the spelling of the answer, without white space.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Answer(pub(super) BTreeMap<String, String>);

/// An error of an action, as far as a door describes it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Failure(pub(super) BTreeMap<String, Value>);

pub(super) type Outcome = Result<Answer, Failure>;

impl Answer {
    /// Reads an answer of a door; an empty one has no fields.
    pub(super) fn read(text: &str) -> Self {
        if text.trim().is_empty() {
            return Self::default();
        }
        let fields: BTreeMap<String, Box<RawValue>> =
            serde_json::from_str(text).map_err(|error| format!("{error}: {text}")).unwrap();
        let fields = fields.into_iter().map(|(name, value)| {
            let value = if name == "notes" { common_notes(&value) } else { without_space(value.get()) };
            (name, value)
        });
        Self(fields.collect())
    }

    /// Takes some fields of the answer.
    pub(super) fn only(mut self, fields: &[&str]) -> Self {
        self.0.retain(|name, _| fields.contains(&name.as_str()));
        self
    }

    /// Returns the value at a path such as `notes.*.code`, as JSON text. `*` collects the values of all items.
    pub(super) fn at(&self, path: &str) -> Option<String> {
        let (field, rest) = path.split_once('.').unwrap_or((path, ""));
        value_at(self.0.get(field)?, rest)
    }

    /// Takes the text of a field out of the answer, which is random.
    pub(super) fn take_random(&mut self, field: &str) -> String {
        let taken = self.0.insert(field.to_owned(), "\"random\"".to_owned()).unwrap();
        serde_json::from_str(&taken).unwrap()
    }
}

fn value_at(text: &str, path: &str) -> Option<String> {
    if path.is_empty() {
        return Some(text.to_owned());
    }
    let (first, rest) = path.split_once('.').unwrap_or((path, ""));
    if let Ok(items) = serde_json::from_str::<Vec<Box<RawValue>>>(text) {
        if first == "*" {
            let values =
                items.iter().map(|item| value_at(item.get(), rest).unwrap_or_else(|| "null".to_owned()));
            return Some(format!("[{}]", values.collect::<Vec<_>>().join(",")));
        }
        return value_at(items.get(first.parse::<usize>().ok()?)?.get(), rest);
    }
    let fields: BTreeMap<String, Box<RawValue>> = serde_json::from_str(text).ok()?;
    value_at(fields.get(first)?.get(), rest)
}

/// Returns the notes that do not depend on the door.
fn common_notes(notes: &RawValue) -> String {
    let notes: Vec<Value> = serde_json::from_str(notes.get()).unwrap();
    let is_common = |note: &Value| !NOTES_OF_DOORS.contains(&note["code"].as_str().unwrap());
    Value::Array(notes.into_iter().filter(is_common).collect()).to_string()
}

/// Removes the white space between the tokens of a JSON text. Numbers and strings keep their spelling.
fn without_space(text: &str) -> String {
    let (mut is_in_string, mut is_escaped) = (false, false);
    let keep = |character: &char| {
        if is_in_string {
            is_in_string = is_escaped || *character != '"';
            is_escaped = !is_escaped && *character == '\\';
            return true;
        }
        is_in_string = *character == '"';
        !character.is_ascii_whitespace()
    };
    text.chars().filter(keep).collect()
}

#[test]
fn only_space_between_tokens_is_removed() {
    let text = "{ \"a b\" : [ 1.50 ,\n\"\\\" \\\\\" , \" \" ] }";
    assert_eq!(without_space(text), "{\"a b\":[1.50,\"\\\" \\\\\",\" \"]}");
    let answer = Answer::read("{\"a\": [{\"b\": 1.50}, {\"c\": 2}], \"notes\": [{\"code\": \"absent\"}]}");
    assert_eq!(answer.at("a.*.b").as_deref(), Some("[1.50,null]"));
    assert_eq!(answer.at("a.1.c").as_deref(), Some("2"));
    assert_eq!(answer.at("a.2.c"), None);
    assert_eq!(answer.at("notes").as_deref(), Some("[{\"code\":\"absent\"}]"));
}
