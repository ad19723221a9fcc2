//! The dated facts of `builtin/traffic.toml`.

use std::sync::OnceLock;

use serde::Deserialize;

const BUILT_IN: &str = include_str!("../../builtin/traffic.toml");

/// The facts, as they are written.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TrafficRules {
    /// The day of the facts.
    pub(crate) as_of: String,
    /// The headers that are kept of a request, in lower case.
    headers: Vec<String>,
}

impl TrafficRules {
    /// Returns the built-in facts, which are parsed once per process.
    pub(crate) fn built_in() -> &'static Self {
        static READ: OnceLock<TrafficRules> = OnceLock::new();
        READ.get_or_init(|| toml::from_str(BUILT_IN).unwrap_or_default())
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
    }
}
