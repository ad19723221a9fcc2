//! Borrowed JSON: one level at a time, without copying what is not looked at.

use std::borrow::Cow;
use std::fmt;

use proem_core::limit::LIST_ITEMS_MAX;
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// The fields of an object, in order.
pub(crate) type Fields<'a> = Vec<(Cow<'a, str>, &'a RawValue)>;

#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

struct Object<'a>(Fields<'a>);

impl<'de> Deserialize<'de> for Object<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Object<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object<'de>, A::Error> {
                let mut fields = Fields::new();
                while let Some((Text(key), value)) = map.next_entry::<Text<'de>, &'de RawValue>()? {
                    if fields.len() < LIST_ITEMS_MAX {
                        fields.push((key, value));
                    }
                }
                Ok(Object(fields))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}

struct List<'a>(Vec<&'a RawValue>);

impl<'de> Deserialize<'de> for List<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = List<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a list")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<List<'de>, A::Error> {
                let mut items = Vec::new();
                while let Some(item) = list.next_element::<&'de RawValue>()? {
                    if items.len() < LIST_ITEMS_MAX {
                        items.push(item);
                    }
                }
                Ok(List(items))
            }
        }
        deserializer.deserialize_seq(InOrder)
    }
}

/// Returns the fields of an object; empty for anything else.
pub(crate) fn fields(json: &str) -> Fields<'_> {
    serde_json::from_str(json).map_or_else(|_| Fields::new(), |Object(fields)| fields)
}

/// Returns the items of a list; empty for anything else.
pub(crate) fn items(json: &str) -> Vec<&RawValue> {
    serde_json::from_str(json).map_or_else(|_| Vec::new(), |List(items)| items)
}

/// Returns a decoded string; `None` for anything else.
pub(crate) fn text(json: &str) -> Option<Cow<'_, str>> {
    serde_json::from_str(json).ok().map(|Text(text)| text)
}

/// Finds a field that is not `null`.
pub(crate) fn field<'a>(fields: &Fields<'a>, name: &str) -> Option<&'a str> {
    let found = fields.iter().find(|(key, _)| key == name)?.1.get();
    (found != "null").then_some(found)
}

/// Finds a field that is a string.
pub(crate) fn text_field<'a>(fields: &Fields<'a>, name: &str) -> Option<Cow<'a, str>> {
    field(fields, name).and_then(text)
}

/// Tells if a value is a list.
pub(crate) fn is_list(json: &str) -> bool {
    json.starts_with('[')
}

/// Appends a value without the white space between its tokens.
pub(crate) fn squeeze(json: &str, out: &mut String) {
    let (bytes, mut start, mut in_string, mut index) = (json.as_bytes(), 0, false, 0);
    while let Some(byte) = bytes.get(index) {
        match byte {
            b'\\' if in_string => index += 1,
            b'"' => in_string = !in_string,
            b' ' | b'\n' | b'\r' | b'\t' if !in_string => {
                out.push_str(json.get(start..index).unwrap_or_default());
                start = index + 1;
            }
            _ => {}
        }
        index += 1;
    }
    out.push_str(json.get(start..).unwrap_or_default());
}

/// Returns an object without some of its fields, without `null`s and without white space.
pub(crate) fn without(fields: &Fields<'_>, left_out: &[&str]) -> String {
    let mut written = String::from("{");
    for (key, value) in fields {
        if left_out.contains(&key.as_ref()) || value.get() == "null" {
            continue;
        }
        if written.len() > 1 {
            written.push(',');
        }
        written.push_str(&serde_json::Value::from(key.as_ref()).to_string());
        written.push(':');
        squeeze(value.get(), &mut written);
    }
    written.push('}');
    written
}

/// Returns the value in one spelling: keys sorted, whole numbers without a fraction, and JSON inside of strings (such as the
/// arguments of a call) as values.
pub(crate) fn by_value(json: &str) -> Option<String> {
    let mut value: serde_json::Value = serde_json::from_str(json).ok()?;
    unfold(&mut value);
    level(&mut value);
    Some(crate::request::canonical_json::canonical_json(&value))
}

/// Replaces strings that hold an object or a list by their values, one level deep.
fn unfold(value: &mut serde_json::Value) {
    use serde_json::Value;
    match value {
        Value::Array(items) => items.iter_mut().for_each(unfold),
        Value::Object(fields) => fields.values_mut().for_each(unfold),
        Value::String(text) if text.trim_start().starts_with(['{', '[']) => {
            if let Ok(inner) = serde_json::from_str(text) {
                *value = inner;
            }
        }
        _ => {}
    }
}

fn level(value: &mut serde_json::Value) {
    use serde_json::Value;
    match value {
        Value::Array(items) => items.iter_mut().for_each(level),
        Value::Object(fields) => fields.values_mut().for_each(level),
        Value::Number(number) if number.is_f64() => {
            const EXACT: f64 = 9_007_199_254_740_992.0;
            if let Some(float) = number.as_f64().filter(|float| float.fract() == 0.0 && float.abs() < EXACT)
                && let Ok(whole) = format!("{float:.0}").parse::<i64>()
            {
                *value = Value::from(whole);
            }
        }
        _ => {}
    }
}
