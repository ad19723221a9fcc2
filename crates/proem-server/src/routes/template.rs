//! The template of new conversations, and its versions.

use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use proem::{ProfileBase, Request};
use proem_core::limit::TEMPLATE_BYTES_MAX;
use proem_core::variable::Variable;
use proem_store::{StoreError, TemplateVersion};
use serde::Deserialize;

use super::Shared;
use super::body::{BodyText, QueryParams};
use crate::app::App;
use crate::error::ApiError;
use crate::shapes::{
    TemplateAnswer, TemplateBody, VariableShape, VariablesAnswer, VersionShape, VersionsAnswer,
};

/// Maximum number of versions in one answer.
const VERSIONS_MAX: usize = 100;

impl App {
    /// Returns the base of the profile with which this server builds requests that name none.
    fn own_base(&self) -> Result<ProfileBase, ApiError> {
        let cwd = self.options.workspaces.first().map(|path| path.display().to_string());
        let request = Request { cwd, ..Request::default() };
        Ok(proem::profile_base(&request, self.caller())?)
    }

    /// Describes a stored template.
    fn stored(&self, TemplateVersion { text, version, .. }: TemplateVersion) -> TemplateAnswer {
        // The template is stored, whether or not the profile of this server can be read.
        let used = self.own_base().is_ok_and(|base| base.takes_stored_template);
        TemplateAnswer { template: text, version: Some(version), used }
    }

    /// Returns the request with the stored template as its base, unless it brings one or its profile takes none.
    pub(super) fn with_stored_template(&self, mut request: Request) -> Result<Request, ApiError> {
        let has_base =
            request.system.is_some() || request.template.is_some() || request.instruction.is_some();
        if !has_base
            && let Some(stored) = self.store().template()?
            && proem::takes_stored_template(&request, self.caller())?
        {
            request.template = Some(stored.text);
        }
        Ok(request)
    }
}

/// Returns the stored template, or the base of the server's profile if none is stored or the store fails.
pub(super) async fn get(State(app): Shared) -> Result<Json<TemplateAnswer>, ApiError> {
    let answer = app
        .work(|app| match app.store().template() {
            Ok(Some(found)) => Ok(app.stored(found)),
            Ok(None) | Err(_) => {
                Ok(TemplateAnswer { template: app.own_base()?.text, version: None, used: true })
            }
        })
        .await?;
    Ok(Json(answer))
}

/// Stores a new version.
pub(super) async fn put(State(app): Shared, text: BodyText) -> Result<Json<TemplateAnswer>, ApiError> {
    let body: TemplateBody = text.json()?;
    check(&body.template, body.author.as_deref())?;
    let TemplateBody { template, author, expected_version } = body;
    let answer = app
        .work(move |app| {
            let stored = app.store().put_template(&template, author.as_deref(), expected_version)?;
            Ok(app.stored(stored))
        })
        .await?;
    Ok(Json(answer))
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
    let answer = app
        .work(move |app| -> Result<_, ApiError> {
            let found = app.store().template_version(version)?;
            let found = found.ok_or_else(|| no_version(version))?;
            check(&found.text, found.author.as_deref()).map_err(|error| {
                error.with_hint("store its text with `PUT /system-prompt` and another author")
            })?;
            let stored: Result<_, StoreError> =
                app.store().put_template(&found.text, found.author.as_deref(), None);
            Ok(app.stored(stored?))
        })
        .await?;
    Ok(Json(answer))
}
