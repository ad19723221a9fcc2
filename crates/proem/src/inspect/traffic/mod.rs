//! Traffic analysis: why a call missed the provider's cache, at which byte, because of whom, and at what cost.
//!
//! Collectors turn what agents write into a sequence of [`Call`]s. The analysis is a pure function of them: it opens no
//! file, reads no clock and starts no process. Rules of providers and names of headers are dated data,
//! `builtin/traffic.toml`.

mod analyser;
pub mod answer;
pub mod call;
pub mod chain;
pub mod collect;
mod hints;
mod html;
mod judge;
pub mod kept;
pub mod lines;
pub mod report;
mod rules;
mod thread;
pub mod usage;
pub mod verdict;

pub use analyser::{Analyser, PreparedCall};
pub use call::Call;
pub use report::{ReportBuilder, ReportFilter, TrafficReport};
pub use verdict::{CacheVerdict, CallVerdict};

/// Returns the day of the facts about agents and providers.
#[must_use]
pub fn rules_as_of() -> &'static str {
    &rules::TrafficRules::built_in().as_of
}
