//! Workspaces that clients send: their files, in the place of a directory of the server.

use axum::Json;
use axum::extract::State;
use proem::request::bundle::{Bundle, VirtualWorkspace};

use super::Shared;
use super::body::BodyText;
use crate::error::ApiError;
use crate::shapes::WorkspaceAnswer;

/// Stores a workspace, and returns its digest.
pub(super) async fn put(State(app): Shared, text: BodyText) -> Result<Json<WorkspaceAnswer>, ApiError> {
    let answer = app
        .work(move |app| {
            let bundle = Bundle::from_json(&text.0)?;
            let (files, bytes) = (bundle.files().len(), bundle.files().values().map(String::len).sum());
            let kept = app.conversations.keep_workspace(&VirtualWorkspace::from(bundle))?;
            Ok(WorkspaceAnswer { digest: kept.digest().to_owned(), files, bytes })
        })
        .await?;
    Ok(Json(answer))
}
