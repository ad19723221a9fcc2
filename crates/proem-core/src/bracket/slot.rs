//! Numbers the keys of a template: equal keys share a slot, so each is looked up once.

use alloc::vec::Vec;

/// Keys by slot, with a small hash table beside them.
///
/// Hand-written because the core has no hash map and an ordered map costs more than the whole rest
/// of parsing. Sharing is an optimisation only: where keys collide too often (a hostile template),
/// a key may take a second slot, which keeps insertion constant-time and the result the same.
#[derive(Debug, Clone)]
pub(super) struct Slots<'s> {
    keys: Vec<&'s str>,
    table: Vec<u32>,
}

const EMPTY: u32 = u32::MAX;
const PROBES_MAX: usize = 16;

impl<'s> Slots<'s> {
    pub(super) const fn new() -> Self {
        Self { keys: Vec::new(), table: Vec::new() }
    }

    /// Returns the slot of `key`, making one if it is new.
    pub(super) fn slot(&mut self, key: &'s str) -> u32 {
        if self.keys.len() * 2 >= self.table.len() {
            self.grow();
        }
        let mask = self.table.len() - 1;
        let start = hash(key);
        for probe in 0..PROBES_MAX.min(self.table.len()) {
            let cell = (start + probe) & mask;
            let slot = self.table[cell];
            if slot == EMPTY {
                let slot = self.push(key);
                self.table[cell] = slot;
                return slot;
            }
            if self.keys[slot as usize] == key {
                return slot;
            }
        }
        self.push(key)
    }

    pub(super) fn keys(&self) -> &[&'s str] {
        &self.keys
    }

    fn push(&mut self, key: &'s str) -> u32 {
        let slot =
            u32::try_from(self.keys.len()).expect("a template has fewer keys than bytes, and at most 4 GiB");
        self.keys.push(key);
        slot
    }

    fn grow(&mut self) {
        let mut table = Vec::new();
        table.resize((self.table.len() * 2).max(32), EMPTY);
        let mask = table.len() - 1;
        for (slot, key) in self.keys.iter().enumerate() {
            let start = hash(key);
            let free = (0..PROBES_MAX).map(|probe| (start + probe) & mask).find(|cell| table[*cell] == EMPTY);
            if let (Some(cell), Ok(slot)) = (free, u32::try_from(slot)) {
                table[cell] = slot;
            }
        }
        self.table = table;
    }
}

/// FNV-1a, folded so that the low bits depend on all of it.
fn hash(key: &str) -> usize {
    let hash = key.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    #[expect(clippy::cast_possible_truncation, reason = "any bits of the hash will do")]
    let folded = (hash ^ (hash >> 32)) as usize;
    folded
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::format;

    #[test]
    fn equal_keys_share_a_slot_while_the_table_grows() {
        let keys: Vec<std::string::String> = (0..1000).map(|n| format!("a:{}", n % 100)).collect();
        let mut slots = Slots::new();
        let numbers: Vec<u32> = keys.iter().map(|key| slots.slot(key)).collect();
        assert_eq!(slots.keys().len(), 100);
        assert!(keys.iter().zip(numbers).all(|(key, slot)| slots.keys()[slot as usize] == key));
    }
}
