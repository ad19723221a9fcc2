//! The routes, and what they have in common.

mod body;
mod calls;
mod compaction;
mod compat;
mod conversations;
mod editor;
mod epochs;
mod pages;
mod preview;
mod probes;
mod session;
mod template;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use axum::Router;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, delete, get, post, put};
use futures_util::FutureExt;

use crate::app::App;
use crate::error::ApiError;
use crate::telemetry::{Parent, Span};
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
        ("/", get(pages::index)),
        ("/assets/app.js", get(pages::script)),
        ("/assets/app.css", get(pages::style)),
        ("/session", post(session::begin).delete(session::end)),
        ("/editor", get(editor::editor)),
        ("/files", get(editor::files)),
        ("/compat", get(compat::compat)),
        ("/healthz", get(probes::health)),
        ("/readyz", get(probes::ready)),
        ("/metrics", get(probes::metrics)),
        ("/openapi.json", get(probes::openapi)),
        ("/system-prompt", get(template::get).put(template::put)),
        ("/system-prompt/variables", get(template::variables)),
        ("/system-prompt/versions", get(template::versions)),
        ("/system-prompt/versions/{version}", get(template::version)),
        ("/system-prompt/versions/{version}/restore", post(template::restore)),
        ("/preview", post(preview::preview)),
        ("/preview/variables", post(editor::values)),
        ("/conversations", get(conversations::list)),
        ("/conversations/{id}", get(conversations::show).delete(conversations::remove)),
        ("/conversations/{id}/epochs/{number}", get(epochs::show)),
        ("/conversations/{id}/turn", post(conversations::turn)),
        ("/conversations/{id}/reload", post(conversations::reload)),
        ("/conversations/{id}/tools", put(conversations::tools)),
        ("/conversations/{id}/calls", get(calls::list).post(calls::add)),
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

/// What is asked so often that nobody wants to read about it.
fn is_probe(path: &str) -> bool {
    matches!(path, "/healthz" | "/readyz" | "/metrics")
}

/// Gives each request a number and a time limit, counts it, and writes one line about it.
async fn watch(State(app): Shared, request: Request, next: Next) -> Response {
    let (begun, began_at, id) = (Instant::now(), SystemTime::now(), log::random_id());
    let (method, path) = (request.method().to_string(), log::path(request.uri().path()));
    let route = request.extensions().get::<MatchedPath>().map_or("-", MatchedPath::as_str).to_owned();
    let parent = request.headers().get("traceparent").and_then(|value| Parent::of(value.to_str().ok()?));
    // A panic is ours: nothing of it goes out, and the process lives.
    let answer = AssertUnwindSafe(next.run(request)).catch_unwind();
    let mut response = match tokio::time::timeout(app.options.time_max, answer).await {
        Ok(Ok(response)) => response,
        Ok(Err(_)) => ApiError::internal().into_response(),
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
    let is_sampled = parent.as_ref().is_none_or(|parent| parent.is_sampled);
    if let Some(telemetry) = app.options.telemetry.as_ref().filter(|_| is_sampled && !is_probe(&path)) {
        let (method, request, took) = (method.clone(), id.clone(), begun.elapsed());
        telemetry.take(&Span { parent, method, route, request, status, begun: began_at, took });
    }
    if !is_probe(&path) {
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
