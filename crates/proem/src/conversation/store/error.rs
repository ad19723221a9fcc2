//! Why a store did not do its work.

use std::fmt;

/// Why a store did not do its work.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreError {
    /// It cannot be reached or is busy: the same call may work later.
    Unavailable {
        /// The store.
        place: String,
        /// Why.
        why: String,
    },
    /// It answers, and did not do its work in the time that a statement or a lock may take.
    TimedOut {
        /// The store.
        place: String,
        /// The reason.
        why: String,
    },
    /// It is not what it should be, and will not get better by itself.
    Unusable {
        /// The store.
        place: String,
        /// Why.
        why: String,
        /// What to do.
        hint: String,
    },
    /// Its name or its settings are wrong. No credentials are part of this.
    Invalid {
        /// The name, as it may be shown.
        place: String,
        /// The problem.
        why: String,
        /// The fix.
        hint: String,
    },
    /// What is kept is not what was written.
    Damaged {
        /// What was read.
        what: String,
        /// What is wrong with it.
        why: String,
    },
    /// Somebody else was first.
    Conflict {
        /// What is there now.
        current: u64,
    },
}

impl StoreError {
    /// Tells whether trying again later may help.
    #[must_use]
    pub const fn is_temporary(&self) -> bool {
        matches!(self, Self::Unavailable { .. } | Self::TimedOut { .. })
    }

    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Unavailable { .. } => {
                Some("try again; if it stays so, see whether the database runs".into())
            }
            Self::TimedOut { .. } => Some("try again when the database has less to do".into()),
            Self::Unusable { hint, .. } | Self::Invalid { hint, .. } => Some(hint.clone()),
            Self::Damaged { .. } => Some("run `proem store check`, and restore a backup".into()),
            Self::Conflict { .. } => Some("read the current one, and decide again".into()),
        }
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unavailable { place, why } => write!(formatter, "the store {place} does not answer: {why}"),
            Self::TimedOut { place, why } => {
                write!(formatter, "the store {place} took too long for one step: {why}")
            }
            Self::Unusable { place, why, .. } => write!(formatter, "cannot use the store {place}: {why}"),
            Self::Invalid { place, why, .. } => write!(formatter, "invalid store `{place}`: {why}"),
            Self::Damaged { what, why } => write!(formatter, "{what} is damaged: {why}"),
            Self::Conflict { current: 0 } => {
                formatter.write_str("nothing is stored yet that could be replaced")
            }
            Self::Conflict { current } => {
                write!(formatter, "somebody else was first: the current one is {current}")
            }
        }
    }
}

impl std::error::Error for StoreError {}
