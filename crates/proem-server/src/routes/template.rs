//! The template of new conversations, and its versions.

use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use proem::{ProfileBase, Request};
use proem_core::limit::TEMPLATE_BYTES_MAX;
use proem_core::variable::Variable;
use proem_store::{NewTemplate, TemplateVersion};
use serde::Deserialize;

use super::Shared;
use super::body::{BodyText, QueryParams};
use crate::app::App;
use crate::error::ApiError;
use crate::shapes::{
    Label, LabelBody, TemplateAnswer, TemplateBody, VariableShape, VariablesAnswer, VersionShape, VersionUse,
    VersionsAnswer,
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
    fn stored(&self, stored: TemplateVersion) -> TemplateAnswer {
        let TemplateVersion { text, version, is_draft, .. } = stored;
        // The template is stored, whether or not the profile of this server can be read.
        let used = !is_draft && self.own_base().is_ok_and(|base| base.takes_stored_template);
        let label = is_draft.then_some(Label::Draft);
        TemplateAnswer { template: text, version: Some(version), used, label }
    }

    /// Reads the version that new conversations begin with, and the number of conversations of each version.
    fn version_use(&self) -> Result<VersionUse, ApiError> {
        let live = self.store().live_version()?;
        Ok(VersionUse { live, conversations: self.store().template_uses()? })
    }

    /// Returns the request with the stored template as its base, unless it brings one or its profile takes none.
    pub(super) fn with_stored_template(&self, mut request: Request) -> Result<Request, ApiError> {
        let has_base =
            request.system.is_some() || request.template.is_some() || request.instruction.is_some();
        if !has_base
            && let Some(stored) = self.store().live_template()?
            && proem::takes_stored_template(&request, self.caller())?
        {
            request.template = Some(stored.text);
        }
        Ok(request)
    }
}

/// Returns the newest version of the template, or the base of the server's profile if none is stored or the store fails.
pub(super) async fn get(State(app): Shared) -> Result<Json<TemplateAnswer>, ApiError> {
    let answer = app
        .work(|app| {
            if let Ok(Some(found)) = app.store().template() {
                return Ok(app.stored(found));
            }
            let template = app.own_base()?.text;
            Ok(TemplateAnswer { template, version: None, used: true, label: None })
        })
        .await?;
    Ok(Json(answer))
}

/// Stores a new version.
pub(super) async fn put(State(app): Shared, text: BodyText) -> Result<Json<TemplateAnswer>, ApiError> {
    let body: TemplateBody = text.json()?;
    check(&new_of(&body))?;
    let answer = app.work(move |app| Ok(app.stored(app.store().add_template(&new_of(&body))?))).await?;
    Ok(Json(answer))
}

fn new_of(body: &TemplateBody) -> NewTemplate<'_> {
    NewTemplate {
        text: &body.template,
        author: body.author.as_deref(),
        message: body.message.as_deref(),
        is_draft: body.label == Some(Label::Draft),
        expected: body.expected_version,
    }
}

fn check(new: &NewTemplate<'_>) -> Result<(), ApiError> {
    let length = new.text.len();
    if length > TEMPLATE_BYTES_MAX {
        let message = format!("the template has {length} bytes, and {TEMPLATE_BYTES_MAX} are allowed");
        return Err(ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", message));
    }
    new.check().map_err(ApiError::bad_request)
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
            let versions = app.version_use()?;
            if text {
                let whole = app.store().template_versions(before, most)?;
                return Ok(whole.into_iter().map(|version| versions.version(version)).collect());
            }
            let heads = app.store().template_heads(before, most)?;
            Ok(heads.into_iter().map(|head| versions.head(head)).collect())
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
    let found = app
        .work(move |app| {
            let found = app.store().template_version(version)?.ok_or_else(|| no_version(version))?;
            Ok(app.version_use()?.version(found))
        })
        .await?;
    Ok(Json(found))
}

/// Makes a version a draft, or a draft live. Returns the version.
pub(super) async fn label(
    State(app): Shared,
    version: Result<Path<u64>, PathRejection>,
    text: BodyText,
) -> Result<Json<VersionShape>, ApiError> {
    let Ok(Path(version)) = version else { return Err(not_a_version()) };
    let LabelBody { label } = text.json()?;
    let found = app
        .work(move |app| {
            let live = app.store().live_version()?.unwrap_or(0);
            if label == Label::Live && version < live {
                let message = format!("version {live} is live, and version {version} is older");
                let error = ApiError::new(StatusCode::CONFLICT, "conflict", message);
                return Err(error.with_hint("restore it: the newest version that is not a draft is live"));
            }
            if !app.store().set_template_draft(version, label == Label::Draft)? {
                return Err(no_version(version));
            }
            let found = app.store().template_version(version)?.ok_or_else(|| no_version(version))?;
            Ok(app.version_use()?.version(found))
        })
        .await?;
    Ok(Json(found))
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
            let message = format!("Restored version {version}");
            let new = NewTemplate {
                text: &found.text,
                author: found.author.as_deref(),
                message: Some(&message),
                ..NewTemplate::default()
            };
            check(&new).map_err(|error| {
                error.with_hint("store its text with `PUT /system-prompt` and another author")
            })?;
            Ok(app.stored(app.store().add_template(&new)?))
        })
        .await?;
    Ok(Json(answer))
}
