//! Error answers, all of one shape: `code`, `message`, `hint`, and for a prompt that cannot be built its `kind` and place.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use proem::{ErrorKind, ErrorPlace, StopReason};
use proem_core::text_safety::escape::{escape, escape_line};
use proem_store::{ConversationError, StoreError};
use schemars::JsonSchema;
use serde::Serialize;

use crate::log::{self, Level};

/// The value of `Retry-After`, in seconds.
const RETRY_AFTER: HeaderValue = HeaderValue::from_static("2");

const STORE_DAMAGED: &str = "store_damaged";
const STORE_UNAVAILABLE: &str = "store_unavailable";

/// An error answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(title = "Error")]
pub(crate) struct ApiError {
    #[serde(skip)]
    #[schemars(skip)]
    pub(crate) status: u16,
    /// The kind of error, as a stable word.
    pub(crate) code: &'static str,
    /// The problem, in words.
    pub(crate) message: String,
    /// A way to fix it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) hint: Option<String>,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub(crate) failure: Option<Box<BuildFailure>>,
}

/// The reason why a prompt cannot be built.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct BuildFailure {
    /// The reason why the prompt cannot be built, as a stable word: `asset_missing`, `template_syntax`,
    /// `template_undefined`, `template_render`, `pack`, `profile`, `workflow`, `instructions`, `configuration`, `refused` or
    /// `limit`. Only with the code `build_failed`.
    kind: &'static str,
    /// The file with the problem.
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    /// The field of the request, or the key of the pack, with the problem.
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<String>,
    /// The line of the problem, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
    /// The column of the problem in its line, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    column: Option<usize>,
}

impl BuildFailure {
    fn new(kind: &'static str, error: &proem::Error) -> Self {
        let ErrorPlace { path, field, place, .. } = error.place();
        let escaped = |text: String| escape_line(&text).into_owned();
        Self {
            kind,
            path: path.map(escaped),
            field: field.map(escaped),
            line: place.map(|place| place.line),
            column: place.map(|place| place.column),
        }
    }
}

impl ApiError {
    pub(crate) fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self { status: status.as_u16(), code, message: message.into(), hint: None, failure: None }
    }

    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Tells whether the store failed, and not the request.
    pub(crate) fn is_of_store(&self) -> bool {
        matches!(self.code, STORE_DAMAGED | STORE_UNAVAILABLE)
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "bad_request", message)
    }

    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", message)
    }

    pub(crate) fn busy() -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "busy", "the server is busy")
            .with_hint("retry after the number of seconds in `Retry-After`")
    }

    pub(crate) fn internal() -> Self {
        let id = log::random_id();
        log::line(Level::Error, &[("event", "panic"), ("incident", &id)]);
        let message = format!("internal error, incident {id}");
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", message)
            .with_hint("search the server's log for the incident")
    }

    /// Creates the error for invalid settings of the operator. The cause is logged and not sent: it may quote the
    /// operator's files.
    fn misconfigured(why: &str) -> Self {
        log::line(Level::Error, &[("event", "configuration"), ("why", why)]);
        let message = "the configuration of the server is invalid";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "misconfigured", message)
            .with_hint("the server's log has the cause")
    }

    pub(crate) fn no_directory(path: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, "no_directory", format!("there is no directory {path}"))
            .with_hint("create it, or use another one")
    }

    pub(crate) fn forbidden_cwd(message: &str) -> Self {
        Self::new(StatusCode::FORBIDDEN, "cwd_not_allowed", message)
            .with_hint("start the server with `--workspace DIR` for that directory")
    }
}

impl IntoResponse for ApiError {
    fn into_response(mut self) -> Response {
        // It may quote the request, or names and contents of files in a workspace.
        for text in [Some(&mut self.message), self.hint.as_mut()].into_iter().flatten() {
            *text = escape(text).into_owned();
        }
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = (status, Json(&self)).into_response();
        let headers = response.headers_mut();
        if status == StatusCode::SERVICE_UNAVAILABLE {
            headers.insert(header::RETRY_AFTER, RETRY_AFTER);
        }
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        let code = error.code();
        let status = match &error {
            StoreError::Conflict { .. } => StatusCode::CONFLICT,
            StoreError::Damaged { .. } => StatusCode::INTERNAL_SERVER_ERROR,
            _ => StatusCode::SERVICE_UNAVAILABLE,
        };
        // The error names the location of the store, which only the operator may see.
        if status == StatusCode::SERVICE_UNAVAILABLE {
            log::line(Level::Error, &[("event", "store"), ("why", &error.to_string())]);
            return Self::new(status, code, "the store does not answer").with_hint("try again later");
        }
        if status == StatusCode::INTERNAL_SERVER_ERROR {
            log::line(Level::Error, &[("event", "store"), ("why", &error.to_string())]);
            let hint = "the server's log names it; `proem store check` lists all damage";
            return Self::new(status, code, "the stored data is damaged").with_hint(hint);
        }
        Self { hint: error.hint(), ..Self::new(status, code, error.to_string()) }
    }
}

impl From<ConversationError> for ApiError {
    fn from(error: ConversationError) -> Self {
        if let ConversationError::Build(error) = &error
            && error.is_of_host()
        {
            return Self::misconfigured(&error.to_string());
        }
        let hint = error.hint();
        let message = error.to_string();
        if let ConversationError::Build(error) = &error
            && let Some(kind) = error.build_failure()
        {
            let failure = Some(Box::new(BuildFailure::new(kind, error)));
            let answer = Self::new(StatusCode::UNPROCESSABLE_ENTITY, error.code(), message);
            return Self { hint, failure, ..answer };
        }
        let code = error.code();
        let status = match error {
            ConversationError::Store(error) => return error.into(),
            ConversationError::Build(proem::Error::Stopped {
                why: StopReason::Time | StopReason::Cancelled,
            }) => {
                return Self::busy();
            }
            ConversationError::Build(error) if error.kind() == ErrorKind::Usage => StatusCode::BAD_REQUEST,
            ConversationError::BadId | ConversationError::BadCall(_) => StatusCode::BAD_REQUEST,
            ConversationError::NoConversation(_)
            | ConversationError::NoCompaction
            | ConversationError::NoWorkspace(_) => StatusCode::NOT_FOUND,
            ConversationError::Exists(_)
            | ConversationError::TooManyChildren(_)
            | ConversationError::OtherView
            | ConversationError::NotAllowed { .. } => StatusCode::CONFLICT,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self { hint, ..Self::new(status, code, message) }
    }
}

impl From<proem::Error> for ApiError {
    fn from(error: proem::Error) -> Self {
        ConversationError::Build(error).into()
    }
}
