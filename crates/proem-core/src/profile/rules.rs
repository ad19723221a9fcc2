//! Instruction files as other agents read them: the search, the selection, the treatment of the text, its imports,
//! and files that apply only to some work. All of it is data that any profile can use.

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

/// The selection of files and the treatment of their text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "each is a key of the profile")]
pub struct RulesRecipe {
    /// The places to search, in the order of the prompt.
    pub places: Vec<RulePlace>,
    /// The sign that marks the root of the project.
    #[serde(default)]
    pub root: RootSign,
    /// The end of the walk upwards if the project has no root.
    #[serde(default)]
    pub without_root: WithoutRoot,
    /// The parts that are removed from the text of each file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remove: Vec<RuleStrip>,
    /// White space removed from both ends of each file.
    #[serde(default)]
    pub trim: RuleTrim,
    /// The files that are dropped.
    #[serde(default)]
    pub drop: RuleDrop,
    /// Replaces invalid UTF-8 with U+FFFD; otherwise such a file is left out.
    #[serde(default, skip_serializing_if = "is_false")]
    pub lossy: bool,
    /// Reads a file that is not UTF-8 as Latin-1: each byte is a character.
    #[serde(default, skip_serializing_if = "is_false")]
    pub latin1: bool,
    /// Composes characters: text becomes Unicode's normalization form C.
    #[serde(default, skip_serializing_if = "is_false")]
    pub composed: bool,
    /// Compares names without regard to the case of letters.
    #[serde(default, skip_serializing_if = "is_false")]
    pub ignore_case: bool,
    /// Names of folders that [`RuleWalk::RootAndBelow`] passes over.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skip_folders: Vec<String>,
    /// The ignore files whose patterns leave files of the project out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ignored_by: Option<RuleIgnore>,
    /// Most bytes of all files of places with `budget`; the file that exceeds it is cut at that byte.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_max: Option<usize>,
    /// Leaves larger files out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_bytes_max: Option<usize>,
    /// The test for two files being the same.
    #[serde(default)]
    pub twins: RuleIdentity,
    /// Ignores links that lead out of the project or out of a place of the user.
    #[serde(default, skip_serializing_if = "is_false")]
    pub no_links_out: bool,
    /// Sorts the project's files by path.
    #[serde(default, skip_serializing_if = "is_false")]
    pub sorted: bool,
    /// The rules for imports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imports: Option<ImportsRecipe>,
}

/// Directories, and the names that are looked for in each.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RulePlace {
    /// A directory of the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dir: Option<String>,
    /// Directories of the project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub walk: Option<RuleWalk>,
    /// The files, in the order of the prompt.
    pub files: Vec<RuleFile>,
    /// The number of files that are used.
    #[serde(default)]
    pub take: RuleTake,
    /// White space removed from both ends, if it differs from the recipe's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trim: Option<RuleTrim>,
    /// Counts its files towards the budget.
    #[serde(default, skip_serializing_if = "is_false")]
    pub budget: bool,
    /// Leaves out a file that is not UTF-8, whatever the recipe says.
    #[serde(default, skip_serializing_if = "is_false")]
    pub strict: bool,
    /// The directory that imports must stay in, if it differs from the recipe's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inside: Option<ImportInside>,
}

/// A file of a directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RuleFile {
    /// The name, or a pattern such as `rules/**/*.md`.
    pub name: String,
    /// The word that formats receive as `kind`.
    #[serde(default)]
    pub kind: String,
    /// Skips the file if one of these files has text anywhere along the walk.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unless: Vec<String>,
    /// The keys of the front matter that decide when the file applies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applies: Option<AppliesRecipe>,
    /// Follows its imports.
    #[serde(default = "yes")]
    pub imports: bool,
    /// The test for being the same as a file before it, if it differs from the recipe's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub twins: Option<RuleIdentity>,
    /// The directory that a link must not lead out of. Such a file is shown under its real path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub links: Option<ImportInside>,
}

/// The keys of the front matter that decide when a file applies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AppliesRecipe {
    /// The key that makes the file always apply if it is `true`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub always: Option<String>,
    /// The key with patterns of the files that it applies to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patterns: Option<String>,
    /// The key that is asked if the one for patterns is not there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub or_patterns: Option<String>,
    /// The patterns that mean always; by default those for everything: `*`, `**` and `**/*`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub everything: Option<Vec<String>>,
    /// Takes the imports of a file that does not apply always, without the file itself.
    #[serde(default, skip_serializing_if = "is_false")]
    pub imports: bool,
    /// The key whose text describes a file that the agent reads on request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The result if none of the keys is set.
    #[serde(default)]
    pub otherwise: RuleDefault,
    /// Ignores a file without front matter.
    #[serde(default, skip_serializing_if = "is_false")]
    pub required: bool,
}

/// The result for a file whose front matter sets none of the keys.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleDefault {
    /// It applies always.
    #[default]
    Always,
    /// It applies when a user names it.
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
    /// Like [`TopToCwd`](Self::TopToCwd), without the file system's root itself.
    BelowTopToCwd,
    /// The project's root.
    Root,
    /// The working directory.
    Cwd,
    /// The project's root, then the working directory.
    RootAndCwd,
    /// The directories between them, from the working directory's parent upwards.
    Between,
    /// The project's root and all directories below it, by path; without a root the working directory alone.
    RootAndBelow,
}

/// The sign that marks the root of a project.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RootSign {
    /// Anything called `.git`.
    #[default]
    Entry,
    /// A repository that git accepts.
    Repository,
    /// The same, or a file called `.git`, whatever it holds.
    RepositoryOrFile,
}

/// The end of the walk upwards if the project has no root.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WithoutRoot {
    /// The working directory.
    #[default]
    Cwd,
    /// The file system's root.
    Top,
}

/// The number of files that a directory provides.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleTake {
    /// All of them.
    #[default]
    All,
    /// The first that is a file, regardless of its content.
    First,
    /// The first that has text.
    FirstText,
    /// The first name that any of the directories has, from all directories.
    FirstName,
}

/// A part that is removed from the text of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleStrip {
    /// A byte order mark at the start.
    ByteOrderMark,
    /// Front matter at the start.
    FrontMatter,
    /// HTML comments that are blocks of their own.
    Comments,
    /// Carriage returns before line breaks.
    Returns,
    /// The same in a text that has an HTML comment.
    ReturnsBesideComments,
    /// Blank lines that follow another one.
    BlankLines,
    /// Hidden characters: soft hyphens, zero width spaces and non-joiners, marks of direction, invisible operators, and
    /// tags.
    HiddenCharacters,
    /// Tag characters of Unicode.
    Tags,
}

/// White space that is removed from both ends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleTrim {
    /// None.
    #[default]
    None,
    /// White space as defined by Unicode.
    Unicode,
    /// White space as defined by JavaScript, including a byte order mark.
    Javascript,
}

/// The files that are dropped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleDrop {
    /// None: empty files are shown.
    #[default]
    None,
    /// Files of zero bytes.
    Empty,
    /// Files that contain only white space.
    Blank,
}

/// The name of ignore files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleIgnore {
    /// `.cursorignore`.
    Cursorignore,
}

/// The test for two files being the same.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleIdentity {
    /// Equal paths.
    #[default]
    Path,
    /// The same file on disk.
    File,
    /// Equal content.
    Content,
}

/// The rules for imports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "each is a key of the profile")]
pub struct ImportsRecipe {
    /// A regular expression. Its first group that takes part is the path; the character before it belongs to the
    /// reference.
    pub reference: String,
    /// The position of the imported text.
    pub put: ImportPut,
    /// The maximum depth of nested imports.
    pub depth_max: usize,
    /// The parts of a text in which references do not count.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub code: Vec<ImportCode>,
    /// The directory that must contain the imported file.
    #[serde(default)]
    pub inside: ImportInside,
    /// Allows absolute paths.
    #[serde(default, skip_serializing_if = "is_false")]
    pub absolute: bool,
    /// Allows paths that start with `~`.
    #[serde(default, skip_serializing_if = "is_false")]
    pub home: bool,
    /// Resolves paths from the link that led to a file, not from the file itself.
    #[serde(default, skip_serializing_if = "is_false")]
    pub from_link: bool,
    /// Treats a backslash before a space as part of the path.
    #[serde(default, skip_serializing_if = "is_false")]
    pub escapes: bool,
    /// Removes `#` and the text after it from the path.
    #[serde(default, skip_serializing_if = "is_false")]
    pub fragment: bool,
    /// The files that are not imported again.
    #[serde(default)]
    pub once: ImportOnce,
    /// Does not import ignored files.
    #[serde(default, skip_serializing_if = "is_false")]
    pub not_ignored: bool,
    /// Most references per file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub references_max: Option<usize>,
    /// Ignores the imports of larger files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text_bytes_max: Option<usize>,
    /// Removes white space from the end of imported text.
    #[serde(default, skip_serializing_if = "is_false")]
    pub trim_end: bool,
    /// Text before the imported text; `{path}` is the path as written, `{real}` the real one, `{real_xml}` the same with
    /// the escapes of XML.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub before: String,
    /// Text after the imported text.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub after: String,
    /// Replacement for a missing file; without it the reference stays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<String>,
    /// Replacement for a directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// Replacement for a file that may not be imported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outside: Option<String>,
    /// Replacement for a file that was imported already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known: Option<String>,
    /// Endings of files that are imported, without regard to case; a name without a dot has none, and is imported. An
    /// empty list allows all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub endings: Vec<String>,
    /// Endings of files that are not imported.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_endings: Vec<String>,
}

/// The position of imported text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ImportPut {
    /// In place of the reference.
    Instead,
    /// After the reference.
    Behind,
    /// After the file, as a file of its own.
    AsFile,
}

/// A part of a text in which references do not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ImportCode {
    /// Anything between equal runs of backticks, across lines.
    Backticks,
    /// Between equal runs of backticks in one paragraph.
    Spans,
    /// Between lines that begin with three backticks or tildes.
    Fences,
    /// Lines indented by four spaces after a blank line.
    Indented,
    /// HTML comments.
    Comments,
}

/// The directory that must contain an imported file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ImportInside {
    /// The project's root, for files of the project; otherwise the directory of the place.
    #[default]
    Root,
    /// The working directory.
    Cwd,
    /// Any directory.
    Anywhere,
}

/// The files that are not imported again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ImportOnce {
    /// Files on the path from the file to this one, without the file itself.
    #[default]
    Chain,
    /// The file and all files that it imported.
    File,
    /// All files of the prompt.
    Prompt,
    /// Files on the path from the file to this one, compared as the references are written.
    Written,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands out references")]
const fn is_false(flag: &bool) -> bool {
    !*flag
}

const fn yes() -> bool {
    true
}

/// The agent that a profile imitates, and the evidence for its rules.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentRecipe {
    /// The agent's name.
    pub title: String,
    /// The version with these rules.
    pub version: String,
    /// The date of the observation.
    pub as_of: String,
    /// The kind of evidence.
    pub known_by: KnownBy,
    /// The part of the way to the model that was seen.
    #[serde(default, skip_serializing_if = "is_prompt")]
    pub seen: Seen,
    /// The name of the program on the search path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// The package whose `package.json` has the installed version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub package: Option<String>,
}

/// The part of the way from files to the model that was seen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Seen {
    /// The request to the model.
    #[default]
    Prompt,
    /// The message of the agent's client to the vendor's server, which makes the prompt.
    Client,
}

impl Seen {
    /// The word used in tables.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Prompt => "prompt",
            Self::Client => "client",
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands out references")]
const fn is_prompt(seen: &Seen) -> bool {
    matches!(seen, Seen::Prompt)
}

/// The kind of evidence for an agent's rules.
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
