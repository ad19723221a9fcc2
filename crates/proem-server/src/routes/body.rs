//! Bodies: JSON text of a limited size.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::{FromRequest, Request as HttpRequest};
use axum::http::StatusCode;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use proem::Request;
use proem::deliver::Provider;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::app::App;
use crate::error::ApiError;

/// The text of a body.
pub(super) struct Text(pub(super) String);

impl FromRequest<Arc<App>> for Text {
    type Rejection = ApiError;

    async fn from_request(request: HttpRequest, app: &Arc<App>) -> Result<Self, ApiError> {
        let most = app.options.body_bytes_max;
        let body = Limited::new(request.into_body(), most).collect().await.map_err(|error| {
            if error.is::<LengthLimitError>() {
                ApiError::new(
                    StatusCode::PAYLOAD_TOO_LARGE,
                    "too_large",
                    format!("the body has more than {most} bytes"),
                )
            } else {
                ApiError::bad_request("the body did not come to its end")
            }
        })?;
        let bytes = body.to_bytes().to_vec();
        String::from_utf8(bytes).map(Self).map_err(|_| ApiError::bad_request("the body is not UTF-8"))
    }
}

impl Text {
    /// The body as a value of a known shape.
    pub(super) fn json<T: DeserializeOwned>(&self) -> Result<T, ApiError> {
        serde_json::from_str(&self.0)
            .map_err(|error| ApiError::bad_request(format!("the body is not what is expected: {error}")))
    }

    /// The body as a request for a prompt; nothing at all is the empty one.
    pub(super) fn request(&self) -> Result<Request, ApiError> {
        if self.0.trim().is_empty() {
            return Ok(Request::default());
        }
        Ok(Request::from_json(&self.0)?)
    }

    /// The body as a request, if there is one.
    pub(super) fn optional_request(&self) -> Result<Option<Request>, ApiError> {
        if self.0.trim().is_empty() { Ok(None) } else { self.request().map(Some) }
    }

    /// The body as a request and a provider beside it. Messages keep their spelling.
    pub(super) fn turn(&self) -> Result<(Request, Option<Provider>), ApiError> {
        if self.0.trim().is_empty() {
            return Ok((Request::default(), None));
        }
        let Ok(mut fields) = serde_json::from_str::<BTreeMap<String, Box<RawValue>>>(&self.0) else {
            // The request's own reader says it better.
            return Ok((self.request()?, None));
        };
        let Some(word) = fields.remove("provider") else { return Ok((self.request()?, None)) };
        let word: Option<String> =
            serde_json::from_str(word.get()).map_err(|_| ApiError::bad_request("`provider` is no text"))?;
        let provider = word.map(|word| provider(&word)).transpose()?;
        let rest =
            serde_json::to_string(&fields).map_err(|error| ApiError::bad_request(error.to_string()))?;
        Ok((Request::from_json(&rest)?, provider))
    }
}

fn provider(word: &str) -> Result<Provider, ApiError> {
    Provider::named(word).ok_or_else(|| {
        let known: Vec<&str> = Provider::ALL.into_iter().map(Provider::word).collect();
        ApiError::bad_request("no provider is called so")
            .with_hint(format!("the providers are: {}", known.join(", ")))
    })
}
