//! What a change of a cached text costs.

use core::fmt;

/// How a text differs from the one that a provider has cached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheLoss {
    /// The first byte that differs; the length of the shorter one if it is the other's beginning.
    pub first_byte: usize,
    /// How many bytes of the cached text are lost to the cache.
    pub lost_bytes: usize,
}

impl CacheLoss {
    /// About how many tokens that is.
    ///
    /// No tokenizer is asked: it is 2.7 bytes a token. [`Estimate`](crate::estimate::Estimate) has bounds for a text.
    #[must_use]
    pub const fn lost_tokens(&self) -> usize {
        estimated_tokens(self.lost_bytes)
    }
}

/// The likely number of tokens in so many bytes of text: 2.7 bytes a token.
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

/// How many bytes two texts share from the beginning: whole blocks first, which are compared many bytes at a time.
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
