//! The cost of changing a cached text.

use core::fmt;

/// The difference between a text and the version that a provider has cached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheLoss {
    /// The first byte that differs; the length of the shorter text if one is a prefix of the other.
    pub first_byte: usize,
    /// Bytes of the cached text that the cache can no longer serve.
    pub lost_bytes: usize,
}

impl CacheLoss {
    /// Estimates the lost tokens.
    ///
    /// Uses 2.7 bytes per token, not a tokenizer. [`Estimate`](crate::estimate::Estimate) gives bounds for a text.
    #[must_use]
    pub const fn lost_tokens(&self) -> usize {
        estimated_tokens(self.lost_bytes)
    }
}

/// Estimates the number of tokens in a text of `bytes` bytes: 2.7 bytes per token.
#[must_use]
pub const fn estimated_tokens(bytes: usize) -> usize {
    bytes.saturating_mul(10).div_ceil(27)
}

/// Compares a text with the cached one.
///
/// ```
/// use proem_core::cache_loss::between;
///
/// let change = between("You are calm.", "You are calm. It is noon.");
/// assert_eq!((change.first_byte, change.lost_bytes), (13, 0));
/// assert_eq!(between("It is 9:00. Be calm.", "It is 9:01. Be calm.").lost_bytes, 11);
/// ```
#[must_use]
pub fn between(cached: &str, now: &str) -> CacheLoss {
    let same = common_bytes(cached.as_bytes(), now.as_bytes());
    CacheLoss { first_byte: same, lost_bytes: cached.len() - same }
}

/// Counts the bytes that two texts share from the start. Compares whole blocks first, which the compiler vectorizes.
fn common_bytes(a: &[u8], b: &[u8]) -> usize {
    const BLOCK: usize = 64;
    let blocks = a.as_chunks::<BLOCK>().0.iter().zip(b.as_chunks::<BLOCK>().0);
    let passed = BLOCK * blocks.take_while(|(a, b)| a == b).count();
    passed + a[passed..].iter().zip(&b[passed..]).take_while(|(a, b)| a == b).count()
}

impl fmt::Display for CacheLoss {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { first_byte, lost_bytes } = self;
        write!(formatter, "from byte {first_byte} on: ")?;
        if *lost_bytes > 0 {
            write!(formatter, "{lost_bytes} bytes of it (about {} tokens) and ", self.lost_tokens())?;
        }
        formatter.write_str("the messages behind it are not read from the cache")
    }
}
