//! The content that a section collects, and the rules for finding files.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::Trim;
use super::rules::RulesRecipe;

/// A kind of collected content. Simple kinds are written as a word, the others as a table with `kind`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Collection {
    /// The paths that the agent may read and write: the variable `scope_summary`.
    Scope,
    /// The `AGENTS.md` of the working directory: the variable `agents_md`.
    AgentsMd,
    /// Resident knowledge: the variable `entries`.
    Knowledge,
    /// Resident workflows: the variable `entries`.
    Workflows,
    /// Instruction files: the variable `documents`.
    Documents(DocumentsRecipe),
    /// Skills: the variable `skills`.
    Skills(SkillsRecipe),
    /// A directory of skills with hashes of their bodies: the variable `skills`.
    SkillDirectory(SkillDirectoryRecipe),
    /// Instruction files as another agent reads them: the variables `pieces` and `conditional`.
    Rules(alloc::boxed::Box<RulesRecipe>),
}

/// The rules for instruction files, in the order of the prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DocumentsRecipe {
    /// Directories of the user, searched first.
    #[serde(default)]
    pub global: Vec<String>,
    /// The directories of the project that are searched.
    #[serde(default)]
    pub walk: Walk,
    /// The names to look for in each directory.
    pub names: Vec<String>,
    /// The number of files per directory.
    #[serde(default)]
    pub per_directory: PerDirectory,
    /// Skips a file that contains only white space and tries the directory's next name.
    #[serde(default)]
    pub skip_empty: bool,
    /// Directories that are searched last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub last: Vec<String>,
    /// Takes each name from the first directory that has it; an empty file does not count.
    #[serde(default, skip_serializing_if = "is_false")]
    pub once_per_name: bool,
    /// Parts of names that are never read, compared without case. A profile that extends another and gives other rules
    /// without this key keeps the parts of the other one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deny: Option<Vec<String>>,
    /// Takes a file that has two names twice.
    #[serde(default, skip_serializing_if = "is_false")]
    pub keep_twins: bool,
    /// White space removed from both ends of each file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trim: Option<Trim>,
    /// The treatment of a file that exists and cannot be read.
    #[serde(default, skip_serializing_if = "Unreadable::is_note")]
    pub unreadable: Unreadable,
    /// Leaves the project's files out if the first user message starts with this text, because it contains them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unless_first_user_starts: Option<String>,
    /// The size limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<CutRecipe>,
}

/// The treatment of a file that exists and cannot be read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unreadable {
    /// Skips it, with a note.
    #[default]
    Note,
    /// Fails the build.
    Error,
}

impl Unreadable {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands out references")]
    const fn is_note(&self) -> bool {
        matches!(self, Self::Note)
    }
}

/// The size limits of instruction files, and the marker for a cut.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CutRecipe {
    /// Most bytes of one file.
    pub file_bytes_max: usize,
    /// Most bytes of all files, including all markers except the last.
    pub bytes_max: usize,
    /// The marker after a file that is cut.
    pub marker: String,
}

/// The directories of skills that are listed with hashes of their bodies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SkillDirectoryRecipe {
    /// The directories, below each of `roots`.
    pub directories: Vec<String>,
    /// The roots, in order.
    pub roots: Vec<String>,
    /// The depth of the search; the directory itself is 0.
    pub depth_max: usize,
}

/// The directories of a project that are searched.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Walk {
    /// From the file system's root down to the working directory.
    #[default]
    RootToCwd,
    /// From the root of the git repository down to the working directory; outside a repository, from the file
    /// system's root.
    RepositoryToCwd,
    /// Only the working directory.
    Cwd,
}

/// The number of files that one directory provides.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PerDirectory {
    /// The first of the names that can be read.
    #[default]
    First,
    /// Every name that can be read.
    All,
}

/// The directories of skills; the first of two skills with the same name wins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SkillsRecipe {
    /// The directories, in order.
    pub directories: Vec<SkillDirectory>,
    /// The order of the list.
    #[serde(default, skip_serializing_if = "is_found")]
    pub order: SkillOrder,
    /// Lists all skills of a name.
    #[serde(default, skip_serializing_if = "is_false")]
    pub same_names: bool,
    /// The keys of the front matter that hide a skill if they have a value other than `false`. By default
    /// `disable-model-invocation`, which hides it if it is `true`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hidden_by: Option<Vec<String>>,
    /// The name of a skill.
    #[serde(default, skip_serializing_if = "is_either")]
    pub name: SkillName,
    /// The text of a skill without a description.
    #[serde(default, skip_serializing_if = "is_required")]
    pub without_description: WithoutDescription,
    /// Most characters of a description, including the mark of a cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description_characters_max: Option<usize>,
    /// The mark of a cut. Without one, a skill with a longer description is not listed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description_cut: Option<String>,
    /// Kinds of folders that are searched here, and usually are not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<SkillFolders>,
    /// Searches below skills too, and takes a `SKILL.md` of the directory itself.
    #[serde(default, skip_serializing_if = "is_false")]
    pub below_skills: bool,
}

impl SkillsRecipe {
    /// Returns a recipe without directories, by the rules of the Agent Skills specification.
    #[must_use]
    pub const fn plain() -> Self {
        Self {
            directories: Vec::new(),
            order: SkillOrder::Found,
            same_names: false,
            hidden_by: None,
            name: SkillName::Either,
            without_description: WithoutDescription::Required,
            description_characters_max: None,
            description_cut: None,
            also: Vec::new(),
            below_skills: false,
        }
    }
}

/// The order of a list of skills.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SkillOrder {
    /// As they are found.
    #[default]
    Found,
    /// By name, byte by byte.
    Name,
    /// The skills of the project, then the skills of the user, each by name.
    LayerAndName,
}

/// Kinds of folders that are usually not searched for skills.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SkillFolders {
    /// Folders and files that an ignore file names.
    Ignored,
    /// Folders whose name begins with a dot, except `.git`.
    Hidden,
    /// Folders called `node_modules`.
    NodeModules,
}

/// The origin of a skill's name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SkillName {
    /// The front matter, or else the folder.
    #[default]
    Either,
    /// The folder.
    Folder,
    /// The front matter; a skill without a name is not listed.
    Required,
}

/// The text of a skill without a description.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WithoutDescription {
    /// It is not listed.
    #[default]
    Required,
    /// The first line of its body, without the marks of a heading.
    Body,
    /// The same; front matter may be missing too.
    BodyAlone,
    /// It is listed with no text.
    Empty,
}

/// A directory of skills.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SkillDirectory {
    /// The path: relative to the working directory, or starting with `~`.
    pub path: String,
    /// Searches each directory above the working directory too, up to the repository's root.
    #[serde(default, skip_serializing_if = "is_false")]
    pub upwards: bool,
    /// The depth of the search: 1 takes the folders directly in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub depth_max: Option<usize>,
    /// Treats `*.md` files directly in it as skills.
    #[serde(default, skip_serializing_if = "is_false")]
    pub files: bool,
    /// Names such a file without a name in its front matter after the file, not after its folder.
    #[serde(default, skip_serializing_if = "is_false")]
    pub named_by_file: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands out references")]
const fn is_false(flag: &bool) -> bool {
    !*flag
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands out references")]
const fn is_found(order: &SkillOrder) -> bool {
    matches!(order, SkillOrder::Found)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands out references")]
const fn is_either(name: &SkillName) -> bool {
    matches!(name, SkillName::Either)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands out references")]
const fn is_required(description: &WithoutDescription) -> bool {
    matches!(description, WithoutDescription::Required)
}

/// The kinds that have rules of their own, as written in a profile.
#[derive(Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Table {
    Documents(DocumentsRecipe),
    Skills(SkillsRecipe),
    SkillDirectory(SkillDirectoryRecipe),
    Rules(alloc::boxed::Box<RulesRecipe>),
}

const WORDS: [(&str, Collection); 4] = [
    ("scope", Collection::Scope),
    ("agents_md", Collection::AgentsMd),
    ("knowledge", Collection::Knowledge),
    ("workflows", Collection::Workflows),
];

impl Serialize for Collection {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Scope => serializer.serialize_str("scope"),
            Self::AgentsMd => serializer.serialize_str("agents_md"),
            Self::Knowledge => serializer.serialize_str("knowledge"),
            Self::Workflows => serializer.serialize_str("workflows"),
            Self::Documents(recipe) => Table::Documents(recipe.clone()).serialize(serializer),
            Self::Skills(recipe) => Table::Skills(recipe.clone()).serialize(serializer),
            Self::SkillDirectory(recipe) => Table::SkillDirectory(recipe.clone()).serialize(serializer),
            Self::Rules(recipe) => Table::Rules(recipe.clone()).serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Collection {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(WordOrTable)
    }
}

struct WordOrTable;

impl<'de> Visitor<'de> for WordOrTable {
    type Value = Collection;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a word such as \"scope\", or a table with `kind`")
    }

    fn visit_str<E: de::Error>(self, word: &str) -> Result<Collection, E> {
        let found = WORDS.into_iter().find(|(known, _)| *known == word);
        found.map(|(_, collection)| collection).ok_or_else(|| match word {
            "documents" | "skills" | "skill_directory" | "rules" => {
                E::custom(format_args!("`{word}` needs rules: write `collect = {{ kind = \"{word}\", … }}`"))
            }
            _ => E::unknown_variant(
                word,
                &[
                    "scope",
                    "agents_md",
                    "knowledge",
                    "workflows",
                    "documents",
                    "skills",
                    "skill_directory",
                    "rules",
                ],
            ),
        })
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Collection, A::Error> {
        Ok(match Table::deserialize(MapAccessDeserializer::new(map))? {
            Table::Documents(recipe) => Collection::Documents(recipe),
            Table::Skills(recipe) => Collection::Skills(recipe),
            Table::SkillDirectory(recipe) => Collection::SkillDirectory(recipe),
            Table::Rules(recipe) => Collection::Rules(recipe),
        })
    }
}
