//! Checks and prunes in short batches, so that a store of any size can be looked after while servers write to it.
//!
//! Every batch is a statement or a short transaction of its own, by primary key from a cursor on. Between two batches
//! the caller is told how far it is, and may stop; the cursor says where to go on.

mod check;
mod filter;
mod prune;

use std::ops::ControlFlow;

pub(crate) use check::digests_in;
pub use check::{Cursor, check};
pub use prune::{Pruned, prune};

use crate::{Store, StoreError};

/// The progress of a check or a prune.
#[derive(Debug, Clone, Copy)]
pub struct Progress<'p> {
    /// The part of the work, in one word.
    pub part: &'static str,
    /// Rows of this part that were looked at in this run.
    pub rows: u64,
    /// Damage that the last batch found, a line each.
    pub found: &'p [String],
    /// The place to go on from after an interruption.
    pub cursor: &'p str,
}

/// Receives the progress after each batch, and tells whether to go on.
pub type Tell<'t> = &'t mut dyn FnMut(&Progress<'_>) -> ControlFlow<()>;

/// Does a batch; with fewer rows if that many take longer than one statement may.
fn within_time<T>(
    most: &mut usize,
    most_ever: usize,
    mut work: impl FnMut(usize) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    loop {
        match work(*most) {
            Err(StoreError::TimedOut { .. }) if *most > 1 => *most = (*most / 4).max(1),
            done => {
                *most = (*most * 2).min(most_ever);
                return done;
            }
        }
    }
}

/// Checks and prunes of a whole store, without a stop.
pub trait MaintainStore {
    /// Looks for damage; returns a line for each: see [`check`].
    fn check(&self) -> Result<Vec<String>, StoreError>;

    /// Removes texts that no epoch has any more, and returns the number of their bytes: see [`prune`].
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
