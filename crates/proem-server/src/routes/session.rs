//! Browser sessions: a cookie in exchange for the token.

use axum::extract::{Request, State};
use axum::http::header::SET_COOKIE;
use axum::http::{HeaderMap, HeaderValue, StatusCode};

use super::Shared;
use crate::app::App;
use crate::error::ApiError;
use crate::request_target::RequestTarget;
use crate::session;

/// Sets the session cookie. The guard has checked the token.
pub(super) async fn begin(State(app): Shared, request: Request) -> Result<(StatusCode, HeaderMap), ApiError> {
    let mut headers = HeaderMap::new();
    if let Some(token) = &app.options.token {
        set(&mut headers, &session::cookie(token, is_https(&app, &request)))?;
    }
    Ok((StatusCode::NO_CONTENT, headers))
}

/// Removes the session cookie.
pub(super) async fn end(State(app): Shared, request: Request) -> Result<(StatusCode, HeaderMap), ApiError> {
    let mut headers = HeaderMap::new();
    if let Some(token) = &app.options.token {
        set(&mut headers, &session::no_cookie(token, is_https(&app, &request)))?;
    }
    Ok((StatusCode::NO_CONTENT, headers))
}

fn is_https(app: &App, request: &Request) -> bool {
    RequestTarget::new(&app.options, request.extensions(), request.headers()).is_https()
}

fn set(headers: &mut HeaderMap, cookie: &str) -> Result<(), ApiError> {
    let value = HeaderValue::from_str(cookie).map_err(|_| ApiError::internal())?;
    headers.insert(SET_COOKIE, value);
    Ok(())
}
