//! Messages as a caller keeps them: in the provider's own shape, spelt as they were sent.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

use super::json::{Fields, Json, field, object};
use crate::error::Error;

/// A message of a conversation, spelt as it was written.
#[derive(Debug, Clone)]
pub struct RawMessage(Box<RawValue>);

impl RawMessage {
    /// A message of the user's.
    #[must_use]
    pub fn of_user(text: &str) -> Self {
        Self::plain("user", text)
    }

    /// A message of plain text.
    #[must_use]
    pub fn plain(role: &str, text: &str) -> Self {
        let message = object([("role", role.into()), ("content", text.into())]);
        // Two texts always print.
        Self(serde_json::value::to_raw_value(&message).unwrap_or_else(|_| RawValue::NULL.to_owned()))
    }

    /// The text as it was written.
    #[must_use]
    pub fn get(&self) -> &str {
        self.0.get()
    }

    /// The message as a map, for those who need no spelling.
    pub fn to_map(&self) -> Result<serde_json::Map<String, Value>, serde_json::Error> {
        serde_json::from_str(self.get())
    }

    pub(crate) fn fields(&self) -> Result<Fields, serde_json::Error> {
        match Json::open(&self.0)? {
            Json::Object(fields) => Ok(fields),
            _ => Err(serde_json::Error::custom("it is no object")),
        }
    }

    pub(crate) fn json(&self) -> Json {
        Json::Raw(self.0.clone())
    }

    /// Reads messages from a file's text: a list, or one message on each line.
    pub fn list(text: &str) -> Result<Vec<Self>, Error> {
        let fail = |error: &serde_json::Error, what: &str| {
            Error::request_with_hint(
                format!("the messages cannot be read: {what}{error}"),
                "write a JSON list of messages, or one message on each line",
            )
        };
        if text.trim_start().starts_with('[') {
            return serde_json::from_str(text).map_err(|error| fail(&error, ""));
        }
        let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        lines
            .map(|(index, line)| {
                serde_json::from_str(line).map_err(|error| fail(&error, &format!("line {}: ", index + 1)))
            })
            .collect()
    }
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
        let message = Self(Box::<RawValue>::deserialize(deserializer)?);
        // Everything must be readable: a lone surrogate or an endless number is found here, not by the provider.
        let value: Value = serde_json::from_str(message.get()).map_err(D::Error::custom)?;
        if !value.is_object() {
            return Err(D::Error::custom("a message is an object"));
        }
        let fields = message.fields().map_err(D::Error::custom)?;
        let is_named = |name: &str| field(&fields, name).and_then(Json::text).is_some();
        // Items of OpenAI's responses, such as the output of a function, have a type and no role.
        if is_named("role") || is_named("type") {
            Ok(message)
        } else {
            Err(D::Error::custom("a message has no `role`"))
        }
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
