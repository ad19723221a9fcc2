//! A cache of recently used epochs. An epoch never changes; only the number of the current one does. The store answers
//! that, or its generation does: an epoch that was current in a generation stays current for as long as it lasts.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use proem_core::frozen::Suffix;

use super::Loaded;
use crate::conversation::notices::Watch;
use crate::conversation::store::CurrentHead;
use crate::hooks::Handler;

/// The approximate size of the cached prompts. A server takes 64 MB more when this is full: the cache of texts and the pages
/// of connections count, too.
const BYTES_MAX: usize = 40 << 20;

/// Marks an entry whose generation is not known: the store must be queried.
const NEVER: u64 = u64::MAX;

pub(in crate::conversation) struct Recent {
    cached: RwLock<Cached>,
    clock: AtomicU64,
    bytes_max: usize,
}

#[derive(Default)]
struct Cached {
    conversations: HashMap<String, Entry>,
    bytes: usize,
}

struct Entry {
    loaded: Arc<Loaded>,
    memory: Arc<TurnMemory>,
    used: AtomicU64,
    /// The generation of the store in which this epoch and this state were the current ones.
    current_in: AtomicU64,
}

/// The turns of a conversation as far as one process remembers them. It is not stored.
#[derive(Default)]
pub(in crate::conversation) struct TurnMemory {
    /// The handlers of hooks, as they were configured when the epoch was opened or first used in this process.
    pub(in crate::conversation) handlers: Mutex<Option<Arc<[Handler]>>>,
    /// The last part for one turn that could be observed.
    pub(in crate::conversation) suffix: Mutex<Option<Suffix>>,
    /// The sources of the prompt as they were seen last.
    pub(in crate::conversation) watch: Mutex<Option<Watch>>,
    /// The last values of facts that are observed for each turn.
    pub(in crate::conversation) facts: Mutex<BTreeMap<String, String>>,
}

impl Default for Recent {
    fn default() -> Self {
        Self::with_bytes_max(BYTES_MAX)
    }
}

impl Recent {
    pub(in crate::conversation) fn with_bytes_max(bytes_max: usize) -> Self {
        Self { cached: RwLock::default(), clock: AtomicU64::new(0), bytes_max }
    }

    /// Returns the current epoch of a conversation, if it was seen to be current in this generation of the store.
    pub(in crate::conversation) fn current(
        &self,
        conversation: &str,
        generation: Option<u64>,
    ) -> Option<Arc<Loaded>> {
        let generation = generation.filter(|generation| *generation != NEVER)?;
        let cached = self.cached.read().unwrap_or_else(PoisonError::into_inner);
        let entry = cached.conversations.get(conversation)?;
        (entry.current_in.load(Ordering::Acquire) == generation).then(|| self.use_entry(entry))
    }

    /// Tells whether an epoch of a conversation is cached, current or not.
    pub(in crate::conversation) fn contains(&self, conversation: &str) -> bool {
        self.cached.read().unwrap_or_else(PoisonError::into_inner).conversations.contains_key(conversation)
    }

    /// Returns the cached epoch if it is the one with this head. The number alone is not enough: a conversation that was
    /// removed and begun again has the same numbers. The caller read `head` after `generation`.
    pub(in crate::conversation) fn get(
        &self,
        current: &CurrentHead,
        generation: Option<u64>,
    ) -> Option<Arc<Loaded>> {
        let cached = self.cached.read().unwrap_or_else(PoisonError::into_inner);
        let is_same = |entry: &&Entry| {
            entry.loaded.epoch.head == current.head && entry.loaded.version == current.state_version
        };
        let entry = cached.conversations.get(&current.head.conversation).filter(is_same)?;
        entry.current_in.store(generation.unwrap_or(NEVER), Ordering::Release);
        Some(self.use_entry(entry))
    }

    fn use_entry(&self, entry: &Entry) -> Arc<Loaded> {
        entry.used.store(self.clock.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
        Arc::clone(&entry.loaded)
    }

    /// Returns what this process remembers of the turns of a conversation.
    pub(in crate::conversation) fn memory(&self, conversation: &str) -> Arc<TurnMemory> {
        let cached = self.cached.read().unwrap_or_else(PoisonError::into_inner);
        cached.conversations.get(conversation).map(|entry| Arc::clone(&entry.memory)).unwrap_or_default()
    }

    /// Caches a conversation. `generation` is one in which this was current, if known; the caller read it after that.
    pub(in crate::conversation) fn put(&self, loaded: &Arc<Loaded>, generation: Option<u64>) {
        let used = AtomicU64::new(self.clock.fetch_add(1, Ordering::Relaxed));
        let current_in = AtomicU64::new(generation.unwrap_or(NEVER));
        let head = &loaded.epoch.head;
        let mut cached = self.cached.write().unwrap_or_else(PoisonError::into_inner);
        let known = cached.conversations.get(&head.conversation);
        // Another profile observes other facts, and a conversation that was begun again is another one.
        let is_same = |entry: &&Entry| {
            let known = &entry.loaded.epoch.head;
            known.profile == head.profile && known.cwd == head.cwd && known.number <= head.number
        };
        let memory = known.filter(is_same).map(|entry| Arc::clone(&entry.memory)).unwrap_or_default();
        let entry = Entry { loaded: Arc::clone(loaded), memory, used, current_in };
        cached.bytes += loaded.bytes;
        if let Some(old) = cached.conversations.insert(head.conversation.clone(), entry) {
            cached.bytes -= old.loaded.bytes;
        }
        cached.evict(self.bytes_max);
    }
}

impl Cached {
    /// Drops the least recently used half until the rest fits. The last epoch stays, however large.
    fn evict(&mut self, bytes_max: usize) {
        while self.bytes > bytes_max && self.conversations.len() > 1 {
            let mut times: Vec<u64> =
                self.conversations.values().map(|entry| entry.used.load(Ordering::Relaxed)).collect();
            times.sort_unstable();
            let Some(&middle) = times.get(times.len() / 2) else { return };
            self.conversations.retain(|_, entry| entry.used.load(Ordering::Relaxed) >= middle);
            self.bytes = self.conversations.values().map(|entry| entry.loaded.bytes).sum();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::conversations::LoadedEpoch;
    use crate::conversation::state::State;
    use crate::conversation::store::{Epoch, EpochHead};
    use crate::output::stored_prompt::StoredPrompt;
    use crate::request::Request;
    use crate::request::caller::Caller;

    fn loaded(conversation: &str, number: u64) -> Arc<Loaded> {
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
            template_version: None,
        };
        let prompt = StoredPrompt::from_frozen(&frozen).expect("it can be stored");
        let epoch = Epoch { head, prompt, request: request.into(), sources: None };
        let epoch = Arc::new(LoadedEpoch::from_stored(epoch).expect("it is complete"));
        let bytes = epoch.bytes;
        Arc::new(Loaded { epoch, state: State::default(), version: number, bytes })
    }

    fn head(loaded: &Loaded) -> CurrentHead {
        CurrentHead { head: loaded.epoch.head.clone(), state_version: loaded.version }
    }

    #[test]
    fn an_epoch_is_current_only_in_the_generation_in_which_it_was_seen() {
        let recent = Recent::default();
        let (first, second) = (loaded("c", 1), loaded("c", 2));
        let is = |found: Option<Arc<Loaded>>, loaded: &Arc<Loaded>| {
            found.is_some_and(|found| Arc::ptr_eq(&found, loaded))
        };
        recent.put(&first, Some(7));
        assert!(is(recent.current("c", Some(7)), &first));
        assert!(recent.current("c", Some(8)).is_none(), "another process wrote");
        assert!(recent.current("c", None).is_none(), "the store has no generation");
        assert!(recent.current("d", Some(7)).is_none());
        assert!(is(recent.get(&head(&first), Some(8)), &first), "the store says that it is current");
        assert!(is(recent.current("c", Some(8)), &first) && recent.current("c", Some(7)).is_none());
        assert!(recent.get(&head(&second), Some(9)).is_none(), "the store says that another one is");
        let other_state = CurrentHead { state_version: 9, ..head(&first) };
        assert!(recent.get(&other_state, Some(9)).is_none(), "the same epoch, and another state");
        assert!(recent.current("c", Some(9)).is_none());
        recent.put(&second, None);
        assert!(recent.current("c", Some(8)).is_none() && recent.current("c", Some(NEVER - 1)).is_none());
        assert!(is(recent.get(&head(&second), None), &second));
        let mut begun_again = head(&second);
        begun_again.head.opened_at = 1;
        assert!(recent.get(&begun_again, Some(9)).is_none(), "the same number, and another epoch");
    }

    #[test]
    fn the_memory_of_turns_stays_with_the_conversation() {
        let recent = Recent::default();
        recent.put(&loaded("c", 1), Some(1));
        let memory = recent.memory("c");
        memory.facts.lock().expect("no panic").insert("git:status".into(), "dirty".into());
        recent.put(&loaded("c", 2), Some(2));
        assert!(Arc::ptr_eq(&memory, &recent.memory("c")));
        recent.put(&loaded("c", 1), Some(3));
        assert!(recent.memory("c").facts.lock().expect("no panic").is_empty(), "it was begun again");
        assert!(recent.memory("d").facts.lock().expect("no panic").is_empty());
    }

    #[test]
    fn the_least_recently_used_half_is_dropped_over_the_limit() {
        let bytes = loaded("c0", 1).bytes;
        let recent = Recent::with_bytes_max(4 * bytes);
        for index in 0..4 {
            recent.put(&loaded(&format!("c{index}"), 1), Some(1));
        }
        assert!(recent.current("c0", Some(1)).is_some());
        recent.put(&loaded("c4", 1), Some(1));
        let cached: Vec<String> =
            (0..5).map(|index| format!("c{index}")).filter(|id| recent.contains(id)).collect();
        assert_eq!(cached, ["c0", "c3", "c4"]);
        assert_eq!(recent.cached.read().expect("no panic").bytes, 3 * bytes);
        recent.put(&loaded("c4", 2), Some(1));
        assert_eq!(
            recent.cached.read().expect("no panic").bytes,
            3 * bytes,
            "an epoch takes the place of the old one"
        );
    }
}
