//! Traffic analysis: why a call missed the provider's cache, at which byte, because of whom, and at what cost.
//!
//! Collectors turn what agents write into a sequence of [`Call`]s. The analysis is a pure function of them: it opens no
//! file, reads no clock and starts no process. Rules of providers and names of headers are dated data,
//! `builtin/traffic.toml`.

pub mod call;
pub mod collect;
mod rules;
pub mod usage;

pub use call::Call;

/// Returns the day of the facts about agents and providers.
#[must_use]
pub fn rules_as_of() -> &'static str {
    &rules::TrafficRules::built_in().as_of
}
