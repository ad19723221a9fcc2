//! The keys of a profile file, each optional.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use serde::Deserialize;

use super::{
    AgentRecipe, AppendFiles, CarrierRecipe, Collection, Compaction, FilesRecipe, GivenField,
    GuidelineRecipe, Hygiene, NoticesRecipe, OnChange, ProfileError, Reason, Secrets, SlotsRecipe,
    SpawnRecipe, Syntax, ToolOrder, Trim,
};
use crate::bracket::{AbsentVariable, StandaloneTags, UnknownType};
use crate::carrier::Carrier;
use crate::stability::Stability;

/// A profile file as written.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProfileFile {
    pub(super) name: Option<String>,
    pub(super) description: Option<String>,
    pub(super) agent: Option<AgentRecipe>,
    pub(super) extends: Option<String>,
    pub(super) rebuild: Option<Vec<Reason>>,
    pub(super) compaction: Option<Compaction>,
    pub(super) stored_template: Option<bool>,
    pub(super) fixed: Option<Vec<String>>,
    pub(super) append: Option<AppendFiles>,
    pub(super) hygiene: Option<Hygiene>,
    pub(super) secrets: Option<Secrets>,
    pub(super) fact_bytes_max: Option<BTreeMap<String, usize>>,
    pub(super) slots: Option<SlotsRecipe>,
    pub(super) notices: Option<NoticesRecipe>,
    pub(super) spawn: Option<SpawnRecipe>,
    #[serde(default)]
    pub(super) places: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) texts: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) tools: ToolsKeys,
    #[serde(default)]
    pub(super) bracket: BracketKeys,
    #[serde(default)]
    pub(super) jinja: JinjaKeys,
    #[serde(default)]
    pub(super) carrier: BTreeMap<Carrier, CarrierRecipe>,
    #[serde(default)]
    pub(super) section: Vec<SectionKeys>,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct JinjaKeys {
    pub(super) trim_blocks: Option<bool>,
    pub(super) lstrip_blocks: Option<bool>,
    pub(super) aliases: Option<BTreeMap<String, String>>,
    pub(super) variables: Option<BTreeMap<String, String>>,
    pub(super) defaults: Option<BTreeMap<String, String>>,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ToolsKeys {
    pub(super) default: Option<Vec<String>>,
    #[serde(default)]
    pub(super) descriptions: BTreeMap<String, String>,
    pub(super) guidelines: Option<Vec<GuidelineRecipe>>,
    pub(super) order: Option<ToolOrder>,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BracketKeys {
    pub(super) unknown_type: Option<UnknownType>,
    pub(super) absent: Option<AbsentVariable>,
    pub(super) standalone_tags: Option<StandaloneTags>,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SectionKeys {
    pub(super) id: String,
    pub(super) template: Option<TemplateKeys>,
    pub(super) given: Option<GivenField>,
    pub(super) collect: Option<Collection>,
    pub(super) format: Option<String>,
    pub(super) files: Option<FilesRecipe>,
    pub(super) when_tool: Option<String>,
    pub(super) when_project: Option<bool>,
    pub(super) carrier: Option<Carrier>,
    pub(super) stability: Option<Stability>,
    pub(super) accepts: Option<Stability>,
    pub(super) on_change: Option<OnChange>,
    pub(super) lead: Option<String>,
    pub(super) trail: Option<String>,
    pub(super) trim_end: Option<String>,
    pub(super) trim: Option<Trim>,
    pub(super) fresh_line: Option<bool>,
    pub(super) keep_empty: Option<bool>,
    pub(super) boundary: Option<bool>,
    pub(super) before: Option<String>,
    pub(super) after: Option<String>,
    #[serde(default)]
    pub(super) remove: bool,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TemplateKeys {
    pub(super) asset: Option<String>,
    pub(super) text: Option<String>,
    pub(super) syntax: Option<Syntax>,
}

impl ProfileFile {
    /// Returns the profile that this one extends.
    #[must_use]
    pub fn extends(&self) -> Option<&str> {
        self.extends.as_deref()
    }

    /// Returns the description, if the file has one.
    #[must_use]
    pub fn description(&self) -> Option<&str> {
        self.description.as_deref()
    }
}

/// Parses a profile file. `origin` names it in errors; `name` is the requested name.
pub fn parse(text: &str, origin: &str, name: &str) -> Result<ProfileFile, ProfileError> {
    let file: ProfileFile =
        toml::from_str(text).map_err(|error| ProfileError::from_toml(origin, text, &error))?;
    match &file.name {
        Some(own) if own != name => {
            let message = alloc::format!("`name` is `{own}`, but the file is called `{name}`");
            Err(ProfileError::new(origin, message).with_hint("rename one of them, or leave `name` out"))
        }
        _ => Ok(file),
    }
}
