//! Tells random values from words and placeholders.

use alloc::vec::Vec;

/// Tells whether most of a value is words: runs of small letters, as in identifiers.
pub(super) fn is_wordy(value: &str) -> bool {
    let mut in_words = 0;
    let mut run = 0;
    let mut end = |run: usize| in_words += if run >= 4 { run } else { 0 };
    for byte in value.bytes() {
        if byte.is_ascii_lowercase() {
            run += 1;
        } else {
            end(run);
            run = usize::from(byte.is_ascii_uppercase());
        }
    }
    end(run);
    in_words * 2 >= value.len()
}

/// Tells whether the text after a known prefix looks like a token; a digit is not required.
pub(super) fn is_token(value: &str) -> bool {
    let has = |test: fn(&u8) -> bool| value.bytes().any(|byte| test(&byte));
    let is_mixed = has(u8::is_ascii_digit) || (has(u8::is_ascii_lowercase) && has(u8::is_ascii_uppercase));
    is_mixed && different(value) >= 8 && !is_placeholder(value) && !is_wordy(value)
}

fn different(value: &str) -> usize {
    let mut kinds: Vec<u8> = value.bytes().collect();
    kinds.sort_unstable();
    kinds.dedup();
    kinds.len()
}

/// Tells whether a value is neither a placeholder nor words: letters and digits, many different ones.
pub(super) fn is_random(value: &str) -> bool {
    let has = |test: fn(&u8) -> bool| value.bytes().any(|byte| test(&byte));
    has(u8::is_ascii_digit) && has(u8::is_ascii_alphabetic) && is_token(value)
}

pub(super) fn is_placeholder(value: &str) -> bool {
    const WORDS: [&str; 9] =
        ["example", "your", "xxxx", "placeholder", "changeme", "redacted", "dummy", "1234567890", "abcdef"];
    let lower = value.to_lowercase();
    let is_variable =
        value.starts_with(['$', '{', '<', '%', '*']) || value.contains("...") || value.contains('…');
    is_variable || WORDS.iter().any(|word| lower.contains(word))
}

/// Tells whether a value has at least 3.5 bits per character, or 3 for hexadecimal numbers.
pub(super) fn has_entropy(value: &str) -> bool {
    let is_hex = value.bytes().all(|byte| byte.is_ascii_hexdigit());
    // In hundredths of bits, because the core has no logarithm.
    let least = if is_hex { 300 } else { 350 };
    entropy(value) >= least
}

/// Returns the entropy in hundredths of bits per character.
pub(super) fn entropy(value: &str) -> usize {
    let mut counts = [0_usize; 256];
    value.bytes().for_each(|byte| counts[usize::from(byte)] += 1);
    let total = value.len().max(1);
    let bits: usize =
        counts.iter().filter(|count| **count > 0).map(|count| count * log2(total, *count)).sum();
    bits / total
}

/// Returns the base-2 logarithm of `total / part`, in hundredths.
fn log2(total: usize, part: usize) -> usize {
    // Fixed point with 24 fractional bits, halved until it is below two.
    let mut rest = ((total as u128) << 24) / part as u128;
    let mut whole = 0;
    while rest >= 2 << 24 {
        rest >>= 1;
        whole += 1;
    }
    let mut fraction = 0;
    for bit in (0..8).rev() {
        rest = (rest * rest) >> 24;
        if rest >= 2 << 24 {
            rest >>= 1;
            fraction += 1 << bit;
        }
    }
    whole * 100 + fraction * 100 / 256
}
