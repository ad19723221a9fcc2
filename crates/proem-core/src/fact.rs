//! Facts: observed values, present or absent with a reason.

use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use core::fmt;

use crate::limit::Size;
use crate::note::{Code, Severity};
use crate::stability::Stability;

/// The reason why a fact has no value.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Absence {
    /// The request states that it has none.
    SaidAbsent,
    /// Only the request could provide it, and it does not.
    NotGiven,
    /// The host does not have it.
    NotOnThisHost(&'static str),
    /// The type is unknown.
    UnknownType,
    /// The type is known and the name is not.
    UnknownName,
    /// The directory is not inside a git repository.
    NotARepository,
    /// The branch has no commit yet.
    UnbornBranch,
    /// Git failed.
    GitFailed(String),
    /// The time limit was exceeded.
    TimedOut,
    /// The path does not exist.
    NoSuchFile,
    /// The path is a directory.
    IsADirectory,
    /// The path is neither a file nor a directory.
    NotRegular(&'static str),
    /// The path could not be opened or read, for the reason that the system gave.
    Unreadable(String),
    /// The content is not UTF-8 text; holds the offset of the first invalid byte.
    NotUtf8(usize),
    /// The content has a NUL byte at this offset.
    HasNul(usize),
    /// The content exceeds this number of bytes.
    OverLimit(usize),
    /// All files of a build together exceed this number of bytes.
    OverTotal(usize),
    /// The path is empty, holds a NUL or is too long.
    BadPath(&'static str),
    /// The path's name suggests a secret.
    SecretPath,
    /// The path lies outside the roots that this template may read.
    OutsideRoots,
    /// The path leaves its root by `..`.
    PathEscape,
    /// The path leads to this place, outside a project that the user has not trusted.
    OutsideProject(String),
    /// The path leads to a file of the store that this process has open.
    Reserved,
    /// The configuration does not allow this environment variable.
    EnvNotAllowed,
    /// The environment variable is not set.
    EnvNotSet,
    /// The environment variable is not UTF-8.
    EnvNotUtf8,
}

impl Absence {
    /// Returns the code of the note that reports it.
    #[must_use]
    pub const fn code(&self) -> Code {
        match self {
            Self::UnknownType => Code::UnknownType,
            Self::UnknownName => Code::UnknownName,
            Self::GitFailed(_) | Self::TimedOut => Code::GitFailed,
            Self::NotRegular(_) => Code::NotRegular,
            Self::NotUtf8(_) | Self::HasNul(_) | Self::EnvNotUtf8 => Code::NotUtf8,
            Self::OverLimit(_) | Self::OverTotal(_) => Code::OverLimit,
            Self::SecretPath => Code::SecretPath,
            Self::OutsideRoots | Self::Reserved => Code::RootNotAllowed,
            Self::PathEscape => Code::PathEscape,
            Self::OutsideProject(_) => Code::LinkOutside,
            Self::EnvNotAllowed => Code::EnvNotAllowed,
            Self::SaidAbsent
            | Self::NotGiven
            | Self::NotOnThisHost(_)
            | Self::NotARepository
            | Self::UnbornBranch
            | Self::NoSuchFile
            | Self::IsADirectory
            | Self::Unreadable(_)
            | Self::BadPath(_)
            | Self::EnvNotSet => Code::Absent,
        }
    }

    /// Returns the severity of its note. An ordinary absence is information: conditions exist to handle it.
    #[must_use]
    pub const fn severity(&self) -> Severity {
        match self {
            Self::SaidAbsent
            | Self::NotGiven
            | Self::NotOnThisHost(_)
            | Self::NotARepository
            | Self::UnbornBranch
            | Self::NoSuchFile
            | Self::EnvNotSet => Severity::Info,
            _ => Severity::Warning,
        }
    }

    /// Returns advice, if there is any.
    #[must_use]
    pub const fn hint(&self) -> Option<&'static str> {
        match self {
            Self::EnvNotAllowed => {
                Some("add the name to `env.allow` in proem.toml of your configuration directory")
            }
            Self::SecretPath => {
                Some("add the exact path to `files.allow` in proem.toml of your configuration directory")
            }
            Self::NotUtf8(_) => Some("convert the file to UTF-8"),
            Self::OutsideProject(_) => Some(
                "trust the workspace with `proem trust add`, or add the path to `files.allow` in proem.toml of your \
                 configuration directory",
            ),
            Self::Reserved => Some("remove the link, or keep the store outside of the workspace"),
            Self::NotGiven => Some("give it in the request or with a flag"),
            _ => None,
        }
    }
}

impl core::error::Error for Absence {}

impl fmt::Display for Absence {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SaidAbsent => formatter.write_str("the request says that it is absent"),
            Self::NotGiven => formatter.write_str("not given in the request"),
            Self::NotOnThisHost(what) => write!(formatter, "this host has no {what}"),
            Self::UnknownType => formatter.write_str("unknown type"),
            Self::UnknownName => formatter.write_str("unknown name"),
            Self::NotARepository => formatter.write_str("not a git repository"),
            Self::UnbornBranch => formatter.write_str("the branch has no commit yet"),
            Self::GitFailed(why) => write!(formatter, "git failed: {why}"),
            Self::TimedOut => formatter.write_str("timed out"),
            Self::NoSuchFile => formatter.write_str("no such file"),
            Self::IsADirectory => formatter.write_str("is a directory"),
            Self::NotRegular(kind) => write!(formatter, "is a {kind}, not a regular file"),
            Self::Unreadable(why) => write!(formatter, "cannot be read: {why}"),
            Self::NotUtf8(offset) => write!(formatter, "not UTF-8: bad byte at offset {offset}"),
            Self::HasNul(offset) => write!(formatter, "not text: NUL byte at offset {offset}"),
            Self::OverLimit(bytes) => write!(formatter, "over {}", Size::new(*bytes)),
            Self::OverTotal(bytes) => {
                write!(formatter, "over {} for all files of a build", Size::new(*bytes))
            }
            Self::BadPath(why) => write!(formatter, "{why}"),
            Self::SecretPath => formatter.write_str("refused: its name says that it holds a secret"),
            Self::OutsideRoots => formatter.write_str("refused: outside the allowed roots"),
            Self::PathEscape => formatter.write_str("refused: the path leaves its root"),
            Self::OutsideProject(real) => {
                write!(formatter, "refused: it leads out of the project, to {real}")
            }
            Self::Reserved => formatter.write_str("refused: it is a file of proem's own store"),
            Self::EnvNotAllowed => formatter.write_str("not allowed by the configuration"),
            Self::EnvNotSet => formatter.write_str("not set in the environment"),
            Self::EnvNotUtf8 => formatter.write_str("not UTF-8"),
        }
    }
}

/// One observed value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fact {
    /// The value, or the reason for its absence. An empty text is a value.
    pub value: Result<String, Absence>,
    /// The lifetime of the value.
    pub stability: Stability,
    /// The file that the value was read from.
    pub path: Option<Arc<str>>,
}

impl Fact {
    /// Creates a fact with a value.
    #[must_use]
    pub fn given(value: impl Into<String>, stability: Stability) -> Self {
        Self { value: Ok(value.into()), stability, path: None }
    }

    /// Creates a fact without a value.
    #[must_use]
    pub const fn absent(why: Absence, stability: Stability) -> Self {
        Self { value: Err(why), stability, path: None }
    }
}

/// Facts by key, ordered so that iteration is deterministic.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    by_key: BTreeMap<String, Fact>,
}

impl Facts {
    /// Creates an empty set.
    #[must_use]
    pub const fn new() -> Self {
        Self { by_key: BTreeMap::new() }
    }

    /// Adds a fact, replacing one of the same key.
    pub fn insert(&mut self, key: &str, fact: Fact) {
        self.by_key.insert(key.to_owned(), fact);
    }

    /// Looks a fact up.
    #[must_use]
    pub fn fact(&self, key: &str) -> Option<&Fact> {
        self.by_key.get(key)
    }

    /// Iterates over all facts, by key.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Fact)> {
        self.by_key.iter().map(|(key, fact)| (key.as_str(), fact))
    }
}
