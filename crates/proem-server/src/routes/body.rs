//! Extractors: bodies of limited size, queries and path parameters, with errors of the API's shape.

use std::error::Error;
use std::pin::pin;
use std::sync::Arc;

use axum::body::{Body, HttpBody};
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request as HttpRequest};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use proem::Request;
use proem::deliver::{Provider, ProviderName};
use proem::request::RequestUpdate;
use proem_store::ConversationError;
use serde::de::DeserializeOwned;

use crate::app::App;
use crate::error::ApiError;
use crate::room::BodyPermit;

/// The text of a body, and the memory that is reserved for it.
pub(super) struct BodyText(
    pub(super) String,
    #[expect(dead_code, reason = "dropping it releases the memory")] BodyPermit,
);

impl FromRequest<Arc<App>> for BodyText {
    type Rejection = ApiError;

    async fn from_request(request: HttpRequest, app: &Arc<App>) -> Result<Self, ApiError> {
        Self::read(request.into_body(), app).await
    }
}

impl BodyText {
    /// Reads a body, within the limits on its size and on that of all bodies.
    async fn read(body: Body, app: &App) -> Result<Self, ApiError> {
        let most = app.options.body_bytes_max;
        let too_large = || {
            let message = format!("the body has more than {most} bytes");
            ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", message)
        };
        // A declared length can be refused before the body is read.
        if body.size_hint().lower() > u64::try_from(most).unwrap_or(u64::MAX) {
            return Err(too_large());
        }
        let mut body = pin!(Limited::new(body, most));
        let (mut bytes, mut held) = (Vec::new(), BodyPermit::default());
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| {
                if error.is::<LengthLimitError>() {
                    too_large()
                } else {
                    ApiError::bad_request("the body is incomplete")
                }
            })?;
            // Trailers are ignored.
            let Ok(data) = frame.into_data() else { continue };
            if !app.room.hold(&mut held, bytes.len() + data.len()) {
                return Err(ApiError::busy());
            }
            bytes.extend_from_slice(&data);
        }
        let text = String::from_utf8(bytes).map_err(|_| ApiError::bad_request("the body is not UTF-8"))?;
        Ok(Self(text, held))
    }

    /// Parses the body as an object of type `T`.
    pub(super) fn json<T: DeserializeOwned>(&self) -> Result<T, ApiError> {
        // Serde would take a list for the fields in their order.
        if !self.0.trim_start().starts_with('{') {
            return Err(ApiError::bad_request("the body is not an object"));
        }
        serde_json::from_str(&self.0)
            .map_err(|error| ApiError::bad_request(format!("the body is invalid: {error}")))
    }

    /// Parses the body as a request. An empty body is the default request.
    pub(super) fn request(&self) -> Result<Request, ApiError> {
        if self.0.trim().is_empty() {
            return Ok(Request::default());
        }
        Ok(Request::from_json(&self.0)?)
    }

    /// Returns the body as an update of a conversation's request. An empty body changes nothing.
    pub(super) fn update(&self) -> Result<RequestUpdate, ApiError> {
        if self.is_empty() { Ok(RequestUpdate::default()) } else { Ok(RequestUpdate::from_json(&self.0)?) }
    }

    /// Tells whether the body is empty or `{}`.
    pub(super) fn is_empty(&self) -> bool {
        matches!(self.0.trim(), "" | "{}")
    }
}

/// The parameters of the query string.
pub(super) struct QueryParams<T>(pub(super) T);

impl<T: DeserializeOwned + Send> FromRequestParts<Arc<App>> for QueryParams<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, ApiError> {
        let query = Query::from_request_parts(parts, app).await;
        query.map(|Query(params)| Self(params)).map_err(|error| {
            // The source is the error of the parser, without the words of the extractor.
            let why = error.source().map_or_else(|| error.body_text(), ToString::to_string);
            ApiError::bad_request(format!("the query is invalid: {why}"))
        })
    }
}

/// The parameters of the path. A path that is not UTF-8 has no valid conversation id.
pub(super) struct PathParams<T>(pub(super) T);

impl<T: DeserializeOwned + Send> FromRequestParts<Arc<App>> for PathParams<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, ApiError> {
        let path = Path::from_request_parts(parts, app).await;
        path.map(|Path(params)| Self(params)).map_err(|_| ConversationError::BadId.into())
    }
}

/// Parses the number of an epoch.
pub(super) fn number(text: &str) -> Result<u64, ApiError> {
    text.parse().map_err(|_| ApiError::bad_request("the epoch is not a number"))
}

pub(super) fn provider(word: &str) -> Result<Provider, ApiError> {
    ProviderName::find(word).map(|name| name.provider).map_err(|unknown| {
        let error = ApiError::bad_request(unknown.to_string());
        match unknown.hint() {
            Some(hint) => error.with_hint(hint),
            None => error,
        }
    })
}

/// Tells whether `If-None-Match` contains this tag, so that the client has the answer already.
pub(super) fn has_answer(headers: &HeaderMap, tag: &str) -> bool {
    let known = headers.get_all(header::IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    let mut known = known.flat_map(|value| value.split(','));
    known.any(|one| one.trim() == "*" || one.trim().trim_start_matches("W/") == tag)
}
