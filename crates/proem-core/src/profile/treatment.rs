//! The treatment of text from files before it enters a prompt.

use serde::{Deserialize, Serialize};

/// The treatment of invisible characters and of characters that change what a reader sees. Stricter variants are
/// greater.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Hygiene {
    /// Keeps the bytes; a note lists the characters.
    #[default]
    Report,
    /// Removes invisible characters and escapes controlling ones; a note lists them.
    Neutralise,
    /// Fails the build.
    Refuse,
}

/// The treatment of text that looks like a key, a token or a password. Stricter variants are greater.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Secrets {
    /// Keeps the bytes; a note reports the secret, masked.
    #[default]
    Report,
    /// Masks the secret, always in the same way.
    Redact,
    /// Fails the build.
    Refuse,
}
