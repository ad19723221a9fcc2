//! Previews: prompts that are built and not stored.

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use proem::deliver::DeliverOptions;
use proem::models::Models;
use proem::preview::breaks;
use proem::stats::stats;

use super::Shared;
use super::body::BodyText;
use crate::error::ApiError;
use crate::shapes::PreviewAnswer;

/// Builds the prompt of a request, and returns it with sources, costs and notes.
pub(super) async fn preview(State(app): Shared, text: BodyText) -> Result<Response, ApiError> {
    let request = app.admit(text.request()?)?;
    let json = app
        .work(move |app| {
            let request = app.conversations.resolved(&request)?.into_owned();
            let request = app.with_stored_template(request)?;
            let preview = app.engine.preview(&request, app.caller())?;
            let models = Models::load(&request, app.caller())?;
            let (stats, more) = stats(&preview.build, &request, None, &models, &DeliverOptions::default())?;
            let model = request.model.as_deref().and_then(|name| models.find(name));
            let breaks = breaks(&preview.build, model);
            let template = request.template.as_deref().unwrap_or_default();
            let answer = PreviewAnswer::new(template, &preview, stats, &breaks, &more).with_prices(model);
            serde_json::to_vec(&answer).map_err(|_| ApiError::internal())
        })
        .await?;
    Ok(([(header::CONTENT_TYPE, "application/json")], json).into_response())
}
