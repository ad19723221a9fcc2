//! Errors of all operations in one form: a code, a message, a hint and a place.

use proem::ErrorPlace;
use proem_store::{ConversationError, StoreError};
use serde::Serialize;

/// An error of an operation. Its fields are those of the HTTP API.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Failure {
    /// The kind of error, as a stable word.
    pub code: &'static str,
    /// The problem, in words.
    pub message: String,
    /// A way to fix it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The reason why a prompt cannot be built, as a stable word, with the code `build_failed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<&'static str>,
    /// The place of the problem.
    #[serde(flatten)]
    pub place: Box<FailurePlace>,
}

/// The place of a problem; parts that are not known are missing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct FailurePlace {
    /// The file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The field of the request, or the key of the pack.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// The line, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// The column in its line, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<usize>,
}

impl Failure {
    /// Makes an error without a place.
    #[must_use]
    pub fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), hint: None, kind: None, place: Box::default() }
    }

    /// Adds a hint.
    #[must_use]
    pub fn with_hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// Makes an error about a request that cannot be used.
    #[must_use]
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new("bad_request", message)
    }

    /// Returns the error as JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        // Texts and numbers can always be written.
        serde_json::to_string(self).unwrap_or_default()
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

impl From<proem::Error> for Failure {
    fn from(error: proem::Error) -> Self {
        ConversationError::Build(error).into()
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        ConversationError::Store(error).into()
    }
}

impl From<ConversationError> for Failure {
    fn from(error: ConversationError) -> Self {
        let (kind, place) = match &error {
            ConversationError::Build(error) => (error.build_failure(), error.place()),
            _ => (None, ErrorPlace::default()),
        };
        let ErrorPlace { path, field, place, .. } = place;
        let place = FailurePlace {
            path,
            field,
            line: place.map(|place| place.line),
            column: place.map(|place| place.column),
        };
        Self {
            code: error.code(),
            message: error.to_string(),
            hint: error.hint(),
            kind,
            place: Box::new(place),
        }
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        Self::new("internal", format!("the answer cannot be written: {error}"))
    }
}
