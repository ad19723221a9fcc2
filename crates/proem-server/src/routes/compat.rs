//! A comparison of agents: the instructions and skills that each would read in a directory.

use axum::Json;
use axum::extract::State;
use proem::Request;
use proem::compat::{CompatShape, look};
use serde::Deserialize;

use super::Shared;
use super::body::QueryParams;
use crate::error::ApiError;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CompatQuery {
    cwd: Option<String>,
    /// Agents, separated by commas; all if it is missing.
    #[serde(rename = "as")]
    names: Option<String>,
}

/// Returns what each agent would read.
pub(super) async fn compat(
    State(app): Shared,
    QueryParams(query): QueryParams<CompatQuery>,
) -> Result<Json<CompatShape>, ApiError> {
    let CompatQuery { cwd, names } = query;
    let request = app.admit(Request { cwd, ..Request::default() })?;
    let names: Vec<String> =
        names.iter().flat_map(|names| names.split(',')).map(|name| name.trim().to_owned()).collect();
    let names: Vec<String> = names.into_iter().filter(|name| !name.is_empty()).collect();
    let answer = app.work(move |app| Ok(CompatShape::new(&look(&request, &names, app.caller())?))).await?;
    Ok(Json(answer))
}
