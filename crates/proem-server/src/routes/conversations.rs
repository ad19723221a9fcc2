//! Conversations: turns, epochs, plans of changes.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use proem::deliver::{DeliverOptions, Provider, deliver};
use proem::models::Models;
use proem::request::RequestUpdate;
use proem::{RawMessage, Request, Tool};
use proem_store::{Answer, LoadedEpoch, Query, Rebuilt};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::Shared;
use super::body::{BodyText, PathParams, QueryParams, has_answer};
use crate::app::App;
use crate::error::ApiError;
use crate::shapes::{
    ChangeAnswer, ConversationAnswer, ConversationShape, ConversationsAnswer, DiffAnswer, EpochShape,
    OwnedNote, PlanShape, TurnAnswer, carriers, comparison, difference,
};

/// The largest and the default number of conversations on one page.
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
    QueryParams(query): QueryParams<ListQuery>,
) -> Result<Json<ConversationsAnswer>, ApiError> {
    let ListQuery { search, after, limit } = query;
    let most = limit.unwrap_or(PAGE).clamp(1, PAGE_MAX);
    if after.as_deref().is_some_and(|after| !proem_store::is_page_key(after)) {
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

/// Returns one conversation: the frozen prompt and all epochs, or 304 if the client has this state already.
pub(super) async fn show(
    State(app): Shared,
    PathParams(id): PathParams<String>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    // A read from a near store takes less time than passing it to a thread.
    if app.store().is_near() {
        return app.show(&id, &headers);
    }
    app.work(move |app| app.show(&id, &headers)).await
}

/// Returns the entity tag of a conversation's state. It contains the time, because a conversation that was removed and begun
/// again has the same numbers, and may have the same prefix with other carriers.
fn tag_of(kept: &LoadedEpoch) -> String {
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

/// Answers one turn of a conversation.
pub(super) async fn turn(
    State(app): Shared,
    PathParams(id): PathParams<String>,
    text: BodyText,
) -> Result<Response, ApiError> {
    let (update, provider) = text.turn()?;
    if update.given().conversation.as_ref().is_some_and(|named| *named != id) {
        return Err(ApiError::bad_request("`conversation` is not the one of the path"));
    }
    // A turn that only repeats the stored prompt takes less time than passing it to a thread.
    let known = if provider.is_none() { app.turn_at_once(&id, &update)? } else { None };
    let answer = if let Some(answer) = known {
        answer
    } else {
        app.work(move |app| app.turn(&id, update, provider)).await?
    };
    let digest = format!("\"{}\"", answer.digest);
    Ok(([(header::ETAG, digest)], Json(answer)).into_response())
}

impl App {
    fn show(&self, id: &str, headers: &HeaderMap) -> Result<Response, ApiError> {
        let known = self.known(id)?;
        let tag = tag_of(&known);
        if has_answer(headers, &tag) {
            return Ok((StatusCode::NOT_MODIFIED, [(header::ETAG, tag)]).into_response());
        }
        let found = self.conversations.history(id)?;
        let (kept, epochs) =
            found.ok_or_else(|| proem_store::ConversationError::NoConversation(id.to_owned()))?;
        // Another epoch may have been opened since.
        let tag = tag_of(&kept);
        let answer = Json(ConversationAnswer {
            conversation: kept.head.conversation.clone(),
            epoch: kept.head.number,
            carriers: carriers(kept.frozen.body()),
            epochs: epochs.into_iter().map(EpochShape::from).collect(),
            notes: kept.frozen.notes().iter().map(OwnedNote::from).collect(),
        });
        Ok(([(header::ETAG, tag)], answer).into_response())
    }

    /// Returns the answer to a turn for which nothing must be built or observed; `None` for every other turn.
    fn turn_at_once(&self, id: &str, update: &RequestUpdate) -> Result<Option<TurnAnswer>, ApiError> {
        let Some(kept) = self.conversations.turn_at_once(id, update)? else { return Ok(None) };
        let request = update.given();
        let cwd = request.cwd.as_ref().or(kept.request.cwd.as_ref());
        if let Err(error) = self.check_cwd(cwd.map(String::as_str))
            && !(request.cwd.is_none() && cwd.is_some_and(|cwd| self.is_gone(cwd)))
        {
            return Err(error);
        }
        self.metrics.turns_reused.fetch_add(1, Ordering::Relaxed);
        Ok(Some(shape_of(&Answer::frozen(kept), None, None, Vec::new())))
    }

    fn turn(
        &self,
        id: &str,
        update: RequestUpdate,
        provider: Option<Provider>,
    ) -> Result<TurnAnswer, ApiError> {
        let known = self.conversations.current(id)?;
        let kept_cwd = known.as_ref().and_then(|kept| kept.request.cwd.clone());
        let is_gone =
            update.given().cwd.is_none() && kept_cwd.as_deref().is_some_and(|cwd| self.is_gone(cwd));
        // A conversation outlives its directory: what is frozen needs no file.
        let update = match (kept_cwd, &update.given().cwd) {
            (_, Some(cwd)) => {
                self.check_cwd(Some(cwd))?;
                update
            }
            (Some(_), None) if is_gone => update,
            (Some(cwd), None) => {
                self.check_cwd(Some(&cwd))?;
                update
            }
            (None, None) => {
                let cwd = self.admit(Request::default())?.cwd.unwrap_or_default();
                update.with_cwd(cwd)
            }
        };
        let request = Request { conversation: Some(id.to_owned()), ..update.given().clone() };
        let answer = self.conversations.turn(id, update, self.caller())?;
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

    /// Checks that the next prompt of a conversation is built in a workspace: in the directory that the update gives, or
    /// else in the stored one, which may have been moved since the conversation began.
    pub(super) fn admit_next(&self, id: &str, update: &RequestUpdate) -> Result<(), ApiError> {
        let kept = self.known(id)?;
        let cwd = update.given().cwd.clone().or_else(|| kept.request.cwd.clone());
        self.admit(Request { cwd, ..Request::default() }).map(drop)
    }

    pub(super) fn known(&self, id: &str) -> Result<Arc<LoadedEpoch>, ApiError> {
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

/// Rebuilds the prompt, or plans it.
pub(super) async fn reload(
    State(app): Shared,
    PathParams(id): PathParams<String>,
    QueryParams(query): QueryParams<PlanQuery>,
    text: BodyText,
) -> Result<Json<ChangeAnswer>, ApiError> {
    let is_plan = query.plan;
    let update = text.update()?;
    let answer = app
        .work(move |app| {
            app.admit_next(&id, &update)?;
            if !is_plan {
                return Ok(change(&app.conversations.reload(&id, Some(&update), app.caller())?));
            }
            let plan = app.conversations.plan_reload(&id, Some(&update), app.caller())?;
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
            app.admit_next(&id, &RequestUpdate::default())?;
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
            app.admit_next(&id, &RequestUpdate::default())?;
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
