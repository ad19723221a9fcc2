//! The lifetime of a value, which decides whether the value may be in a cached prefix.

use core::fmt;

use serde::{Deserialize, Serialize};

/// The frequency with which a value changes, from never within a release to every turn.
///
/// The variants are ordered: a value may be used wherever a less stable one is accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stability {
    /// Changes with a new release of proem.
    Release,
    /// Belongs to the machine.
    Machine,
    /// Belongs to the user and their configuration.
    User,
    /// Belongs to the project's files.
    Project,
    /// Stays for one conversation.
    Session,
    /// Changes at midnight.
    Day,
    /// May change with every turn.
    Turn,
}

impl Stability {
    /// All variants, most stable first.
    pub const ALL: [Self; 7] =
        [Self::Release, Self::Machine, Self::User, Self::Project, Self::Session, Self::Day, Self::Turn];

    /// The word used in profiles, JSON and messages.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Release => "release",
            Self::Machine => "machine",
            Self::User => "user",
            Self::Project => "project",
            Self::Session => "session",
            Self::Day => "day",
            Self::Turn => "turn",
        }
    }

    /// Returns the frequency as a phrase that completes "it changes …".
    #[must_use]
    pub const fn rhythm(self) -> &'static str {
        match self {
            Self::Release => "with a release of proem",
            Self::Machine => "from machine to machine",
            Self::User => "with the user's configuration",
            Self::Project => "with the project's files",
            Self::Session => "from conversation to conversation",
            Self::Day => "every day",
            Self::Turn => "with every turn",
        }
    }
}

impl fmt::Display for Stability {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.word())
    }
}
