//! For those who watch the server.

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::Shared;
use crate::app::App;
use crate::error::ApiError;
use crate::metrics::Elsewhere;
use crate::telemetry::Telemetry;

/// The process lives.
pub(super) async fn health() -> axum::Json<Value> {
    axum::Json(json!({ "status": "ok" }))
}

/// The store answers, and takes writes.
pub(super) async fn ready(State(app): Shared) -> Result<axum::Json<Value>, ApiError> {
    let check = |app: &App| {
        app.store().template_heads(None, 1)?;
        Ok(app.writes.check(app.store().as_ref())?)
    };
    app.work(check).await?;
    Ok(axum::Json(json!({ "status": "ok" })))
}

/// Numbers for Prometheus.
pub(super) async fn metrics(State(app): Shared) -> Response {
    let elsewhere = Elsewhere {
        work_running: app.work_running(),
        spans_dropped: app.options.telemetry.as_ref().map_or(0, Telemetry::dropped),
        epochs: app.conversations.opened(),
    };
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], app.metrics.text(elsewhere)).into_response()
}

/// The description of this API.
pub(super) async fn openapi() -> axum::Json<Value> {
    axum::Json(crate::openapi::document())
}
