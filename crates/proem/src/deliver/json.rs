//! JSON whose order and spelling stay as they are: what a provider has seen once must be sent again byte
//! for byte, and a map that sorts its keys or rewrites a number would not do that.

use std::collections::BTreeSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::canonical::canonical_json;

/// A JSON value, of which only those parts are looked into that change.
#[derive(Debug, Clone)]
pub(crate) enum Json {
    /// As it was written.
    Raw(Box<RawValue>),
    Text(String),
    Bool(bool),
    List(Vec<Json>),
    Object(Fields),
}

/// The fields of an object, in order.
pub(crate) type Fields = Vec<(String, Json)>;

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Raw(raw) => raw.serialize(serializer),
            Self::Text(text) => serializer.serialize_str(text),
            Self::Bool(flag) => serializer.serialize_bool(*flag),
            Self::List(items) => {
                let mut list = serializer.serialize_seq(Some(items.len()))?;
                for item in items {
                    list.serialize_element(item)?;
                }
                list.end()
            }
            Self::Object(fields) => {
                let mut map = serializer.serialize_map(Some(fields.len()))?;
                for (key, value) in fields {
                    map.serialize_entry(key, value)?;
                }
                map.end()
            }
        }
    }
}

impl From<&str> for Json {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

/// An object of known fields.
pub(crate) fn object<const N: usize>(fields: [(&str, Json); N]) -> Json {
    Json::Object(fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
}

impl Json {
    /// The canonical spelling of a value.
    pub(crate) fn canonical(value: &Value) -> Self {
        match RawValue::from_string(canonical_json(value)) {
            Ok(raw) => Self::Raw(raw),
            // What was printed reads back; if it ever does not, the text is still in the payload.
            Err(_) => Self::Text(canonical_json(value)),
        }
    }

    /// Looks one level into a value: the items of a list, the fields of an object, a text.
    pub(crate) fn open(raw: &RawValue) -> Result<Self, serde_json::Error> {
        let text = raw.get();
        match text.as_bytes().first() {
            Some(b'{') => serde_json::from_str(text).map(|Opened(fields)| Self::Object(fields)),
            Some(b'[') => {
                let items: Vec<Box<RawValue>> = serde_json::from_str(text)?;
                Ok(Self::List(items.into_iter().map(Self::Raw).collect()))
            }
            Some(b'"') => serde_json::from_str(text).map(Self::Text),
            _ => Ok(Self::Raw(raw.to_owned())),
        }
    }

    /// The value, opened if it was not.
    pub(crate) fn opened(self) -> Result<Self, serde_json::Error> {
        match self {
            Self::Raw(raw) => Self::open(&raw),
            other => Ok(other),
        }
    }

    /// The text, if it is one.
    pub(crate) fn text(&self) -> Option<String> {
        match self {
            Self::Text(text) => Some(text.clone()),
            Self::Raw(raw) => serde_json::from_str(raw.get()).ok(),
            _ => None,
        }
    }
}

/// Finds a field.
pub(crate) fn field<'f>(fields: &'f Fields, name: &str) -> Option<&'f Json> {
    fields.iter().find(|(key, _)| key == name).map(|(_, value)| value)
}

/// The fields of an object that is read.
struct Opened(Fields);

impl<'de> Deserialize<'de> for Opened {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Opened;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Opened, A::Error> {
                let (mut fields, mut keys): (Fields, BTreeSet<String>) = Default::default();
                while let Some((key, value)) = map.next_entry::<String, Box<RawValue>>()? {
                    if !keys.insert(key.clone()) {
                        return Err(serde::de::Error::custom(format_args!("duplicate key `{key}`")));
                    }
                    fields.push((key, Json::Raw(value)));
                }
                Ok(Opened(fields))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}

/// Removes a key from every object in a value. What does not have it stays as it was written.
pub(crate) fn without_key(value: Json, key: &str) -> Result<Json, serde_json::Error> {
    Ok(match value {
        Json::Raw(raw) if !raw.get().contains(key) => Json::Raw(raw),
        Json::Raw(raw) => match Json::open(&raw)? {
            scalar @ (Json::Raw(_) | Json::Text(_) | Json::Bool(_)) => {
                drop(scalar);
                Json::Raw(raw)
            }
            opened => without_key(opened, key)?,
        },
        Json::List(items) => {
            Json::List(items.into_iter().map(|item| without_key(item, key)).collect::<Result<_, _>>()?)
        }
        Json::Object(fields) => {
            let kept = fields.into_iter().filter(|(own, _)| own != key);
            let kept = kept.map(|(own, value)| Ok((own, without_key(value, key)?)));
            Json::Object(kept.collect::<Result<_, serde_json::Error>>()?)
        }
        scalar => scalar,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Json {
        Json::Raw(serde_json::from_str(text).unwrap())
    }

    fn written(value: &Json) -> String {
        serde_json::to_string(value).unwrap()
    }

    #[test]
    fn what_is_not_changed_stays_as_it_was_written() {
        let text = r#"{"b": 1.0,  "a": {"z":1e2,"y":"\u0041"}, "c":[1,2 ]}"#;
        assert_eq!(written(&raw(text)), text);
        let opened = raw(text).opened().unwrap();
        assert_eq!(written(&opened), r#"{"b":1.0,"a":{"z":1e2,"y":"\u0041"},"c":[1,2 ]}"#);
    }

    #[test]
    fn a_key_is_removed_where_it_is_and_nothing_else_is_touched() {
        let text =
            r#"[{"type":"text","text":"cache_control","cache_control":{"type":"ephemeral"}},{"n": 1.0}]"#;
        let without = without_key(raw(text), "cache_control").unwrap();
        assert_eq!(written(&without), r#"[{"type":"text","text":"cache_control"},{"n": 1.0}]"#);
    }

    #[test]
    fn a_key_that_stands_twice_is_refused() {
        assert!(raw(r#"{"a":1,"a":2}"#).opened().is_err());
    }
}
