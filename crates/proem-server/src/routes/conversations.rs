//! Conversations: turns, their epochs, and what would change.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use proem::deliver::{Options, Provider, deliver};
use proem::models::Models;
use proem::{RawMessage, Request, Tool};
use proem_store::{Answer, Kept, Query, Rebuilt};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::Shared;
use super::body::{Asked, Named, Text, has_answer};
use crate::app::App;
use crate::error::ApiError;
use crate::shapes::{
    ChangeAnswer, ConversationAnswer, ConversationShape, ConversationsAnswer, DiffAnswer, EpochShape,
    OwnedNote, PlanShape, TurnAnswer, carriers, comparison, difference,
};

/// Most conversations on one page, and how many without a wish.
const PAGE_MAX: usize = 200;
const PAGE: usize = 50;

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
    Asked(query): Asked<ListQuery>,
) -> Result<Json<ConversationsAnswer>, ApiError> {
    let ListQuery { search, after, limit } = query;
    let most = limit.unwrap_or(PAGE).clamp(1, PAGE_MAX);
    if after.as_deref().is_some_and(|after| !proem_store::is_place(after)) {
        let error = ApiError::bad_request("`after` is no place in the list");
        return Err(error.with_hint("take it from `next` of the page before"));
    }
    let page = app.work(move |app| Ok(app.store().conversations(&Query { search, after, most })?)).await?;
    let conversations = page.items.into_iter().map(ConversationShape::from).collect();
    Ok(Json(ConversationsAnswer { conversations, next: page.next }))
}

/// One conversation: the frozen prompt, and all epochs; nothing of it if the caller has it already.
pub(super) async fn show(
    State(app): Shared,
    Named(id): Named<String>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let (kept, epochs) = app
        .work(move |app| {
            let kept = app.known(&id)?;
            let is_known = has_answer(&headers, &tag(&kept));
            let epochs = if is_known { None } else { Some(app.store().epochs(&id)?) };
            Ok((kept, epochs))
        })
        .await?;
    let tag = [(header::ETAG, tag(&kept))];
    let Some(epochs) = epochs else { return Ok((StatusCode::NOT_MODIFIED, tag).into_response()) };
    let answer = Json(ConversationAnswer {
        conversation: kept.head.conversation.clone(),
        epoch: kept.head.number,
        carriers: carriers(kept.frozen.body()),
        epochs: epochs.into_iter().map(EpochShape::from).collect(),
        notes: kept.frozen.notes().iter().map(OwnedNote::from).collect(),
    });
    Ok((tag, answer).into_response())
}

/// What names the state of a conversation.
fn tag(kept: &Kept) -> String {
    format!("\"{}-{}\"", kept.head.number, kept.head.digest)
}

/// Forgets a conversation.
pub(super) async fn remove(State(app): Shared, Named(id): Named<String>) -> Result<StatusCode, ApiError> {
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
    Named(id): Named<String>,
    text: Text,
) -> Result<Response, ApiError> {
    let (mut request, provider) = text.turn()?;
    if request.conversation.as_ref().is_some_and(|named| *named != id) {
        return Err(ApiError::bad_request("`conversation` is not the one of the path"));
    }
    request.conversation = Some(id.clone());
    // A thread of its own for what is in memory would cost more than the answer.
    let known = if provider.is_none() { app.turn_from_memory(&id, &request)? } else { None };
    let answer = match known {
        Some(answer) => answer,
        None => app.work(move |app| app.turn(&id, request, provider)).await?,
    };
    let digest = format!("\"{}\"", answer.digest);
    Ok(([(header::ETAG, digest)], Json(answer)).into_response())
}

impl App {
    fn turn_from_memory(&self, id: &str, request: &Request) -> Result<Option<TurnAnswer>, ApiError> {
        let Some(answer) = self.conversations.turn_from_memory(id, request)? else { return Ok(None) };
        match (&request.cwd, &answer.kept.request.cwd) {
            (Some(cwd), _) => self.check_cwd(Some(cwd))?,
            (None, Some(kept)) if self.is_gone(kept) => {}
            (None, kept) => self.check_cwd(kept.as_deref())?,
        }
        self.metrics.turns_reused.fetch_add(1, Ordering::Relaxed);
        Ok(Some(turn_answer(&answer, None, None, Vec::new())))
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
        let answer = self.conversations.turn(id, &request, Self::CALLER)?;
        let counter = if answer.is_reused { &self.metrics.turns_reused } else { &self.metrics.turns_built };
        counter.fetch_add(1, Ordering::Relaxed);
        let mut notes: Vec<OwnedNote> = answer.notes.iter().map(OwnedNote::from).collect();
        let (mut payload, mut messages) = (None, None);
        if let Some(provider) = provider {
            let (build, request) = answer.delivery(&request);
            let models = Models::load(&request, Self::CALLER)?;
            let delivered = deliver(provider, &build, &request, &models, &Options::default())?;
            notes.extend(delivered.notes.iter().map(OwnedNote::from));
            payload = Some(delivered.payload);
            messages = Some(delivered.history);
        }
        Ok(turn_answer(&answer, payload, messages, notes))
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

fn turn_answer(
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
    Named(id): Named<String>,
    Asked(query): Asked<PlanQuery>,
    text: Text,
) -> Result<Json<ChangeAnswer>, ApiError> {
    let is_plan = query.plan;
    let request = text.optional_request()?;
    let answer = app
        .work(move |app| {
            let request = app.next(&id, request)?;
            if !is_plan {
                return Ok(change(&app.conversations.reload(&id, request.as_ref(), App::CALLER)?));
            }
            let plan = app.conversations.plan_reload(&id, request.as_ref(), App::CALLER)?;
            Ok(ChangeAnswer {
                epoch: plan.kept.head.number,
                opened: false,
                plan: Some(PlanShape::from(&plan)),
                comparison: Some(comparison::of_plan(&plan)?),
            })
        })
        .await?;
    Ok(Json(answer))
}

/// Gives a conversation other tools, or says what that would change.
pub(super) async fn tools(
    State(app): Shared,
    Named(id): Named<String>,
    Asked(query): Asked<PlanQuery>,
    text: Text,
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
                return Ok(change(&app.conversations.set_tools(&id, &tools, App::CALLER)?));
            }
            let plan = app.conversations.plan_tools(&id, &tools, App::CALLER)?;
            Ok(ChangeAnswer {
                epoch: plan.kept.head.number,
                opened: false,
                plan: Some(PlanShape::from(&plan)),
                comparison: Some(comparison::of_plan(&plan)?),
            })
        })
        .await?;
    Ok(Json(answer))
}

/// The frozen prompt against what would be built now.
pub(super) async fn drift(
    State(app): Shared,
    Named(id): Named<String>,
) -> Result<Json<ChangeAnswer>, ApiError> {
    let answer = app
        .work(move |app| {
            app.next(&id, None)?;
            let plan = app.conversations.plan_reload(&id, None, App::CALLER)?;
            Ok(ChangeAnswer {
                epoch: plan.kept.head.number,
                opened: false,
                plan: Some(PlanShape::from(&plan)),
                comparison: Some(comparison::of_plan(&plan)?),
            })
        })
        .await?;
    Ok(Json(answer))
}

/// Two epochs of a conversation against each other.
pub(super) async fn diff(
    State(app): Shared,
    Named(id): Named<String>,
    Asked(query): Asked<DiffQuery>,
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
                comparison::of_sides(&comparison::snapshot(&before), &comparison::snapshot(&after))?;
            let carriers = difference(before.frozen.body(), after.frozen.body());
            Ok(DiffAnswer { from, to, carriers, comparison })
        })
        .await?;
    Ok(Json(answer))
}
