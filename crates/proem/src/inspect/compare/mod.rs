//! Finds the cause of a cache miss: compares two prompts, and names the source of the first different byte.

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

pub use cause::{Cause, MissReason};
pub use comparison::{Comparison, Difference, DifferenceKind, Loss, Owner, compare, compare_in, lost};
pub use layout::{Grain, Layout};
pub use lines::{ChangedLine, Side, changed_lines};
pub use shape::ComparisonShape;
pub use snapshot::{CarrierText, Snapshot, SnapshotError, SnapshotTools};
