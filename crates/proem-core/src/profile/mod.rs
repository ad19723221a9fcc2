//! Profiles: the recipe of a prompt, as data.
//!
//! A profile file is parsed into a [`ProfileFile`] with optional keys, so that a file that `extends` another contains
//! only the differences. A chain of files becomes one [`Profile`].

mod carrier;
mod change;
mod collection;
mod error;
mod file;
mod merge;
mod places;
pub mod rules;
mod show;
mod slots;
mod tools;
mod treatment;

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::bracket::Policies;
use crate::carrier::Carrier;
use crate::stability::Stability;

pub use carrier::{Budget, CarrierCut, CarrierRecipe, Trim};
pub use change::{NoticesRecipe, OnChange, SpawnRecipe};
pub use collection::{
    Collection, CutRecipe, DocumentsRecipe, PerDirectory, SkillDirectory, SkillDirectoryRecipe, SkillFolders,
    SkillName, SkillOrder, SkillsRecipe, Unreadable, Walk, WithoutDescription,
};
pub use error::ProfileError;
pub use file::{ProfileFile, parse};
pub use merge::{Layer, resolve};
pub use rules::{AgentRecipe, KnownBy, RulesRecipe, Seen};
pub use slots::SlotsRecipe;
pub use tools::{GuidelineRecipe, ToolOrder, ToolsRecipe};
pub use treatment::{Hygiene, Secrets};

/// A recipe with every key resolved.
#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    /// The name that a request uses.
    pub name: String,
    /// The purpose, in one line.
    pub description: String,
    /// The agent that the profile imitates.
    pub agent: Option<AgentRecipe>,
    /// The reasons for rebuilding a frozen prompt.
    pub rebuild: Vec<Reason>,
    /// The form of the summarising call of a compaction.
    pub compaction: Compaction,
    /// Makes the template of the store the base of new conversations.
    pub stored_template: bool,
    /// The variables whose values are fixed when a conversation begins, by key.
    pub fixed: Vec<String>,
    /// The policies of bracket templates.
    pub bracket: Policies,
    /// The settings of Jinja templates.
    pub jinja: JinjaRecipe,
    /// Directory names and paths, referred to as `{name}`.
    pub places: BTreeMap<String, String>,
    /// Texts that templates insert as `texts.NAME`.
    pub texts: BTreeMap<String, String>,
    /// The rules about tools.
    pub tools: ToolsRecipe,
    /// Most bytes of observed facts, by key; longer values are cut.
    pub fact_bytes_max: BTreeMap<String, usize>,
    /// The files for `append` that are used.
    pub append: AppendFiles,
    /// The treatment of hidden characters in files.
    pub hygiene: Hygiene,
    /// The treatment of secrets in files.
    pub secrets: Secrets,
    /// The form of the messages that announce changes.
    pub notices: NoticesRecipe,
    /// The sections that a spawned conversation inherits.
    pub spawn: SpawnRecipe,
    /// The names available to templates of the syntax `slots`.
    pub slots: SlotsRecipe,
    /// The assembly of the carriers' texts.
    pub carriers: BTreeMap<Carrier, CarrierRecipe>,
    /// The sections, in the order of the prompt.
    pub sections: Vec<SectionRecipe>,
    /// The file that set each key, by the key's path, for example `section.base.template`.
    pub origins: BTreeMap<String, String>,
}

impl Profile {
    /// Returns the stability of a key's text: built-in text stays the same until the next release.
    ///
    /// A key that no file sets has its default, which is built in too.
    #[must_use]
    pub fn stability_of(&self, key: &str) -> Stability {
        let list = key.split('[').next().unwrap_or(key);
        match self.origins.get(key).or_else(|| self.origins.get(list)) {
            Some(origin) if !origin.starts_with(BUILT_IN) => Stability::User,
            _ => Stability::Release,
        }
    }
}

/// The first word of a built-in profile's origin; other origins are paths.
const BUILT_IN: &str = "built-in ";

/// The recipe of one section.
#[derive(Debug, Clone, PartialEq)]
pub struct SectionRecipe {
    /// The name, unique in the profile. The request's `system` replaces `base`.
    pub id: String,
    /// The source of the content.
    pub content: Content,
    /// Files whose text replaces the content, unless the request provides it.
    pub files: Option<FilesRecipe>,
    /// The tool that the section requires.
    pub when_tool: Option<String>,
    /// Leaves the section out of a request without a project.
    pub when_project: bool,
    /// The channel that carries it.
    pub carrier: Carrier,
    /// The stability of its own text; inserted values can only lower it.
    pub stability: Option<Stability>,
    /// The most frequent change of a value that needs no note.
    pub accepts: Option<Stability>,
    /// The treatment of changed sources.
    pub on_change: OnChange,
    /// The format of collected content: a key of the catalog, or a reference such as `$builtin/layers/context`.
    pub format: Option<String>,
    /// Text before the content, if that is not empty.
    pub lead: String,
    /// Text after the content, if that is not empty.
    pub trail: String,
    /// Characters removed from the end of its content.
    pub trim_end: String,
    /// White space removed from both ends of its content.
    pub trim: Option<Trim>,
    /// Starts the section on a new line.
    pub fresh_line: bool,
    /// Keeps `before` and `after` even if the content is empty.
    pub keep_empty: bool,
    /// The side of the boundary that it belongs to.
    pub part: Part,
}

/// The side of the boundary that a section belongs to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Part {
    /// Before the boundary: cached.
    #[default]
    Prefix,
    /// The boundary itself.
    Boundary,
    /// After the boundary: rebuilt each turn.
    Suffix,
}

/// The settings of a profile for Jinja templates.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JinjaRecipe {
    /// Removes the line break after a block tag.
    pub trim_blocks: bool,
    /// Removes white space before a block tag.
    pub lstrip_blocks: bool,
    /// Aliases for the prefixes of libraries.
    pub aliases: BTreeMap<String, String>,
    /// Short names of facts.
    pub variables: BTreeMap<String, String>,
    /// Default values of facts.
    pub defaults: BTreeMap<String, String>,
}

/// The source of a section's content.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// A template.
    Template(TemplateRecipe),
    /// Text of the request.
    Given(GivenField),
    /// Content collected from the request or the workspace, formatted by a template.
    Collected(Collection),
}

/// A template of a profile: either a reference or the text itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TemplateRecipe {
    /// A reference such as `$builtin/template/base`.
    Asset(String, Syntax),
    /// The text.
    Text(String, Syntax),
}

impl TemplateRecipe {
    /// The syntax of the text.
    #[must_use]
    pub const fn syntax(&self) -> Syntax {
        match self {
            Self::Asset(_, syntax) | Self::Text(_, syntax) => *syntax,
        }
    }
}

/// Files that replace a section's content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FilesRecipe {
    /// The environment variable that names the file. If it is set, only that file is used, and the section is absent
    /// if it cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub env: Option<String>,
    /// The paths, most specific first: relative to the working directory, or starting with `~`.
    #[serde(default)]
    pub paths: Vec<String>,
    /// The syntax of the files; derived from their names by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub syntax: Option<Syntax>,
    /// Replaces invalid UTF-8 with U+FFFD; otherwise such a file is left out.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub lossy: bool,
}

/// The files for `append` that are used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AppendFiles {
    /// The most specific file.
    #[default]
    First,
    /// All files, least specific first.
    Both,
}

/// The syntax of a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Syntax {
    /// `[type:name]`, `[if …]`.
    Bracket,
    /// `{{ name }}`, `{% if … %}`.
    Jinja,
    /// `{{name}}`, spelled exactly so, for the names of the profile's `[slots]`.
    Slots,
    /// No tags: the text is used unchanged.
    Plain,
}

/// A field of the request that becomes a section.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GivenField {
    /// `append`: texts, joined with a blank line.
    Append,
    /// `recalled`: remembered text for this turn.
    Recalled,
}

impl GivenField {
    /// Returns the name of the field in the request.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Append => "append",
            Self::Recalled => "recalled",
        }
    }
}

/// A reason for rebuilding a frozen prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Reason {
    /// The conversation was summarised.
    Compaction,
    /// The active tools changed.
    Tools,
    /// The working directory changed.
    Cwd,
    /// The caller requested it.
    Reload,
    /// An extension added resources.
    Resources,
    /// The conversation changed its profile.
    Profile,
}

impl Reason {
    /// Returns the word that profiles and stored epochs use.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Compaction => "compaction",
            Self::Tools => "tools",
            Self::Cwd => "cwd",
            Self::Reload => "reload",
            Self::Resources => "resources",
            Self::Profile => "profile",
        }
    }
}

/// The form of the summarising call of a compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Compaction {
    /// Rebuild first, then add the instructions to the rebuilt prompt.
    Append,
    /// Reuse the old prompt, with the instructions as the last user message.
    Aligned,
}
