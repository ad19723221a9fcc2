//! Files that were considered for a prompt, with the outcome of each.

use alloc::string::String;

use serde::{Deserialize, Serialize};

use crate::fact::Absence;

/// The outcome for a considered file.
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
    /// It exists and cannot be used: a directory, a device, not text, too large.
    Unreadable,
    /// It may exist, and a rule forbids reading it.
    Refused,
    /// It was read and is not meant to be in the prompt.
    Hidden,
    /// Its content, or its name, is invalid.
    Malformed,
    /// Another file takes its place.
    Shadowed,
    /// It is the same file as another one.
    Duplicate,
    /// A limit left no room for it.
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

    /// Returns the outcome for a file that could not be read.
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

/// One file that was considered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileOutcome {
    /// The path that was looked up.
    pub path: String,
    /// The outcome.
    pub outcome: Outcome,
    /// The reason for not using the file.
    pub why: Option<String>,
}
