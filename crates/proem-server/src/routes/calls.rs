//! What providers said about calls, beside the epochs that they were made with.

use axum::Json;
use axum::extract::State;
use proem::evidence::JudgedCall;
use proem::models::Models;
use proem::{Caller, Request};
use proem_store::{ConversationError, is_conversation_id};

use super::Shared;
use super::body::{Named, Text};
use crate::error::ApiError;
use crate::shapes::CallsAnswer;

fn models() -> Result<Models, ApiError> {
    Ok(Models::load(&Request::default(), Caller::REMOTE)?)
}

/// Keeps what a provider said about a call, and judges it.
pub(super) async fn add(
    State(app): Shared,
    Named(id): Named<String>,
    text: Text,
) -> Result<Json<JudgedCall>, ApiError> {
    if !is_conversation_id(&id) {
        return Err(ConversationError::BadId.into());
    }
    let judged = app.work(move |app| Ok(app.conversations.add_call(&id, &text.0, &models()?)?)).await?;
    app.metrics.judged(judged.verdict);
    Ok(Json(judged))
}

/// All calls of a conversation, judged.
pub(super) async fn list(
    State(app): Shared,
    Named(id): Named<String>,
) -> Result<Json<CallsAnswer>, ApiError> {
    let calls = app
        .work(move |app| {
            app.known(&id)?;
            Ok(app.conversations.calls(&id, &models()?)?)
        })
        .await?;
    Ok(Json(CallsAnswer { calls }))
}
