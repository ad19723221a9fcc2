//! Notes: findings about a prompt. Nothing is cut, skipped or defaulted without a note.

use alloc::borrow::Cow;
use alloc::string::String;
use core::fmt;
use core::ops::Range;

use serde::{Deserialize, Serialize};

use crate::source::Source;
use crate::text_safety::escape::escape_line;

/// The importance of a note.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Information; usually as intended.
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

/// Declares [`Code`] from one row per code: the variant, its word, and one sentence without a full stop.
macro_rules! codes {
    ($($name:ident $word:literal $about:literal,)*) => {
        /// The subject of a note, as a stable word that programs may match on.
        ///
        /// Codes are added, never renamed. The headings and the list of `docs/notes.md` follow this table; a test
        /// keeps them equal.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Code {
            $(#[doc = concat!($about, ".")] $name,)*
        }

        impl Code {
            /// All codes, in the order of the documentation.
            pub const ALL: [Self; [$($word),*].len()] = [$(Self::$name),*];

            /// Returns the code as programs see it.
            #[must_use]
            pub const fn word(self) -> &'static str {
                match self {
                    $(Self::$name => $word,)*
                }
            }

            /// Returns the meaning, in one sentence without a full stop.
            #[must_use]
            pub const fn about(self) -> &'static str {
                match self {
                    $(Self::$name => $about,)*
                }
            }
        }
    };
}

codes! {
    Absent "absent" "A variable that the template mentions has no value",
    UnknownType "unknown_type" "A tag has an unknown type",
    UnknownName "unknown_name" "A tag has a known type and an unknown name",
    UnclosedIf "unclosed_if" "An `[if]` is never closed",
    StrayTag "stray_tag" "An `[else]` or `[endif]` has no `[if]`",
    VolatileInPrefix "volatile_in_prefix" "A value changes more often than the prefix may",
    SecretPath "secret_path" "A file whose name suggests a secret was not read",
    NotUtf8 "not_utf8" "A file that is not UTF-8 text was not read",
    RootNotAllowed "root_not_allowed" "A file outside the allowed roots was not read",
    PathEscape "path_escape" "A relative path that leaves its root was not read",
    OverLimit "over_limit" "Something over a limit was left out or cut",
    NotRegular "not_regular" "A special file, such as a FIFO or a device, was not read",
    EnvNotAllowed "env_not_allowed" "The configuration does not allow an environment variable",
    GitFailed "git_failed" "A git command failed or took too long",
    UnusedField "unused_field" "The profile ignores a field of the request",
    UnknownKey "unknown_key" "A key of a pack is not in the catalog",
    IgnoredSetting "ignored_setting" "A setting that a workspace may not make is ignored",
    Shadowed "shadowed" "A file takes the place of another one",
    MalformedResident "malformed_resident" "A knowledge or workflow file is malformed",
    Unreadable "unreadable" "An instruction file or a skill exists and cannot be read",
    MalformedSkill "malformed_skill" "A skill is malformed",
    DuplicateTool "duplicate_tool" "Two tools have the same name",
    LinkOutside "link_outside" "A link leads to a file outside the project",
    NameVariant "name_variant" "The name of a file is nearly one that proem looks for",
    HookFailed "hook_failed" "A hook failed, took too long or gave an invalid answer",
    HookChanged "hook_changed" "A hook of the workspace changed after it was approved",
    PrefixChanged "prefix_changed" "A hook changed the frozen prompt for one turn",
    LeftOut "left_out" "A section is left out because a required tool is not active",
    BoundaryInText "boundary_in_text" "A line of text equals the boundary",
    OverBudget "over_budget" "A carrier is larger than the profile wants",
    UnknownModel "unknown_model" "A model is missing from the table of models",
    NotAccepted "not_accepted" "The provider rejects a part of the request",
    SuffixBeforeHistory "suffix_before_history" "Text of one turn comes before the messages",
    BelowCacheMinimum "below_cache_minimum" "The prefix is too short to be cached",
    PendingChange "pending_change" "A change waits for the next epoch",
    ChangeHeld "change_held" "A changed source is not announced: it changes back and forth, or there are too many notices",
    NoticeEdited "notice_edited" "The history has a notice with another text",
    HiddenText "hidden_text" "The text has invisible characters",
    BidiControl "bidi_control" "Characters show text in another order than it has",
    ControlCharacter "control_character" "The text has control characters",
    DisguisedText "disguised_text" "A word mixes letters of different scripts that look the same",
    LooksSecret "looks_secret" "Text looks like a key, a token or a password",
    DuplicateContent "duplicate_content" "The prompt contains a paragraph twice",
    Contradiction "contradiction" "Two instructions contradict each other",
    AlwaysTrue "always_true" "A condition always has the same result",
    NeverPresent "never_present" "A tag never inserts anything",
    Unordered "unordered" "The order of a list may change by itself",
    LineEndings "line_endings" "Line endings depend on the settings of a git checkout",
    NotDeterministic "not_deterministic" "Two builds of the same inputs differ",
    UnusedAllow "unused_allow" "An allowance has no effect",
    AgentsDiffer "agents_differ" "Some agents read a file, and others do not",
    WorkspaceAbove "workspace_above" "The settings come from a `.proem` above the working directory",
    EmptyDeny "empty_deny" "A profile sets an empty list of names that are never read",
    SkippedRecord "skipped_record" "A file or record of an agent was skipped",
    IncompleteCall "incomplete_call" "A recorded call lacks a part",
}

impl Code {
    /// Returns the code of a word.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|code| code.word() == word)
    }
}

impl fmt::Display for Code {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.word())
    }
}

/// Escapes invisible characters; usually returns the input unchanged.
fn escaped(text: String) -> String {
    match escape_line(&text) {
        Cow::Borrowed(_) => text,
        Cow::Owned(escaped) => escaped,
    }
}

/// One note.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// The subject.
    pub code: Code,
    /// The importance.
    pub severity: Severity,
    /// The finding, in one sentence without a full stop.
    pub message: String,
    /// The fix, in words.
    pub hint: Option<String>,
    /// The place of the finding.
    pub source: Option<Source>,
    /// An edit of the text that corrects the problem, if it is certain to be right.
    pub fix: Option<Fix>,
}

/// An edit of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fix {
    /// The removed bytes of the text.
    pub bytes: Range<usize>,
    /// The inserted text.
    pub text: String,
}

impl Note {
    /// Creates a note without hint and source.
    ///
    /// Messages quote text from outside, so invisible characters are escaped here, once for all callers.
    #[must_use]
    pub fn new(code: Code, severity: Severity, message: impl Into<String>) -> Self {
        Self { code, severity, message: escaped(message.into()), hint: None, source: None, fix: None }
    }

    /// Adds a hint.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(escaped(hint.into()));
        self
    }

    /// Adds the place.
    #[must_use]
    pub fn with_source(mut self, source: Source) -> Self {
        self.source = Some(source);
        self
    }

    /// Adds an edit that corrects the problem.
    #[must_use]
    pub fn with_fix(mut self, bytes: Range<usize>, text: impl Into<String>) -> Self {
        self.fix = Some(Fix { bytes, text: text.into() });
        self
    }
}
