//! The dated facts of `builtin/traffic.toml`.

use std::sync::OnceLock;

use regex::Regex;
use serde::Deserialize;

use super::call::{OwnerKind, Wire};

const BUILT_IN: &str = include_str!("../../../builtin/traffic.toml");

/// The facts, as they are written.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TrafficRules {
    /// The day of the facts.
    pub(crate) as_of: String,
    /// The headers that are kept of a request, in lower case.
    headers: Vec<String>,
    /// The fields of items that are not part of the prompt.
    pub(crate) ignored_item_fields: Vec<String>,
    /// The beginning of an attribution block.
    pub(crate) attribution_prefix: String,
    /// The hosts that remove it.
    pub(crate) attribution_hosts: Vec<String>,
    cache: Vec<CacheFacts>,
    parameter: Vec<ParameterRule>,
    lifetime: Vec<LifetimeRule>,
    reason: Vec<ReasonRule>,
    origin: Vec<OriginRule>,
}

/// The facts about a cache.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct CacheFacts {
    name: String,
    /// A hit may be this many tokens short.
    pub(crate) granularity: u64,
    /// True if the system prompt stands before the tools.
    pub(crate) is_system_first: bool,
    /// True if the spelling of values does not count.
    pub(crate) is_by_value: bool,
    /// True if a string and a list of one text differ.
    pub(crate) forms_matter: bool,
}

/// The part of a cache that a parameter invalidates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Breaks {
    /// All of it.
    Everything,
    /// The blocks after the system prompt.
    Messages,
    /// Another cache may be asked.
    Routing,
    /// Perhaps; named where nothing else differs.
    Weak,
}

/// One parameter of a cache key.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ParameterRule {
    wires: Vec<Wire>,
    /// The name, as a path in the body.
    pub(crate) name: String,
    /// The header that may hold it.
    pub(crate) header: Option<String>,
    /// The part that it invalidates.
    pub(crate) breaks: Breaks,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct LifetimeRule {
    model: String,
    seconds: u64,
    extended: Option<u64>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct ReasonRule {
    word: String,
    verdicts: Vec<String>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct OriginRule {
    kind: OwnerKind,
    pattern: String,
    within: Option<String>,
}

/// A pattern of a text that names an owner.
#[derive(Debug)]
pub(crate) struct Origin {
    /// The kind of the owner.
    pub(crate) kind: OwnerKind,
    /// The pattern, with groups `name` or `path`.
    pub(crate) pattern: Regex,
    /// A pattern that the text before must have.
    pub(crate) within: Option<Regex>,
}

impl TrafficRules {
    /// Returns the built-in facts, which are parsed once per process.
    pub(crate) fn built_in() -> &'static Self {
        static READ: OnceLock<TrafficRules> = OnceLock::new();
        READ.get_or_init(|| toml::from_str(BUILT_IN).unwrap_or_default())
    }

    /// Returns the facts about a cache; those of an unknown one are the defaults.
    pub(crate) fn cache(&self, name: &str) -> CacheFacts {
        self.cache.iter().find(|facts| facts.name == name).cloned().unwrap_or_default()
    }

    /// Iterates over the parameters of a format.
    pub(crate) fn parameters(&self, wire: Wire) -> impl Iterator<Item = &ParameterRule> {
        self.parameter.iter().filter(move |rule| rule.wires.contains(&wire))
    }

    /// Returns the lifetime of an automatic cache for a model, in seconds.
    pub(crate) fn lifetime(&self, model: &str, is_extended: bool) -> Option<u64> {
        let of_model = self.lifetime.iter().filter(|rule| model.starts_with(&rule.model));
        let rule = of_model.max_by_key(|rule| rule.model.len())?;
        Some(rule.extended.filter(|_| is_extended).unwrap_or(rule.seconds))
    }

    /// Tells if a provider's word agrees with a verdict; `None` for an unknown word.
    pub(crate) fn agrees(&self, word: &str, verdict: &str) -> Option<bool> {
        let rule = self.reason.iter().find(|rule| rule.word == word)?;
        Some(rule.verdicts.iter().any(|known| known == verdict))
    }

    /// Returns the patterns of owners, compiled once per process.
    pub(crate) fn origins(&self) -> &'static [Origin] {
        static COMPILED: OnceLock<Vec<Origin>> = OnceLock::new();
        COMPILED.get_or_init(|| {
            let compile = |rule: &OriginRule| {
                let within = rule.within.as_deref().map(Regex::new).transpose().ok()?;
                Some(Origin { kind: rule.kind, pattern: Regex::new(&rule.pattern).ok()?, within })
            };
            self.origin.iter().filter_map(compile).collect()
        })
    }
}

/// Tells if a header, in lower case, is kept of a request.
pub(super) fn is_header_kept(name: &str) -> bool {
    TrafficRules::built_in().headers.iter().any(|kept| kept == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_facts_are_read() {
        let rules: TrafficRules = toml::from_str(BUILT_IN).expect("it is valid");
        assert_eq!(rules.as_of, TrafficRules::built_in().as_of);
        assert_eq!(rules.origins().len(), rules.origin.len(), "every pattern is valid");
    }
}
