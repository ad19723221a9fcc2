//! Bodies: JSON text of a limited size.

use std::collections::BTreeMap;
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
use serde::de::{DeserializeOwned, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::app::App;
use crate::error::ApiError;
use crate::room::Held;

/// The text of a body, and the room that it takes.
pub(super) struct Text(pub(super) String, #[expect(dead_code, reason = "it is given back in the end")] Held);

impl FromRequest<Arc<App>> for Text {
    type Rejection = ApiError;

    async fn from_request(request: HttpRequest, app: &Arc<App>) -> Result<Self, ApiError> {
        Self::read(request.into_body(), app).await
    }
}

impl Text {
    /// Reads a body, as far as its size and that of all others allow.
    async fn read(body: Body, app: &App) -> Result<Self, ApiError> {
        let most = app.options.body_bytes_max;
        let too_large = || {
            let message = format!("the body has more than {most} bytes");
            ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", message)
        };
        // A length that is said need not be awaited.
        if body.size_hint().lower() > u64::try_from(most).unwrap_or(u64::MAX) {
            return Err(too_large());
        }
        let mut body = pin!(Limited::new(body, most));
        let (mut bytes, mut held) = (Vec::new(), Held::default());
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| {
                if error.is::<LengthLimitError>() {
                    too_large()
                } else {
                    ApiError::bad_request("the body did not come to its end")
                }
            })?;
            // Trailers say nothing here.
            let Ok(data) = frame.into_data() else { continue };
            if !app.room.hold(&mut held, bytes.len() + data.len()) {
                return Err(ApiError::busy());
            }
            bytes.extend_from_slice(&data);
        }
        let text = String::from_utf8(bytes).map_err(|_| ApiError::bad_request("the body is not UTF-8"))?;
        Ok(Self(text, held))
    }

    /// The body as a value of a known shape.
    pub(super) fn json<T: DeserializeOwned>(&self) -> Result<T, ApiError> {
        // A list would be read as the fields in their order.
        if !self.0.trim_start().starts_with('{') {
            return Err(ApiError::bad_request("the body is not an object"));
        }
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

    /// Returns the body as an update of a conversation's request. An empty body changes nothing.
    pub(super) fn update(&self) -> Result<RequestUpdate, ApiError> {
        if self.is_empty() { Ok(RequestUpdate::default()) } else { Ok(RequestUpdate::from_json(&self.0)?) }
    }

    /// Tells whether the body says nothing.
    pub(super) fn is_empty(&self) -> bool {
        matches!(self.0.trim(), "" | "{}")
    }

    /// The body as a request and a provider beside it. Messages keep their spelling.
    pub(super) fn turn(&self) -> Result<(RequestUpdate, Option<Provider>), ApiError> {
        // A provider can be named only by its name, or by escapes that spell it.
        if !self.0.contains("\"provider\"") && !self.0.contains("\\u") {
            return Ok((self.update()?, None));
        }
        let Ok(Fields(mut fields)) = serde_json::from_str(&self.0) else {
            // The request's own reader says it better.
            return Ok((self.update()?, None));
        };
        let Some(word) = fields.remove("provider") else { return Ok((self.update()?, None)) };
        let word: Option<String> =
            serde_json::from_str(word.get()).map_err(|_| ApiError::bad_request("`provider` is no text"))?;
        let provider = word.map(|word| provider(&word)).transpose()?;
        let rest =
            serde_json::to_string(&fields).map_err(|error| ApiError::bad_request(error.to_string()))?;
        Ok((RequestUpdate::from_json(&rest)?, provider))
    }
}

/// The fields of an object, each said once.
struct Fields(BTreeMap<String, Box<RawValue>>);

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Once;
        impl<'de> Visitor<'de> for Once {
            type Value = Fields;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
                let mut fields = BTreeMap::new();
                while let Some((name, value)) = map.next_entry::<String, _>()? {
                    if fields.insert(name, value).is_some() {
                        return Err(serde::de::Error::custom("a field is said twice"));
                    }
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(Once)
    }
}

/// What stands in the query.
pub(super) struct Asked<T>(pub(super) T);

impl<T: DeserializeOwned + Send> FromRequestParts<Arc<App>> for Asked<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, ApiError> {
        let asked = Query::from_request_parts(parts, app).await;
        asked.map(|Query(asked)| Self(asked)).map_err(|error| {
            let why = error.body_text();
            let why = why.rsplit_once("query string: ").map_or(why.as_str(), |(_, why)| why);
            ApiError::bad_request(format!("the query is not what is expected: {why}"))
        })
    }
}

/// What stands in the path. What is not UTF-8 names nothing.
pub(super) struct Named<T>(pub(super) T);

impl<T: DeserializeOwned + Send> FromRequestParts<Arc<App>> for Named<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, ApiError> {
        let named = Path::from_request_parts(parts, app).await;
        named.map(|Path(named)| Self(named)).map_err(|_| ConversationError::BadId.into())
    }
}

/// The number of an epoch.
pub(super) fn number(text: &str) -> Result<u64, ApiError> {
    text.parse().map_err(|_| ApiError::bad_request("an epoch is a number"))
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

/// Tells whether a caller has the answer of this tag.
pub(super) fn has_answer(headers: &HeaderMap, tag: &str) -> bool {
    let known = headers.get_all(header::IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    let mut known = known.flat_map(|value| value.split(','));
    known.any(|one| one.trim() == "*" || one.trim().trim_start_matches("W/") == tag)
}
