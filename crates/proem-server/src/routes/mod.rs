//! The routes, and what they have in common.

mod body;
mod compaction;
mod conversations;
mod preview;
mod probes;
mod template;

use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, delete, get, post, put};

use crate::app::App;
use crate::error::ApiError;
use crate::{guard, log};

/// What every answer carries, and the log has, too.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

type Shared = State<Arc<App>>;

/// All routes, behind the guard.
pub(crate) fn router(app: &Arc<App>) -> Router {
    let mut router = Router::new();
    for (path, methods) in table() {
        router = router.route(path, methods.fallback(wrong_method));
    }
    router
        .fallback(no_route)
        .layer(middleware::from_fn_with_state(Arc::clone(app), guard::guard))
        .layer(middleware::from_fn_with_state(Arc::clone(app), watch))
        .with_state(Arc::clone(app))
}

/// Paths and what answers them.
fn table() -> Vec<(&'static str, MethodRouter<Arc<App>>)> {
    vec![
        ("/healthz", get(probes::health)),
        ("/readyz", get(probes::ready)),
        ("/metrics", get(probes::metrics)),
        ("/openapi.json", get(probes::openapi)),
        ("/system-prompt", get(template::get).put(template::put)),
        ("/system-prompt/variables", get(template::variables)),
        ("/system-prompt/versions", get(template::versions)),
        ("/system-prompt/versions/{version}/restore", post(template::restore)),
        ("/preview", post(preview::preview)),
        ("/conversations", get(conversations::list)),
        ("/conversations/{id}", get(conversations::show).delete(conversations::remove)),
        ("/conversations/{id}/turn", post(conversations::turn)),
        ("/conversations/{id}/reload", post(conversations::reload)),
        ("/conversations/{id}/tools", put(conversations::tools)),
        ("/conversations/{id}/drift", get(conversations::drift)),
        ("/conversations/{id}/diff", get(conversations::diff)),
        ("/conversations/{id}/compaction", post(compaction::begin)),
        ("/conversations/{id}/compaction/{token}", delete(compaction::abort)),
        ("/conversations/{id}/compaction/{token}/commit", post(compaction::commit)),
    ]
}

async fn no_route() -> ApiError {
    ApiError::not_found("there is nothing at this path").with_hint("`/openapi.json` lists what there is")
}

async fn wrong_method() -> ApiError {
    ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "wrong_method", "this path does not take that method")
        .with_hint("`/openapi.json` lists what there is")
}

/// Gives each request a number and a time limit, counts it, and writes one line about it.
async fn watch(State(app): Shared, request: Request, next: Next) -> Response {
    let (begun, id) = (Instant::now(), log::random_id());
    let (method, path) = (request.method().to_string(), request.uri().path().to_owned());
    let mut response = match tokio::time::timeout(app.options.time_max, next.run(request)).await {
        Ok(response) => response,
        Err(_) => ApiError::new(StatusCode::REQUEST_TIMEOUT, "too_slow", "the request took too long")
            .into_response(),
    };
    response = guard::with_headers(response);
    let micros = u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX);
    let status = response.status().as_u16();
    app.metrics.answered(status, micros);
    if let Ok(value) = HeaderValue::from_str(&id) {
        response.headers_mut().insert(REQUEST_ID, value);
    }
    if !matches!(path.as_str(), "/healthz" | "/readyz" | "/metrics") {
        let (status, micros) = (status.to_string(), micros.to_string());
        log::line(
            "info",
            &[
                ("request", &id),
                ("method", &method),
                ("path", &path),
                ("status", &status),
                ("micros", &micros),
            ],
        );
    }
    response
}
