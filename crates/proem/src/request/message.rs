//! Messages as a caller keeps them: in the provider's own format, spelt as they were sent.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

use super::raw_json::{Fields, Items, Json, Readable, field, object};
use super::strict_json::without_place;
use crate::error::Error;

/// A message as hooks see it: an object with `role` and `content`.
pub type Message = serde_json::Map<String, Value>;

/// Makes a message with a role and a content.
pub(crate) fn message(role: &str, content: impl Into<Value>) -> Message {
    let mut message = Message::new();
    message.insert("role".into(), role.into());
    message.insert("content".into(), content.into());
    message
}

/// A message of a conversation, spelt as it was written.
#[derive(Debug, Clone)]
pub struct RawMessage(Box<RawValue>);

impl RawMessage {
    /// Makes a message of the user.
    #[must_use]
    pub fn from_user(text: &str) -> Self {
        Self::plain("user", text)
    }

    /// A message of plain text.
    #[must_use]
    pub fn plain(role: &str, text: &str) -> Self {
        let message = object([("role", role.into()), ("content", text.into())]);
        // Two texts can always be serialised.
        Self(serde_json::value::to_raw_value(&message).unwrap_or_else(|_| RawValue::NULL.to_owned()))
    }

    /// Makes a message of a map, in its order of keys.
    #[must_use]
    pub(crate) fn from_map(map: &Message) -> Self {
        // A map of values can always be serialised.
        Self(serde_json::value::to_raw_value(map).unwrap_or_else(|_| RawValue::NULL.to_owned()))
    }

    /// The text as it was written.
    #[must_use]
    pub fn get(&self) -> &str {
        self.0.get()
    }

    /// Returns the message as a map, for code that does not need its spelling.
    pub fn to_map(&self) -> Result<Message, Error> {
        serde_json::from_str(self.get()).map_err(|error| {
            Error::request(format!("cannot read a message: {}", without_place(&error))).caused_by(error)
        })
    }

    pub(crate) fn fields(&self) -> Result<Fields, serde_json::Error> {
        match Json::open(&self.0)? {
            Json::Object(fields) => Ok(fields),
            _ => Err(serde_json::Error::custom("it is not an object")),
        }
    }

    pub(crate) fn json(&self) -> Json {
        Json::Raw(self.0.clone())
    }

    /// Reads messages from a file's text: a list, or one message on each line.
    pub fn list(text: &str) -> Result<Vec<Self>, Error> {
        let text = text.strip_prefix('\u{FEFF}').unwrap_or(text);
        if text.trim_start().starts_with('[') {
            let Items(list) = serde_json::from_str(text).map_err(|error| unreadable(&error.to_string()))?;
            let message = |(index, raw)| {
                Self::checked(raw).map_err(|why| unreadable(&format!("`messages[{index}]`: {why}")))
            };
            return list.into_iter().enumerate().map(message).collect();
        }
        let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let message = |(index, line): (usize, &str)| {
            let raw = serde_json::from_str(line).map_err(|error| without_place(&error));
            raw.and_then(Self::checked).map_err(|why| unreadable(&format!("line {}: {why}", index + 1)))
        };
        lines.map(message).collect()
    }

    /// Checks that a value is a message. Everything in it must be valid: a lone surrogate or an endless number is found
    /// here, before the provider sees it.
    pub(crate) fn checked(raw: Box<RawValue>) -> Result<Self, String> {
        if !raw.get().starts_with('{') {
            return Err("it is not an object".into());
        }
        let Readable = serde_json::from_str(raw.get()).map_err(|error| without_place(&error))?;
        let message = Self(raw);
        let fields = message.fields().map_err(|error| without_place(&error))?;
        let is_named = |name: &str| field(&fields, name).and_then(Json::text).is_some();
        // Items of OpenAI's responses, such as the output of a function, have a type and no role.
        if is_named("role") || is_named("type") { Ok(message) } else { Err("it has no `role`".into()) }
    }
}

pub(crate) fn unreadable(why: &str) -> Error {
    Error::usage(
        format!("cannot read the messages: {why}"),
        "write a JSON list of messages, or one message on each line",
    )
}

impl PartialEq for RawMessage {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl Serialize for RawMessage {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for RawMessage {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::checked(Box::<RawValue>::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

impl JsonSchema for RawMessage {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Message".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        serde_json::Map::<String, Value>::json_schema(generator)
    }
}
