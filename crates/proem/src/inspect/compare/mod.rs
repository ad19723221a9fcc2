//! What broke the cache: two prompts against each other, and whose byte it was.

mod alignment;
mod cause;
mod compare;
mod differences;
mod layout;
mod lines;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod reference;
mod shape;
mod snapshot;
mod units;
pub mod why;

pub use cause::{Cause, Reason};
pub use compare::{Comparison, Difference, Kind, Lost, Owner, compare, compare_in, lost};
pub use layout::{Grain, Layout};
pub use lines::{ChangedLine, Side, changed_lines};
pub use shape::ComparisonShape;
pub use snapshot::{CarrierText, Snapshot, SnapshotError, ToolSet};
