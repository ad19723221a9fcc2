//! A Bloom filter of digests: a set in a bounded amount of memory that never forgets and sometimes takes a stranger in.

use proem_core::digest::Digest;

/// Bits for each digest: of strangers about one in four hundred is taken for a member.
const BITS_EACH: u64 = 16;

/// Smallest and largest filter, in bits.
const BITS_MIN: u64 = 1 << 16;
const BITS_MAX: u64 = 1 << 30;

/// The part of a filter that is written at a time, in bytes.
pub(super) const CHUNK_BYTES: usize = 1 << 20;

/// Digits of a digest that choose one bit, and how many bits are chosen.
const DIGITS: usize = 16;

/// A set of digests.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Filter {
    bytes: Vec<u8>,
}

impl Filter {
    /// An empty set with room for about so many.
    pub(super) fn with_room(count: u64) -> Self {
        let bits =
            count.saturating_mul(BITS_EACH).clamp(BITS_MIN, BITS_MAX).next_power_of_two().min(BITS_MAX);
        Self { bytes: vec![0; usize::try_from(bits / 8).unwrap_or_default()] }
    }

    /// A set as it was written, if that can be one.
    pub(super) fn of_bytes(bytes: Vec<u8>) -> Option<Self> {
        bytes.len().is_power_of_two().then_some(Self { bytes })
    }

    pub(super) fn chunks(&self) -> impl Iterator<Item = &[u8]> {
        self.bytes.chunks(CHUNK_BYTES)
    }

    /// Adds a digest.
    pub(super) fn add(&mut self, digest: &str) {
        for (place, bit) in self.places(digest) {
            if let Some(byte) = self.bytes.get_mut(place) {
                *byte |= bit;
            }
        }
    }

    /// Tells whether a digest may have been added. A text that is not a digest always may.
    pub(super) fn has(&self, digest: &str) -> bool {
        let is_set = |(place, bit): (usize, u8)| self.bytes.get(place).is_none_or(|byte| byte & bit != 0);
        Digest::from_hex(digest).is_none() || self.places(digest).into_iter().all(is_set)
    }

    /// The bits of a digest: its digits are as good as any hash of it.
    fn places(&self, digest: &str) -> Vec<(usize, u8)> {
        let bits = self.bytes.len() as u64 * 8;
        let word = |index: usize| digest.get(index * DIGITS..(index + 1) * DIGITS);
        let words = (0..4).filter_map(word).filter_map(|word| u64::from_str_radix(word, 16).ok());
        words
            .map(|word| {
                let bit = word % bits;
                (usize::try_from(bit / 8).unwrap_or_default(), 1 << (bit % 8))
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(index: u32) -> String {
        Digest::new(&index.to_be_bytes()).hex()
    }

    #[test]
    fn a_member_is_never_forgotten_and_few_strangers_are_taken_for_one() {
        let mut filter = Filter::with_room(100_000);
        for index in 0..100_000 {
            filter.add(&digest(index));
        }
        assert!((0..100_000).all(|index| filter.has(&digest(index))));
        let strangers = (100_000..200_000).filter(|index| filter.has(&digest(*index))).count();
        assert!(strangers < 600, "{strangers} of 100,000");
        assert!(filter.has("no digest") && !Filter::with_room(1).has(&digest(0)));
    }

    #[test]
    fn a_filter_reads_back_from_its_chunks() {
        let mut filter = Filter::with_room(1_000_000);
        filter.add(&digest(1));
        let bytes: Vec<u8> = filter.chunks().flatten().copied().collect();
        assert_eq!(filter.chunks().count(), 2);
        assert_eq!(Filter::of_bytes(bytes), Some(filter));
        assert_eq!(Filter::of_bytes(vec![0; 3]), None);
    }
}
