//! Checks of every request: its `Host`, its origin, the token if there is one, and the content type.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

use axum::http::header::{self, HeaderMap};
use axum::http::{HeaderName, HeaderValue, Method, Request, StatusCode, Uri};
use subtle::ConstantTimeEq;

use crate::app::{App, Options};
use crate::error::ApiError;
use crate::request_target::{PublicUrl, RequestTarget};
use crate::session;

/// The token that requests must send. It is never printed.
#[derive(Clone)]
pub struct Token(String);

impl Token {
    /// Minimum length of a token, in bytes.
    pub const BYTES_MIN: usize = 16;

    /// Creates a token; `None` if it is too short to be random, or is not one word of ASCII characters.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        let is_good = text.len() >= Self::BYTES_MIN && text.bytes().all(|byte| byte.is_ascii_graphic());
        is_good.then(|| Self(text.to_owned()))
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }

    /// Compares in constant time.
    fn is(&self, sent: &str) -> bool {
        self.0.as_bytes().ct_eq(sent.as_bytes()).into()
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Token(…)")
    }
}

const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");

/// Checks host, origin, token and content type of a request.
pub(crate) fn check<B>(app: &App, request: &Request<B>) -> Result<(), ApiError> {
    let target = RequestTarget::new(&app.options, request.extensions(), request.headers());
    check_host(&app.options, &target, request.uri(), request.headers())?;
    check_origin(&target, request.headers(), request.method())?;
    check_token(app.options.token.as_ref(), request.uri().path(), request.headers())?;
    check_type(request.method(), request.uri().path(), request.headers())
}

/// Checks that the request was sent to a host name of this server. With DNS rebinding, a foreign page reaches the server
/// by a name of its own.
fn check_host(
    options: &Options,
    target: &RequestTarget<'_>,
    uri: &Uri,
    headers: &HeaderMap,
) -> Result<(), ApiError> {
    let misdirected = || {
        ApiError::new(
            StatusCode::MISDIRECTED_REQUEST,
            "wrong_host",
            "the `Host` is not a name of this server",
        )
        .with_hint("use the server's address, or start the server with `--host NAME`")
    };
    let mut hosts = headers.get_all(header::HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else { return Err(misdirected()) };
    let host = host.to_str().map_err(|_| misdirected())?;
    // A request target in absolute form has precedence over `Host`: both must be equal.
    if uri.authority().is_some_and(|named| !named.as_str().eq_ignore_ascii_case(host)) {
        return Err(misdirected());
    }
    let forwarded = target.forwarded.map(|host| host.to_str().unwrap_or_default());
    let is_known = |host: &str| without_port(host).is_some_and(|name| is_own_name(options, name));
    if is_known(host) && forwarded.is_none_or(is_known) { Ok(()) } else { Err(misdirected()) }
}

/// Tells whether a name is one of the server's. Every address is allowed: a rebound name is never an address.
fn is_own_name(options: &Options, name: &str) -> bool {
    let is_address = match name.strip_prefix('[').and_then(|name| name.strip_suffix(']')) {
        Some(name) => name.parse::<Ipv6Addr>().is_ok(),
        None => name.parse::<Ipv4Addr>().is_ok(),
    };
    let mut own =
        options.hosts.iter().map(String::as_str).chain(options.public_url.as_ref().map(PublicUrl::name));
    is_address || name.eq_ignore_ascii_case("localhost") || own.any(|own| own.eq_ignore_ascii_case(name))
}

/// Returns the name in a `Host` header, or `None` if the header is invalid.
pub(crate) fn without_port(host: &str) -> Option<&str> {
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

/// Refuses requests of pages of other sites, which must neither read answers nor change anything.
fn check_origin(target: &RequestTarget<'_>, headers: &HeaderMap, method: &Method) -> Result<(), ApiError> {
    let foreign = || {
        ApiError::new(
            StatusCode::FORBIDDEN,
            "foreign_origin",
            "the request comes from a page of another site",
        )
        .with_hint("behind a proxy, start the server with `--public-url URL`")
    };
    // A header can occur several times: every value must be allowed.
    let is_own_site = |site: &HeaderValue| site == "same-origin" || site == "none";
    let is_allowed = headers.get_all(FETCH_SITE).iter().all(is_own_site)
        && headers.get_all(header::ORIGIN).iter().all(|origin| target.is_own_origin(origin))
        && method != Method::OPTIONS;
    if is_allowed { Ok(()) } else { Err(foreign()) }
}

/// Tells whether a path needs no token: probes, and the editor's files, which are public and ask the user for the token.
pub(crate) fn is_open(path: &str) -> bool {
    matches!(path, "/" | "/healthz" | "/readyz" | "/favicon.ico") || path.starts_with("/assets/")
}

fn check_token(token: Option<&Token>, path: &str, headers: &HeaderMap) -> Result<(), ApiError> {
    let Some(token) = token.filter(|_| !is_open(path)) else { return Ok(()) };
    let sent = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let sent = sent.and_then(bearer);
    let mut cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let is_valid = match sent {
        Some(sent) => token.is(sent),
        None => cookies.any(|cookies| session::is_session(token, cookies)),
    };
    if is_valid {
        return Ok(());
    }
    let error = ApiError::new(StatusCode::UNAUTHORIZED, "no_token", "the token is missing or wrong");
    Err(error.with_hint("send `Authorization: Bearer TOKEN`"))
}

/// Returns the token of an `Authorization` header. The scheme is case-insensitive (RFC 9110, section 11.1).
fn bearer(value: &str) -> Option<&str> {
    let (scheme, token) = value.split_once(' ')?;
    // One or more spaces separate them (RFC 9110, section 11.4).
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim_start_matches(' '))
}

/// Checks that a body is sent as JSON, which an HTML form of another site cannot do.
fn check_type(method: &Method, path: &str, headers: &HeaderMap) -> Result<(), ApiError> {
    if !matches!(*method, Method::POST | Method::PUT) {
        return Ok(());
    }
    let has_body = headers.get(header::CONTENT_LENGTH).is_none_or(|length| length.as_bytes() != b"0")
        && (headers.contains_key(header::CONTENT_LENGTH) || headers.contains_key(header::TRANSFER_ENCODING));
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    // A form cannot send lines of JSON as that, either.
    let are_lines =
        ["application/x-ndjson", "application/jsonl"].iter().any(|lines| kind.eq_ignore_ascii_case(lines));
    let is_json = kind.eq_ignore_ascii_case("application/json") || are_lines && path == "/calls";
    if !has_body && kind.is_empty() || is_json {
        return Ok(());
    }
    let error = ApiError::new(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "not_json",
        "the content type of the body is not JSON",
    );
    Err(error.with_hint("send `Content-Type: application/json`"))
}

/// Adds the security headers that an answer does not set itself.
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
    fn the_scheme_of_a_token_is_written_in_any_case() {
        for value in ["Bearer t", "bearer t", "BEARER t", "Bearer  t"] {
            assert_eq!(bearer(value), Some("t"), "{value}");
        }
        for value in ["t", "Basic t", "Bearert", "Bearer"] {
            assert_eq!(bearer(value), None, "{value}");
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
