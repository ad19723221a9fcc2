//! Epochs that were used lately. A frozen epoch cannot go stale; only which one is current can, and that is
//! asked of the store.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, RwLock};

use super::Kept;
use crate::record::EpochHead;

/// About how many bytes of prompts are held.
const BYTES_MAX: usize = 64 << 20;

/// What an epoch takes besides its texts, about.
const OVERHEAD_BYTES: usize = 4096;

#[derive(Default)]
pub(super) struct Recent {
    held: RwLock<Held>,
    clock: AtomicU64,
}

#[derive(Default)]
struct Held {
    epochs: HashMap<String, Entry>,
    bytes: usize,
}

struct Entry {
    kept: Arc<Kept>,
    bytes: usize,
    used: AtomicU64,
}

impl Recent {
    /// The epoch, if it is this one: a conversation that was removed and begun again has the same numbers.
    pub(super) fn get(&self, wanted: &EpochHead) -> Option<Arc<Kept>> {
        let held = self.held.read().unwrap_or_else(std::sync::PoisonError::into_inner);
        let entry = held.epochs.get(&wanted.conversation).filter(|entry| entry.kept.head == *wanted)?;
        entry.used.store(self.clock.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
        Some(Arc::clone(&entry.kept))
    }

    pub(super) fn put(&self, kept: &Arc<Kept>) {
        let bytes = kept.frozen.body().carriers().map(|(_, text)| text.len()).sum::<usize>() + OVERHEAD_BYTES;
        let used = AtomicU64::new(self.clock.fetch_add(1, Ordering::Relaxed));
        let mut held = self.held.write().unwrap_or_else(std::sync::PoisonError::into_inner);
        let entry = Entry { kept: Arc::clone(kept), bytes, used };
        held.bytes += bytes;
        if let Some(old) = held.epochs.insert(kept.head.conversation.clone(), entry) {
            held.bytes -= old.bytes;
        }
        if held.bytes > BYTES_MAX {
            held.make_room();
        }
    }
}

impl Held {
    /// Lets the half go that was not used for longest.
    fn make_room(&mut self) {
        let mut times: Vec<u64> =
            self.epochs.values().map(|entry| entry.used.load(Ordering::Relaxed)).collect();
        times.sort_unstable();
        let Some(&middle) = times.get(times.len() / 2) else { return };
        self.epochs.retain(|_, entry| entry.used.load(Ordering::Relaxed) >= middle);
        self.bytes = self.epochs.values().map(|entry| entry.bytes).sum();
    }
}
