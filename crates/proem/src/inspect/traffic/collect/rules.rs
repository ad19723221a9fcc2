//! The dated facts of `builtin/collectors.toml`: places, and the words that agents use.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde::Deserialize;

use crate::inspect::traffic::call::{OwnerKind, Purpose, Wire};

const BUILT_IN: &str = include_str!("../../../../builtin/collectors.toml");

/// The facts, as they are written.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CollectRules {
    /// The day of the facts.
    pub(super) as_of: String,
    subscription_betas: Vec<String>,
    #[serde(rename = "place")]
    pub(super) places: Vec<Place>,
    #[serde(rename = "purpose")]
    purposes: Vec<PurposeRow>,
    #[serde(rename = "owner")]
    owners: Vec<OwnerRow>,
    #[serde(rename = "wire")]
    wires: Vec<WireRow>,
    pi_api: BTreeMap<String, Wire>,
    user_agent: BTreeMap<String, String>,
    pub(super) headers: HeaderNames,
    codex: CodexWords,
    pub(super) sqlite: SqliteQueries,
}

/// A usual place of a source.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Place {
    pub(super) source: String,
    pub(super) what: String,
    pub(super) env: Option<String>,
    pub(super) prefix: Option<String>,
    pub(super) below: Option<String>,
    pub(super) home: Option<String>,
    pub(super) unless: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct PurposeRow {
    agent: String,
    begins: String,
    purpose: Purpose,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct OwnerRow {
    agent: String,
    word: String,
    kind: OwnerKind,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct WireRow {
    path_ends: String,
    wire: Wire,
}

/// Names of headers, in the order in which they count.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HeaderNames {
    pub(super) request_id: Vec<String>,
    pub(super) conversation: Vec<String>,
    pub(super) thread: Vec<String>,
    pub(super) parent: Vec<String>,
    pub(super) purpose: Vec<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct CodexWords {
    output_items: Vec<String>,
}

/// Queries of SQLite files.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SqliteQueries {
    pub(super) claude_tap_records: String,
    pub(super) claude_tap_blobs: String,
    pub(super) opencode_sessions: String,
    pub(super) opencode_messages: String,
}

impl CollectRules {
    /// Returns the built-in facts, which are parsed once per process.
    pub(super) fn built_in() -> &'static Self {
        static READ: OnceLock<CollectRules> = OnceLock::new();
        READ.get_or_init(|| toml::from_str(BUILT_IN).unwrap_or_default())
    }

    /// Returns the purpose of a call by the agent's word.
    pub(super) fn purpose(&self, agent: &str, word: &str) -> Purpose {
        let fits = |row: &&PurposeRow| row.agent == agent && word.starts_with(&row.begins);
        self.purposes.iter().find(fits).map(|row| row.purpose).unwrap_or_default()
    }

    /// Returns the kind of owner that the agent's word means.
    pub(super) fn owner(&self, agent: &str, word: &str) -> Option<OwnerKind> {
        self.owners.iter().find(|row| row.agent == agent && row.word == word).map(|row| row.kind)
    }

    /// Returns the format of a request by its path, which may have a query; `None` if it is not a call.
    pub(super) fn wire_of_path(&self, path: &str) -> Option<Wire> {
        let path = path.split(['?', '#']).next().unwrap_or_default().trim_end_matches('/');
        self.wires.iter().find(|row| path.ends_with(&row.path_ends)).map(|row| row.wire)
    }

    /// Returns the format that pi calls by this name.
    pub(super) fn wire_of_pi(&self, api: &str) -> Wire {
        self.pi_api.get(api).copied().unwrap_or_default()
    }

    /// Returns the agent and its version by a `user-agent`.
    pub(super) fn agent<'a>(&'a self, user_agent: &'a str) -> Option<(&'a str, &'a str)> {
        self.user_agent.iter().find_map(|(begin, name)| {
            let version = user_agent.strip_prefix(begin.as_str())?.split([' ', '(']).next()?;
            Some((name.as_str(), version))
        })
    }

    /// Tells if one of these beta headers belongs to a subscription.
    pub(super) fn is_subscription<'a>(&self, mut betas: impl Iterator<Item = &'a str>) -> bool {
        betas.any(|beta| self.subscription_betas.iter().any(|begin| beta.trim().starts_with(begin)))
    }

    /// Tells if an item of the Responses API is an output of the model.
    pub(super) fn is_output_item(&self, kind: &str) -> bool {
        self.codex.output_items.iter().any(|output| output == kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_facts_are_read() {
        let rules: CollectRules = toml::from_str(BUILT_IN).expect("it is valid");
        assert_eq!(rules.as_of, CollectRules::built_in().as_of);
        assert_eq!(rules.wire_of_path("/v1/messages?beta=true"), Some(Wire::Anthropic));
        assert_eq!(rules.wire_of_path("/v1/messages/count_tokens"), None);
        assert_eq!(rules.agent("claude-cli/2.1.326 (external, sdk-cli)"), Some(("claude-code", "2.1.326")));
        assert_eq!(rules.purpose("claude-code", "agent:custom:x"), Purpose::SubAgent);
        assert!(rules.is_subscription(["a", "oauth-2025-04-20"].into_iter()));
    }

    #[test]
    fn every_place_names_a_source() {
        for place in &CollectRules::built_in().places {
            assert!(super::super::TrafficSource::from_name(&place.source).is_some(), "{}", place.source);
            assert!(place.env.is_some() != place.home.is_some(), "{place:?}");
        }
    }
}
