//! Owners that a line of calls names: `hints: [{text | part, kind, name?, path?}]`.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;

use super::call::{HintPlace, OwnerHint, OwnerKind};

#[derive(Deserialize)]
struct HintLine {
    text: Option<String>,
    part: Option<String>,
    kind: OwnerKind,
    name: Option<String>,
    path: Option<String>,
}

/// Reads the hints of a line; what is none is left out.
pub(super) fn of_line(line: &Value) -> Vec<OwnerHint> {
    const MOST: usize = 1_000;
    let Some(list) = line.get("hints").and_then(Value::as_array) else { return Vec::new() };
    let hint = |value: &Value| {
        let HintLine { text, part, kind, name, path } = HintLine::deserialize(value).ok()?;
        let place = match (text, part) {
            (Some(text), _) => HintPlace::Text(Arc::from(text)),
            (None, Some(part)) => HintPlace::Part(part),
            (None, None) => return None,
        };
        Some(OwnerHint { place, kind, name, path })
    };
    list.iter().take(MOST).filter_map(hint).collect()
}
