//! Epochs that were used lately. A frozen epoch cannot go stale; only which one is current can. That is asked of
//! the store, or known from the store's generation: what was current in one is current for as long as it lasts.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use super::Kept;
use crate::record::EpochHead;

/// About how many bytes of prompts and answers are held. With the texts of `texts.rs`, the pages that connections hold,
/// and what lies idle between all of them, a server takes 64 MB more when this is full.
const BYTES_MAX: usize = 40 << 20;

/// Of no generation: which epoch is current must be asked.
const NEVER: u64 = u64::MAX;

pub(super) struct Recent {
    held: RwLock<Held>,
    clock: AtomicU64,
    bytes_max: usize,
}

#[derive(Default)]
struct Held {
    epochs: HashMap<String, Entry>,
    /// Answers by the digest of their prompt: conversations that have one prompt have one answer.
    answers: HashMap<String, Arc<[u8]>>,
    bytes: usize,
}

struct Entry {
    kept: Arc<Kept>,
    bytes: usize,
    used: AtomicU64,
    /// The generation of the store in which this epoch was seen to be the current one.
    current_in: AtomicU64,
}

impl Default for Recent {
    fn default() -> Self {
        Self::with_room(BYTES_MAX)
    }
}

impl Recent {
    pub(super) fn with_room(bytes_max: usize) -> Self {
        Self { held: RwLock::default(), clock: AtomicU64::new(0), bytes_max }
    }

    /// The current epoch of a conversation, if it was seen to be that in this very generation of the store.
    pub(super) fn current(&self, conversation: &str, generation: Option<u64>) -> Option<Arc<Kept>> {
        let generation = generation.filter(|generation| *generation != NEVER)?;
        let held = self.held.read().unwrap_or_else(PoisonError::into_inner);
        let entry = held.epochs.get(conversation)?;
        (entry.current_in.load(Ordering::Acquire) == generation).then(|| self.used(entry))
    }

    /// Tells whether an epoch of a conversation is held, be it current or not.
    pub(super) fn holds(&self, conversation: &str) -> bool {
        self.held.read().unwrap_or_else(PoisonError::into_inner).epochs.contains_key(conversation)
    }

    /// The epoch, if it is this one: a conversation that was removed and begun again has the same numbers. The
    /// store was asked for `wanted` after it said its generation.
    pub(super) fn get(&self, wanted: &EpochHead, generation: Option<u64>) -> Option<Arc<Kept>> {
        let held = self.held.read().unwrap_or_else(PoisonError::into_inner);
        let entry = held.epochs.get(&wanted.conversation).filter(|entry| entry.kept.head == *wanted)?;
        entry.current_in.store(generation.unwrap_or(NEVER), Ordering::Release);
        Some(self.used(entry))
    }

    fn used(&self, entry: &Entry) -> Arc<Kept> {
        entry.used.store(self.clock.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
        Arc::clone(&entry.kept)
    }

    /// Holds an epoch. `generation` is one in which it was current, if that is known: the store said it before the
    /// epoch was read.
    pub(super) fn put(&self, kept: &Arc<Kept>, generation: Option<u64>) {
        let used = AtomicU64::new(self.clock.fetch_add(1, Ordering::Relaxed));
        let current_in = AtomicU64::new(generation.unwrap_or(NEVER));
        let entry = Entry { kept: Arc::clone(kept), bytes: kept.bytes(false), used, current_in };
        let mut held = self.held.write().unwrap_or_else(PoisonError::into_inner);
        held.bytes += entry.bytes;
        if let Some(old) = held.epochs.insert(kept.head.conversation.clone(), entry) {
            held.bytes -= old.bytes;
            held.forget_answer(old);
        }
        held.keep_within(self.bytes_max);
    }

    /// An answer as it is to be held, and whether another epoch has the same.
    pub(super) fn shared(&self, digest: &str, answer: Vec<u8>) -> (Arc<[u8]>, bool) {
        let mut held = self.held.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = held.answers.get(digest).filter(|known| ***known == *answer) {
            return (Arc::clone(known), true);
        }
        let answer: Arc<[u8]> = answer.into();
        held.answers.insert(digest.to_owned(), Arc::clone(&answer));
        (answer, false)
    }

    /// Counts an epoch anew that has got an answer, be it its own or one that is counted already.
    pub(super) fn has_grown(&self, kept: &Arc<Kept>, is_shared: bool) {
        let mut held = self.held.write().unwrap_or_else(PoisonError::into_inner);
        let bytes = kept.bytes(is_shared);
        let entry = held.epochs.get_mut(&kept.head.conversation);
        let Some(entry) = entry.filter(|entry| Arc::ptr_eq(&entry.kept, kept)) else { return };
        let before = std::mem::replace(&mut entry.bytes, bytes);
        held.bytes = held.bytes - before + bytes;
        held.keep_within(self.bytes_max);
    }
}

impl Held {
    /// Lets the half go that was not used for longest, until there is room. The last one stays, however large.
    fn keep_within(&mut self, bytes_max: usize) {
        while self.bytes > bytes_max && self.epochs.len() > 1 {
            let mut times: Vec<u64> =
                self.epochs.values().map(|entry| entry.used.load(Ordering::Relaxed)).collect();
            times.sort_unstable();
            let Some(&middle) = times.get(times.len() / 2) else { return };
            self.epochs.retain(|_, entry| entry.used.load(Ordering::Relaxed) >= middle);
            self.answers.retain(|_, answer| Arc::strong_count(answer) > 1);
            self.count();
        }
    }

    /// Lets the answer of an epoch go that is not held any more, unless another one has it.
    fn forget_answer(&mut self, old: Entry) {
        let digest = old.kept.head.digest.clone();
        drop(old);
        if self.answers.get(&digest).is_some_and(|answer| Arc::strong_count(answer) == 1) {
            self.answers.remove(&digest);
        }
        // One that was just being sent was not let go.
        if self.answers.len() > self.epochs.len() {
            self.answers.retain(|_, answer| Arc::strong_count(answer) > 1);
        }
    }

    /// Counts everything anew: whoever an answer was counted with may be gone, and others may still have it.
    fn count(&mut self) {
        let mut counted = HashSet::new();
        for entry in self.epochs.values_mut() {
            let is_first = entry.kept.answer.get().is_some_and(|answer| counted.insert(answer.as_ptr()));
            entry.bytes = entry.kept.bytes(!is_first);
        }
        self.bytes = self.epochs.values().map(|entry| entry.bytes).sum();
    }
}

#[cfg(test)]
mod tests {
    use proem::stored_prompt::StoredPrompt;
    use proem::{Caller, Request};

    use super::*;
    use crate::record::Epoch;

    fn kept(conversation: &str, number: u64) -> Arc<Kept> {
        let request = r#"{"profile": "template", "system": "text", "cwd": "/"}"#;
        let build = proem::build(&Request::from_json(request).expect("it is a request"), Caller::User);
        let frozen = build.expect("it can be built").into_parts().0;
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
        Arc::new(Kept::of(Epoch { head, prompt, request: request.into() }).expect("it is whole"))
    }

    #[test]
    fn an_epoch_is_current_only_in_the_generation_in_which_it_was_seen() {
        let recent = Recent::default();
        let (first, second) = (kept("c", 1), kept("c", 2));
        let is =
            |found: Option<Arc<Kept>>, kept: &Arc<Kept>| found.is_some_and(|found| Arc::ptr_eq(&found, kept));
        recent.put(&first, Some(7));
        assert!(is(recent.current("c", Some(7)), &first));
        assert!(recent.current("c", Some(8)).is_none(), "somebody wrote");
        assert!(recent.current("c", None).is_none(), "the store cannot tell");
        assert!(recent.current("d", Some(7)).is_none());
        assert!(is(recent.get(&first.head, Some(8)), &first), "the store says that it is current");
        assert!(is(recent.current("c", Some(8)), &first) && recent.current("c", Some(7)).is_none());
        assert!(recent.get(&second.head, Some(9)).is_none(), "the store says that another one is");
        assert!(recent.current("c", Some(9)).is_none());
        recent.put(&second, None);
        assert!(recent.current("c", Some(8)).is_none() && recent.current("c", Some(NEVER - 1)).is_none());
        assert!(is(recent.get(&second.head, None), &second));
        let anew = EpochHead { opened_at: 1, ..second.head.clone() };
        assert!(recent.get(&anew, Some(9)).is_none(), "the same number, and another epoch");
    }

    #[test]
    fn there_is_room_for_so_much_and_what_was_used_stays() {
        let bytes = kept("c0", 1).bytes(false);
        let recent = Recent::with_room(4 * bytes);
        for index in 0..4 {
            recent.put(&kept(&format!("c{index}"), 1), Some(1));
        }
        assert!(recent.current("c0", Some(1)).is_some());
        recent.put(&kept("c4", 1), Some(1));
        let held: Vec<String> =
            (0..5).map(|index| format!("c{index}")).filter(|id| recent.holds(id)).collect();
        assert_eq!(held, ["c0", "c3", "c4"], "the half that was not used for longest is gone");
        assert_eq!(recent.held.read().expect("nobody panicked").bytes, 3 * bytes);
        // An answer takes room, too; what is not held any more takes none.
        let (large, gone) = (kept("c4", 1), kept("c1", 1));
        recent.put(&large, Some(1));
        for one in [&large, &gone] {
            one.answer.get_or_init(|| vec![0; 3 * bytes].into());
            recent.has_grown(one, false);
        }
        let held = recent.held.read().expect("nobody panicked");
        let held_now: Vec<&str> = held.epochs.keys().map(String::as_str).collect();
        assert_eq!((held_now, held.bytes), (vec!["c4"], 4 * bytes));
    }

    #[test]
    fn the_answer_of_an_epoch_that_is_over_is_not_held() {
        let recent = Recent::default();
        for number in 1..=3 {
            let one = kept("c", number);
            recent.put(&one, Some(1));
            let digest = one.head.digest.clone();
            let text = number.to_le_bytes().to_vec();
            one.answer.get_or_init(|| recent.shared(&format!("{digest}{number}"), text).0);
            recent.has_grown(&one, false);
        }
        let held = recent.held.read().expect("nobody panicked");
        assert_eq!(held.answers.len(), 1, "each epoch left its answer behind");
    }

    #[test]
    fn an_answer_of_several_is_held_and_counted_once() {
        let bytes = kept("c0", 1).bytes(false);
        let recent = Recent::with_room(8 * bytes);
        let answers: Vec<Arc<[u8]>> = (0..4)
            .map(|index| {
                let one = kept(&format!("c{index}"), 1);
                recent.put(&one, Some(1));
                let (answer, is_shared) = recent.shared("digest", vec![0; 2 * bytes]);
                assert_eq!(is_shared, index > 0);
                let answer = Arc::clone(one.answer.get_or_init(|| answer));
                recent.has_grown(&one, is_shared);
                answer
            })
            .collect();
        assert!(answers.iter().all(|answer| Arc::ptr_eq(answer, &answers[0])));
        assert!(!recent.shared("digest", vec![1; 2 * bytes]).1, "the same prompt in another answer");
        drop(answers);
        // The one that it was counted with goes, and it is counted with another.
        for index in 4..9 {
            recent.put(&kept(&format!("c{index}"), 1), Some(1));
        }
        let mut held = recent.held.write().expect("nobody panicked");
        held.count();
        let is_left = held.epochs.values().any(|entry| entry.kept.answer.get().is_some());
        let expected = held.epochs.len() * bytes + if is_left { 2 * bytes } else { 0 };
        assert_eq!(held.bytes, expected);
        assert!(held.answers.is_empty(), "nobody has that one");
    }
}
