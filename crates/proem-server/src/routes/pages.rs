//! The web editor: three files that are built from `web/` and live in the binary.

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

/// What the editor may do in a browser: run and style itself, and ask this server.
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

/// For program and looks, which are the same for everybody and hold nothing of anybody: a browser may keep them, and asks
/// by their digest whether they still are what this server has. Everything else is kept by nobody.
const ASKED_EACH_TIME: &str = "no-cache";

const INDEX: File = File {
    name: "index.html",
    kind: "text/html; charset=utf-8",
    cache: "no-store",
    content: include_bytes!("../../dist/index.html"),
};

const SCRIPT: File = File {
    name: "assets/app.js",
    kind: "text/javascript; charset=utf-8",
    cache: ASKED_EACH_TIME,
    content: include_bytes!("../../dist/assets/app.js"),
};

const STYLE: File = File {
    name: "assets/app.css",
    kind: "text/css; charset=utf-8",
    cache: ASKED_EACH_TIME,
    content: include_bytes!("../../dist/assets/app.css"),
};

/// The page.
pub(super) async fn index(State(app): Shared, headers: HeaderMap) -> Result<Response, ApiError> {
    app.file(&INDEX, &headers)
}

/// Its program.
pub(super) async fn script(State(app): Shared, headers: HeaderMap) -> Result<Response, ApiError> {
    app.file(&SCRIPT, &headers)
}

/// Its looks.
pub(super) async fn style(State(app): Shared, headers: HeaderMap) -> Result<Response, ApiError> {
    app.file(&STYLE, &headers)
}

fn read_page(path: &Path) -> io::Result<Bytes> {
    let mut content = Vec::new();
    proem::open_named(path)?.read_to_end(&mut content)?;
    Ok(content.into())
}

impl App {
    /// A file of the editor.
    fn file(&self, file: &File, headers: &HeaderMap) -> Result<Response, ApiError> {
        let content = match &self.options.web {
            None => Bytes::from_static(file.content),
            // Only for those who work on the editor: a read that blocks does no harm there.
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
