//! Compares answers with the values that a script expects.

use std::collections::BTreeMap;

use serde_json::Value;

use super::answer::{Answer, Failure, Outcome};
use super::script::{Step, placed};

/// The answers of named steps.
pub(super) type Named = BTreeMap<String, Answer>;

/// Returns the differences between the outcome of a step and the expected one. `cwd` is the workspace.
pub(super) fn differences(step: &Step, outcome: &Outcome, named: &Named, cwd: &str) -> Vec<String> {
    match (outcome, &step.error) {
        (Ok(answer), None) => {
            let expected = step.expect.iter();
            expected.filter_map(|(path, value)| difference(path, value, answer, named, cwd)).collect()
        }
        (Err(failure), Some(expected)) => wrong_fields(failure, expected, cwd),
        (Ok(_), Some(expected)) => vec![format!("it succeeded; expected the error {expected:?}")],
        (Err(failure), None) => vec![format!("it failed: {:?}", failure.0)],
    }
}

/// Compares the fields of an error that the door has.
fn wrong_fields(failure: &Failure, expected: &BTreeMap<String, Value>, cwd: &str) -> Vec<String> {
    let known = expected.iter().filter_map(|(field, value)| Some((field, value, failure.0.get(field)?)));
    let placed = |value: &Value| literal(value, cwd);
    let wrong = known.filter(|(_, value, found)| placed(value) != **found);
    wrong.map(|(field, value, found)| format!("error.{field} is {found}, expected {value}")).collect()
}

fn difference(path: &str, expected: &Value, answer: &Answer, named: &Named, cwd: &str) -> Option<String> {
    let found = answer.at(path);
    let shown = found.as_deref().unwrap_or("absent");
    let expected = literal(expected, cwd);
    let Some(rules) = rules(&expected) else {
        let value = found.as_deref().map(|text| serde_json::from_str::<Value>(text).unwrap());
        return (value.as_ref() != Some(&expected))
            .then(|| format!("{path} is {shown}, expected {expected}"));
    };
    let holds = |(rule, value): (&String, &Value)| holds(rule, value, found.as_deref(), path, named);
    (!rules.iter().all(holds)).then(|| format!("{path} is {shown}, expected {expected}"))
}

const RULES: [&str; 8] =
    ["same_as", "differs_from", "begins_with", "ends_with", "contains", "lacks", "raw", "absent"];

/// Returns the rules of an expected value; `None` if it is meant literally.
fn rules(expected: &Value) -> Option<&serde_json::Map<String, Value>> {
    let fields = expected.as_object()?;
    (!fields.is_empty() && fields.keys().all(|key| RULES.contains(&key.as_str()))).then_some(fields)
}

fn holds(rule: &str, value: &Value, found: Option<&str>, path: &str, named: &Named) -> bool {
    let other = || named.get(value.as_str().unwrap())?.at(path);
    let text: String = found.and_then(|found| serde_json::from_str(found).ok()).unwrap_or_default();
    let texts = || match value {
        Value::Array(texts) => texts.iter().map(|text| text.as_str().unwrap()).collect(),
        one => vec![one.as_str().unwrap()],
    };
    let items: Option<Vec<Value>> = found.and_then(|found| serde_json::from_str(found).ok());
    let contains = |part: &str| match &items {
        Some(items) => items.iter().any(|item| item == part),
        None => text.contains(part),
    };
    match rule {
        "same_as" => found.is_some() && found.map(str::to_owned) == other(),
        "differs_from" => found.is_some() && found.map(str::to_owned) != other(),
        "begins_with" => text.starts_with(value.as_str().unwrap()),
        "ends_with" => text.ends_with(value.as_str().unwrap()),
        "contains" => texts().into_iter().all(&contains),
        "lacks" => found.is_some() && !texts().into_iter().any(contains),
        "raw" => found == value.as_str(),
        _ => found.is_none(),
    }
}

/// Puts paths into all texts of a value.
fn literal(value: &Value, cwd: &str) -> Value {
    match value {
        Value::String(text) => Value::String(placed(text, cwd)),
        Value::Array(items) => items.iter().map(|item| literal(item, cwd)).collect(),
        Value::Object(fields) => {
            fields.iter().map(|(name, value)| (name.clone(), literal(value, cwd))).collect()
        }
        other => other.clone(),
    }
}
