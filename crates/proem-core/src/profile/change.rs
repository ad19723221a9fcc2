//! The treatment of sources that change while a conversation lasts.

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

/// The treatment of a section's sources when they change after the prompt was frozen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnChange {
    /// The change waits for the next epoch.
    #[default]
    Hold,
    /// The next turn announces the change in an appended message.
    Notify,
    /// The next turn opens a new epoch.
    Thaw,
}

impl OnChange {
    /// Tells whether the change waits for the next epoch.
    #[must_use]
    pub const fn is_hold(&self) -> bool {
        matches!(self, Self::Hold)
    }
}

/// The form of the messages that announce changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NoticesRecipe {
    /// A change of a document is announced by its changed lines if these have less than this share of the document's
    /// bytes, in percent.
    pub edit_percent: u8,
    /// Most tokens of one notice, by estimate; what is longer is named by its path.
    pub tokens_max: usize,
}

impl Default for NoticesRecipe {
    fn default() -> Self {
        Self { edit_percent: 25, tokens_max: crate::limit::NOTICE_TOKENS_MAX }
    }
}

/// The sections that a conversation takes from the one that spawned it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SpawnRecipe {
    /// The ids of sections that are built from the files as the parent read them.
    pub inherit: Vec<String>,
}
