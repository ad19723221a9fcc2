//! A cache of texts by digest. Many conversations share one prompt, so its text is read and compared with its digest once
//! instead of for each of them.
//!
//! A text is cached when it is read for the second time. Where every conversation has a prompt of its own, the epoch holds
//! the text already, and a copy here would only displace others.
//!
//! Entries stay correct for ever, but a write to the store drops them all: texts that are read again show damage while there
//! is still a backup.

use std::collections::HashMap;
use std::hash::BuildHasher;
use std::sync::{Arc, Mutex, PoisonError};

/// The bytes of texts that are cached, approximately.
const BYTES_MAX: usize = 8 << 20;

/// The longest text that is cached: one text must not displace all others.
const TEXT_BYTES_MAX: usize = BYTES_MAX / 16;

/// The number of texts that are remembered as read, approximately. Each takes one number.
const READ_MAX: usize = 4096;

/// The cache.
#[derive(Debug, Default)]
pub(crate) struct TextCache {
    entries: Mutex<CacheEntries>,
}

#[derive(Debug, Default)]
struct CacheEntries {
    texts: HashMap<Box<str>, (Arc<str>, u64)>,
    bytes: usize,
    /// Hashes of the digests of texts that were read, each at the position that it chooses.
    read: Vec<u64>,
    clock: u64,
    /// The generation of the store in which the texts were read.
    generation: u64,
}

impl TextCache {
    /// Returns the text of a digest, if it was read in this generation of the store.
    pub(crate) fn get(&self, generation: u64, digest: &str) -> Option<Arc<str>> {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        if entries.generation != generation {
            *entries = CacheEntries { generation, ..CacheEntries::default() };
        }
        entries.clock += 1;
        let now = entries.clock;
        let (text, used) = entries.texts.get_mut(digest)?;
        *used = now;
        Some(Arc::clone(text))
    }

    /// Caches a text that matches its digest. `generation` is that of the store before the text was read.
    pub(crate) fn put(&self, generation: u64, digest: &str, text: &str) {
        if text.len() > TEXT_BYTES_MAX {
            return;
        }
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        if entries.generation != generation || !entries.was_read(digest) {
            return;
        }
        let text: Arc<str> = text.into();
        entries.clock += 1;
        let entry = (Arc::clone(&text), entries.clock);
        if entries.texts.insert(digest.into(), entry).is_none() {
            entries.bytes += text.len();
        }
        entries.shrink_to(BYTES_MAX);
    }
}

impl CacheEntries {
    /// Tells whether a text was read before, and remembers that it is read now.
    fn was_read(&mut self, digest: &str) -> bool {
        let hash = self.texts.hasher().hash_one(digest);
        self.read.resize(READ_MAX, 0);
        let place = usize::try_from(hash % (READ_MAX as u64)).unwrap_or_default();
        self.read.get_mut(place).is_some_and(|known| std::mem::replace(known, hash) == hash)
    }

    /// Drops the least recently used half of the texts if there are too many bytes.
    fn shrink_to(&mut self, bytes_max: usize) {
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
    fn put(texts: &TextCache, generation: u64, digest: &str, text: &str) {
        texts.put(generation, digest, text);
        texts.put(generation, digest, text);
    }

    #[test]
    fn a_text_is_cached_from_the_second_time_on() {
        let texts = TextCache::default();
        texts.put(0, "a", "text");
        assert_eq!(texts.get(0, "a"), None);
        texts.put(0, "a", "text");
        assert_eq!(texts.get(0, "a").as_deref(), Some("text"));
    }

    #[test]
    fn the_least_recently_used_text_goes_first() {
        let texts = TextCache::default();
        let text = "x".repeat(TEXT_BYTES_MAX);
        for index in 0..16 {
            put(&texts, 0, &index.to_string(), &text);
        }
        assert!(texts.get(0, "0").is_some(), "there is room for sixteen");
        put(&texts, 0, "one more", &text);
        assert_eq!((texts.get(0, "1"), texts.get(0, "8")), (None, None));
        assert!(texts.get(0, "0").is_some() && texts.get(0, "one more").is_some());
        assert_eq!(texts.entries.lock().expect("no thread panicked").bytes, 9 * TEXT_BYTES_MAX);
        put(&texts, 0, "one more", &text);
        assert_eq!(texts.entries.lock().expect("no thread panicked").bytes, 9 * TEXT_BYTES_MAX);
    }

    #[test]
    fn a_text_that_is_too_long_is_not_cached() {
        let texts = TextCache::default();
        put(&texts, 0, "long", &"x".repeat(TEXT_BYTES_MAX + 1));
        assert_eq!(texts.get(0, "long"), None);
    }

    #[test]
    fn another_generation_has_other_texts() {
        let texts = TextCache::default();
        put(&texts, 0, "a", "text");
        assert_eq!(texts.get(1, "a"), None);
        assert_eq!(texts.get(0, "a"), None, "dropped texts do not come back");
        put(&texts, 1, "b", "late");
        assert_eq!(texts.get(0, "b"), None, "a late reader caches nothing for a newer generation");
    }
}
