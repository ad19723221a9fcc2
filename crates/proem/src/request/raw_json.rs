//! JSON whose order and spelling stay unchanged: text that a provider has seen once must be sent again byte for byte,
//! and a map that sorts its keys or rewrites a number would change it.

use std::collections::BTreeSet;
use std::fmt;

use proem_core::limit::LIST_ITEMS_MAX;
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::request::canonical_json::canonical_json;

/// A JSON value of which only the parts that change are parsed.
#[derive(Debug, Clone)]
pub(crate) enum Json {
    /// The original text.
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
            // Printed JSON parses again; if it ever does not, the text is still in the payload.
            Err(_) => Self::Text(canonical_json(value)),
        }
    }

    /// Parses one level of a value: the items of a list, the fields of an object, a text.
    pub(crate) fn open(raw: &RawValue) -> Result<Self, serde_json::Error> {
        let text = raw.get();
        match text.as_bytes().first() {
            Some(b'{') => serde_json::from_str(text).map(|ObjectFields(fields)| Self::Object(fields)),
            Some(b'[') => {
                let Items(items) = serde_json::from_str(text)?;
                Ok(Self::List(items.into_iter().map(Self::Raw).collect()))
            }
            Some(b'"') => serde_json::from_str(text).map(Self::Text),
            _ => Ok(Self::Raw(raw.to_owned())),
        }
    }

    /// Returns the value, parsed if it was not.
    pub(crate) fn opened(self) -> Result<Self, serde_json::Error> {
        match self {
            Self::Raw(raw) => Self::open(&raw),
            other => Ok(other),
        }
    }

    /// Returns the text, if the value is one.
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

/// The fields of an object that is parsed.
struct ObjectFields(Fields);

impl<'de> Deserialize<'de> for ObjectFields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = ObjectFields;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ObjectFields, A::Error> {
                let (mut fields, mut keys): (Fields, BTreeSet<String>) = Default::default();
                while let Some((key, value)) = map.next_entry::<String, Box<RawValue>>()? {
                    if !keys.insert(key.clone()) {
                        return Err(serde::de::Error::custom(format_args!("duplicate key `{key}`")));
                    }
                    fields.push((key, Json::Raw(value)));
                }
                Ok(ObjectFields(fields))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}

/// Removes a key from an object; returns `None` if it is not there.
pub(crate) fn without_key(fields: &Fields, key: &str) -> Option<Fields> {
    field(fields, key)?;
    Some(fields.iter().filter(|(own, _)| own != key).cloned().collect())
}

/// The items of a list, as they are written; at most [`ITEMS_MAX`].
pub(crate) struct Items(pub(crate) Vec<Box<RawValue>>);

impl<'de> Deserialize<'de> for Items {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NotTooMany;
        impl<'de> Visitor<'de> for NotTooMany {
            type Value = Items;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a list")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Items, A::Error> {
                let mut items = Vec::new();
                while let Some(item) = list.next_element()? {
                    if items.len() == LIST_ITEMS_MAX {
                        return Err(serde::de::Error::custom(format_args!(
                            "a list of more than {LIST_ITEMS_MAX} items"
                        )));
                    }
                    items.push(item);
                }
                Ok(Items(items))
            }
        }
        deserializer.deserialize_seq(NotTooMany)
    }
}

/// Any value, parsed and discarded: unlike a skipped value, its texts and numbers are validated.
pub(crate) struct Readable;

impl<'de> Deserialize<'de> for Readable {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Anything;
        impl<'de> Visitor<'de> for Anything {
            type Value = Readable;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a value")
            }

            fn visit_unit<E>(self) -> Result<Readable, E> {
                Ok(Readable)
            }

            fn visit_bool<E>(self, _: bool) -> Result<Readable, E> {
                Ok(Readable)
            }

            fn visit_i64<E>(self, _: i64) -> Result<Readable, E> {
                Ok(Readable)
            }

            fn visit_u64<E>(self, _: u64) -> Result<Readable, E> {
                Ok(Readable)
            }

            fn visit_f64<E>(self, _: f64) -> Result<Readable, E> {
                Ok(Readable)
            }

            fn visit_str<E>(self, _: &str) -> Result<Readable, E> {
                Ok(Readable)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Readable, A::Error> {
                while list.next_element::<Readable>()?.is_some() {}
                Ok(Readable)
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Readable, A::Error> {
                while map.next_entry::<Readable, Readable>()?.is_some() {}
                Ok(Readable)
            }
        }
        deserializer.deserialize_any(Anything)
    }
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
    fn values_are_read_to_their_ends() {
        let is_readable = |text: &str| serde_json::from_str::<Readable>(text).is_ok();
        assert!(is_readable(r#"{"a": [1, -2.5e3, "\ud83d\ude00", null, true, {}]}"#));
        for wrong in [r#"["\ud800"]"#, r#"{"\udc00": 1}"#, "[1e999]", &"[".repeat(200)] {
            assert!(!is_readable(wrong), "{wrong}");
        }
    }

    #[test]
    fn a_list_has_an_end() {
        let list = |items: usize| format!("[{}0]", "0,".repeat(items - 1));
        assert!(serde_json::from_str::<Items>(&list(LIST_ITEMS_MAX)).is_ok());
        assert!(serde_json::from_str::<Items>(&list(LIST_ITEMS_MAX + 1)).is_err());
    }

    #[test]
    fn a_key_that_stands_twice_is_refused() {
        assert!(raw(r#"{"a":1,"a":2}"#).opened().is_err());
    }
}
