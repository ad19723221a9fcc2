//! The cause of an error.

use std::error::Error;
use std::sync::Arc;

/// The error that caused another one, if there is one.
///
/// Causes take no part in comparisons: two errors are equal if their own fields are.
#[derive(Debug, Clone, Default)]
pub struct ErrorCause(Option<Arc<dyn Error + Send + Sync>>);

impl ErrorCause {
    /// No cause.
    pub const NONE: Self = Self(None);

    /// Keeps the error that caused another one.
    #[must_use]
    pub fn new(error: impl Error + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(error)))
    }

    /// Returns the error, for [`Error::source`].
    #[must_use]
    pub fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.as_deref().map(|error| error as &(dyn Error + 'static))
    }
}

impl PartialEq for ErrorCause {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for ErrorCause {}
