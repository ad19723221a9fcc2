//! The settings of a profile for a carrier as a whole.

use alloc::string::String;

use serde::{Deserialize, Serialize};

/// The assembly of a carrier's text, and its size limits.
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
    /// The size above which a note is written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
    /// The size at which the text is cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<CarrierCut>,
}

/// The definition of white space at the ends of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Trim {
    /// The characters that JavaScript's `trim` removes: U+FEFF is removed, U+0085 stays.
    Javascript,
}

/// A size above which a note is written.
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

/// The size at which a carrier is cut.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CarrierCut {
    /// Most bytes, marker included.
    pub bytes_max: usize,
    /// The marker at the end of a text that is cut.
    pub marker: String,
}
