//! The names that templates of the syntax `slots` may use.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

/// The slots, and the facts that fill them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SlotsRecipe {
    /// The names, in the order of the passes.
    pub order: Vec<String>,
    /// The fact for each name.
    pub facts: BTreeMap<String, String>,
    /// The text for a name whose fact is absent or an empty list.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub none: BTreeMap<String, String>,
}
