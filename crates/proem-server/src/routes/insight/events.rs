//! Server-sent events: the changes of the store, for pages that show it live.
//!
//! Each stream looks at the store once a second and ends with its client, after an hour, or with the server. Where the store
//! has a number that changes with every write, a look without a change costs a few microseconds.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use proem_core::limit::EVENTS_SECONDS_MAX;
use proem_store::{ConversationError, Query, is_conversation_id};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::{Instant, sleep};

use crate::app::App;
use crate::error::ApiError;
use crate::routes::Shared;
use crate::routes::body::QueryParams;

/// The time between two looks at the store.
const PAUSE: Duration = Duration::from_secs(1);

/// The number of looks without an event after which a comment keeps the connection alive.
const QUIET_LOOKS: u32 = 15;

/// Conversations with the newest epochs that a look compares.
const HEADS: usize = 50;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::routes) struct EventsQuery {
    /// The only conversation whose epochs and calls are told.
    conversation: Option<String>,
}

/// Streams the changes of the store.
pub(in crate::routes) async fn events(
    State(app): Shared,
    QueryParams(query): QueryParams<EventsQuery>,
) -> Result<Response, ApiError> {
    let EventsQuery { conversation } = query;
    if conversation.as_deref().is_some_and(|id| !is_conversation_id(id)) {
        return Err(ConversationError::BadId.into());
    }
    let place = Arc::clone(&app.event_streams).try_acquire_owned().map_err(|_| ApiError::busy())?;
    // The state before the answer: what changes after it is told.
    let seen = app.look(Seen { conversation, ..Seen::default() }).await?.0;
    let end = app.ending.subscribe();
    let until = Instant::now() + Duration::from_secs(EVENTS_SECONDS_MAX as u64);
    let stream = Stream { app, seen, end, until, quiet: 0, is_begun: false, _place: place };
    let body = Body::from_stream(stream::unfold(stream, Stream::next));
    Ok(([(header::CONTENT_TYPE, "text/event-stream")], body).into_response())
}

/// One stream of events.
struct Stream {
    app: Arc<App>,
    seen: Seen,
    /// True when the server stops.
    end: watch::Receiver<bool>,
    until: Instant,
    quiet: u32,
    is_begun: bool,
    _place: OwnedSemaphorePermit,
}

impl Stream {
    /// Returns the next part of the body; `None` at the end.
    async fn next(mut self) -> Option<(Result<Bytes, Infallible>, Self)> {
        if !self.is_begun {
            self.is_begun = true;
            let hello = event("hello", &json!({ "version": env!("CARGO_PKG_VERSION") }));
            return Some((Ok(format!("retry: 2000\n\n{hello}").into()), self));
        }
        while Instant::now() < self.until {
            tokio::select! {
                () = sleep(PAUSE) => {}
                _ = self.end.wait_for(|is_ending| *is_ending) => return None,
            }
            // A store that fails now may answer the next look.
            let Ok((seen, found)) = self.app.look(self.seen.clone()).await else { continue };
            self.seen = seen;
            if !found.is_empty() {
                self.quiet = 0;
                return Some((Ok(found.into()), self));
            }
            self.quiet += 1;
            if self.quiet >= QUIET_LOOKS {
                self.quiet = 0;
                return Some((Ok(Bytes::from_static(b": quiet\n\n")), self));
            }
        }
        None
    }
}

/// The state of the store at the last look.
#[derive(Debug, Clone, Default)]
struct Seen {
    conversation: Option<String>,
    is_known: bool,
    generation: Option<u64>,
    /// The number of the current epoch and the time of its opening, by conversation.
    epochs: BTreeMap<String, (u64, i64)>,
    template: Option<u64>,
    /// The last call of the conversation.
    call: Option<String>,
}

impl App {
    /// Looks at the store, and returns its state with the events since the last look.
    async fn look(self: &Arc<Self>, seen: Seen) -> Result<(Seen, String), ApiError> {
        self.work(move |app| app.look_now(seen)).await
    }

    fn look_now(&self, before: Seen) -> Result<(Seen, String), ApiError> {
        let generation = self.store().generation()?;
        if before.is_known && generation.is_some() && generation == before.generation {
            return Ok((before, String::new()));
        }
        let now = self.seen(before.conversation.clone(), generation)?;
        if !before.is_known {
            return Ok((now, String::new()));
        }
        let mut found = String::new();
        for (conversation, (epoch, opened_at)) in &now.epochs {
            if before.epochs.get(conversation) != Some(&(*epoch, *opened_at)) {
                found += &event("epoch", &json!({ "conversation": conversation, "epoch": epoch }));
            }
        }
        if let Some(conversation) = &now.conversation {
            let data = json!({ "conversation": conversation });
            if now.epochs.is_empty() && !before.epochs.is_empty() {
                found += &event("removed", &data);
            } else if now.call != before.call {
                found += &event("call", &data);
            }
        }
        if now.template != before.template {
            found += &event("template", &json!({ "version": now.template }));
        }
        // A page of one conversation need not know of writes to others.
        if found.is_empty() && now.conversation.is_none() && generation != before.generation {
            found += &event("store", &json!({}));
        }
        Ok((now, found))
    }

    fn seen(&self, conversation: Option<String>, generation: Option<u64>) -> Result<Seen, ApiError> {
        let store = self.store();
        let (mut epochs, mut call) = (BTreeMap::new(), None);
        if let Some(id) = &conversation {
            if let Some(head) = store.epochs(id)?.pop() {
                epochs.insert(id.clone(), (head.number, head.opened_at));
            }
            call = store.last_call(id)?;
        } else {
            let page = store.conversations(&Query { most: HEADS, ..Query::default() })?;
            epochs
                .extend(page.items.into_iter().map(|head| (head.conversation, (head.epoch, head.opened_at))));
        }
        let template = store.template_heads(None, 1)?.first().map(|head| head.version);
        Ok(Seen { conversation, is_known: true, generation, epochs, template, call })
    }
}

/// Writes one event.
fn event(name: &str, data: &Value) -> String {
    format!("event: {name}\ndata: {data}\n\n")
}
