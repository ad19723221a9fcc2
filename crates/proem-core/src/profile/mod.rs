//! Profiles: the recipe of a prompt, as data.
//!
//! A profile file is read into a [`ProfileFile`], where every key is optional, so that a file that
//! `extends` another says only what differs. A chain of files becomes one [`Profile`].

mod carrier;
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
pub use collection::{
    Collection, CutRecipe, DocumentsRecipe, PerDirectory, SkillDirectory, SkillDirectoryRecipe, SkillsRecipe,
    Unreadable, Walk,
};
pub use error::ProfileError;
pub use file::{ProfileFile, parse};
pub use merge::{Layer, resolve};
pub use rules::{AgentRecipe, KnownBy, RulesRecipe};
pub use slots::SlotsRecipe;
pub use tools::{GuidelineRecipe, ToolOrder, ToolsRecipe};
pub use treatment::{Hygiene, Secrets};

/// A recipe with everything decided.
#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    /// The name by which a request asks for it.
    pub name: String,
    /// What it is for, in one line.
    pub description: String,
    /// The agent that it stands in for.
    pub agent: Option<AgentRecipe>,
    /// The reasons for which a frozen prompt is built anew.
    pub rebuild: Vec<Reason>,
    /// How the summarising call of a compaction is made.
    pub compaction: Compaction,
    /// What bracket templates do in doubtful cases.
    pub bracket: Policies,
    /// What Jinja templates see, and how their white space is treated.
    pub jinja: JinjaRecipe,
    /// Directory names and paths that others refer to as `{name}`.
    pub places: BTreeMap<String, String>,
    /// Sentences that templates insert as `texts.NAME`.
    pub texts: BTreeMap<String, String>,
    /// What is said about tools.
    pub tools: ToolsRecipe,
    /// Most bytes of observed facts, by key; what is over is cut.
    pub fact_bytes_max: BTreeMap<String, usize>,
    /// Which of the files for `append` are taken.
    pub append: AppendFiles,
    /// What happens to hidden characters in files.
    pub hygiene: Hygiene,
    /// What happens to secrets in files.
    pub secrets: Secrets,
    /// What templates of the syntax `slots` may name.
    pub slots: SlotsRecipe,
    /// How the texts of carriers are put together.
    pub carriers: BTreeMap<Carrier, CarrierRecipe>,
    /// The sections, in the order of the prompt.
    pub sections: Vec<SectionRecipe>,
    /// Which file decided each key, by the key's path, for example `section.base.template`.
    pub origins: BTreeMap<String, String>,
}

impl Profile {
    /// How stable the words of a key are: those that are compiled in stay the same until the next release.
    ///
    /// A key that no file says has its default, which is compiled in, too.
    #[must_use]
    pub fn stability_of(&self, key: &str) -> Stability {
        let list = key.split('[').next().unwrap_or(key);
        match self.origins.get(key).or_else(|| self.origins.get(list)) {
            Some(origin) if !origin.starts_with(BUILT_IN) => Stability::User,
            _ => Stability::Release,
        }
    }
}

/// The word that the origin of a built-in profile begins with; others are paths.
const BUILT_IN: &str = "built-in ";

/// The recipe of one section.
#[derive(Debug, Clone, PartialEq)]
pub struct SectionRecipe {
    /// The name, unique in the profile. What the request gives as `system` replaces `base`.
    pub id: String,
    /// Where the content comes from.
    pub content: Content,
    /// Files whose text takes the place of the content, unless the request gives it.
    pub files: Option<FilesRecipe>,
    /// The tool without which the section is left out.
    pub when_tool: Option<String>,
    /// Whether a request without the project leaves it out.
    pub when_project: bool,
    /// The channel that it rides on.
    pub carrier: Carrier,
    /// How stable its own words are; inserted values can only lower it.
    pub stability: Option<Stability>,
    /// How often its values may change without a note.
    pub accepts: Option<Stability>,
    /// The wording of collected content: a key of the catalog, or a reference such as
    /// `$builtin/layers/context`.
    pub format: Option<String>,
    /// Text before it, when it is not empty.
    pub lead: String,
    /// Text after it, when it is not empty.
    pub trail: String,
    /// Characters removed from the end of its content.
    pub trim_end: String,
    /// White space removed from both ends of its content.
    pub trim: Option<Trim>,
    /// Whether it begins on a line of its own.
    pub fresh_line: bool,
    /// Whether lead and trail stay also when its content comes out empty.
    pub keep_empty: bool,
    /// On which side of the boundary it stands.
    pub part: Part,
}

/// On which side of the boundary a section stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Part {
    /// Before it: cached.
    #[default]
    Prefix,
    /// It is the boundary.
    Boundary,
    /// Behind it: made anew each turn.
    Suffix,
}

/// What a profile says about Jinja templates.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JinjaRecipe {
    /// Whether the line break after a block tag goes.
    pub trim_blocks: bool,
    /// Whether white space before a block tag goes.
    pub lstrip_blocks: bool,
    /// Other names of the libraries' prefixes.
    pub aliases: BTreeMap<String, String>,
    /// Plain names of facts.
    pub variables: BTreeMap<String, String>,
    /// Values of facts that nobody gives.
    pub defaults: BTreeMap<String, String>,
}

/// Where a section's content comes from.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// A template.
    Template(TemplateRecipe),
    /// Text that the request gives.
    Given(GivenField),
    /// Something collected from the request or the workspace, put into words by a format.
    Collected(Collection),
}

/// A template of a profile: a reference or the text itself, never both.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TemplateRecipe {
    /// A reference such as `$builtin/template/base`.
    Asset(String, Syntax),
    /// The text.
    Text(String, Syntax),
}

impl TemplateRecipe {
    /// The language it is written in.
    #[must_use]
    pub const fn syntax(&self) -> Syntax {
        match self {
            Self::Asset(_, syntax) | Self::Text(_, syntax) => *syntax,
        }
    }
}

/// Files that stand for a section's content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FilesRecipe {
    /// The environment variable that names the file. Where it is set, that file alone counts: if it cannot be
    /// read, the section is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub env: Option<String>,
    /// The paths, the most specific first: relative to the working directory, or from `~` on.
    #[serde(default)]
    pub paths: Vec<String>,
    /// The language they are written in; by default their names say it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub syntax: Option<Syntax>,
}

/// Which of the files for `append` are taken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AppendFiles {
    /// The most specific one.
    #[default]
    First,
    /// All of them, the least specific first.
    Both,
}

/// The language of a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Syntax {
    /// `[type:name]`, `[if …]`.
    Bracket,
    /// `{{ name }}`, `{% if … %}`.
    Jinja,
    /// `{{name}}`, exactly so spelled, for the names of the profile's `[slots]`.
    Slots,
    /// No tags: the text stays as it is.
    Plain,
}

/// A field of the request that becomes a section of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GivenField {
    /// `append`: texts, joined with a blank line.
    Append,
    /// `recalled`: remembered text for this turn.
    Recalled,
}

impl GivenField {
    /// The field's name in the request.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Append => "append",
            Self::Recalled => "recalled",
        }
    }
}

/// A reason for which a frozen prompt is built anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Reason {
    /// The conversation was summarised.
    Compaction,
    /// The active tools changed.
    Tools,
    /// The working directory changed.
    Cwd,
    /// Somebody asked for it.
    Reload,
    /// An extension brought new resources.
    Resources,
    /// The conversation changed its profile.
    Profile,
}

/// How the summarising call of a compaction is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Compaction {
    /// Rebuild first, then add the instructions to the rebuilt prompt.
    Append,
    /// Reuse the old prompt, with the instructions as the last user message.
    Aligned,
}
