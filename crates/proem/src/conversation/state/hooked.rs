//! The system prompt that hooks made for one prompt of the user.
//!
//! A prompt of the user takes several calls: the model uses tools, and goes on. All of them get the same system prompt, so
//! it is kept until the user's next prompt.

use proem_core::cache_loss;
use proem_core::frozen::Frozen;
use serde::{Deserialize, Serialize};

/// A changed system prompt, as its difference from the frozen one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HookedPrompt {
    /// The digest of the frozen prompt.
    digest: String,
    /// The number of bytes at the beginning that both have.
    kept: usize,
    /// The text after them.
    rest: String,
}

impl HookedPrompt {
    /// Describes a system prompt that hooks made of a frozen one.
    #[must_use]
    pub fn new(frozen: &Frozen, system_prompt: &str) -> Self {
        let mut kept = cache_loss::between(frozen.prefix(), system_prompt).first_byte;
        while !system_prompt.is_char_boundary(kept) {
            kept -= 1;
        }
        let rest = system_prompt.get(kept..).unwrap_or_default().to_owned();
        Self { digest: frozen.digest().hex(), kept, rest }
    }

    /// Returns the system prompt; `None` if another frozen one is in force now.
    #[must_use]
    pub fn text(&self, frozen: &Frozen) -> Option<String> {
        let is_same = self.digest == frozen.digest().hex();
        let kept = frozen.prefix().get(..self.kept).filter(|_| is_same)?;
        Some(format!("{kept}{}", self.rest))
    }
}
