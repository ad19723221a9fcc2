//! The rules of a profile for tools: the default tools, their descriptions, and the guidelines that follow from them.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

/// The rules about tools.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolsRecipe {
    /// The active tools when the request names none.
    pub default: Vec<String>,
    /// Descriptions of well-known tools, by name.
    pub descriptions: BTreeMap<String, String>,
    /// The guidelines, in order.
    pub guidelines: Vec<GuidelineRecipe>,
    /// The order in which the prompt lists tools and their own guidelines.
    pub order: ToolOrder,
}

/// The order in which the prompt lists tools.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolOrder {
    /// As the request gives them.
    #[default]
    Given,
    /// By name, so that the order of tools in the request does not change the bytes.
    Name,
}

/// A guideline with its conditions, or a placeholder for the tools' own guidelines.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct GuidelineRecipe {
    /// The sentence; without one, the tools' own guidelines are inserted here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Tools that must all be active.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub all: Vec<String>,
    /// Tools of which at least one must be active.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub any: Vec<String>,
    /// Tools of which none may be active.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub none: Vec<String>,
    /// Marks the placeholder for the tools' own guidelines.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub of_tools: bool,
}

impl GuidelineRecipe {
    /// Tells whether the guideline applies to these tools.
    pub fn holds(&self, is_active: impl Fn(&str) -> bool) -> bool {
        let is_active = |name: &String| is_active(name);
        self.all.iter().all(is_active)
            && (self.any.is_empty() || self.any.iter().any(is_active))
            && !self.none.iter().any(is_active)
    }
}
