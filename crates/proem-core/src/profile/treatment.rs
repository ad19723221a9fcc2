//! What happens to text from files before it is in the prompt.

use serde::{Deserialize, Serialize};

/// What happens to characters that a reader does not see, or that change what a reader sees. The stricter is the greater.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Hygiene {
    /// Bytes stay as they are; a note says what is in them.
    #[default]
    Report,
    /// What is hidden is removed, what acts is spelt out; a note says so.
    Neutralise,
    /// There is no prompt.
    Refuse,
}

/// What happens to text that looks like a key, a token or a password. The stricter is the greater.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Secrets {
    /// Bytes stay as they are; a note says so, masked.
    #[default]
    Report,
    /// It is masked, always in the same way.
    Redact,
    /// There is no prompt.
    Refuse,
}
