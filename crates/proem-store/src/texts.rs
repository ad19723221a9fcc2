//! Texts that were read lately, by their digest. Many conversations have one prompt, and what was checked against its
//! digest once need be neither read nor checked for each of them: under one digest there is only one text.
//!
//! A text is held from the second time on that it is read: where every conversation has a prompt of its own, that is kept
//! with its epoch, and a copy here would only push out others.
//!
//! They are held for as long as nobody writes to the store. That they are right would not change by it, but whether
//! the store still has them would, and damage should be found while there is a backup.

use std::collections::HashMap;
use std::hash::BuildHasher;
use std::sync::{Arc, Mutex, PoisonError};

/// About how many bytes of texts are held.
const BYTES_MAX: usize = 8 << 20;

/// Longest text that is held: one must not push out all others.
const TEXT_BYTES_MAX: usize = BYTES_MAX / 16;

/// How many texts are remembered as read, about: a number for each.
const READ_MAX: usize = 4096;

#[derive(Debug, Default)]
pub(crate) struct Texts {
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    texts: HashMap<Box<str>, (Arc<str>, u64)>,
    bytes: usize,
    /// Hashes of digests of texts that were read, each at its place.
    read: Vec<u64>,
    clock: u64,
    /// The generation of the store in which they were read.
    generation: u64,
}

impl Texts {
    /// The text of a digest, if it was read in this generation of the store.
    pub(crate) fn get(&self, generation: u64, digest: &str) -> Option<Arc<str>> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if held.generation != generation {
            *held = Held { generation, ..Held::default() };
        }
        held.clock += 1;
        let now = held.clock;
        let (text, used) = held.texts.get_mut(digest)?;
        *used = now;
        Some(Arc::clone(text))
    }

    /// Holds a text that was found to be that of its digest, after the store said this generation.
    pub(crate) fn put(&self, generation: u64, digest: &str, text: &str) {
        if text.len() > TEXT_BYTES_MAX {
            return;
        }
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if held.generation != generation || !held.was_read(digest) {
            return;
        }
        let text: Arc<str> = text.into();
        held.clock += 1;
        let entry = (Arc::clone(&text), held.clock);
        if held.texts.insert(digest.into(), entry).is_none() {
            held.bytes += text.len();
        }
        held.keep_within(BYTES_MAX);
    }
}

impl Held {
    /// Tells whether a text was read before, and remembers that it was now.
    fn was_read(&mut self, digest: &str) -> bool {
        let hash = self.texts.hasher().hash_one(digest);
        self.read.resize(READ_MAX, 0);
        let place = usize::try_from(hash % (READ_MAX as u64)).unwrap_or_default();
        self.read.get_mut(place).is_some_and(|known| std::mem::replace(known, hash) == hash)
    }

    /// Lets the half go that was not used for longest, if there is too much.
    fn keep_within(&mut self, bytes_max: usize) {
        if self.bytes <= bytes_max {
            return;
        }
        let mut times: Vec<u64> = self.texts.values().map(|(_, used)| *used).collect();
        times.sort_unstable();
        let Some(&middle) = times.get(times.len() / 2) else { return };
        self.texts.retain(|_, (_, used)| *used >= middle);
        self.bytes = self.texts.values().map(|(text, _)| text.len()).sum();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads a text twice.
    fn put(texts: &Texts, generation: u64, digest: &str, text: &str) {
        texts.put(generation, digest, text);
        texts.put(generation, digest, text);
    }

    #[test]
    fn a_text_is_held_from_the_second_time_on() {
        let texts = Texts::default();
        texts.put(0, "a", "text");
        assert_eq!(texts.get(0, "a"), None);
        texts.put(0, "a", "text");
        assert_eq!(texts.get(0, "a").as_deref(), Some("text"));
    }

    #[test]
    fn what_was_not_used_for_longest_goes_first() {
        let texts = Texts::default();
        let text = "x".repeat(TEXT_BYTES_MAX);
        for index in 0..16 {
            put(&texts, 0, &index.to_string(), &text);
        }
        assert!(texts.get(0, "0").is_some(), "there is room for sixteen");
        put(&texts, 0, "one more", &text);
        assert_eq!((texts.get(0, "1"), texts.get(0, "8")), (None, None));
        assert!(texts.get(0, "0").is_some() && texts.get(0, "one more").is_some());
        assert_eq!(texts.held.lock().expect("nobody panicked").bytes, 9 * TEXT_BYTES_MAX);
        put(&texts, 0, "one more", &text);
        assert_eq!(texts.held.lock().expect("nobody panicked").bytes, 9 * TEXT_BYTES_MAX);
    }

    #[test]
    fn what_is_too_long_is_not_held() {
        let texts = Texts::default();
        put(&texts, 0, "long", &"x".repeat(TEXT_BYTES_MAX + 1));
        assert_eq!(texts.get(0, "long"), None);
    }

    #[test]
    fn another_generation_has_other_texts() {
        let texts = Texts::default();
        put(&texts, 0, "a", "text");
        assert_eq!(texts.get(1, "a"), None);
        assert_eq!(texts.get(0, "a"), None, "they do not come back");
        put(&texts, 1, "b", "late");
        assert_eq!(texts.get(0, "b"), None, "whoever was slow says nothing about what is now");
    }
}
