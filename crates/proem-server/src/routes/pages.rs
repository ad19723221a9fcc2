//! The web interface: files that are built from `web/` and compiled into the binary.

use std::io::{self, Read};
use std::path::Path;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use proem_core::digest::Digest;

use super::Shared;
use super::body::{PathParams, has_answer};
use crate::app::App;
use crate::error::ApiError;

/// The content security policy of the editor: its own script and style, and requests to this server.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
                      connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'none'";

/// A file of the page besides the page itself.
struct Asset {
    name: &'static str,
    content: &'static [u8],
}

impl Asset {
    const fn new(name: &'static str, content: &'static [u8]) -> Self {
        Self { name, content }
    }
}

/// The files that the page loads.
static ASSETS: &[Asset] = &include!("../../dist/assets.rs");

/// The page.
const INDEX: &[u8] = include_bytes!("../../dist/index.html");

/// The cache policy of files with a fixed name: browsers may store them, and revalidate them by `ETag`. The API answers
/// with `no-store`, and so does the page itself.
const REVALIDATE: &str = "no-cache";

/// The cache policy of files that are named after their content.
const FOR_EVER: &str = "public, max-age=31536000, immutable";

/// Returns the page.
pub(super) async fn index(State(app): Shared, headers: HeaderMap) -> Result<Response, ApiError> {
    let kind = "text/html; charset=utf-8";
    app.file("index.html", Some(INDEX), (kind, "no-store"), &headers)
}

/// Returns a script or a style sheet.
pub(super) async fn asset(
    State(app): Shared,
    PathParams(name): PathParams<String>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let kind = kind_of(&name).ok_or_else(|| ApiError::not_found("there is no such file"))?;
    let cache = if matches!(&*name, "app.js" | "app.css") { REVALIDATE } else { FOR_EVER };
    let content = ASSETS.iter().find(|asset| asset.name == name).map(|asset| asset.content);
    app.file(&format!("assets/{name}"), content, (kind, cache), &headers)
}

/// Returns the media type of a plain file name, or `None` for names that no file of the page has.
fn kind_of(name: &str) -> Option<&'static str> {
    let (stem, extension) = name.rsplit_once('.')?;
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    if stem.is_empty() || !stem.bytes().all(is_plain) {
        return None;
    }
    match extension {
        "js" => Some("text/javascript; charset=utf-8"),
        "css" => Some("text/css; charset=utf-8"),
        _ => None,
    }
}

fn read_page(path: &Path) -> io::Result<Bytes> {
    let mut content = Vec::new();
    proem::open_named(path)?.read_to_end(&mut content)?;
    Ok(content.into())
}

impl App {
    /// Returns a file of the page with its media type and cache policy, or 304 if the client has it.
    fn file(
        &self,
        name: &str,
        built_in: Option<&'static [u8]>,
        (kind, cache): (&str, &str),
        headers: &HeaderMap,
    ) -> Result<Response, ApiError> {
        let content = match (&self.options.web, built_in) {
            (None, Some(content)) => Bytes::from_static(content),
            (None, None) => return Err(ApiError::not_found("there is no such file")),
            // Only for development of the page: a blocking read does no harm there.
            (Some(folder), _) => read_page(&folder.join(name)).map_err(|error| {
                ApiError::not_found(format!("cannot read {name} of the web interface: {error}"))
            })?,
        };
        let tag = format!("\"{}\"", Digest::new(&content).hex());
        let own = [
            (header::CONTENT_TYPE, kind),
            (header::CONTENT_SECURITY_POLICY, POLICY),
            (header::X_FRAME_OPTIONS, "DENY"),
            (header::CACHE_CONTROL, cache),
            (header::ETAG, &tag),
        ];
        if has_answer(headers, &tag) {
            return Ok((StatusCode::NOT_MODIFIED, own).into_response());
        }
        Ok((own, content).into_response())
    }
}
