//! Probes, metrics and the description of the API.

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::Shared;
use crate::app::App;
use crate::error::ApiError;
use crate::metrics::ExternalMetrics;
use crate::telemetry::Telemetry;

/// Answers as long as the process runs.
pub(super) async fn health() -> axum::Json<Value> {
    axum::Json(json!({ "status": "ok" }))
}

/// Checks that the store answers and accepts writes.
pub(super) async fn ready(State(app): Shared) -> Result<axum::Json<Value>, ApiError> {
    let check = |app: &App| {
        app.store().template_heads(None, 1)?;
        Ok(app.write_health.check(app.store().as_ref())?)
    };
    app.work(check).await?;
    Ok(axum::Json(json!({ "status": "ok" })))
}

/// Returns metrics for Prometheus.
pub(super) async fn metrics(State(app): Shared) -> Response {
    let external = ExternalMetrics {
        work_running: app.work_running(),
        spans_dropped: app.options.telemetry.as_ref().map_or(0, Telemetry::dropped),
        epochs: app.conversations.opened(),
    };
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], app.metrics.text(external)).into_response()
}

/// Returns the OpenAPI description.
pub(super) async fn openapi() -> axum::Json<Value> {
    axum::Json(crate::openapi::document())
}
