//! Reasons of proem's own for ending a render.
//!
//! minijinja passes them through as the source of its error, so that no decision depends on the text of a message.

use std::fmt;

use minijinja::{Error, ErrorKind};

/// The reason that a render ends, besides the mistakes that minijinja reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The fact with this key is not observed yet.
    WantedFact(String),
    /// The asset with this name is not loaded yet.
    WantedAsset(String),
    /// A value is too large.
    LargeValue,
    /// The build is stopped.
    Stopped,
    /// The template has more than one of the limits allows.
    LargeTemplate(String),
    /// A test such as `is absent` is applied to an undefined name.
    UndefinedInTest,
}

impl Ending {
    /// Returns the ending that an error carries.
    pub(crate) fn from_error(error: &Error) -> Option<&Self> {
        std::error::Error::source(error)?.downcast_ref()
    }

    const fn kind(&self) -> ErrorKind {
        match self {
            Self::WantedFact(_) | Self::WantedAsset(_) | Self::LargeValue | Self::Stopped => {
                ErrorKind::InvalidOperation
            }
            Self::LargeTemplate(_) => ErrorKind::SyntaxError,
            Self::UndefinedInTest => ErrorKind::UndefinedError,
        }
    }
}

impl fmt::Display for Ending {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WantedFact(key) => write!(formatter, "the fact `{key}` is not observed yet"),
            Self::WantedAsset(name) => write!(formatter, "the asset `{name}` is not loaded yet"),
            Self::LargeValue => formatter.write_str("it makes a value that is too large"),
            Self::Stopped => formatter.write_str("it runs for too long"),
            Self::LargeTemplate(excess) => write!(formatter, "it is too much for one template: {excess}"),
            Self::UndefinedInTest => formatter.write_str(
                "the name before `is present`, `is absent`, `is failed` or `is timed_out` is not defined",
            ),
        }
    }
}

impl std::error::Error for Ending {}

impl From<Ending> for Error {
    fn from(ending: Ending) -> Self {
        Self::new(ending.kind(), ending.to_string()).with_source(ending)
    }
}
