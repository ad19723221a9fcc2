//! Compaction in two steps: begin, then commit or abort.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use proem::turn_shape::CompactionShape;
use proem_store::Changed;
use serde::Deserialize;

use super::Shared;
use super::body::{BodyText, PathParams, QueryParams};
use crate::error::ApiError;
use crate::shapes::ChangeAnswer;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BeginQuery {
    #[serde(default)]
    commit: bool,
}

/// Begins a compaction; `?commit=true` also commits it.
pub(super) async fn begin(
    State(app): Shared,
    PathParams(id): PathParams<String>,
    QueryParams(query): QueryParams<BeginQuery>,
    text: BodyText,
) -> Result<Json<CompactionShape>, ApiError> {
    let BeginQuery { commit } = query;
    let update = text.update()?;
    let answer = app
        .work(move |app| {
            app.admit_next(&id, &update)?;
            let begun = app.conversations.begin_compaction(&id, update, app.caller())?;
            let mut answer = begun.shape();
            if commit {
                answer.epoch =
                    app.conversations.commit_compaction(&id, &begun.token, app.caller())?.head.number;
            }
            Ok(answer)
        })
        .await?;
    Ok(Json(answer))
}

/// Opens the epoch after a compaction.
pub(super) async fn commit(
    State(app): Shared,
    PathParams((id, token)): PathParams<(String, String)>,
) -> Result<Json<ChangeAnswer>, ApiError> {
    let answer = app
        .work(move |app| {
            let update = app.conversations.update_of_compaction(&id, &token)?;
            app.admit_next(&id, &update)?;
            let epoch = app.conversations.commit_compaction(&id, &token, app.caller())?;
            let pending = app.conversations.pending(&id)?;
            let changed = Changed { epoch, is_opened: true, pending, notes: Vec::new() };
            Ok(ChangeAnswer::from(&changed))
        })
        .await?;
    Ok(Json(answer))
}

/// Ends a compaction without a new epoch.
pub(super) async fn abort(
    State(app): Shared,
    PathParams((id, token)): PathParams<(String, String)>,
) -> Result<StatusCode, ApiError> {
    app.work(move |app| Ok(app.conversations.abort_compaction(&id, &token)?)).await?;
    Ok(StatusCode::NO_CONTENT)
}
