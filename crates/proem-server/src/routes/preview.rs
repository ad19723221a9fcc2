//! A prompt that is built and not stored.

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use proem::deliver::Options;
use proem::models::Models;
use proem::stats::stats;
use proem::wire::BuildShape;

use super::Shared;
use super::body::Text;
use crate::app::App;
use crate::error::ApiError;
use crate::shapes::{OwnedNote, PreviewAnswer, carriers};

/// Builds what a request asks for, and tells everything about it.
pub(super) async fn preview(State(app): Shared, text: Text) -> Result<Response, ApiError> {
    let request = app.admit(text.request()?)?;
    let json = app
        .work(move |app| {
            let request = app.with_template(request)?;
            let build = proem::build(&request, App::CALLER)?;
            let models = Models::load(&request, App::CALLER)?;
            let (stats, more) = stats(&build, &request, None, &models, &Options::default())?;
            let BuildShape { sections, spans, .. } = BuildShape::of(&build);
            let notes = build.frozen.notes().iter().chain(&more).map(OwnedNote::from).collect();
            let answer = PreviewAnswer {
                carriers: carriers(&build.whole),
                prefix_bytes: build.frozen.prefix().len(),
                digest: build.frozen.digest().hex(),
                sections,
                spans,
                stats,
                notes,
            };
            serde_json::to_string(&answer).map_err(|_| ApiError::internal())
        })
        .await?;
    Ok(([(header::CONTENT_TYPE, "application/json")], json).into_response())
}
