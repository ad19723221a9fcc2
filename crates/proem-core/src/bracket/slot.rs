//! Assigns slots to the keys of a template: equal keys share a slot, so each is looked up once.

use alloc::vec::Vec;

use super::scan::Key;

/// Keys by slot, with a small hash table beside them.
///
/// Hand-written because the core has no hash map, and an ordered map costs more than the rest of parsing. Sharing is
/// only an optimisation: if keys collide too often (a hostile template), a key may take a second slot, which keeps
/// insertion constant-time and the result the same.
#[derive(Debug, Clone)]
pub(super) struct Slots<'s> {
    keys: Vec<&'s str>,
    /// For each key, its distinguishing bytes and the number of its insertions.
    marks: Vec<Mark>,
    table: Vec<u32>,
}

#[derive(Debug, Clone)]
struct Mark {
    ends: Ends,
    bytes: usize,
    insertions: u32,
}

/// The first and last bytes of a key; the whole key up to 16 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Ends(u64, u64);

const EMPTY: u32 = u32::MAX;
const PROBES_MAX: usize = 16;
const CELLS_MIN: usize = 32;

impl<'s> Slots<'s> {
    pub(super) const fn new() -> Self {
        Self { keys: Vec::new(), marks: Vec::new(), table: Vec::new() }
    }

    /// Returns the slot of an inserted key.
    #[inline]
    pub(super) fn inserted(&mut self, key: Key<'s>) -> u32 {
        let slot = self.slot(key);
        self.marks[slot as usize].insertions += 1;
        slot
    }

    /// Returns the slot of `key`, creating it if it is new.
    #[expect(clippy::inline_always, reason = "most keys are known, and a call costs more than the look")]
    #[inline(always)]
    pub(super) fn slot(&mut self, key: Key<'s>) -> u32 {
        let ends = Ends::new(key);
        let cell = ends.hash(key.bytes()) & self.table.len().wrapping_sub(1);
        match self.table.get(cell) {
            Some(slot) if self.is_at(*slot, key, ends) => *slot,
            _ => self.find(key, ends),
        }
    }

    #[inline]
    fn is_at(&self, slot: u32, key: Key<'s>, ends: Ends) -> bool {
        // Longer keys are compared as a whole.
        self.marks.get(slot as usize).is_some_and(|mark| {
            mark.ends == ends
                && mark.bytes == key.bytes().len()
                && (key.bytes().len() <= 16
                    || self.keys.get(slot as usize).is_some_and(|known| known.as_bytes() == key.bytes()))
        })
    }

    #[inline(never)]
    fn find(&mut self, key: Key<'s>, ends: Ends) -> u32 {
        if self.keys.len() * 2 >= self.table.len() {
            self.grow();
        }
        let mask = self.table.len() - 1;
        let start = ends.hash(key.bytes());
        for probe in 0..PROBES_MAX {
            let cell = (start + probe) & mask;
            let slot = self.table[cell];
            if slot == EMPTY {
                let slot = self.push(key, ends);
                self.table[cell] = slot;
                return slot;
            }
            if self.is_at(slot, key, ends) {
                return slot;
            }
        }
        self.push(key, ends)
    }

    pub(super) fn keys(&self) -> &[&'s str] {
        &self.keys
    }

    /// Returns the number of insertions of each slot, in all branches.
    pub(super) fn insertions(&self) -> impl Iterator<Item = u32> {
        self.marks.iter().map(|mark| mark.insertions)
    }

    fn push(&mut self, key: Key<'s>, ends: Ends) -> u32 {
        let slot =
            u32::try_from(self.keys.len()).expect("a template has fewer keys than bytes, and at most 4 GiB");
        self.keys.push(key.text());
        self.marks.push(Mark { ends, bytes: key.bytes().len(), insertions: 0 });
        slot
    }

    fn grow(&mut self) {
        let cells = (self.table.len() * 2).max(CELLS_MIN);
        self.keys.reserve(cells / 2 - self.keys.len());
        self.marks.reserve(cells / 2 - self.marks.len());
        let mut table = Vec::new();
        table.resize(cells, EMPTY);
        let mask = cells - 1;
        for (slot, (key, mark)) in self.keys.iter().zip(&self.marks).enumerate() {
            let start = mark.ends.hash(key.as_bytes());
            let free = (0..PROBES_MAX).map(|probe| (start + probe) & mask).find(|cell| table[*cell] == EMPTY);
            if let (Some(cell), Ok(slot)) = (free, u32::try_from(slot)) {
                table[cell] = slot;
            }
        }
        self.table = table;
    }
}

impl Ends {
    #[inline]
    fn new(key: Key<'_>) -> Self {
        let bytes = key.bytes();
        if let (Some(head), Some(tail)) = (bytes.first_chunk(), bytes.last_chunk()) {
            return Self(u64::from_le_bytes(*head), u64::from_le_bytes(*tail));
        }
        if let (Some(head), Some(tail)) = (bytes.first_chunk(), bytes.last_chunk()) {
            return Self(u32::from_le_bytes(*head).into(), u32::from_le_bytes(*tail).into());
        }
        Self(short(bytes), 0)
    }

    /// Keys longer than the ends are hashed as a whole: many file paths of one template may differ only in the
    /// middle.
    #[inline]
    fn hash(self, key: &[u8]) -> usize {
        let mut all = self.0 ^ self.1.rotate_left(29) ^ key.len() as u64;
        if key.len() > 16 {
            let (words, _) = key.as_chunks();
            all = words.iter().fold(all, |all, word| {
                (all ^ u64::from_le_bytes(*word)).wrapping_mul(FACTOR).rotate_left(23)
            });
        }
        // High bits of the factor affect the low bits of the product's upper half, and low bits those of its lower
        // half.
        let (low, high) = all.carrying_mul(FACTOR, 0);
        ((low ^ high) & 0xffff_ffff) as usize
    }
}

/// An odd number with irregular bits.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// Reads up to three bytes as one number, without a loop, which would cost more than the rest of the function.
#[inline]
fn short(bytes: &[u8]) -> u64 {
    let byte = |at: usize| bytes.get(at).map_or(0, |byte| u64::from(*byte));
    byte(0) | byte(bytes.len() / 2) << 8 | byte(bytes.len().wrapping_sub(1)) << 16
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::format;

    #[test]
    fn keys_that_differ_in_the_middle_alone_have_a_slot_each() {
        let keys: Vec<std::string::String> = (10..99).map(|n| format!("file:docs/{n}/README.md")).collect();
        let mut slots = Slots::new();
        for key in keys.iter().chain(&keys) {
            slots.slot(Key::new(key));
        }
        assert_eq!(slots.keys(), keys);
    }

    #[test]
    fn equal_keys_share_a_slot_while_the_table_grows() {
        let keys: Vec<std::string::String> = (0..1000).map(|n| format!("a:{}", n % 100)).collect();
        let mut slots = Slots::new();
        let numbers: Vec<u32> = keys.iter().map(|key| slots.slot(Key::new(key))).collect();
        assert_eq!(slots.keys().len(), 100);
        assert!(keys.iter().zip(numbers).all(|(key, slot)| slots.keys()[slot as usize] == key));
    }

    #[test]
    fn keys_of_every_length_are_told_apart() {
        // Keys that differ in one byte, at any position.
        let keys: Vec<std::string::String> = (1..40)
            .flat_map(|length| (0..length).map(move |at| "x".repeat(at) + "y" + &"x".repeat(length - at - 1)))
            .collect();
        let mut slots = Slots::new();
        for _ in 0..2 {
            for key in &keys {
                let slot = slots.inserted(Key::new(key));
                assert_eq!(slots.keys()[slot as usize], key);
            }
        }
        assert_eq!(slots.insertions().sum::<u32>() as usize, 2 * keys.len());
    }
}
