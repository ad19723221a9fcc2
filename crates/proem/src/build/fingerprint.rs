//! Fingerprints: digests of the parts of a prompt that a provider's cache depends on.

use proem_core::digest::Digest;
use serde_json::{Value, json};

use crate::request::canonical_json::canonical_json;
use crate::request::{Tool, distinct_tools};

/// The digests of a prompt's cached part and of its tools, and of both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fingerprint {
    /// The digest of the prefix.
    pub system: Digest,
    /// The digest of the tools in canonical form, sorted by name; of an empty text without tools.
    pub tools: Digest,
    /// The digest of both.
    pub whole: Digest,
}

impl Fingerprint {
    /// Computes the fingerprint of a prefix and its tools. The order of the tools and of their keys, and the spelling
    /// of numbers and strings, do not matter.
    #[must_use]
    pub fn from_prefix(prefix: &str, tools: &[Tool]) -> Self {
        Self::new(Digest::new(prefix.as_bytes()), tools)
    }

    /// Computes the fingerprint of a prefix with a known digest, and its tools.
    #[must_use]
    pub fn new(system: Digest, tools: &[Tool]) -> Self {
        let tools = Digest::new(canonical_tools(tools).as_bytes());
        let whole = Digest::new(format!("{}:{}", system.hex(), tools.hex()).as_bytes());
        Self { system, tools, whole }
    }
}

/// The tools in canonical form, sorted by name; nothing when there are none.
pub(crate) fn canonical_tools(tools: &[Tool]) -> String {
    if tools.is_empty() {
        return String::new();
    }
    let mut sorted = distinct_tools(tools);
    sorted.sort_by(|a, b| a.name.cmp(&b.name));
    canonical_json(&Value::Array(sorted.into_iter().map(definition).collect()))
}

/// Returns a tool as the provider sees it; its texts for the prompt are in the prefix already.
pub(crate) fn definition(tool: &Tool) -> Value {
    let mut fields = serde_json::Map::new();
    fields.insert("name".into(), json!(tool.name));
    fields.extend(tool.description.as_ref().map(|text| ("description".into(), json!(text))));
    fields.extend(tool.input_schema.as_ref().map(|schema| ("input_schema".into(), schema.clone())));
    Value::Object(fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(json: &str) -> Tool {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn spelling_and_order_do_not_matter() {
        let a = tool(r#"{"name": "a", "input_schema": {"type": "object", "max": 1.0}}"#);
        let b = tool(r#"{"name": "b", "description": "\u00e9"}"#);
        let again = [
            tool(r#"{"description": "é", "name": "b"}"#),
            tool(r#"{"input_schema": {"max": 1e0, "type": "object"}, "name": "a"}"#),
        ];
        let one = Fingerprint::from_prefix("prefix", &[a.clone(), b.clone()]);
        assert_eq!(one, Fingerprint::from_prefix("prefix", &again));
        assert_ne!(one.whole, Fingerprint::from_prefix("prefix", &[a]).whole);
        assert_ne!(one.whole, Fingerprint::from_prefix("prefiX", &again).whole);
    }

    /// Snippets are part of the prefix; the provider never gets them separately.
    #[test]
    fn only_what_the_provider_gets_counts() {
        let plain = Fingerprint::from_prefix("p", &[tool(r#"{"name": "a"}"#)]);
        assert_eq!(
            plain,
            Fingerprint::from_prefix("p", &[tool(r#"{"name": "a", "snippet": "s", "guidelines": ["g"]}"#)])
        );
    }

    #[test]
    fn without_tools_the_digest_is_of_nothing() {
        let fingerprint = Fingerprint::from_prefix("p", &[]);
        assert_eq!(fingerprint.tools, Digest::new(b""));
        let whole = format!("{}:{}", Digest::new(b"p").hex(), Digest::new(b"").hex());
        assert_eq!(fingerprint.whole, Digest::new(whole.as_bytes()));
    }
}
