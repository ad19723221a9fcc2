//! One epoch of a conversation, with the source of every byte.

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use proem::Caller;
use proem::deliver::{DeliverOptions, deliver};
use proem::models::Models;
use proem_core::note::Note;
use proem_store::{ConversationError, LoadedEpoch, is_conversation_id};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::Shared;
use super::body::{PathParams, QueryParams, number, provider};
use crate::error::ApiError;
use crate::shapes::EpochAnswer;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EpochQuery {
    provider: Option<String>,
}

/// Returns an epoch, and the payload for a provider if one is named.
pub(super) async fn show(
    State(app): Shared,
    PathParams((id, epoch)): PathParams<(String, String)>,
    QueryParams(query): QueryParams<EpochQuery>,
) -> Result<Response, ApiError> {
    if !is_conversation_id(&id) {
        return Err(ConversationError::BadId.into());
    }
    let number = number(&epoch)?;
    let provider = query.provider.as_deref().map(provider).transpose()?;
    let json = app
        .work(move |app| {
            let kept = app.conversations.epoch(&id, number)?;
            let kept = kept.ok_or_else(|| ApiError::not_found(format!("there is no epoch {number}")))?;
            let (payload, notes) = match provider {
                Some(provider) => payload(&kept, provider)?,
                None => (None, Vec::new()),
            };
            serde_json::to_vec(&EpochAnswer::new(&kept, payload, &notes)).map_err(|_| ApiError::internal())
        })
        .await?;
    Ok(([(header::CONTENT_TYPE, "application/json")], json).into_response())
}

fn payload(
    kept: &LoadedEpoch,
    provider: proem::deliver::Provider,
) -> Result<(Option<Box<RawValue>>, Vec<Note>), ApiError> {
    let models = Models::load(&kept.request, Caller::REMOTE)?;
    let delivered = deliver(provider, &kept.build(), &kept.request, &models, &DeliverOptions::default())?;
    Ok((Some(delivered.payload), delivered.notes))
}
