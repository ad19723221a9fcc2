//! What a profile says about a carrier as a whole.

use alloc::string::String;

use serde::{Deserialize, Serialize};

/// How the text of a carrier is put together, and how much of it there may be.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CarrierRecipe {
    /// Characters removed from the end of its text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trim_end: Option<String>,
    /// Text between two sections that are not empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub separator: Option<String>,
    /// White space removed from both ends of its text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trim: Option<Trim>,
    /// How large it may grow without a note.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
    /// How large it may grow at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<CarrierCut>,
}

/// What counts as white space at the ends of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Trim {
    /// What JavaScript's `trim` removes: U+FEFF goes, U+0085 stays.
    Javascript,
}

/// How large something may grow without a note.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// Most bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<usize>,
    /// Most tokens, by estimate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<usize>,
}

/// How large a carrier may grow at all.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CarrierCut {
    /// Most bytes, marker included.
    pub bytes_max: usize,
    /// What stands at the end of a text that is cut.
    pub marker: String,
}
