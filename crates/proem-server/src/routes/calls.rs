//! Calls to providers: their reported usage, stored and compared with the epochs they were made with.

use axum::Json;
use axum::extract::State;
use proem::evidence::JudgedCall;
use proem::models::Models;
use proem::{Caller, Request};
use proem_store::{ConversationError, is_conversation_id};

use super::Shared;
use super::body::{BodyText, PathParams};
use crate::error::ApiError;
use crate::shapes::CallsAnswer;

fn models() -> Result<Models, ApiError> {
    Ok(Models::load(&Request::default(), Caller::REMOTE)?)
}

/// Stores the usage that a provider reported for a call, and returns a verdict on its cache.
pub(super) async fn add(
    State(app): Shared,
    PathParams(id): PathParams<String>,
    text: BodyText,
) -> Result<Json<JudgedCall>, ApiError> {
    if !is_conversation_id(&id) {
        return Err(ConversationError::BadId.into());
    }
    let judged = app.work(move |app| Ok(app.conversations.add_call(&id, &text.0, &models()?)?)).await?;
    app.metrics.judged(judged.verdict);
    Ok(Json(judged))
}

/// Returns all calls of a conversation, with verdicts.
pub(super) async fn list(
    State(app): Shared,
    PathParams(id): PathParams<String>,
) -> Result<Json<CallsAnswer>, ApiError> {
    let calls = app
        .work(move |app| {
            app.known(&id)?;
            Ok(app.conversations.calls(&id, &models()?)?)
        })
        .await?;
    Ok(Json(CallsAnswer { calls }))
}
