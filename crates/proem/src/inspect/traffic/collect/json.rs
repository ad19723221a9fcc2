//! Edits of JSON text that keep the spelling of everything else, and times.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;
use serde_json::value::RawValue;

use proem_core::limit::COLLECT_BODY_BYTES_MAX;

/// Returns an object with one more field at its end, given as the text of an object; `None` if it is not an object.
pub(super) fn with_field(object: &str, key: &str, value: &str) -> Option<String> {
    let inside = object.trim().strip_prefix('{')?.strip_suffix('}')?;
    let comma = if inside.trim().is_empty() { "" } else { "," };
    Some(format!("{{{inside}{comma}\"{key}\":{value}}}"))
}

/// Returns a list of texts as JSON.
pub(super) fn list<T: AsRef<str>>(items: &[T]) -> String {
    let bytes = items.iter().map(|item| item.as_ref().len() + 1).sum::<usize>();
    let mut text = String::with_capacity(bytes + 2);
    text.push('[');
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            text.push(',');
        }
        text.push_str(item.as_ref());
    }
    text.push(']');
    text
}

/// Returns a text as JSON.
pub(super) fn string(text: &str) -> String {
    Value::from(text).to_string()
}

/// Returns an object with another value of one of its fields, or without the field; other fields keep their spelling.
pub(super) fn replace_field(object: &str, key: &str, value: Option<&str>) -> Option<String> {
    let fields: Fields = serde_json::from_str(object).ok()?;
    let mut parts = Vec::new();
    for (name, text) in &fields.0 {
        let text = if name == key { value } else { Some(text.get()) };
        parts.extend(text.map(|text| format!("{}:{text}", string(name))));
    }
    Some(format!("{{{}}}", parts.join(",")))
}

/// The fields of an object in their order.
pub(super) struct Fields(pub(super) Vec<(String, Box<RawValue>)>);

impl<'de> serde::Deserialize<'de> for Fields {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = Fields;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(Visitor)
    }
}

/// Returns a body unless it is over the limit.
pub(super) fn body(text: String) -> Option<Arc<str>> {
    (text.len() <= COLLECT_BODY_BYTES_MAX).then(|| text.into())
}

/// Reads a time: RFC 3339, or a number of seconds or milliseconds since 1970.
pub(super) fn time(value: &Value) -> Option<i64> {
    /// Seconds reach this number in the year 5138, milliseconds passed it in 1973.
    const MILLISECONDS_FROM: f64 = 1e11;
    match value {
        Value::String(text) => moment(text),
        Value::Number(number) => {
            let number = number.as_f64().filter(|number| (0.0..1e15).contains(number))?;
            let milliseconds = if number < MILLISECONDS_FROM { number * 1000.0 } else { number };
            #[expect(clippy::cast_possible_truncation, reason = "it is below 10^15")]
            Some(milliseconds as i64)
        }
        _ => None,
    }
}

/// Reads a time in RFC 3339.
pub(super) fn moment(text: &str) -> Option<i64> {
    text.parse::<Timestamp>().ok().map(Timestamp::as_millisecond)
}

/// Returns a text of a value.
pub(super) fn text<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key)?.as_str()
}

/// Reads a number that may be spelled as text.
pub(super) fn number(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn edits_keep_the_rest() {
        assert_eq!(with_field("{ \"a\":1.0 }", "b", "2").unwrap(), "{ \"a\":1.0 ,\"b\":2}");
        assert_eq!(with_field("{}", "b", "2").unwrap(), "{\"b\":2}");
        assert_eq!(with_field("[]", "b", "2"), None);
        let object = r#"{"z":1.00,"id":"x","a":{"y": 1}}"#;
        assert_eq!(replace_field(object, "id", None).unwrap(), r#"{"z":1.00,"a":{"y": 1}}"#);
        assert_eq!(replace_field(object, "id", Some("[]")).unwrap(), r#"{"z":1.00,"id":[],"a":{"y": 1}}"#);
        assert_eq!(list(&["1", "{}"]), "[1,{}]");
    }

    #[test]
    fn times_are_texts_seconds_or_milliseconds() {
        let expected = Some(1_794_927_031_500);
        assert_eq!(time(&json!("2026-11-17T14:50:31.5Z")), expected);
        assert_eq!(time(&json!(1_794_927_031.5)), expected);
        assert_eq!(time(&json!(1_794_927_031_500_i64)), expected);
        for wrong in [json!(null), json!("yesterday"), json!(-1), json!(1e300)] {
            assert_eq!(time(&wrong), None, "{wrong}");
        }
    }
}
