//! What broke the cache: two prompts against each other, and whose byte it was.

mod alignment;
mod cause;
mod comparison;
mod differences;
mod layout;
mod lines;
mod shape;
mod snapshot;
mod units;
pub mod why;

pub use cause::{Cause, Reason};
pub use comparison::{Comparison, Difference, Kind, Lost, Owner, compare, compare_in, lost};
pub use layout::{Grain, Layout};
pub use lines::{ChangedLine, Side, changed_lines};
pub use shape::ComparisonShape;
pub use snapshot::{CarrierText, Snapshot, SnapshotError, ToolSet};
