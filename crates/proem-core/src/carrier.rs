//! The channels of a request that carry sections.

use core::fmt;

use serde::{Deserialize, Serialize};

/// A channel to the model. The engine never mixes channels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Carrier {
    /// The system prompt.
    System,
    /// A developer message.
    Developer,
    /// A text block before the first user message, once.
    FirstUser,
    /// A block with the newest user message, each turn, after everything cached.
    Turn,
}

impl Carrier {
    /// All carriers, in the order in which a provider reads them.
    pub const ALL: [Self; 4] = [Self::System, Self::Developer, Self::FirstUser, Self::Turn];

    /// The word used in profiles, JSON and messages.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Developer => "developer",
            Self::FirstUser => "first_user",
            Self::Turn => "turn",
        }
    }

    /// Tells whether the provider's cache is expected to serve this channel's text in the next turn.
    #[must_use]
    pub const fn is_cached(self) -> bool {
        !matches!(self, Self::Turn)
    }
}

impl fmt::Display for Carrier {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.word())
    }
}
