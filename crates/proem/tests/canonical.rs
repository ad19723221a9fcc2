//! Canonical JSON for every value that JSON allows: one spelling, the same value again.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up must stop")]

use proem::canonical_json;
use proptest::prelude::*;
use serde_json::{Map, Value};

/// Any JSON value, with odd numbers and texts.
fn value() -> impl Strategy<Value = Value> {
    let number = prop_oneof![
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>()
            .prop_filter("JSON has no such number", |number| number.is_finite())
            .prop_map(Value::from),
        prop_oneof![Just(0.0), Just(-0.0), Just(5e-324), Just(1e21), Just(1e-7), Just(f64::MAX)]
            .prop_map(Value::from),
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        number,
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 64, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
            prop::collection::vec((any::<String>(), inner), 0..8)
                .prop_map(|fields| Value::Object(fields.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

/// The value with the fields of every object in the opposite order, spelt with white space and escapes.
fn respelt(value: &Value) -> String {
    let text = |string: &str| {
        let escaped = |unit: u16| format!("\\u{unit:04X}");
        format!("\"{}\"", string.encode_utf16().map(escaped).collect::<Vec<_>>().concat())
    };
    match value {
        Value::String(string) => text(string),
        Value::Array(items) => format!("[ {} ]", items.iter().map(respelt).collect::<Vec<_>>().join(" ,\n")),
        Value::Object(fields) => {
            let pairs =
                fields.iter().rev().map(|(key, value)| format!("{} :\t{}", text(key), respelt(value)));
            format!("{{ {} }}", pairs.collect::<Vec<_>>().join(" , "))
        }
        other => other.to_string(),
    }
}

/// Converts numbers to floating point, as JavaScript does.
fn as_javascript(value: &Value) -> Value {
    match value {
        Value::Number(number) => Value::from(number.as_f64().unwrap() + 0.0),
        Value::Array(items) => items.iter().map(as_javascript).collect(),
        Value::Object(fields) => {
            Value::Object(fields.iter().map(|(key, value)| (key.clone(), as_javascript(value))).collect())
        }
        other => other.clone(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn one_value_has_one_spelling(value in value()) {
        let canonical = canonical_json(&value);
        let again: Value = serde_json::from_str(&canonical).unwrap();
        prop_assert_eq!(as_javascript(&again), as_javascript(&value));
        prop_assert_eq!(canonical_json(&again), canonical.clone(), "it is its own spelling");
        let other: Value = serde_json::from_str(&respelt(&value)).unwrap();
        prop_assert_eq!(canonical_json(&other), canonical);
    }
}
