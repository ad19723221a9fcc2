//! A Bloom filter of digests: a set in bounded memory. It never misses a member, and rarely reports a digest that was not
//! added.

use proem_core::digest::Digest;

/// The bits for each digest. About one in four hundred digests that were not added is reported as a member.
const BITS_EACH: u64 = 16;

/// The smallest and the largest filter, in bits.
const BITS_MIN: u64 = 1 << 16;
const BITS_MAX: u64 = 1 << 30;

/// The bytes of a filter that are stored together.
pub(super) const CHUNK_BYTES: usize = 1 << 20;

/// The hexadecimal digits of a digest that choose one bit.
const DIGITS: usize = 16;

/// A set of digests.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Filter {
    bytes: Vec<u8>,
}

impl Filter {
    /// Creates an empty set for about `count` digests.
    pub(super) fn with_capacity(count: u64) -> Self {
        let bits =
            count.saturating_mul(BITS_EACH).clamp(BITS_MIN, BITS_MAX).next_power_of_two().min(BITS_MAX);
        Self { bytes: vec![0; usize::try_from(bits / 8).unwrap_or_default()] }
    }

    /// Reads a set from its stored bytes, if their length is valid.
    pub(super) fn from_bytes(bytes: Vec<u8>) -> Option<Self> {
        bytes.len().is_power_of_two().then_some(Self { bytes })
    }

    /// Returns the bytes in parts that are stored separately.
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

    /// Tells whether a digest may have been added; true for any text that is not a digest.
    pub(super) fn has(&self, digest: &str) -> bool {
        let is_set = |(place, bit): (usize, u8)| self.bytes.get(place).is_none_or(|byte| byte & bit != 0);
        Digest::from_hex(digest).is_none() || self.places(digest).into_iter().all(is_set)
    }

    /// Returns the bits of a digest. A digest needs no further hash.
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
    fn every_member_is_found_and_few_other_digests_are() {
        let mut filter = Filter::with_capacity(100_000);
        for index in 0..100_000 {
            filter.add(&digest(index));
        }
        assert!((0..100_000).all(|index| filter.has(&digest(index))));
        let others = (100_000..200_000).filter(|index| filter.has(&digest(*index))).count();
        assert!(others < 600, "{others} of 100,000");
        assert!(filter.has("no digest") && !Filter::with_capacity(1).has(&digest(0)));
    }

    #[test]
    fn a_filter_reads_back_from_its_chunks() {
        let mut filter = Filter::with_capacity(1_000_000);
        filter.add(&digest(1));
        let bytes: Vec<u8> = filter.chunks().flatten().copied().collect();
        assert_eq!(filter.chunks().count(), 2);
        assert_eq!(Filter::from_bytes(bytes), Some(filter));
        assert_eq!(Filter::from_bytes(vec![0; 3]), None);
    }
}
