//! The entry of every request: an id, a time limit, the guard, the routes, and a log line.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, OnceLock};
use std::time::{Instant, SystemTime};

use axum::Router;
use axum::body::Body;
use axum::extract::MatchedPath;
use axum::http::{HeaderName, HeaderValue, Request, StatusCode};
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use hyper::body::Incoming;
use tower::ServiceExt;

use crate::app::{App, Options};
use crate::connections::ConnectionSlot;
use crate::error::ApiError;
use crate::request_target::Peer;
use crate::telemetry::{Span, TraceParent};
use crate::{guard, log, routes};

/// The header with the request's id, which the log has, too.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Answers every request of the server.
pub(crate) struct Front {
    app: Arc<App>,
    router: Router,
}

impl Front {
    pub(crate) fn new(app: &Arc<App>) -> Self {
        Self { app: Arc::clone(app), router: routes::router(app) }
    }

    /// Gives a request an id and a time limit, answers and counts it, and writes one line to the log.
    pub(crate) async fn answer(&self, mut request: Request<Incoming>, slot: &ConnectionSlot) -> Response {
        let (begun, id) = (Instant::now(), log::random_id());
        let (method, uri) = (request.method().clone(), request.uri().clone());
        let traced = self.app.options.telemetry.as_ref().map(|_| TracedRequest::new(&mut request));
        let Options { connections, public_url, .. } = &self.app.options;
        if !connections.proxies.is_empty() || public_url.is_some() {
            request.extensions_mut().insert(Peer(slot.address()));
        }
        // A panic becomes an internal error without details, and the process continues.
        let answer = AssertUnwindSafe(self.pass(request, slot)).catch_unwind();
        let mut response = match tokio::time::timeout(self.app.options.time_max, answer).await {
            Ok(Ok(response)) => response,
            Ok(Err(_)) => ApiError::internal().into_response(),
            Err(_) => ApiError::new(StatusCode::REQUEST_TIMEOUT, "too_slow", "the request took too long")
                .into_response(),
        };
        guard::add_headers(response.headers_mut());
        let took = begun.elapsed();
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let status = response.status().as_u16();
        self.app.metrics.answered(status, micros);
        if let Ok(value) = HeaderValue::from_str(&id) {
            response.headers_mut().insert(REQUEST_ID, value);
        }
        if is_probe(uri.path()) {
            return response;
        }
        if let Some(TracedRequest { parent, begun, route }) = traced.filter(TracedRequest::is_sampled) {
            let route = route.name();
            let (method, request) = (method.to_string(), id.clone());
            let span = Span { parent, method, route, request, status, begun, took };
            self.app.options.telemetry.iter().for_each(|telemetry| telemetry.take(&span));
        }
        log::access(&id, &method, uri.path(), status, micros);
        response
    }

    /// Checks a request and routes it.
    async fn pass(&self, request: Request<Incoming>, slot: &ConnectionSlot) -> Response {
        if let Err(error) = guard::check(&self.app, &request) {
            return error.into_response();
        }
        if !guard::is_open(request.uri().path()) {
            slot.keep();
        }
        self.router.clone().oneshot(request.map(Body::new)).await.into_response()
    }
}

/// The parts of a request that its span needs.
struct TracedRequest {
    parent: Option<TraceParent>,
    begun: SystemTime,
    route: MatchedRoute,
}

impl TracedRequest {
    fn new<B>(request: &mut Request<B>) -> Self {
        let parent =
            request.headers().get("traceparent").and_then(|value| TraceParent::parse(value.to_str().ok()?));
        let route = MatchedRoute::default();
        request.extensions_mut().insert(route.clone());
        Self { parent, begun: SystemTime::now(), route }
    }

    fn is_sampled(&self) -> bool {
        self.parent.as_ref().is_none_or(|parent| parent.is_sampled)
    }
}

/// The route of a request. The router sets it, so that it is known even if the handler never answers.
#[derive(Clone, Default)]
pub(crate) struct MatchedRoute(Arc<OnceLock<MatchedPath>>);

impl MatchedRoute {
    /// Keeps the route of a request for its span, if the request has one.
    pub(crate) fn set<B>(request: &Request<B>) {
        let extensions = request.extensions();
        if let (Some(Self(route)), Some(matched)) = (extensions.get(), extensions.get::<MatchedPath>()) {
            route.get_or_init(|| matched.clone());
        }
    }

    /// Returns the route with names of parameters in place of their values.
    fn name(&self) -> String {
        self.0.get().map_or("-", MatchedPath::as_str).to_owned()
    }
}

/// Tells whether a path is a probe, which is not logged.
fn is_probe(path: &str) -> bool {
    matches!(path, "/healthz" | "/readyz" | "/metrics")
}
