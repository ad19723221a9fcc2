//! Conversations: turns, epochs, plans of changes.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use proem::hooks::ResourcePaths;
use proem::request::RequestUpdate;
use proem::store::traffic::{self, ListSort};
use proem::turn_shape::TurnShape;
use proem::{Caller, Request, Tool, Turn};
use proem_store::{Changed, ConversationError, LoadedEpoch, Plan};
use serde::Deserialize;

use super::Shared;
use super::body::{BodyText, PathParams, QueryParams, has_answer};
use super::calls::moment;
use crate::app::App;
use crate::error::ApiError;
use crate::shapes::{ChangeAnswer, ConversationAnswer, ConversationsAnswer, DiffAnswer};

/// The largest and the default number of conversations on one page.
const PAGE_MAX: usize = 200;
const PAGE: usize = 50;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ListQuery {
    search: Option<String>,
    kind: Option<String>,
    agent: Option<String>,
    model: Option<String>,
    cwd: Option<String>,
    since: Option<String>,
    #[serde(default)]
    misses: bool,
    sort: Option<String>,
    order: Option<Order>,
    after: Option<String>,
    limit: Option<usize>,
}

/// The direction of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Order {
    Asc,
    Desc,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PlanQuery {
    #[serde(default)]
    plan: bool,
}

/// A query without parameters: one that a client gives in vain is refused.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NoQuery {}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ReloadQuery {
    #[serde(default)]
    plan: bool,
    only: Option<Only>,
}

/// The part of the files that a reload reads again.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Only {
    Skills,
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
    let most = query.limit.unwrap_or(PAGE).clamp(1, PAGE_MAX);
    if query.after.as_deref().is_some_and(|after| !proem_store::is_page_key(after)) {
        let error = ApiError::bad_request("`after` is not a place in the list");
        return Err(error.with_hint("take it from `next` of the page before"));
    }
    let texts = [&query.search, &query.kind, &query.agent, &query.model, &query.cwd];
    let names = ["search", "kind", "agent", "model", "cwd"];
    if let Some((name, _)) =
        names.iter().zip(texts).find(|(_, text)| text.as_deref().is_some_and(|text| text.contains('\0')))
    {
        return Err(ApiError::bad_request(format!("`{name}` has a NUL (U+0000), which no stored text has")));
    }
    if query.kind.as_deref().is_some_and(|kind| !["proem", "observed"].contains(&kind)) {
        return Err(ApiError::bad_request("`kind` is neither `proem` nor `observed`"));
    }
    let sort = query.sort.as_deref().map_or(Some(ListSort::default()), ListSort::parse);
    let Some(sort) = sort else {
        let words: Vec<&str> = ListSort::ALL.iter().map(|(word, _)| *word).collect();
        let error = ApiError::bad_request("conversations cannot be sorted by that");
        return Err(error.with_hint(format!("expected one of: {}", words.join(", "))));
    };
    let wanted = traffic::ListQuery {
        search: query.search,
        kind: query.kind,
        agent: query.agent,
        model: query.model,
        cwd: query.cwd,
        since: query.since.as_deref().map(|text| moment("since", text)).transpose()?,
        has_miss: query.misses,
        sort,
        is_ascending: query.order.map_or(sort.ascends(), |order| order == Order::Asc),
        after: query.after,
        most,
    };
    let page = app.work(move |app| Ok(app.store().list_conversations(&wanted)?)).await?;
    Ok(Json(page.into()))
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
fn tag_of(kept: &LoadedEpoch, children: usize) -> String {
    let branches = if children == 0 { String::new() } else { format!("-{children}") };
    format!("\"{}-{}-{:x}{branches}\"", kept.head.number, kept.head.digest, kept.head.opened_at)
}

/// Forgets a conversation.
pub(super) async fn remove(
    State(app): Shared,
    PathParams(id): PathParams<String>,
) -> Result<StatusCode, ApiError> {
    app.work(move |app| {
        // A damaged conversation can be removed, too.
        if !proem_store::is_conversation_id(&id) {
            return Err(ConversationError::BadId.into());
        }
        if app.store().remove(&id)? { Ok(()) } else { Err(ConversationError::NoConversation(id).into()) }
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
    let update = text.update()?;
    if update.given().conversation.as_ref().is_some_and(|named| *named != id) {
        return Err(ApiError::bad_request("`conversation` is not the one of the path"));
    }
    // A turn that only repeats the stored prompt takes less time than passing it to a thread.
    if let Some(response) = app.turn_at_once(&id, &update)? {
        return Ok(response);
    }
    app.work(move |app| app.turn(&id, update)).await
}

/// Returns the response to a turn, with the digest of its prefix as the entity tag.
fn turn_response(turn: &Turn) -> Response {
    let shape = TurnShape::new(turn);
    let tag = format!("\"{}\"", shape.digest);
    ([(header::ETAG, tag)], Json(shape)).into_response()
}

impl App {
    fn show(&self, id: &str, headers: &HeaderMap) -> Result<Response, ApiError> {
        let known = self.known(id)?;
        let branches = self.conversations.branches(id)?;
        let tag = tag_of(&known, branches.children.len());
        if has_answer(headers, &tag) {
            return Ok((StatusCode::NOT_MODIFIED, [(header::ETAG, tag)]).into_response());
        }
        let found = self.conversations.history(id)?;
        let (kept, epochs) = found.ok_or_else(|| ConversationError::NoConversation(id.to_owned()))?;
        // Another epoch may have been opened since.
        let tag = tag_of(&kept, branches.children.len());
        let answer = Json(ConversationAnswer::new(&kept, epochs, branches));
        Ok(([(header::ETAG, tag)], answer).into_response())
    }

    /// Returns the answer to a turn for which nothing must be built or observed; `None` for every other turn.
    fn turn_at_once(&self, id: &str, update: &RequestUpdate) -> Result<Option<Response>, ApiError> {
        let Some(turn) = self.conversations.turn_at_once(id, update)? else { return Ok(None) };
        let given = update.given().cwd.as_deref();
        let known = self.conversations.current(id)?;
        if given.is_none() && known.is_some_and(|known| known.request.workspace.is_some()) {
            self.metrics.turns_reused.fetch_add(1, Ordering::Relaxed);
            return Ok(Some(turn_response(&turn)));
        }
        let cwd = given.unwrap_or(&turn.signature.cwd);
        if let Err(error) = self.check_cwd(Some(cwd))
            && !(given.is_none() && self.is_gone(cwd))
        {
            return Err(error);
        }
        self.metrics.turns_reused.fetch_add(1, Ordering::Relaxed);
        Ok(Some(turn_response(&turn)))
    }

    fn turn(&self, id: &str, update: RequestUpdate) -> Result<Response, ApiError> {
        let known = self.conversations.current(id)?;
        let kept_cwd = known.as_ref().and_then(|kept| kept.request.cwd.clone());
        let is_gone =
            update.given().cwd.is_none() && kept_cwd.as_deref().is_some_and(|cwd| self.is_gone(cwd));
        // A conversation outlives its directory: what is frozen needs no file.
        let brings_files = update.given().workspace.is_some()
            || known.as_ref().is_some_and(|kept| kept.request.workspace.is_some());
        let update = match (kept_cwd, &update.given().cwd) {
            (_, None) if brings_files => update,
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
        let turn = self.conversations.turn(id, update, self.caller())?;
        let counter = if turn.is_reused { &self.metrics.turns_reused } else { &self.metrics.turns_built };
        counter.fetch_add(1, Ordering::Relaxed);
        Ok(turn_response(&turn))
    }

    /// Checks that the next prompt of a conversation is built in a workspace: in the directory that the update gives, or
    /// else in the stored one, which may have been moved since the conversation began.
    pub(super) fn admit_next(&self, id: &str, update: &RequestUpdate) -> Result<(), ApiError> {
        self.known(id)?;
        let given = update.given();
        let (next_cwd, next_workspace) = self.conversations.next_place(id)?;
        let workspace = match &given.cwd {
            Some(_) => None,
            None => given.workspace.clone().or(next_workspace),
        };
        let cwd = given.cwd.clone().or(next_cwd);
        self.admit(Request { cwd, workspace, ..Request::default() }).map(drop)
    }

    pub(super) fn known(&self, id: &str) -> Result<Arc<LoadedEpoch>, ApiError> {
        let found = self.conversations.current(id)?;
        found.ok_or_else(|| ConversationError::NoConversation(id.to_owned()).into())
    }
}

/// Makes the answer to a plan, which changes nothing.
fn planned(app: &App, id: &str, plan: &Plan) -> Result<ChangeAnswer, ApiError> {
    Ok(ChangeAnswer::planned(&app.conversations, id, plan, Caller::REMOTE)?)
}

/// Rebuilds the prompt, or plans it.
pub(super) async fn reload(
    State(app): Shared,
    PathParams(id): PathParams<String>,
    QueryParams(query): QueryParams<ReloadQuery>,
    text: BodyText,
) -> Result<Json<ChangeAnswer>, ApiError> {
    let update = text.update()?;
    if query.only.is_some() && (query.plan || !update.is_empty()) {
        return Err(ApiError::bad_request("`only=skills` takes neither a body nor `plan`"));
    }
    let answer = app
        .work(move |app| {
            app.admit_next(&id, &update)?;
            if query.plan {
                let plan = app.conversations.plan_reload(&id, update, app.caller())?;
                return planned(app, &id, &plan);
            }
            let changed = match query.only {
                Some(Only::Skills) => app.conversations.reload_skills(&id, app.caller())?,
                None => app.conversations.reload(&id, update, app.caller())?,
            };
            Ok(ChangeAnswer::from(&changed))
        })
        .await?;
    Ok(Json(answer))
}

/// Replaces the tools of a conversation, or says what that would change.
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
    let Body { tools } = text.json()?;
    let answer = app
        .work(move |app| {
            app.admit_next(&id, &RequestUpdate::default())?;
            if query.plan {
                let plan = app.conversations.plan_tools(&id, &tools, app.caller())?;
                return planned(app, &id, &plan);
            }
            let changed = app.conversations.set_tool_registry(&id, &tools, app.caller())?;
            Ok(ChangeAnswer::from(&changed))
        })
        .await?;
    Ok(Json(answer))
}

/// Sets the active tools by name.
pub(super) async fn active_tools(
    State(app): Shared,
    PathParams(id): PathParams<String>,
    QueryParams(NoQuery {}): QueryParams<NoQuery>,
    text: BodyText,
) -> Result<Json<ChangeAnswer>, ApiError> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Body {
        names: Vec<String>,
    }
    let Body { names } = text.json()?;
    let change = move |app: &App, id: &str| app.conversations.set_active_tools(id, &names, app.caller());
    changed(app, id, change).await
}

/// Goes on with another profile.
pub(super) async fn profile(
    State(app): Shared,
    PathParams(id): PathParams<String>,
    QueryParams(NoQuery {}): QueryParams<NoQuery>,
    text: BodyText,
) -> Result<Json<ChangeAnswer>, ApiError> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Body {
        profile: String,
    }
    let Body { profile } = text.json()?;
    let change = move |app: &App, id: &str| app.conversations.switch_profile(id, &profile, app.caller());
    changed(app, id, change).await
}

/// Adds skills, packs and asset folders to a conversation.
pub(super) async fn resources(
    State(app): Shared,
    PathParams(id): PathParams<String>,
    QueryParams(NoQuery {}): QueryParams<NoQuery>,
    text: BodyText,
) -> Result<Json<ChangeAnswer>, ApiError> {
    let paths: ResourcePaths = text.json()?;
    let change = move |app: &App, id: &str| app.conversations.add_resources(id, &paths, app.caller());
    changed(app, id, change).await
}

/// Makes a change of a conversation whose directory is in a workspace.
async fn changed(
    app: Arc<App>,
    id: String,
    change: impl FnOnce(&App, &str) -> Result<Changed, ConversationError> + Send + 'static,
) -> Result<Json<ChangeAnswer>, ApiError> {
    let answer = app
        .work(move |app| {
            app.admit_next(&id, &RequestUpdate::default())?;
            Ok(ChangeAnswer::from(&change(app, &id)?))
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
            let plan = app.conversations.plan_reload(&id, RequestUpdate::default(), app.caller())?;
            planned(app, &id, &plan)
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
            Ok(DiffAnswer::new(&epoch(from)?, &epoch(to)?, Caller::REMOTE)?)
        })
        .await?;
    Ok(Json(answer))
}
