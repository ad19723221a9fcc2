//! The table of routes.

mod body;
mod branches;
mod calls;
mod compaction;
mod compat;
mod conversations;
mod editor;
mod epochs;
mod insight;
mod pages;
mod preview;
mod probes;
mod session;
mod template;
mod workspaces;

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};

use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::{MethodRouter, delete, get, post, put};

use crate::app::App;
use crate::error::ApiError;
use crate::front::MatchedRoute;

type Shared = State<Arc<App>>;

/// Returns the router of all routes. The guard has admitted a request before it gets here.
pub(crate) fn router(app: &Arc<App>) -> Router {
    let mut router = Router::new();
    for (path, methods) in table() {
        router = router.route(path, methods.fallback(wrong_method));
    }
    router = router.fallback(no_route);
    if app.options.telemetry.is_some() {
        router = router.layer(middleware::from_fn(name_route));
    }
    router.with_state(Arc::clone(app))
}

/// Records the route that a request takes, for its span.
async fn name_route(request: Request, next: Next) -> Response {
    MatchedRoute::set(&request);
    next.run(request).await
}

/// Returns each path with its handlers.
fn table() -> Vec<(&'static str, MethodRouter<Arc<App>>)> {
    vec![
        ("/", get(pages::index)),
        ("/assets/{name}", get(pages::asset)),
        ("/session", post(session::begin).delete(session::end)),
        ("/editor", get(editor::editor)),
        ("/files", get(editor::files)),
        ("/compat", get(compat::compat)),
        ("/healthz", get(probes::health)),
        ("/readyz", get(probes::ready)),
        ("/metrics", get(probes::metrics)),
        ("/health", get(insight::health::health)),
        ("/events", get(insight::events::events)),
        ("/sources", get(insight::sources::sources)),
        ("/openapi.json", get(probes::openapi)),
        ("/system-prompt", get(template::get).put(template::put)),
        ("/system-prompt/variables", get(template::variables)),
        ("/system-prompt/versions", get(template::versions)),
        ("/system-prompt/versions/{version}", get(template::version)),
        ("/system-prompt/versions/{version}/restore", post(template::restore)),
        ("/system-prompt/versions/{version}/label", put(template::label)),
        ("/preview", post(preview::preview)),
        ("/preview/variables", post(editor::values)),
        ("/workspaces", post(workspaces::put)),
        ("/calls", get(calls::page).post(calls::record)),
        ("/calls/{id}", get(calls::show)),
        ("/usage", get(calls::usage)),
        ("/v1/logs", post(calls::logs)),
        ("/conversations", get(conversations::list)),
        ("/conversations/{id}", get(conversations::show).delete(conversations::remove)),
        ("/conversations/{id}/epochs/{number}", get(epochs::show)),
        ("/conversations/{id}/turn", post(conversations::turn)),
        ("/conversations/{id}/reload", post(conversations::reload)),
        ("/conversations/{id}/tools", put(conversations::tools)),
        ("/conversations/{id}/tools/active", put(conversations::active_tools)),
        ("/conversations/{id}/profile", put(conversations::profile)),
        ("/conversations/{id}/resources", post(conversations::resources)),
        ("/conversations/{id}/fork", post(branches::fork)),
        ("/conversations/{id}/spawn", post(branches::spawn)),
        ("/conversations/{id}/calls", get(calls::list).post(calls::add)),
        ("/conversations/{id}/simulate", post(insight::what_if::simulate)),
        ("/conversations/{id}/drift", get(conversations::drift)),
        ("/conversations/{id}/diff", get(conversations::diff)),
        ("/conversations/{id}/compaction", post(compaction::begin)),
        ("/conversations/{id}/compaction/{token}", delete(compaction::abort)),
        ("/conversations/{id}/compaction/{token}/commit", post(compaction::commit)),
    ]
}

/// Tells whether a part of a path is a word of some route.
pub(crate) fn is_word(part: &str) -> bool {
    static WORDS: LazyLock<BTreeSet<&'static str>> = LazyLock::new(|| {
        let words = table().into_iter().flat_map(|(path, _)| path.split('/'));
        words.filter(|word| !word.is_empty() && !word.starts_with('{')).collect()
    });
    WORDS.contains(part)
}

async fn no_route() -> ApiError {
    ApiError::not_found("there is nothing at this path").with_hint("`/openapi.json` lists what there is")
}

async fn wrong_method() -> ApiError {
    ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "wrong_method", "this path does not take that method")
        .with_hint("`/openapi.json` lists what there is")
}
