//! Instruction files as other agents read them: where they look, what they take, how they treat the text, what it may
//! import, and which files apply only to some work. All of it is data, for any profile.

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

/// Which files are taken, and what becomes of their text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RulesRecipe {
    /// Where files are looked for, in the order of the prompt.
    pub places: Vec<RulePlace>,
    /// What makes a directory the root of the project.
    #[serde(default)]
    pub root: RootSign,
    /// Where the way to the root ends when there is none.
    #[serde(default)]
    pub without_root: WithoutRoot,
    /// What is removed from the text of each file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remove: Vec<RuleStrip>,
    /// White space removed from both ends of each file.
    #[serde(default)]
    pub trim: RuleTrim,
    /// Which files give nothing.
    #[serde(default)]
    pub drop: RuleDrop,
    /// Whether bytes that are no UTF-8 become U+FFFD; otherwise such a file is left out.
    #[serde(default, skip_serializing_if = "is_false")]
    pub lossy: bool,
    /// Most bytes of all files of places with `budget`; the file that is over is cut at that byte.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_max: Option<usize>,
    /// Files that are larger are left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_bytes_max: Option<usize>,
    /// When two files are one.
    #[serde(default)]
    pub twins: RuleIdentity,
    /// Whether a link that leads out of the project, or of a place of the user's, is not followed.
    #[serde(default, skip_serializing_if = "is_false")]
    pub no_links_out: bool,
    /// Whether the project's files stand in the order of their paths.
    #[serde(default, skip_serializing_if = "is_false")]
    pub sorted: bool,
    /// What a file may bring in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imports: Option<ImportsRecipe>,
}

/// Directories, and the names that are looked for in each.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RulePlace {
    /// One directory of the user's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dir: Option<String>,
    /// Directories of the project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub walk: Option<RuleWalk>,
    /// The files, in the order of the prompt.
    pub files: Vec<RuleFile>,
    /// How many of them are taken.
    #[serde(default)]
    pub take: RuleTake,
    /// White space removed from both ends, where it is another than the recipe's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trim: Option<RuleTrim>,
    /// Whether its files share the budget.
    #[serde(default, skip_serializing_if = "is_false")]
    pub budget: bool,
    /// Where its files may import from, where that is another place than the recipe's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inside: Option<ImportInside>,
}

/// A file of a directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RuleFile {
    /// The name, or a pattern such as `rules/**/*.md`.
    pub name: String,
    /// The word that formats see as `kind`.
    #[serde(default)]
    pub kind: String,
    /// It is not taken when one of these has text anywhere on the way.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unless: Vec<String>,
    /// What its front matter decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applies: Option<AppliesRecipe>,
    /// Whether its imports are followed.
    #[serde(default = "yes")]
    pub imports: bool,
}

/// Which keys of the front matter say when a file applies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AppliesRecipe {
    /// The key that makes it apply always when it is `true`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub always: Option<String>,
    /// The key with patterns of the files that it applies to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patterns: Option<String>,
    /// The key that makes it one to ask for when it has text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// What it is when none of them says anything.
    #[serde(default)]
    pub otherwise: RuleDefault,
    /// Whether a file without front matter is ignored.
    #[serde(default, skip_serializing_if = "is_false")]
    pub required: bool,
}

/// What a file is whose front matter says nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleDefault {
    /// It applies always.
    #[default]
    Always,
    /// It applies when somebody names it.
    Manual,
}

/// The directories of a project.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleWalk {
    /// From the project's root down to the working directory.
    RootToCwd,
    /// From the working directory up to the project's root.
    CwdToRoot,
    /// From the file system's root down to the working directory.
    TopToCwd,
    /// The same without the file system's root itself.
    BelowTopToCwd,
    /// The project's root.
    Root,
    /// The working directory.
    Cwd,
    /// The project's root, then the working directory.
    RootAndCwd,
    /// The directories between them, from the working directory's parent upwards.
    Between,
}

/// What makes a directory the root of the project.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RootSign {
    /// Anything called `.git`.
    #[default]
    Entry,
    /// A repository that git takes for one.
    Repository,
}

/// Where the way to the root ends when there is none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WithoutRoot {
    /// The working directory is the root.
    #[default]
    Cwd,
    /// The file system's root is.
    Top,
}

/// How many of its files a directory gives.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleTake {
    /// Every one.
    #[default]
    All,
    /// The first that is a file, whatever it holds.
    First,
    /// The first that has text.
    FirstText,
    /// The first name that any of the directories has, from all of them.
    FirstName,
}

/// What is removed from the text of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleStrip {
    /// A byte order mark at the start.
    ByteOrderMark,
    /// Front matter at the start.
    FrontMatter,
    /// Comments of HTML that are blocks of their own.
    Comments,
}

/// White space that is removed from both ends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleTrim {
    /// None.
    #[default]
    None,
    /// What Unicode calls white space.
    Unicode,
    /// What JavaScript calls so, a byte order mark included.
    Javascript,
}

/// Which files give nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleDrop {
    /// None: an empty one is shown.
    #[default]
    None,
    /// Those without a byte.
    Empty,
    /// Those of white space alone.
    Blank,
}

/// When two files are one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleIdentity {
    /// When they have the same path.
    #[default]
    Path,
    /// When they are the same on disk.
    File,
    /// When they hold the same bytes.
    Content,
}

/// What a file may bring in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "each is a key of the profile")]
pub struct ImportsRecipe {
    /// A regular expression; its first group is the path, and the character before that belongs to the reference.
    pub reference: String,
    /// Where the imported text goes.
    pub put: ImportPut,
    /// How many files deep.
    pub depth_max: usize,
    /// What keeps a reference from being one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub code: Vec<ImportCode>,
    /// What must hold the imported file.
    #[serde(default)]
    pub inside: ImportInside,
    /// Whether an absolute path may be named.
    #[serde(default, skip_serializing_if = "is_false")]
    pub absolute: bool,
    /// Whether a path from `~` on may be named.
    #[serde(default, skip_serializing_if = "is_false")]
    pub home: bool,
    /// Whether paths start at the link that led to a file, not at the file itself.
    #[serde(default, skip_serializing_if = "is_false")]
    pub from_link: bool,
    /// Whether a backslash before a space belongs to the path.
    #[serde(default, skip_serializing_if = "is_false")]
    pub escapes: bool,
    /// Whether what stands behind `#` is cut off the path.
    #[serde(default, skip_serializing_if = "is_false")]
    pub fragment: bool,
    /// Which files count as known.
    #[serde(default)]
    pub once: ImportOnce,
    /// Whether ignored files are not imported.
    #[serde(default, skip_serializing_if = "is_false")]
    pub not_ignored: bool,
    /// Most references of one file that are looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub references_max: Option<usize>,
    /// Files that are larger have no imports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text_bytes_max: Option<usize>,
    /// Whether white space goes from the end of imported text.
    #[serde(default, skip_serializing_if = "is_false")]
    pub trim_end: bool,
    /// Text before what is imported; `{path}` is the path as written, `{real}` the real one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub before: String,
    /// Text behind it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub after: String,
    /// What stands for a file that is not there; without it the reference stays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<String>,
    /// What stands for a directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// What stands for a file that may not be imported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outside: Option<String>,
    /// What stands for a file that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known: Option<String>,
    /// Endings of files that are not imported.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_endings: Vec<String>,
}

/// Where imported text goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ImportPut {
    /// In place of the reference.
    Instead,
    /// Behind the reference.
    Behind,
    /// Behind the file, as one of its own.
    AsFile,
}

/// What keeps a reference from being one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ImportCode {
    /// Anything between equal runs of backticks, across lines.
    Backticks,
    /// Between equal runs of backticks in one paragraph.
    Spans,
    /// Between lines that begin with three backticks or tildes.
    Fences,
    /// Lines that are indented by four spaces behind a blank one.
    Indented,
    /// Comments of HTML.
    Comments,
}

/// What must hold an imported file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ImportInside {
    /// The project's root, for files of the project; else the directory of the place.
    #[default]
    Root,
    /// The working directory.
    Cwd,
    /// Anything.
    Anywhere,
}

/// Which files count as known, so that they are not imported again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ImportOnce {
    /// Those on the way from the file to this one, the file itself left out.
    #[default]
    Chain,
    /// Those that the file brought in, and itself.
    File,
    /// All of the prompt.
    Prompt,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands out references")]
const fn is_false(flag: &bool) -> bool {
    !*flag
}

const fn yes() -> bool {
    true
}

/// The agent that a profile stands in for, and how well that is known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentRecipe {
    /// What it is called.
    pub title: String,
    /// The version whose rules these are.
    pub version: String,
    /// The day on which they were looked at.
    pub as_of: String,
    /// How they are known.
    pub known_by: KnownBy,
}

/// How the rules of an agent are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KnownBy {
    /// The agent was run, and its requests were read.
    Run,
    /// Its code was read.
    Code,
    /// Its documentation was read.
    Documentation,
}

impl KnownBy {
    /// The word used in tables.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Code => "code",
            Self::Documentation => "documentation",
        }
    }
}
