//! The web editor: three files that are built from `web/` and compiled into the binary.

use std::io::{self, Read};
use std::path::Path;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use proem_core::digest::Digest;

use super::Shared;
use super::body::has_answer;
use crate::app::App;
use crate::error::ApiError;

/// The content security policy of the editor: its own script and style, and requests to this server.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
                      connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'none'";

/// A file of the editor.
struct File {
    name: &'static str,
    kind: &'static str,
    cache: &'static str,
    content: &'static [u8],
}

/// The cache policy of static assets: browsers may store them, and revalidate them by `ETag`. All other answers are
/// `no-store`.
const REVALIDATE: &str = "no-cache";

const INDEX: File = File {
    name: "index.html",
    kind: "text/html; charset=utf-8",
    cache: "no-store",
    content: include_bytes!("../../dist/index.html"),
};

const SCRIPT: File = File {
    name: "assets/app.js",
    kind: "text/javascript; charset=utf-8",
    cache: REVALIDATE,
    content: include_bytes!("../../dist/assets/app.js"),
};

const STYLE: File = File {
    name: "assets/app.css",
    kind: "text/css; charset=utf-8",
    cache: REVALIDATE,
    content: include_bytes!("../../dist/assets/app.css"),
};

/// Returns the page.
pub(super) async fn index(State(app): Shared, headers: HeaderMap) -> Result<Response, ApiError> {
    app.file(&INDEX, &headers)
}

/// Returns the script.
pub(super) async fn script(State(app): Shared, headers: HeaderMap) -> Result<Response, ApiError> {
    app.file(&SCRIPT, &headers)
}

/// Returns the style sheet.
pub(super) async fn style(State(app): Shared, headers: HeaderMap) -> Result<Response, ApiError> {
    app.file(&STYLE, &headers)
}

fn read_page(path: &Path) -> io::Result<Bytes> {
    let mut content = Vec::new();
    proem::open_named(path)?.read_to_end(&mut content)?;
    Ok(content.into())
}

impl App {
    /// Returns a file of the editor, or 304 if the client has it.
    fn file(&self, file: &File, headers: &HeaderMap) -> Result<Response, ApiError> {
        let content = match &self.options.web {
            None => Bytes::from_static(file.content),
            // Only for development of the editor: a blocking read does no harm there.
            Some(folder) => read_page(&folder.join(file.name)).map_err(|error| {
                ApiError::not_found(format!("cannot read {} of the editor: {error}", file.name))
            })?,
        };
        let tag = format!("\"{}\"", Digest::new(&content).hex());
        let is_known = has_answer(headers, &tag);
        let own = [
            (header::CONTENT_TYPE, file.kind),
            (header::CONTENT_SECURITY_POLICY, POLICY),
            (header::X_FRAME_OPTIONS, "DENY"),
            (header::CACHE_CONTROL, file.cache),
            (header::ETAG, &tag),
        ];
        if is_known {
            return Ok((StatusCode::NOT_MODIFIED, own).into_response());
        }
        Ok((own, content).into_response())
    }
}
