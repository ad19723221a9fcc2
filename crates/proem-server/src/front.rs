//! What every request passes: a number, a time limit, and a line about it. Then the guard and the routes.
//!
//! Turns and looks at one conversation are most of what a server is asked. They are told from the rest here and
//! answered without the router, which would box, clone and match for longer than the answer takes. What is not of
//! the plainest form goes through the router, and gets the same answer there.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, OnceLock};
use std::time::{Instant, SystemTime};

use axum::Router;
use axum::body::{Body, HttpBody};
use axum::extract::MatchedPath;
use axum::http::{HeaderName, HeaderValue, Method, Request, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use hyper::body::Incoming;
use proem_store::is_conversation_id;
use tower::ServiceExt;

use crate::app::{App, Options};
use crate::connections::ConnectionSlot;
use crate::error::ApiError;
use crate::request_target::Peer;
use crate::telemetry::{Span, TraceParent};
use crate::{guard, log, routes};

/// What every answer carries, and the log has, too.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The door of the server.
pub(crate) struct Front {
    app: Arc<App>,
    router: Router,
}

/// What is asked so often that it has a way of its own.
#[derive(Debug, PartialEq, Eq)]
enum Frequent<'p> {
    Turn(&'p str),
    Show(&'p str),
}

impl<'p> Frequent<'p> {
    /// Tells what is asked, if it is asked in the plainest form.
    fn of(method: &Method, path: &'p str) -> Option<Self> {
        let named = path.strip_prefix("/conversations/")?;
        let found = if *method == Method::POST {
            Self::Turn(named.strip_suffix("/turn")?)
        } else if *method == Method::GET {
            Self::Show(named)
        } else {
            return None;
        };
        let (Self::Turn(id) | Self::Show(id)) = found;
        is_conversation_id(id).then_some(found)
    }

    /// The route, as the router names it.
    const fn route(&self) -> &'static str {
        match self {
            Self::Turn(_) => "/conversations/{id}/turn",
            Self::Show(_) => "/conversations/{id}",
        }
    }
}

impl Front {
    pub(crate) fn new(app: &Arc<App>) -> Self {
        Self { app: Arc::clone(app), router: routes::router(app) }
    }

    /// Gives a request a number and a time limit, answers and counts it, and writes one line about it.
    pub(crate) async fn answer(&self, mut request: Request<Incoming>, place: &ConnectionSlot) -> Response {
        let (begun, id) = (Instant::now(), log::random_id());
        let (method, uri) = (request.method().clone(), request.uri().clone());
        let traced = self.app.options.telemetry.as_ref().map(|_| Traced::of(&mut request));
        let Options { connections, public_url, .. } = &self.app.options;
        if !connections.proxies.is_empty() || public_url.is_some() {
            request.extensions_mut().insert(Peer(place.address()));
        }
        // A panic is ours: nothing of it goes out, and the process lives.
        let answer = AssertUnwindSafe(self.pass(request, place)).catch_unwind();
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
        if let Some(Traced { parent, begun, route }) = traced.filter(Traced::is_sampled) {
            let route = route.name(&method, uri.path());
            let (method, request) = (method.to_string(), id.clone());
            let span = Span { parent, method, route, request, status, begun, took };
            self.app.options.telemetry.iter().for_each(|telemetry| telemetry.take(&span));
        }
        log::access(&id, &method, uri.path(), status, micros);
        response
    }

    /// Answers a request that may pass.
    async fn pass(&self, request: Request<Incoming>, place: &ConnectionSlot) -> Response {
        // What the guard refuses, the router refuses: it has the same guard.
        let is_let_in = guard::check(&self.app, &request).is_ok();
        if is_let_in && !guard::is_open(request.uri().path()) {
            place.keep();
        }
        let (parts, body) = request.into_parts();
        let frequent = Frequent::of(&parts.method, parts.uri.path()).filter(|_| is_let_in);
        let answer = match frequent {
            Some(Frequent::Turn(id)) => routes::turn(&self.app, id, body).await,
            Some(Frequent::Show(id)) => routes::show(&self.app, id, &parts.headers).await,
            None => {
                let request = Request::from_parts(parts, Body::new(body));
                // In a box, so that the frequent ones need not carry its size around.
                return Box::pin(self.router.clone().oneshot(request)).await.into_response();
            }
        };
        with_length(answer.unwrap_or_else(IntoResponse::into_response))
    }
}

/// Says how long an answer is, as the router does.
fn with_length(mut response: Response) -> Response {
    let length = response.body().size_hint().exact();
    if let Some(length) = length.filter(|_| !response.headers().contains_key(header::CONTENT_LENGTH)) {
        response.headers_mut().insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    }
    response
}

/// What a span needs of a request.
struct Traced {
    parent: Option<TraceParent>,
    begun: SystemTime,
    route: Matched,
}

impl Traced {
    fn of<B>(request: &mut Request<B>) -> Self {
        let parent =
            request.headers().get("traceparent").and_then(|value| TraceParent::parse(value.to_str().ok()?));
        let route = Matched::default();
        request.extensions_mut().insert(route.clone());
        Self { parent, begun: SystemTime::now(), route }
    }

    fn is_sampled(&self) -> bool {
        self.parent.as_ref().is_none_or(|parent| parent.is_sampled)
    }
}

/// Where the router says which route it took: who asks may get no answer from it.
#[derive(Clone, Default)]
pub(crate) struct Matched(Arc<OnceLock<MatchedPath>>);

impl Matched {
    /// Keeps the route of a request for its span, if there is to be one.
    pub(crate) fn tell<B>(request: &Request<B>) {
        let extensions = request.extensions();
        if let (Some(Self(told)), Some(matched)) = (extensions.get(), extensions.get::<MatchedPath>()) {
            told.get_or_init(|| matched.clone());
        }
    }

    /// The route, with names in the place of values.
    fn name(&self, method: &Method, path: &str) -> String {
        let frequent = || Frequent::of(method, path).map(|frequent| frequent.route());
        self.0.get().map(MatchedPath::as_str).or_else(frequent).unwrap_or("-").to_owned()
    }
}

/// What is asked so often that nobody wants to read about it.
fn is_probe(path: &str) -> bool {
    matches!(path, "/healthz" | "/readyz" | "/metrics")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_plainest_form_is_told_from_the_rest() {
        for (method, path, found) in [
            (Method::POST, "/conversations/c-1/turn", Some(Frequent::Turn("c-1"))),
            (Method::GET, "/conversations/c-1", Some(Frequent::Show("c-1"))),
            (Method::GET, "/conversations/c-1/turn", None),
            (Method::HEAD, "/conversations/c-1", None),
            (Method::POST, "/conversations/c-1", None),
            (Method::POST, "/conversations/%63/turn", None),
            (Method::POST, "/conversations/a/b/turn", None),
            (Method::POST, "/conversations//turn", None),
            (Method::POST, "/conversations/c/turn/", None),
            (Method::GET, "/conversations/", None),
            (Method::GET, "/conversations/..", None),
            (Method::GET, "/conversations", None),
        ] {
            assert_eq!(Frequent::of(&method, path), found, "{method} {path}");
        }
    }
}
