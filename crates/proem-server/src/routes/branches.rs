//! Conversations that begin from another one: forks, and children with a prompt of their own.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use proem::request::RequestUpdate;
use proem_store::BranchShape;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::Shared;
use super::body::{BodyText, PathParams, QueryParams};
use super::conversations::NoQuery;
use crate::error::ApiError;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ForkBody {
    id: String,
    role: Option<String>,
}

/// Begins a conversation with the prompt of another one.
pub(super) async fn fork(
    State(app): Shared,
    PathParams(parent): PathParams<String>,
    QueryParams(NoQuery {}): QueryParams<NoQuery>,
    text: BodyText,
) -> Result<Json<BranchShape>, ApiError> {
    let ForkBody { id, role } = text.json()?;
    let answer = app
        .work(move |app| {
            let begun = app.conversations.fork(&parent, &id, role.as_deref(), app.caller())?;
            Ok(begun.shape())
        })
        .await?;
    Ok(Json(answer))
}

/// Begins a conversation with a prompt of its own.
pub(super) async fn spawn(
    State(app): Shared,
    PathParams(parent): PathParams<String>,
    QueryParams(NoQuery {}): QueryParams<NoQuery>,
    text: BodyText,
) -> Result<Json<BranchShape>, ApiError> {
    let mut fields: BTreeMap<String, Box<RawValue>> = text.json()?;
    let id = fields.remove("id").ok_or_else(|| ApiError::bad_request("`id` is missing"))?;
    let id: String = serde_json::from_str(id.get())
        .map_err(|error| ApiError::bad_request(format!("`id` is invalid: {error}")))?;
    let rest = serde_json::to_string(&fields).map_err(|_| ApiError::internal())?;
    let update = RequestUpdate::from_json(&rest)?;
    let answer = app
        .work(move |app| {
            app.admit_next(&parent, &update)?;
            Ok(app.conversations.spawn(&parent, &id, update, app.caller())?.shape())
        })
        .await?;
    Ok(Json(answer))
}
