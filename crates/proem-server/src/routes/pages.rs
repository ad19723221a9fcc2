//! The web editor: three files that are built from `web/` and live in the binary.

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};

use super::Shared;
use crate::app::App;
use crate::error::ApiError;

/// What the editor may do in a browser: run and style itself, and ask this server.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
                      connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'none'";

/// The page.
pub(super) async fn index(State(app): Shared) -> Result<Response, ApiError> {
    app.file("text/html; charset=utf-8", "index.html", include_bytes!("../../dist/index.html"))
}

/// Its program.
pub(super) async fn script(State(app): Shared) -> Result<Response, ApiError> {
    app.file("text/javascript; charset=utf-8", "assets/app.js", include_bytes!("../../dist/assets/app.js"))
}

/// Its looks.
pub(super) async fn style(State(app): Shared) -> Result<Response, ApiError> {
    app.file("text/css; charset=utf-8", "assets/app.css", include_bytes!("../../dist/assets/app.css"))
}

impl App {
    fn file(&self, kind: &'static str, name: &str, embedded: &'static [u8]) -> Result<Response, ApiError> {
        let headers = [
            (header::CONTENT_TYPE, kind),
            (header::CONTENT_SECURITY_POLICY, POLICY),
            (header::X_FRAME_OPTIONS, "DENY"),
        ];
        let Some(folder) = &self.options.web else { return Ok((headers, embedded).into_response()) };
        // Only for those who work on the editor: a read that blocks does no harm there.
        let content = std::fs::read(folder.join(name));
        let content = content.map_err(|error| ApiError::not_found(format!("cannot read {name}: {error}")))?;
        Ok((headers, content).into_response())
    }
}
