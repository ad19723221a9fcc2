//! Notes: what a reader of a prompt should know. Nothing is cut, skipped or defaulted without one.

use alloc::borrow::Cow;
use alloc::string::String;
use core::fmt;
use core::ops::Range;

use serde::{Deserialize, Serialize};

use crate::source::Source;
use crate::text_safety::escape::escape_line;

/// How much a note matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Good to know; usually as intended.
    Info,
    /// Probably not what the author wanted.
    Warning,
    /// Certainly wrong, although a prompt could still be built.
    Error,
}

impl Severity {
    /// The word used in JSON and messages.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// What a note is about, as a stable word that programs may match on.
///
/// Codes are added, never renamed. `docs/notes.md` describes each; a test keeps the two equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Code {
    /// A variable that the template mentions has no value.
    Absent,
    /// A tag names a type that nobody provides.
    UnknownType,
    /// A tag names a known type but an unknown name.
    UnknownName,
    /// An `[if]` that is never closed.
    UnclosedIf,
    /// An `[else]` or `[endif]` that belongs to no `[if]`.
    StrayTag,
    /// A value that changes more often than the prefix may.
    VolatileInPrefix,
    /// A path whose very name says secret was not read.
    SecretPath,
    /// A file that is not UTF-8 text was not read.
    NotUtf8,
    /// A file outside the allowed roots was not read.
    RootNotAllowed,
    /// A relative path that leaves its root was not read.
    PathEscape,
    /// Something over a limit was not taken.
    OverLimit,
    /// Something that is no regular file was not read.
    NotRegular,
    /// An environment variable that the configuration does not allow.
    EnvNotAllowed,
    /// A git command failed or took too long.
    GitFailed,
    /// A field of the request that the profile has no use for.
    UnusedField,
    /// A key of a pack that the catalog does not have.
    UnknownKey,
    /// A setting that a workspace may not make.
    IgnoredSetting,
    /// A file takes the place of another.
    Shadowed,
    /// A file of resident knowledge that is not what it should be.
    MalformedResident,
    /// An instruction file or a skill that is there and cannot be read.
    Unreadable,
    /// A skill that is not what it should be.
    MalformedSkill,
    /// Two tools with one name.
    DuplicateTool,
    /// A link led to a file outside the project.
    LinkOutside,
    /// A file whose name is nearly one that is looked for.
    NameVariant,
    /// A hook failed, took too long or answered nonsense.
    HookFailed,
    /// A hook that was approved is not what it was.
    HookChanged,
    /// A hook changed the frozen prompt for one turn.
    PrefixChanged,
    /// A section is left out because a tool that it needs is not active.
    LeftOut,
    /// Text has a line that equals the boundary.
    BoundaryInText,
    /// A carrier is larger than the profile wants.
    OverBudget,
    /// A model that the table does not have.
    UnknownModel,
    /// Something that a provider refuses.
    NotAccepted,
    /// What belongs to one turn stands before the messages.
    SuffixBeforeHistory,
    /// The prefix is too short to be cached.
    BelowCacheMinimum,
    /// A change waits for the next epoch.
    PendingChange,
    /// Characters that a reader does not see.
    HiddenText,
    /// Characters that show text in another order than it has.
    BidiControl,
    /// Characters that control a terminal.
    ControlCharacter,
    /// A word that mixes letters which look the same.
    DisguisedText,
    /// Text that looks like a key, a token or a password.
    LooksSecret,
    /// A paragraph that the prompt says twice.
    DuplicateContent,
    /// Two instructions that do not go together.
    Contradiction,
    /// A condition that always has the same answer.
    AlwaysTrue,
    /// A tag that inserts nothing, whatever happens.
    NeverPresent,
    /// A list whose order may change by itself.
    Unordered,
    /// Line endings that depend on who checked the file out.
    LineEndings,
    /// Bytes that moved where they must not.
    NotDeterministic,
    /// An allowance that nothing needs.
    UnusedAllow,
    /// Some agents read a file, and others do not.
    AgentsDiffer,
    /// The settings are those of a folder above the working directory.
    WorkspaceAbove,
}

impl Code {
    /// All codes, in the order of the documentation.
    pub const ALL: [Self; 50] = [
        Self::Absent,
        Self::UnknownType,
        Self::UnknownName,
        Self::UnclosedIf,
        Self::StrayTag,
        Self::VolatileInPrefix,
        Self::SecretPath,
        Self::NotUtf8,
        Self::RootNotAllowed,
        Self::PathEscape,
        Self::OverLimit,
        Self::NotRegular,
        Self::EnvNotAllowed,
        Self::GitFailed,
        Self::UnusedField,
        Self::UnknownKey,
        Self::IgnoredSetting,
        Self::Shadowed,
        Self::MalformedResident,
        Self::Unreadable,
        Self::MalformedSkill,
        Self::DuplicateTool,
        Self::LinkOutside,
        Self::NameVariant,
        Self::HookFailed,
        Self::HookChanged,
        Self::PrefixChanged,
        Self::LeftOut,
        Self::BoundaryInText,
        Self::OverBudget,
        Self::UnknownModel,
        Self::NotAccepted,
        Self::SuffixBeforeHistory,
        Self::BelowCacheMinimum,
        Self::PendingChange,
        Self::HiddenText,
        Self::BidiControl,
        Self::ControlCharacter,
        Self::DisguisedText,
        Self::LooksSecret,
        Self::DuplicateContent,
        Self::Contradiction,
        Self::AlwaysTrue,
        Self::NeverPresent,
        Self::Unordered,
        Self::LineEndings,
        Self::NotDeterministic,
        Self::UnusedAllow,
        Self::AgentsDiffer,
        Self::WorkspaceAbove,
    ];

    /// The code of this word.
    #[must_use]
    pub fn named(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|code| code.word() == word)
    }

    /// What it is about, in one sentence without a full stop.
    #[must_use]
    pub const fn about(self) -> &'static str {
        match self {
            Self::Absent => "A variable that the template mentions has no value",
            Self::UnknownType => "A tag names a type that nobody provides",
            Self::UnknownName => "A tag names a known type but an unknown name",
            Self::UnclosedIf => "An `[if]` that is never closed",
            Self::StrayTag => "An `[else]` or `[endif]` that belongs to no `[if]`",
            Self::VolatileInPrefix => "A value that changes more often than the prefix may",
            Self::SecretPath => "A path whose very name says secret was not read",
            Self::NotUtf8 => "A file that is not UTF-8 text was not read",
            Self::RootNotAllowed => "A file outside the allowed roots was not read",
            Self::PathEscape => "A relative path that leaves its root was not read",
            Self::OverLimit => "Something over a limit was not taken",
            Self::NotRegular => "Something that is no regular file was not read",
            Self::EnvNotAllowed => "An environment variable that the configuration does not allow",
            Self::GitFailed => "A git command failed or took too long",
            Self::UnusedField => "A field of the request that the profile has no use for",
            Self::UnknownKey => "A key of a pack that the catalog does not have",
            Self::IgnoredSetting => "A setting that a workspace may not make",
            Self::Shadowed => "A file takes the place of another",
            Self::MalformedResident => "A file of resident knowledge that is not what it should be",
            Self::Unreadable => "An instruction file or a skill that is there and cannot be read",
            Self::MalformedSkill => "A skill that is not what it should be",
            Self::DuplicateTool => "Two tools with one name",
            Self::LinkOutside => "A link led to a file outside the project",
            Self::NameVariant => "A file whose name is nearly one that is looked for",
            Self::HookFailed => "A hook failed, took too long or answered nonsense",
            Self::HookChanged => "A hook of the workspace that is not what was approved",
            Self::PrefixChanged => "A hook changed the frozen prompt for one turn",
            Self::LeftOut => "A section is left out because a tool that it needs is not active",
            Self::BoundaryInText => "Text has a line that equals the boundary",
            Self::OverBudget => "A carrier is larger than the profile wants",
            Self::UnknownModel => "A model that the table does not have",
            Self::NotAccepted => "Something that a provider refuses",
            Self::SuffixBeforeHistory => "What belongs to one turn stands before the messages",
            Self::BelowCacheMinimum => "The prefix is too short to be cached",
            Self::PendingChange => "A change waits for the next epoch",
            Self::HiddenText => "Characters that a reader does not see",
            Self::BidiControl => "Characters that show text in another order than it has",
            Self::ControlCharacter => "Characters that control a terminal",
            Self::DisguisedText => "A word that mixes letters which look the same",
            Self::LooksSecret => "Text that looks like a key, a token or a password",
            Self::DuplicateContent => "A paragraph that the prompt says twice",
            Self::Contradiction => "Two instructions that do not go together",
            Self::AlwaysTrue => "A condition that always has the same answer",
            Self::NeverPresent => "A tag that inserts nothing, whatever happens",
            Self::Unordered => "A list whose order may change by itself",
            Self::LineEndings => "Line endings that depend on who checked the file out",
            Self::NotDeterministic => "Bytes that moved where they must not",
            Self::UnusedAllow => "An allowance that nothing needs",
            Self::AgentsDiffer => "Some agents read a file, and others do not",
            Self::WorkspaceAbove => "The settings are those of a `.proem` above the working directory",
        }
    }

    /// The code as programs see it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Absent => "absent",
            Self::UnknownType => "unknown_type",
            Self::UnknownName => "unknown_name",
            Self::UnclosedIf => "unclosed_if",
            Self::StrayTag => "stray_tag",
            Self::VolatileInPrefix => "volatile_in_prefix",
            Self::SecretPath => "secret_path",
            Self::NotUtf8 => "not_utf8",
            Self::RootNotAllowed => "root_not_allowed",
            Self::PathEscape => "path_escape",
            Self::OverLimit => "over_limit",
            Self::NotRegular => "not_regular",
            Self::EnvNotAllowed => "env_not_allowed",
            Self::GitFailed => "git_failed",
            Self::UnusedField => "unused_field",
            Self::UnknownKey => "unknown_key",
            Self::IgnoredSetting => "ignored_setting",
            Self::Shadowed => "shadowed",
            Self::MalformedResident => "malformed_resident",
            Self::Unreadable => "unreadable",
            Self::MalformedSkill => "malformed_skill",
            Self::DuplicateTool => "duplicate_tool",
            Self::LinkOutside => "link_outside",
            Self::NameVariant => "name_variant",
            Self::HookFailed => "hook_failed",
            Self::HookChanged => "hook_changed",
            Self::PrefixChanged => "prefix_changed",
            Self::LeftOut => "left_out",
            Self::BoundaryInText => "boundary_in_text",
            Self::OverBudget => "over_budget",
            Self::UnknownModel => "unknown_model",
            Self::NotAccepted => "not_accepted",
            Self::SuffixBeforeHistory => "suffix_before_history",
            Self::BelowCacheMinimum => "below_cache_minimum",
            Self::PendingChange => "pending_change",
            Self::HiddenText => "hidden_text",
            Self::BidiControl => "bidi_control",
            Self::ControlCharacter => "control_character",
            Self::DisguisedText => "disguised_text",
            Self::LooksSecret => "looks_secret",
            Self::DuplicateContent => "duplicate_content",
            Self::Contradiction => "contradiction",
            Self::AlwaysTrue => "always_true",
            Self::NeverPresent => "never_present",
            Self::Unordered => "unordered",
            Self::LineEndings => "line_endings",
            Self::NotDeterministic => "not_deterministic",
            Self::UnusedAllow => "unused_allow",
            Self::AgentsDiffer => "agents_differ",
            Self::WorkspaceAbove => "workspace_above",
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.word())
    }
}

/// A text that says what it seems to say; the same one, nearly always.
fn legible(text: String) -> String {
    match escape_line(&text) {
        Cow::Borrowed(_) => text,
        Cow::Owned(spelt) => spelt,
    }
}

/// One note.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// What it is about.
    pub code: Code,
    /// How much it matters.
    pub severity: Severity,
    /// What happened, in one sentence without a full stop.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
    /// Where it happened.
    pub source: Option<Source>,
    /// A change of the text at fault that would mend it, where there is one that is surely meant.
    pub fix: Option<Fix>,
}

/// A change of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fix {
    /// What is taken out, in bytes of the text.
    pub bytes: Range<usize>,
    /// What is put in its place.
    pub text: String,
}

impl Note {
    /// Makes a note without hint and source.
    ///
    /// Whatever it quotes was named by somebody else, so characters that a reader would not see are spelt out here, and
    /// not in each place that makes one.
    #[must_use]
    pub fn new(code: Code, severity: Severity, message: impl Into<String>) -> Self {
        Self { code, severity, message: legible(message.into()), hint: None, source: None, fix: None }
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(legible(hint.into()));
        self
    }

    /// Adds where it happened.
    #[must_use]
    pub fn with_source(mut self, source: Source) -> Self {
        self.source = Some(source);
        self
    }

    /// Adds a change that would mend it.
    #[must_use]
    pub fn with_fix(mut self, bytes: Range<usize>, text: impl Into<String>) -> Self {
        self.fix = Some(Fix { bytes, text: text.into() });
        self
    }
}
