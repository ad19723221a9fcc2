//! Errors in profiles, with their places.

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use core::fmt;

use crate::text::{Place, Places};

/// A profile that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProfileError {
    /// The file, as a path or `built-in NAME`.
    pub origin: Box<str>,
    /// The place in the file, if known.
    pub place: Option<Place>,
    /// The line at that place.
    pub line: Option<String>,
    /// The problem, with the key and the allowed values.
    pub message: String,
    /// The fix.
    pub hint: Option<String>,
    /// The error of the TOML parser, if any.
    toml: Option<Box<toml::de::Error>>,
}

impl ProfileError {
    pub(super) fn new(origin: &str, message: impl Into<String>) -> Self {
        Self {
            origin: origin.into(),
            place: None,
            line: None,
            message: message.into(),
            hint: None,
            toml: None,
        }
    }

    /// Tells whether the profile is compiled in, and so has no file.
    #[must_use]
    pub fn is_built_in(&self) -> bool {
        self.origin.starts_with(super::BUILT_IN)
    }

    pub(super) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub(super) fn from_toml(origin: &str, text: &str, error: &toml::de::Error) -> Self {
        let place = error.span().map(|span| Places::new(text).at(span.start));
        let line = place.and_then(|place| text.lines().nth(place.line - 1)).map(ToString::to_string);
        let message = error.message().to_string();
        Self { origin: origin.into(), place, line, message, hint: None, toml: Some(Box::new(error.clone())) }
    }
}

impl fmt::Display for ProfileError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "cannot use the profile {}", self.origin)?;
        if let Some(Place { line, column }) = self.place {
            write!(formatter, ", line {line}, column {column}")?;
        }
        write!(formatter, ": {}", self.message)
    }
}

impl core::error::Error for ProfileError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        Some(self.toml.as_deref()?)
    }
}
