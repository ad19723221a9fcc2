//! Reads the base URLs in configurations of agents. Nothing is written.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use proem_core::limit::SETTINGS_BYTES_MAX;
use serde_json::Value;

/// Reads a small file; `None` if it is none.
pub(super) fn text(path: &Path) -> Option<String> {
    // The file of an agent is opened as the agent does it, but only if it is an ordinary one.
    path.metadata().ok().filter(std::fs::Metadata::is_file)?;
    let mut text = String::new();
    File::open(path).ok()?.take(SETTINGS_BYTES_MAX as u64 + 1).read_to_string(&mut text).ok()?;
    (text.len() <= SETTINGS_BYTES_MAX).then_some(text)
}

/// Parses JSON that may have comments and trailing commas.
pub(super) fn json(text: &str) -> Option<Value> {
    serde_json::from_str(text).or_else(|_| serde_json::from_str(&without_comments(text))).ok()
}

fn without_comments(text: &str) -> String {
    let (mut out, mut rest, mut in_string) =
        (String::with_capacity(text.len()), text.chars().peekable(), false);
    while let Some(character) = rest.next() {
        match (in_string, character, rest.peek()) {
            (true, '\\', _) => {
                out.push(character);
                out.extend(rest.next());
                continue;
            }
            (false, '/', Some('/')) => {
                rest.by_ref().find(|character| *character == '\n');
                out.push('\n');
                continue;
            }
            (false, '/', Some('*')) => {
                let mut before = ' ';
                rest.by_ref()
                    .skip(1)
                    .find(|character| std::mem::replace(&mut before, *character) == '*' && *character == '/');
                continue;
            }
            (false, ']' | '}', _) => {
                let end = out.trim_end().len();
                if out.trim_end().ends_with(',') {
                    out.truncate(end - 1);
                }
            }
            (_, '"', _) => in_string = !in_string,
            _ => {}
        }
        out.push(character);
    }
    out
}

/// Returns the URLs of providers in a configuration: `providers.NAME.….url`.
pub(super) fn urls(config: &Value, providers: &str, url: &[String]) -> BTreeMap<String, Option<String>> {
    let Some(list) = config.get(providers).and_then(Value::as_object) else { return BTreeMap::new() };
    let of = |provider: &Value| {
        let found = url.iter().try_fold(provider, |value, key| value.get(key));
        found.and_then(Value::as_str).map(str::to_owned)
    };
    list.iter().map(|(name, provider)| (name.clone(), of(provider))).collect()
}

/// Merges one object into another: later values replace earlier ones.
pub(super) fn merge(into: &mut Value, more: Value) {
    match (into, more) {
        (Value::Object(into), Value::Object(more)) => {
            for (key, value) in more {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, more) => *into = more,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_are_left_out() {
        let text = "{ // a comment\n \"a\": \"http://x/*y*/\", /* \"b\": 1, */ \"c\": [1, 2,], \"d\": \"\\\"//\",\n}";
        assert_eq!(json(text), Some(serde_json::json!({"a": "http://x/*y*/", "c": [1, 2], "d": "\"//"})));
        assert_eq!(json("no"), None);
    }
}
