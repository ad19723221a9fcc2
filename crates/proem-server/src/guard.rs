//! Who may ask: the right `Host`, no foreign web page, and the token where there is one.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{self, HeaderMap};
use axum::http::{HeaderName, HeaderValue, Method, Request as HttpRequest, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use subtle::ConstantTimeEq;

use crate::app::App;
use crate::error::ApiError;
use crate::session;

/// What requests must show. It is never printed.
#[derive(Clone)]
pub struct Token(String);

impl Token {
    /// Takes a token; one that is too short to be random is refused.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        let is_good = text.len() >= 16 && text.bytes().all(|byte| byte.is_ascii_graphic());
        is_good.then(|| Self(text.to_owned()))
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }

    fn is(&self, shown: &str) -> bool {
        self.0.as_bytes().ct_eq(shown.as_bytes()).into()
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Token(…)")
    }
}

const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");

/// Lets a request pass, or says why not.
pub(crate) async fn guard(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    match check(&app, &request) {
        Ok(()) => next.run(request).await,
        Err(error) => error.into_response(),
    }
}

pub(crate) fn check<B>(app: &App, request: &HttpRequest<B>) -> Result<(), ApiError> {
    check_host(&app.options.hosts, request.uri(), request.headers())?;
    check_origin(request.headers(), request.method())?;
    check_token(app.options.token.as_ref(), request.uri().path(), request.headers())?;
    check_type(request.method(), request.headers())
}

/// A name that leads here by a stranger's choice is none of ours.
fn check_host(own: &[String], uri: &Uri, headers: &HeaderMap) -> Result<(), ApiError> {
    let misdirected = || {
        ApiError::new(StatusCode::MISDIRECTED_REQUEST, "wrong_host", "this server is not called by that name")
            .with_hint("use its address, or start it with `--host NAME`")
    };
    let mut hosts = headers.get_all(header::HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else { return Err(misdirected()) };
    let host = host.to_str().map_err(|_| misdirected())?;
    // A target may name its server itself, and then that one counts: both must say the same.
    if uri.authority().is_some_and(|named| !named.as_str().eq_ignore_ascii_case(host)) {
        return Err(misdirected());
    }
    let name = without_port(host).ok_or_else(misdirected)?;
    let is_address = match name.strip_prefix('[').and_then(|name| name.strip_suffix(']')) {
        Some(name) => name.parse::<Ipv6Addr>().is_ok(),
        None => name.parse::<Ipv4Addr>().is_ok(),
    };
    let is_own =
        name.eq_ignore_ascii_case("localhost") || own.iter().any(|own| own.eq_ignore_ascii_case(name));
    if is_address || is_own { Ok(()) } else { Err(misdirected()) }
}

/// The name in a `Host`; `None` when it is no such thing.
fn without_port(host: &str) -> Option<&str> {
    if host.starts_with('[') {
        let end = host.find(']')?;
        let (name, port) = host.split_at(end + 1);
        return (port.is_empty() || is_port(port.strip_prefix(':')?)).then_some(name);
    }
    let (name, port) = match host.split_once(':') {
        Some((name, port)) => (name, Some(port)),
        None => (host, None),
    };
    let is_name = !name.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_'));
    (is_name && port.is_none_or(is_port)).then_some(name)
}

fn is_port(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit()) && text.parse::<u16>().is_ok()
}

/// A page of another site must not get an answer, nor change anything.
fn check_origin(headers: &HeaderMap, method: &Method) -> Result<(), ApiError> {
    let foreign = || ApiError::new(StatusCode::FORBIDDEN, "foreign_origin", "a page of another site asked");
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    // Said twice, each of them counts.
    let is_own_site = |site: &HeaderValue| site == "same-origin" || site == "none";
    let is_own = |origin: &HeaderValue| {
        let name = origin.as_bytes().strip_prefix(b"http://");
        name.or_else(|| origin.as_bytes().strip_prefix(b"https://")) == Some(host.as_bytes())
    };
    let is_allowed = headers.get_all(FETCH_SITE).iter().all(is_own_site)
        && headers.get_all(header::ORIGIN).iter().all(is_own)
        && method != Method::OPTIONS;
    if is_allowed { Ok(()) } else { Err(foreign()) }
}

/// Tells whether a path needs no token. The editor's files are the same for all clients: they ask for the token.
pub(crate) fn is_open(path: &str) -> bool {
    matches!(path, "/" | "/healthz" | "/readyz" | "/favicon.ico") || path.starts_with("/assets/")
}

fn check_token(token: Option<&Token>, path: &str, headers: &HeaderMap) -> Result<(), ApiError> {
    let Some(token) = token.filter(|_| !is_open(path)) else { return Ok(()) };
    let shown = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let shown = shown.and_then(|value| value.strip_prefix("Bearer "));
    let mut cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let is_shown = match shown {
        Some(shown) => token.is(shown),
        None => cookies.any(|cookies| session::is_session(token, cookies)),
    };
    if is_shown {
        return Ok(());
    }
    let error =
        ApiError::new(StatusCode::UNAUTHORIZED, "no_token", "the request shows no token, or a wrong one");
    Err(error.with_hint("send `Authorization: Bearer TOKEN`"))
}

/// What a form of another site can send is no JSON.
fn check_type(method: &Method, headers: &HeaderMap) -> Result<(), ApiError> {
    if !matches!(*method, Method::POST | Method::PUT) {
        return Ok(());
    }
    let has_body = headers.get(header::CONTENT_LENGTH).is_none_or(|length| length.as_bytes() != b"0")
        && (headers.contains_key(header::CONTENT_LENGTH) || headers.contains_key(header::TRANSFER_ENCODING));
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if !has_body && kind.is_empty() || kind.eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    let error =
        ApiError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "not_json", "the body is not said to be JSON");
    Err(error.with_hint("send `Content-Type: application/json`"))
}

/// Adds what every answer says to browsers, unless it says something else.
pub(crate) fn add_headers(headers: &mut HeaderMap) {
    for (name, value) in [
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
        (header::CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'"),
        (RESOURCE_POLICY, "same-origin"),
    ] {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Row H4.
    #[test]
    fn hosts_are_names_or_addresses_with_a_port() {
        for (host, name) in [
            ("localhost", Some("localhost")),
            ("localhost:8080", Some("localhost")),
            ("[::1]:80", Some("[::1]")),
            ("127.0.0.1:1", Some("127.0.0.1")),
            ("localhost.", Some("localhost.")),
            ("", None),
            ("a b", None),
            ("localhost:x", None),
            ("localhost:99999", None),
            ("[::1]x", None),
            ("user@localhost", None),
        ] {
            assert_eq!(without_port(host), name, "{host}");
        }
    }

    /// Row H3.
    #[test]
    fn short_tokens_are_refused() {
        assert!(Token::new("short").is_none());
        assert!(Token::new(" 0123456789abcdef\n").is_some());
        assert!(Token::new("0123456789 abcdef").is_none());
    }
}
