//! The error of a store.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

/// An error of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreError {
    /// The store cannot be reached, is busy or has no space: the same call may work later.
    Unavailable {
        /// The store.
        place: String,
        /// The reason.
        why: Explanation,
    },
    /// The store answers, but a statement or a lock took longer than it may.
    TimedOut {
        /// The store.
        place: String,
        /// The reason.
        why: Explanation,
    },
    /// The store cannot be used until its operator changes something.
    Unusable {
        /// The store.
        place: String,
        /// The problem.
        why: Explanation,
        /// The fix.
        hint: String,
    },
    /// The name or the settings of the store are wrong. No credentials are part of this.
    Invalid {
        /// The name, as it may be shown.
        place: String,
        /// The problem.
        why: Explanation,
        /// The fix.
        hint: String,
    },
    /// Stored data differs from the data that was written.
    Damaged {
        /// The thing that was read.
        what: String,
        /// The problem.
        why: Explanation,
    },
    /// Another writer was first.
    Conflict {
        /// The current number; 0 when nothing is stored.
        current: u64,
    },
}

impl StoreError {
    /// Returns an error about stored data that differs from the data that was written.
    #[doc(hidden)]
    pub fn damaged(what: impl Into<String>, why: impl Into<Explanation>) -> Self {
        Self::Damaged { what: what.into(), why: why.into() }
    }

    /// Returns a stable word for the kind of error, the same through every interface.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Conflict { .. } => "conflict",
            Self::Damaged { .. } => "store_damaged",
            Self::Unavailable { .. }
            | Self::TimedOut { .. }
            | Self::Unusable { .. }
            | Self::Invalid { .. } => "store_unavailable",
        }
    }

    /// Returns the fix, as a sentence for people.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Unavailable { .. } => Some(
                "try again; if it keeps failing, check that the database is running and has free disk space"
                    .into(),
            ),
            Self::TimedOut { .. } => Some("try again when the database is less busy".into()),
            Self::Unusable { hint, .. } | Self::Invalid { hint, .. } => Some(hint.clone()),
            Self::Damaged { .. } => Some("run `proem store check`, and restore a backup".into()),
            Self::Conflict { .. } => Some("read the current state, and try again".into()),
        }
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unavailable { place, why } => write!(formatter, "the store {place} is unavailable: {why}"),
            Self::TimedOut { place, why } => write!(formatter, "the store {place} timed out: {why}"),
            Self::Unusable { place, why, .. } => write!(formatter, "cannot use the store {place}: {why}"),
            Self::Invalid { place, why, .. } => write!(formatter, "invalid store `{place}`: {why}"),
            Self::Damaged { what, why } => write!(formatter, "{what} is damaged: {why}"),
            Self::Conflict { current: 0 } => formatter.write_str("nothing is stored that could be replaced"),
            Self::Conflict { current } => {
                write!(formatter, "another writer was first: number {current} is current")
            }
        }
    }
}

impl Error for StoreError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Unavailable { why, .. }
            | Self::TimedOut { why, .. }
            | Self::Unusable { why, .. }
            | Self::Invalid { why, .. }
            | Self::Damaged { why, .. } => why.source(),
            Self::Conflict { .. } => None,
        }
    }
}

/// The reason of a failure in words, with the error that caused it, if there is one.
///
/// Two explanations are equal if their words are.
#[derive(Debug, Clone)]
pub struct Explanation {
    words: String,
    source: Option<Arc<dyn Error + Send + Sync>>,
}

impl Explanation {
    /// Creates an explanation in words of its own.
    #[must_use]
    pub fn new(words: impl Into<String>, source: impl Error + Send + Sync + 'static) -> Self {
        Self { words: words.into(), source: Some(Arc::new(source)) }
    }

    /// Creates an explanation in the words of an error.
    #[must_use]
    pub fn from_error(source: impl Error + Send + Sync + 'static) -> Self {
        Self::new(source.to_string(), source)
    }

    /// Returns the error that caused the failure.
    #[must_use]
    pub fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_ref().map(|source| source.as_ref() as &(dyn Error + 'static))
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.words)
    }
}

impl PartialEq for Explanation {
    fn eq(&self, other: &Self) -> bool {
        self.words == other.words
    }
}

impl Eq for Explanation {}

impl From<String> for Explanation {
    fn from(words: String) -> Self {
        Self { words, source: None }
    }
}

impl From<&str> for Explanation {
    fn from(words: &str) -> Self {
        words.to_owned().into()
    }
}
