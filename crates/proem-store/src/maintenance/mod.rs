//! Checks and prunes in short batches, so that a store of any size can be maintained while servers write to it.
//!
//! Every batch is one statement or a short transaction that reads by primary key from a cursor on. Between two batches
//! the caller gets the progress and may stop; the cursor is the position to continue from.

mod check;
mod filter;
mod prune;

use std::ops::ControlFlow;

pub(crate) use check::digests_in;
pub use check::{Cursor, check};
pub use prune::{PruneReport, prune};

use crate::{Store, StoreError};

/// The progress of a check or a prune.
#[derive(Debug, Clone, Copy)]
pub struct Progress<'p> {
    /// The part of the work, in one word.
    pub part: &'static str,
    /// The rows of this part that this run has read.
    pub rows: u64,
    /// The damage in the last batch, one line each.
    pub found: &'p [String],
    /// The position to continue from after an interruption.
    pub cursor: &'p str,
}

/// A callback that gets the progress after each batch, and decides whether to continue.
pub type OnProgress<'t> = &'t mut dyn FnMut(&Progress<'_>) -> ControlFlow<()>;

/// Runs a batch, and tries again with fewer rows when a statement times out.
fn within_time<T>(
    most: &mut usize,
    most_rows: usize,
    mut work: impl FnMut(usize) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    loop {
        match work(*most) {
            Err(StoreError::TimedOut { .. }) if *most > 1 => *most = (*most / 4).max(1),
            done => {
                *most = (*most * 2).min(most_rows);
                return done;
            }
        }
    }
}

/// Checks and prunes of a whole store, without a stop.
pub trait MaintainStore {
    /// Looks for damage; returns a line for each: see [`check`].
    fn check(&self) -> Result<Vec<String>, StoreError>;

    /// Removes all texts that no epoch uses, and returns the number of their bytes: see [`prune`].
    fn prune(&self) -> Result<u64, StoreError>;
}

impl MaintainStore for dyn Store + '_ {
    fn check(&self) -> Result<Vec<String>, StoreError> {
        let mut found = Vec::new();
        check(self, None, &mut |progress| {
            found.extend_from_slice(progress.found);
            ControlFlow::Continue(())
        })?;
        Ok(found)
    }

    fn prune(&self) -> Result<u64, StoreError> {
        Ok(prune(self, &mut |_| ControlFlow::Continue(()))?.bytes)
    }
}
