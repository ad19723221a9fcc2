//! Conversations: turns, their epochs, and what would change.

use std::sync::atomic::Ordering;
use std::sync::{Arc, LazyLock};

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{BoxError, Json};
use proem::deliver::{DeliverOptions, Provider, deliver};
use proem::models::Models;
use proem::{RawMessage, Request, Tool};
use proem_store::{Answer, Kept, Query, Rebuilt};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::Shared;
use super::body::{BodyText, PathParams, QueryParams, has_answer};
use crate::app::App;
use crate::error::ApiError;
use crate::shapes::{
    ChangeAnswer, ConversationAnswer, ConversationShape, ConversationsAnswer, DiffAnswer, EpochShape,
    OwnedNote, PlanShape, TurnAnswer, carriers, comparison, difference, reused,
};

/// Most conversations on one page, and how many without a wish.
const PAGE_MAX: usize = 200;
const PAGE: usize = 50;

/// What a turn asks that says nothing.
static EMPTY: LazyLock<Request> = LazyLock::new(Request::default);

/// Room for the headers of an answer.
const HEADERS_MAX: usize = 12;

const JSON: HeaderValue = HeaderValue::from_static("application/json");

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ListQuery {
    search: Option<String>,
    after: Option<String>,
    limit: Option<usize>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PlanQuery {
    #[serde(default)]
    plan: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DiffQuery {
    from: u64,
    to: u64,
}

/// A list, the newest first.
pub(super) async fn list(
    State(app): Shared,
    QueryParams(query): QueryParams<ListQuery>,
) -> Result<Json<ConversationsAnswer>, ApiError> {
    let ListQuery { search, after, limit } = query;
    let most = limit.unwrap_or(PAGE).clamp(1, PAGE_MAX);
    if after.as_deref().is_some_and(|after| !proem_store::is_place(after)) {
        let error = ApiError::bad_request("`after` is no place in the list");
        return Err(error.with_hint("take it from `next` of the page before"));
    }
    if search.as_deref().is_some_and(|search| search.contains('\0')) {
        return Err(ApiError::bad_request("`search` has a NUL (U+0000), which no stored text has"));
    }
    let page = app.work(move |app| Ok(app.store().conversations(&Query { search, after, most })?)).await?;
    let conversations = page.items.into_iter().map(ConversationShape::from).collect();
    Ok(Json(ConversationsAnswer { conversations, next: page.next }))
}

/// One conversation: the frozen prompt, and all epochs; nothing of it if the caller has it already.
pub(super) async fn show(
    State(app): Shared,
    PathParams(id): PathParams<String>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    show_answer(&app, &id, &headers).await
}

/// The answer to a look at one conversation.
pub(crate) async fn show_answer(app: &Arc<App>, id: &str, headers: &HeaderMap) -> Result<Response, ApiError> {
    // A thread of its own for what is near would cost more than the answer.
    if app.store().is_near() {
        return app.show(id, headers);
    }
    let (id, headers) = (id.to_owned(), headers.clone());
    Box::pin(app.work(move |app| app.show(&id, &headers))).await
}

/// What names the state of a conversation. With the time: one that was forgotten and begun anew has the same numbers, and
/// may have the same prefix beside other carriers.
fn tag_of(kept: &Kept) -> String {
    format!("\"{}-{}-{:x}\"", kept.head.number, kept.head.digest, kept.head.opened_at)
}

/// Forgets a conversation.
pub(super) async fn remove(
    State(app): Shared,
    PathParams(id): PathParams<String>,
) -> Result<StatusCode, ApiError> {
    app.work(move |app| {
        app.known(&id)?;
        Ok(app.store().remove(&id).map(drop)?)
    })
    .await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Everything that one turn needs.
pub(super) async fn turn(
    State(app): Shared,
    PathParams(id): PathParams<String>,
    text: BodyText,
) -> Result<Response, ApiError> {
    answer_to(&app, &id, &text).await
}

/// The answer to a turn whose body is still to be read.
pub(crate) async fn turn_answer<B>(app: &Arc<App>, id: &str, body: B) -> Result<Response, ApiError>
where
    B: HttpBody<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    answer_to(app, id, &BodyText::read(body, app).await?).await
}

async fn answer_to(app: &Arc<App>, id: &str, text: &BodyText) -> Result<Response, ApiError> {
    // Most turns say nothing: that need not be read, nor made anew each time.
    if text.is_empty()
        && let Some(answer) = app.turn_at_once(id, &EMPTY)?
    {
        return Ok(answer);
    }
    let (mut request, provider) = text.turn()?;
    if request.conversation.as_ref().is_some_and(|named| named != id) {
        return Err(ApiError::bad_request("`conversation` is not the one of the path"));
    }
    // A thread of its own for what is near would cost more than the answer.
    if provider.is_none()
        && !text.is_empty()
        && let Some(answer) = app.turn_at_once(id, &request)?
    {
        return Ok(answer);
    }
    request.conversation = Some(id.to_owned());
    let id = id.to_owned();
    let answer = Box::pin(app.work(move |app| app.turn(&id, request, provider))).await?;
    let digest = format!("\"{}\"", answer.digest);
    Ok(([(header::ETAG, digest)], Json(answer)).into_response())
}

impl App {
    fn show(&self, id: &str, headers: &HeaderMap) -> Result<Response, ApiError> {
        let known = self.known(id)?;
        let mut tag = tag_of(&known);
        if has_answer(headers, &tag) {
            let tag = HeaderValue::from_str(&tag).map_err(|_| ApiError::internal())?;
            let mut response = Response::new(Body::empty());
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            response.headers_mut().reserve(HEADERS_MAX);
            response.headers_mut().insert(header::ETAG, tag);
            return Ok(response);
        }
        let found = self.conversations.history(id)?;
        let (kept, epochs) =
            found.ok_or_else(|| proem_store::ConversationError::NoConversation(id.to_owned()))?;
        // It may have got another epoch since.
        tag = tag_of(&kept);
        let answer = Json(ConversationAnswer {
            conversation: kept.head.conversation.clone(),
            epoch: kept.head.number,
            carriers: carriers(kept.frozen.body()),
            epochs: epochs.into_iter().map(EpochShape::from).collect(),
            notes: kept.frozen.notes().iter().map(OwnedNote::from).collect(),
        });
        Ok(([(header::ETAG, tag)], answer).into_response())
    }

    /// The answer to a turn that gets the current epoch as it is: the bytes that were made for the first such turn.
    fn turn_at_once(&self, id: &str, request: &Request) -> Result<Option<Response>, ApiError> {
        let Some(kept) = self.conversations.turn_at_once(id, request)? else { return Ok(None) };
        let cwd = request.cwd.as_ref().or(kept.request.cwd.as_ref());
        if let Err(error) = self.check_cwd_of_frozen(cwd.map(String::as_str))
            && !(request.cwd.is_none() && cwd.is_some_and(|cwd| self.is_gone(cwd)))
        {
            return Err(error);
        }
        self.metrics.turns_reused.fetch_add(1, Ordering::Relaxed);
        let answer = self.conversations.answer_of(&kept, reused);
        let tag =
            HeaderValue::from_str(&format!("\"{}\"", kept.head.digest)).map_err(|_| ApiError::internal())?;
        let mut response = Response::new(Body::from(Bytes::from_owner(answer)));
        response.headers_mut().reserve(HEADERS_MAX);
        response.headers_mut().insert(header::CONTENT_TYPE, JSON);
        response.headers_mut().insert(header::ETAG, tag);
        Ok(Some(response))
    }

    fn turn(
        &self,
        id: &str,
        mut request: Request,
        provider: Option<Provider>,
    ) -> Result<TurnAnswer, ApiError> {
        // What a turn does not mention stays.
        let mut is_gone = false;
        if request.cwd.is_none()
            && let Some(kept) = self.conversations.current(id)?
        {
            request.cwd.clone_from(&kept.request.cwd);
            is_gone = request.cwd.as_deref().is_some_and(|cwd| self.is_gone(cwd));
        }
        // A conversation outlives its directory: what is frozen needs no file.
        let request = if is_gone { request } else { self.admit(request)? };
        let answer = self.conversations.turn(id, &request, self.caller())?;
        let counter = if answer.is_reused { &self.metrics.turns_reused } else { &self.metrics.turns_built };
        counter.fetch_add(1, Ordering::Relaxed);
        let mut notes: Vec<OwnedNote> = answer.notes.iter().map(OwnedNote::from).collect();
        let (mut payload, mut messages) = (None, None);
        if let Some(provider) = provider {
            let (build, request) = answer.delivery(&request);
            let models = Models::load(&request, self.caller())?;
            let delivered = deliver(provider, &build, &request, &models, &DeliverOptions::default())?;
            notes.extend(delivered.notes.iter().map(OwnedNote::from));
            payload = Some(delivered.payload);
            messages = Some(delivered.history);
        }
        Ok(shape_of(&answer, payload, messages, notes))
    }

    /// The request with the stored template for its base, unless it brings one.
    pub(super) fn with_template(&self, mut request: Request) -> Result<Request, ApiError> {
        let has_base =
            request.system.is_some() || request.template.is_some() || request.instruction.is_some();
        if !has_base && let Some(stored) = self.store().template()? {
            request.template = Some(stored.text);
        }
        Ok(request)
    }

    /// The request for the next prompt of a conversation, if one is given. That one, or else the kept one, must
    /// lie in a workspace now, whatever was so when the conversation began.
    pub(super) fn next(&self, id: &str, given: Option<Request>) -> Result<Option<Request>, ApiError> {
        let kept = self.known(id)?;
        let Some(mut given) = given else {
            self.admit(kept.request.clone())?;
            return Ok(None);
        };
        given.cwd = given.cwd.or_else(|| kept.request.cwd.clone());
        self.admit(given).map(Some)
    }

    pub(super) fn known(&self, id: &str) -> Result<Arc<Kept>, ApiError> {
        let found = self.conversations.current(id)?;
        found.ok_or_else(|| proem_store::ConversationError::NoConversation(id.to_owned()).into())
    }
}

fn shape_of(
    answer: &Answer,
    payload: Option<Box<RawValue>>,
    messages: Option<Vec<RawMessage>>,
    notes: Vec<OwnedNote>,
) -> TurnAnswer {
    let Answer { kept, is_reused, .. } = answer;
    TurnAnswer {
        epoch: kept.head.number,
        reason: kept.head.reason.clone(),
        reused: *is_reused,
        digest: kept.head.digest.clone(),
        fingerprint: kept.head.fingerprint.clone(),
        carriers: carriers(answer.body()),
        payload,
        messages,
        notes,
    }
}

fn change(rebuilt: &Rebuilt) -> ChangeAnswer {
    let opened = matches!(rebuilt, Rebuilt::Opened(_));
    ChangeAnswer { epoch: rebuilt.kept().head.number, opened, plan: None, comparison: None }
}

/// Builds the prompt anew, or says what that would change.
pub(super) async fn reload(
    State(app): Shared,
    PathParams(id): PathParams<String>,
    QueryParams(query): QueryParams<PlanQuery>,
    text: BodyText,
) -> Result<Json<ChangeAnswer>, ApiError> {
    let is_plan = query.plan;
    let request = text.optional_request()?;
    let answer = app
        .work(move |app| {
            let request = app.next(&id, request)?;
            if !is_plan {
                return Ok(change(&app.conversations.reload(&id, request.as_ref(), app.caller())?));
            }
            let plan = app.conversations.plan_reload(&id, request.as_ref(), app.caller())?;
            Ok(ChangeAnswer {
                epoch: plan.kept.head.number,
                opened: false,
                plan: Some(PlanShape::from(&plan)),
                comparison: Some(comparison::compare_plan(&plan)?),
            })
        })
        .await?;
    Ok(Json(answer))
}

/// Gives a conversation other tools, or says what that would change.
pub(super) async fn tools(
    State(app): Shared,
    PathParams(id): PathParams<String>,
    QueryParams(query): QueryParams<PlanQuery>,
    text: BodyText,
) -> Result<Json<ChangeAnswer>, ApiError> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Body {
        tools: Vec<Tool>,
    }
    let is_plan = query.plan;
    let Body { tools } = text.json()?;
    let answer = app
        .work(move |app| {
            app.next(&id, None)?;
            if !is_plan {
                return Ok(change(&app.conversations.set_tools(&id, &tools, app.caller())?));
            }
            let plan = app.conversations.plan_tools(&id, &tools, app.caller())?;
            Ok(ChangeAnswer {
                epoch: plan.kept.head.number,
                opened: false,
                plan: Some(PlanShape::from(&plan)),
                comparison: Some(comparison::compare_plan(&plan)?),
            })
        })
        .await?;
    Ok(Json(answer))
}

/// The frozen prompt against what would be built now.
pub(super) async fn drift(
    State(app): Shared,
    PathParams(id): PathParams<String>,
) -> Result<Json<ChangeAnswer>, ApiError> {
    let answer = app
        .work(move |app| {
            app.next(&id, None)?;
            let plan = app.conversations.plan_reload(&id, None, app.caller())?;
            Ok(ChangeAnswer {
                epoch: plan.kept.head.number,
                opened: false,
                plan: Some(PlanShape::from(&plan)),
                comparison: Some(comparison::compare_plan(&plan)?),
            })
        })
        .await?;
    Ok(Json(answer))
}

/// Two epochs of a conversation against each other.
pub(super) async fn diff(
    State(app): Shared,
    PathParams(id): PathParams<String>,
    QueryParams(query): QueryParams<DiffQuery>,
) -> Result<Json<DiffAnswer>, ApiError> {
    let DiffQuery { from, to } = query;
    let answer = app
        .work(move |app| {
            app.known(&id)?;
            let epoch = |number: u64| {
                let found = app.conversations.epoch(&id, number)?;
                found.ok_or_else(|| ApiError::not_found(format!("there is no epoch {number}")))
            };
            let (before, after) = (epoch(from)?, epoch(to)?);
            let comparison =
                comparison::compare_sides(&comparison::snapshot(&before), &comparison::snapshot(&after))?;
            let carriers = difference(before.frozen.body(), after.frozen.body());
            Ok(DiffAnswer { from, to, carriers, comparison })
        })
        .await?;
    Ok(Json(answer))
}
