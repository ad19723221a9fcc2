//! Files that were looked at, and what became of each.

use alloc::string::String;

use serde::{Deserialize, Serialize};

use crate::fact::Absence;

/// What became of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Outcome {
    /// Its text is in the prompt, or decided a condition.
    Used,
    /// It has no content.
    Empty,
    /// It does not exist.
    Missing,
    /// It exists and could not be taken: a directory, a device, not text, too large.
    Unreadable,
    /// It exists perhaps, and may not be read.
    Refused,
    /// It was read, and does not ask to be in the prompt.
    Hidden,
    /// It was read, or only its name was, and it is not what it should be.
    Malformed,
    /// Another one takes its place.
    Shadowed,
    /// It is the same file as another one.
    Duplicate,
    /// There was no room left for it.
    OverBudget,
    /// An ignore file excludes it.
    Ignored,
}

impl Outcome {
    /// The word used in JSON and messages.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Used => "used",
            Self::Empty => "empty",
            Self::Missing => "missing",
            Self::Unreadable => "unreadable",
            Self::Refused => "refused",
            Self::Hidden => "hidden",
            Self::Malformed => "malformed",
            Self::Shadowed => "shadowed",
            Self::Duplicate => "duplicate",
            Self::OverBudget => "over_budget",
            Self::Ignored => "ignored",
        }
    }

    /// What became of a file that could not be read.
    #[must_use]
    pub const fn from_absence(why: &Absence) -> Self {
        match why {
            Absence::NoSuchFile => Self::Missing,
            Absence::SecretPath
            | Absence::OutsideRoots
            | Absence::OutsideProject(_)
            | Absence::PathEscape
            | Absence::Reserved => Self::Refused,
            _ => Self::Unreadable,
        }
    }
}

/// One file that was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileOutcome {
    /// The path as it was looked for.
    pub path: String,
    /// What became of it.
    pub outcome: Outcome,
    /// Why it was not used.
    pub why: Option<String>,
}
