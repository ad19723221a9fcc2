//! Tells whether the store takes writes.
//!
//! A store whose disk is full still answers reads. So a server remembers that the store failed, and from then on writes a row
//! to find out when it works again: a balancer that sends no more requests would otherwise never learn of it. While nothing
//! fails nothing is written.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use proem_store::{CompactionRecord, Store, StoreError};

use crate::log;

/// The time for which the answer of a failed write counts.
const PROBE_TIME_MIN: Duration = Duration::from_secs(1);

/// Size of the probe: that of a usual prompt, because a nearly full disk may take a smaller row and no prompt.
const PROBE_BYTES: usize = 64 << 10;

/// The state of writes, as last seen.
#[derive(Debug, Default)]
pub(crate) struct Writes {
    failed: AtomicU64,
    /// How many failures were followed by a write that worked.
    mended: AtomicU64,
    probed: Mutex<Option<(Instant, StoreError)>>,
}

impl Writes {
    /// Remembers that the store failed.
    pub(crate) fn fail(&self) {
        self.failed.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns at once if nothing failed since the last write that worked; otherwise writes, at most once a second.
    pub(crate) fn check(&self, store: &dyn Store) -> Result<(), StoreError> {
        let failed = self.failed.load(Ordering::Relaxed);
        if failed == self.mended.load(Ordering::Relaxed) {
            return Ok(());
        }
        let mut probed = self.probed.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, error)) = probed.as_ref().filter(|(then, _)| then.elapsed() < PROBE_TIME_MIN) {
            return Err(error.clone());
        }
        match probe(store) {
            Ok(()) => {
                *probed = None;
                self.mended.store(failed, Ordering::Relaxed);
                Ok(())
            }
            Err(error) => {
                *probed = Some((Instant::now(), error.clone()));
                Err(error)
            }
        }
    }
}

/// Writes a row and removes it: a compaction of no conversation, which is out of date and which no request can name. If it
/// cannot be removed, the next compaction removes it.
fn probe(store: &dyn Store) -> Result<(), StoreError> {
    let token = format!("probe-{}", log::random_id());
    store.begin_compaction(&CompactionRecord {
        token: token.clone(),
        conversation: "-".to_owned(),
        from: 0,
        rebuilt: None,
        request: " ".repeat(PROBE_BYTES),
        expires_at: 0,
        opened: None,
    })?;
    store.end_compaction(&token, None).map(drop)
}
