//! What a section collects, and the rules by which files are found.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::Trim;
use super::rules::RulesRecipe;

/// What can be collected. Simple kinds are written as a word, the others as a table with `kind`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Collection {
    /// What the agent may read and write: the variable `scope_summary`.
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

/// Which instruction files are taken, in the order of the prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DocumentsRecipe {
    /// Directories of the user's own, looked at first.
    #[serde(default)]
    pub global: Vec<String>,
    /// Which directories of the project are looked at.
    #[serde(default)]
    pub walk: Walk,
    /// The names to look for in each directory.
    pub names: Vec<String>,
    /// How many of them a directory gives.
    #[serde(default)]
    pub per_directory: PerDirectory,
    /// Whether a file of white space alone is passed over, and the directory's next name tried.
    #[serde(default)]
    pub skip_empty: bool,
    /// Directories that are looked at last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub last: Vec<String>,
    /// Whether a name that one directory gives is not taken from a later one; a file without a byte gives none.
    #[serde(default, skip_serializing_if = "is_false")]
    pub once_per_name: bool,
    /// Parts of names, in any case, that are never read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<String>,
    /// Whether one file under two names is taken twice.
    #[serde(default, skip_serializing_if = "is_false")]
    pub keep_twins: bool,
    /// White space removed from both ends of each file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trim: Option<Trim>,
    /// What a file that is there and cannot be read is.
    #[serde(default, skip_serializing_if = "Unreadable::is_note")]
    pub unreadable: Unreadable,
    /// The project's files are left out when the first user message begins with this: they are in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unless_first_user_starts: Option<String>,
    /// How much of the files is taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<CutRecipe>,
}

/// What a file that is there and cannot be read is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unreadable {
    /// Left out, with a note.
    #[default]
    Note,
    /// The end of the build.
    Error,
}

impl Unreadable {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands out references")]
    const fn is_note(&self) -> bool {
        matches!(self, Self::Note)
    }
}

/// How much of instruction files is taken, and what stands where one is cut.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CutRecipe {
    /// Most bytes of one file.
    pub file_bytes_max: usize,
    /// Most bytes of all files; markers count, but for the last.
    pub bytes_max: usize,
    /// What stands behind a file that is cut.
    pub marker: String,
}

/// Where skills lie that are listed with hashes of their bodies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SkillDirectoryRecipe {
    /// The directories, below each of `roots`.
    pub directories: Vec<String>,
    /// Where these are looked for, in order.
    pub roots: Vec<String>,
    /// How deep folders are looked into; the directory itself is 0.
    pub depth_max: usize,
}

/// The way through a project's directories.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Walk {
    /// From the file system's root down to the working directory.
    #[default]
    RootToCwd,
    /// From the root of the git repository down to the working directory; outside of one, from the
    /// file system's root.
    RepositoryToCwd,
    /// The working directory alone.
    Cwd,
}

/// How many files one directory gives.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PerDirectory {
    /// The first of the names that can be read.
    #[default]
    First,
    /// Every name that can be read.
    All,
}

/// Where skills are looked for: of two with one name the first wins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SkillsRecipe {
    /// The directories, in order.
    pub directories: Vec<SkillDirectory>,
}

/// A directory of skills.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SkillDirectory {
    /// The path: relative to the working directory, or from `~` on.
    pub path: String,
    /// Whether each directory above the working directory has one, too, up to the repository's root.
    #[serde(default, skip_serializing_if = "is_false")]
    pub upwards: bool,
    /// Whether `*.md` directly in it are skills.
    #[serde(default, skip_serializing_if = "is_false")]
    pub files: bool,
    /// Whether such a file without a name of its own is called by its file's name, not its folder's.
    #[serde(default, skip_serializing_if = "is_false")]
    pub named_by_file: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands out references")]
const fn is_false(flag: &bool) -> bool {
    !*flag
}

/// The kinds that have rules of their own, as they are written.
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
