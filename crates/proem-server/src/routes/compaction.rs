//! Compaction in two steps: begin, then commit or abort.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use proem::request::RequestUpdate;
use proem_core::carrier::Carrier;
use proem_core::profile::Compaction;
use proem_store::StartedCompaction;
use serde::Deserialize;

use super::Shared;
use super::body::{BodyText, PathParams, QueryParams};
use crate::error::ApiError;
use crate::shapes::{ChangeAnswer, CompactionAnswer};

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
) -> Result<Json<CompactionAnswer>, ApiError> {
    let BeginQuery { commit } = query;
    let update = text.update()?;
    let answer = app
        .work(move |app| {
            app.admit_next(&id, &update)?;
            let begun = app.conversations.begin_compaction(&id, Some(&update), app.caller())?;
            let mut answer = answer(&begun);
            if commit {
                answer.epoch =
                    app.conversations.commit_compaction(&id, &begun.token, app.caller())?.head.number;
            }
            Ok(answer)
        })
        .await?;
    Ok(Json(answer))
}

fn answer(begun: &StartedCompaction) -> CompactionAnswer {
    let carriers: BTreeMap<&'static str, String> =
        Carrier::ALL.into_iter().filter_map(|carrier| Some((carrier.word(), begun.text(carrier)?))).collect();
    CompactionAnswer {
        token: begun.token.clone(),
        policy: match begun.way {
            Compaction::Append => "append",
            Compaction::Aligned => "aligned",
        },
        carriers,
        instructions: begun.instructions.clone(),
        epoch: begun.from,
    }
}

/// Opens the epoch after a compaction.
pub(super) async fn commit(
    State(app): Shared,
    PathParams((id, token)): PathParams<(String, String)>,
) -> Result<Json<ChangeAnswer>, ApiError> {
    let number = app
        .work(move |app| {
            app.admit_next(&id, &RequestUpdate::default())?;
            Ok(app.conversations.commit_compaction(&id, &token, app.caller())?.head.number)
        })
        .await?;
    Ok(Json(ChangeAnswer { epoch: number, opened: true, plan: None, comparison: None }))
}

/// Ends a compaction without a new epoch.
pub(super) async fn abort(
    State(app): Shared,
    PathParams((id, token)): PathParams<(String, String)>,
) -> Result<StatusCode, ApiError> {
    app.work(move |app| Ok(app.conversations.abort_compaction(&id, &token)?)).await?;
    Ok(StatusCode::NO_CONTENT)
}
