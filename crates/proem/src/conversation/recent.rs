//! A cache of recently used epochs. An epoch never changes; only the number of the current one does. The store answers
//! that, or its generation does: an epoch that was current in a generation stays current for as long as it lasts.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use super::conversations::LoadedEpoch;
use crate::conversation::store::EpochHead;

/// The approximate size of the cached prompts. A server takes 64 MB more when this is full: the cache of texts and the pages
/// of connections count, too.
const BYTES_MAX: usize = 40 << 20;

/// Marks an entry whose generation is not known: the store must be queried.
const NEVER: u64 = u64::MAX;

pub(super) struct Recent {
    cached: RwLock<Cached>,
    clock: AtomicU64,
    bytes_max: usize,
}

#[derive(Default)]
struct Cached {
    epochs: HashMap<String, Entry>,
    bytes: usize,
}

struct Entry {
    epoch: Arc<LoadedEpoch>,
    used: AtomicU64,
    /// The generation of the store in which this epoch was the current one.
    current_in: AtomicU64,
}

impl Default for Recent {
    fn default() -> Self {
        Self::with_bytes_max(BYTES_MAX)
    }
}

impl Recent {
    pub(super) fn with_bytes_max(bytes_max: usize) -> Self {
        Self { cached: RwLock::default(), clock: AtomicU64::new(0), bytes_max }
    }

    /// Returns the current epoch of a conversation, if it was seen to be current in this generation of the store.
    pub(super) fn current(&self, conversation: &str, generation: Option<u64>) -> Option<Arc<LoadedEpoch>> {
        let generation = generation.filter(|generation| *generation != NEVER)?;
        let cached = self.cached.read().unwrap_or_else(PoisonError::into_inner);
        let entry = cached.epochs.get(conversation)?;
        (entry.current_in.load(Ordering::Acquire) == generation).then(|| self.use_entry(entry))
    }

    /// Tells whether an epoch of a conversation is cached, current or not.
    pub(super) fn contains(&self, conversation: &str) -> bool {
        self.cached.read().unwrap_or_else(PoisonError::into_inner).epochs.contains_key(conversation)
    }

    /// Returns the cached epoch if it is the one with this head. The number alone is not enough: a conversation that was
    /// removed and begun again has the same numbers. The caller read `head` after `generation`.
    pub(super) fn get(&self, head: &EpochHead, generation: Option<u64>) -> Option<Arc<LoadedEpoch>> {
        let cached = self.cached.read().unwrap_or_else(PoisonError::into_inner);
        let entry = cached.epochs.get(&head.conversation).filter(|entry| entry.epoch.head == *head)?;
        entry.current_in.store(generation.unwrap_or(NEVER), Ordering::Release);
        Some(self.use_entry(entry))
    }

    fn use_entry(&self, entry: &Entry) -> Arc<LoadedEpoch> {
        entry.used.store(self.clock.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
        Arc::clone(&entry.epoch)
    }

    /// Caches an epoch. `generation` is one in which it was current, if known; the caller read the epoch after it.
    pub(super) fn put(&self, epoch: &Arc<LoadedEpoch>, generation: Option<u64>) {
        let used = AtomicU64::new(self.clock.fetch_add(1, Ordering::Relaxed));
        let current_in = AtomicU64::new(generation.unwrap_or(NEVER));
        let entry = Entry { epoch: Arc::clone(epoch), used, current_in };
        let mut cached = self.cached.write().unwrap_or_else(PoisonError::into_inner);
        cached.bytes += epoch.bytes;
        if let Some(old) = cached.epochs.insert(epoch.head.conversation.clone(), entry) {
            cached.bytes -= old.epoch.bytes;
        }
        cached.evict(self.bytes_max);
    }
}

impl Cached {
    /// Drops the least recently used half until the rest fits. The last epoch stays, however large.
    fn evict(&mut self, bytes_max: usize) {
        while self.bytes > bytes_max && self.epochs.len() > 1 {
            let mut times: Vec<u64> =
                self.epochs.values().map(|entry| entry.used.load(Ordering::Relaxed)).collect();
            times.sort_unstable();
            let Some(&middle) = times.get(times.len() / 2) else { return };
            self.epochs.retain(|_, entry| entry.used.load(Ordering::Relaxed) >= middle);
            self.bytes = self.epochs.values().map(|entry| entry.epoch.bytes).sum();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::store::Epoch;
    use crate::output::stored_prompt::StoredPrompt;
    use crate::request::Request;
    use crate::request::caller::Caller;

    fn epoch(conversation: &str, number: u64) -> Arc<LoadedEpoch> {
        let request = r#"{"profile": "template", "system": "text", "cwd": "/"}"#;
        let build =
            crate::engine::build(&Request::from_json(request).expect("it is a request"), Caller::User);
        let frozen = build.expect("it can be built").frozen().clone();
        let head = EpochHead {
            conversation: conversation.into(),
            number,
            reason: "startup".into(),
            digest: frozen.digest().hex(),
            fingerprint: String::new(),
            profile: "template".into(),
            engine: "0".into(),
            cwd: "/".into(),
            model: None,
            has_turn: false,
            opened_at: 0,
        };
        let prompt = StoredPrompt::from_frozen(&frozen).expect("it can be stored");
        let epoch = Epoch { head, prompt, request: request.into() };
        Arc::new(LoadedEpoch::from_stored(epoch).expect("it is complete"))
    }

    #[test]
    fn an_epoch_is_current_only_in_the_generation_in_which_it_was_seen() {
        let recent = Recent::default();
        let (first, second) = (epoch("c", 1), epoch("c", 2));
        let is = |found: Option<Arc<LoadedEpoch>>, epoch: &Arc<LoadedEpoch>| {
            found.is_some_and(|found| Arc::ptr_eq(&found, epoch))
        };
        recent.put(&first, Some(7));
        assert!(is(recent.current("c", Some(7)), &first));
        assert!(recent.current("c", Some(8)).is_none(), "another process wrote");
        assert!(recent.current("c", None).is_none(), "the store has no generation");
        assert!(recent.current("d", Some(7)).is_none());
        assert!(is(recent.get(&first.head, Some(8)), &first), "the store says that it is current");
        assert!(is(recent.current("c", Some(8)), &first) && recent.current("c", Some(7)).is_none());
        assert!(recent.get(&second.head, Some(9)).is_none(), "the store says that another one is");
        assert!(recent.current("c", Some(9)).is_none());
        recent.put(&second, None);
        assert!(recent.current("c", Some(8)).is_none() && recent.current("c", Some(NEVER - 1)).is_none());
        assert!(is(recent.get(&second.head, None), &second));
        let begun_again = EpochHead { opened_at: 1, ..second.head.clone() };
        assert!(recent.get(&begun_again, Some(9)).is_none(), "the same number, and another epoch");
    }

    #[test]
    fn the_least_recently_used_half_is_dropped_over_the_limit() {
        let bytes = epoch("c0", 1).bytes;
        let recent = Recent::with_bytes_max(4 * bytes);
        for index in 0..4 {
            recent.put(&epoch(&format!("c{index}"), 1), Some(1));
        }
        assert!(recent.current("c0", Some(1)).is_some());
        recent.put(&epoch("c4", 1), Some(1));
        let cached: Vec<String> =
            (0..5).map(|index| format!("c{index}")).filter(|id| recent.contains(id)).collect();
        assert_eq!(cached, ["c0", "c3", "c4"]);
        assert_eq!(recent.cached.read().expect("no panic").bytes, 3 * bytes);
        recent.put(&epoch("c4", 2), Some(1));
        assert_eq!(
            recent.cached.read().expect("no panic").bytes,
            3 * bytes,
            "an epoch takes the place of the old one"
        );
    }
}
