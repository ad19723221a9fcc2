//! Tells whether the store accepts writes.
//!
//! A store with a full disk still answers reads. After a failure the server therefore writes a row to find out when the
//! store works again; a load balancer that sends no requests to an unready server would otherwise never use it again.
//! Without a failure nothing is written.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use proem_store::{CompactionRecord, Store, StoreError};

use crate::log;

/// The minimum time between two probes of a failed store.
const PROBE_TIME_MIN: Duration = Duration::from_secs(1);

/// The size of the probe, which is that of a usual prompt: a nearly full disk may accept a smaller row and no prompt.
const PROBE_BYTES: usize = 64 << 10;

/// The failures of the store and the result of the last probe.
#[derive(Debug, Default)]
pub(crate) struct WriteHealth {
    failures: AtomicU64,
    /// The number of failures before the last successful probe.
    recovered: AtomicU64,
    last_error: Mutex<Option<(Instant, StoreError)>>,
}

impl WriteHealth {
    /// Records that the store failed.
    pub(crate) fn fail(&self) {
        self.failures.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns at once if nothing failed since the last successful write; otherwise writes, at most once a second.
    pub(crate) fn check(&self, store: &dyn Store) -> Result<(), StoreError> {
        let failures = self.failures.load(Ordering::Relaxed);
        if failures == self.recovered.load(Ordering::Relaxed) {
            return Ok(());
        }
        let mut last_error = self.last_error.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, error)) = last_error.as_ref().filter(|(then, _)| then.elapsed() < PROBE_TIME_MIN) {
            return Err(error.clone());
        }
        match probe(store) {
            Ok(()) => {
                *last_error = None;
                self.recovered.store(failures, Ordering::Relaxed);
                Ok(())
            }
            Err(error) => {
                *last_error = Some((Instant::now(), error.clone()));
                Err(error)
            }
        }
    }
}

/// Writes a row and removes it: an expired compaction of no conversation, which no request can name. If the row cannot
/// be removed, the next compaction removes it.
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
