//! The template of new conversations, and its versions.

use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use proem_core::builtin;
use proem_core::limit::TEMPLATE_BYTES_MAX;
use proem_core::variable::Variable;
use proem_store::{StoreError, TemplateVersion};
use serde::Deserialize;

use super::Shared;
use super::body::{BodyText, QueryParams};
use crate::error::ApiError;
use crate::shapes::{
    TemplateAnswer, TemplateBody, VariableShape, VariablesAnswer, VersionShape, VersionsAnswer,
};

/// The asset with the built-in template.
const BUILT_IN: &str = "default/base";

/// Maximum number of versions in one answer.
const VERSIONS_MAX: usize = 100;

/// Returns the text of the built-in template.
pub(super) fn built_in() -> &'static str {
    builtin::asset(BUILT_IN).unwrap_or_default()
}

/// Returns the current template, or the built-in one if none is stored or the store fails.
pub(super) async fn get(State(app): Shared) -> Result<Json<TemplateAnswer>, ApiError> {
    let stored = app.work(|app| Ok(app.store().template())).await?;
    let answer = match stored {
        Ok(Some(found)) => TemplateAnswer { template: found.text, version: Some(found.version) },
        Ok(None) | Err(_) => TemplateAnswer { template: built_in().to_owned(), version: None },
    };
    Ok(Json(answer))
}

/// Stores a new version.
pub(super) async fn put(State(app): Shared, text: BodyText) -> Result<Json<TemplateAnswer>, ApiError> {
    let body: TemplateBody = text.json()?;
    check(&body.template, body.author.as_deref())?;
    let TemplateBody { template, author, expected_version } = body;
    let stored = app
        .work(move |app| Ok(app.store().put_template(&template, author.as_deref(), expected_version)?))
        .await?;
    Ok(Json(TemplateAnswer { template: stored.text, version: Some(stored.version) }))
}

fn check(template: &str, author: Option<&str>) -> Result<(), ApiError> {
    if template.len() > TEMPLATE_BYTES_MAX {
        let message =
            format!("the template has {} bytes, and {TEMPLATE_BYTES_MAX} are allowed", template.len());
        return Err(ApiError::new(axum::http::StatusCode::PAYLOAD_TOO_LARGE, "too_large", message));
    }
    TemplateVersion::check(template, author).map_err(ApiError::bad_request)
}

/// Returns the variables that templates may use.
pub(super) async fn variables() -> Json<VariablesAnswer> {
    let shape = |variable: Variable| VariableShape {
        kind: variable.kind(),
        name: variable.name(),
        description: variable.description(),
        dynamic: variable.is_dynamic(),
        stability: variable.stability().word(),
    };
    Json(VariablesAnswer { variables: Variable::ALL.into_iter().map(shape).collect() })
}

/// Returns the versions, newest first.
pub(super) async fn versions(
    State(app): Shared,
    QueryParams(query): QueryParams<VersionsQuery>,
) -> Result<Json<VersionsAnswer>, ApiError> {
    let VersionsQuery { before, limit, text } = query;
    let most = limit.unwrap_or(VERSIONS_MAX).clamp(1, VERSIONS_MAX);
    let versions = app
        .work(move |app| -> Result<Vec<VersionShape>, ApiError> {
            if text {
                let whole = app.store().template_versions(before, most)?;
                return Ok(whole.into_iter().map(VersionShape::from).collect());
            }
            Ok(app.store().template_heads(before, most)?.into_iter().map(VersionShape::from).collect())
        })
        .await?;
    Ok(Json(VersionsAnswer { versions }))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct VersionsQuery {
    before: Option<u64>,
    limit: Option<usize>,
    #[serde(default = "yes")]
    text: bool,
}

const fn yes() -> bool {
    true
}

/// Returns one version.
pub(super) async fn version(
    State(app): Shared,
    version: Result<Path<u64>, PathRejection>,
) -> Result<Json<VersionShape>, ApiError> {
    let Ok(Path(version)) = version else { return Err(not_a_version()) };
    let found = app.work(move |app| Ok(app.store().template_version(version)?)).await?;
    Ok(Json(found.ok_or_else(|| no_version(version))?.into()))
}

fn not_a_version() -> ApiError {
    ApiError::bad_request("the version is not a number")
}

fn no_version(version: u64) -> ApiError {
    ApiError::not_found(format!("there is no version {version}"))
}

/// Stores an earlier version again, as the newest one.
pub(super) async fn restore(
    State(app): Shared,
    version: Result<Path<u64>, PathRejection>,
) -> Result<Json<TemplateAnswer>, ApiError> {
    let Ok(Path(version)) = version else { return Err(not_a_version()) };
    let stored = app
        .work(move |app| -> Result<_, ApiError> {
            let found = app.store().template_version(version)?;
            let found = found.ok_or_else(|| no_version(version))?;
            check(&found.text, found.author.as_deref()).map_err(|error| {
                error.with_hint("store its text with `PUT /system-prompt` and another author")
            })?;
            let stored: Result<_, StoreError> =
                app.store().put_template(&found.text, found.author.as_deref(), None);
            Ok(stored?)
        })
        .await?;
    Ok(Json(TemplateAnswer { template: stored.text, version: Some(stored.version) }))
}
