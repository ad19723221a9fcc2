//! Routes of the web editor: choices, files, and values of variables.

use std::path::{Path, PathBuf};

use axum::Json;
use axum::extract::State;
use proem::deliver::ProviderName;
use proem::models::{Model, Models};
use proem::profiles::{ProfileEntry, Profiles};
use proem::tokens::Tokenizer;
use proem::turn_shape::OwnedNoteShape;
use proem::{ProfileBase, Request, directory_listing};
use proem_core::limit::TEMPLATE_BYTES_MAX;
use proem_core::profile::{Content, Syntax};
use serde::Deserialize;

use super::Shared;
use super::body::{BodyText, QueryParams};
use crate::app::App;
use crate::error::ApiError;
use crate::shapes::{
    EditorAnswer, FilesAnswer, LimitsShape, ModelShape, ModelsShape, ProfileShape, ValueShape, ValuesAnswer,
};

/// Maximum number of files in one answer.
const FILES_MAX: usize = 1000;

/// Maximum length of a search, in bytes.
const SEARCH_BYTES_MAX: usize = 1000;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EditorQuery {
    cwd: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FilesQuery {
    dir: Option<String>,
    search: Option<String>,
}

/// Returns the profiles, models, providers and limits that the editor offers.
pub(super) async fn editor(
    State(app): Shared,
    QueryParams(query): QueryParams<EditorQuery>,
) -> Result<Json<EditorAnswer>, ApiError> {
    let EditorQuery { cwd } = query;
    let request = app.admit(Request { cwd, ..Request::default() })?;
    let answer = app.work(move |app| app.describe(&request)).await?;
    Ok(Json(answer))
}

impl App {
    fn describe(&self, request: &Request) -> Result<EditorAnswer, ApiError> {
        let profiles = Profiles::from_request(request, self.caller())?;
        let models = Models::load(request, self.caller())?;
        let known = models.names().into_iter().filter_map(|name| models.find(name));
        let known = known.map(|model| ModelShape { name: model.name.clone(), vendor: model.vendor.clone() });
        let ProfileBase { profile, text: built_in, .. } = proem::profile_base(request, self.caller())?;
        Ok(EditorAnswer {
            workspaces: self.options.workspaces.iter().map(|path| path.display().to_string()).collect(),
            profiles: profiles.list().into_iter().map(|listed| shape(&profiles, listed)).collect(),
            profile,
            models: ModelsShape { models: known.collect(), as_of: models.as_of.clone() },
            providers: ProviderName::all().map(|name| name.word).collect(),
            built_in,
            engine: env!("CARGO_PKG_VERSION"),
            has_token: self.options.token.is_some(),
            limits: LimitsShape { template_bytes: TEMPLATE_BYTES_MAX },
        })
    }
}

fn shape(profiles: &Profiles, listed: ProfileEntry) -> ProfileShape {
    let found = profiles.find(&listed.name).ok();
    let template =
        found.iter().flat_map(|found| &found.profile.sections).find_map(|section| match &section.content {
            Content::Template(template) => Some(template.syntax()),
            _ => None,
        });
    let syntax = template.map(|syntax| match syntax {
        Syntax::Bracket => "bracket",
        Syntax::Jinja => "jinja",
        Syntax::Slots => "slots",
        Syntax::Plain => "plain",
    });
    let description = Some(listed.description.unwrap_or_else(|error| error));
    let stored_template = found.is_some_and(|found| found.profile.stored_template);
    ProfileShape { name: listed.name, description, syntax, stored_template }
}

/// Lists a directory of a workspace, or searches one, or all of them.
pub(super) async fn files(
    State(app): Shared,
    QueryParams(query): QueryParams<FilesQuery>,
) -> Result<Json<FilesAnswer>, ApiError> {
    let FilesQuery { dir, search } = query;
    if search.as_ref().is_some_and(|search| search.len() > SEARCH_BYTES_MAX) {
        let message = format!("`search` has more than {SEARCH_BYTES_MAX} bytes");
        return Err(ApiError::bad_request(message));
    }
    let answer = app
        .work(move |app| match (dir, search) {
            (Some(dir), None) => app.listed(dir),
            (None, None) => Err(ApiError::bad_request("the query is invalid: missing field `dir`")
                .with_hint("name a directory with `dir`, or search all workspaces with `search`")),
            (dir, Some(search)) => app.searched(dir, &search),
        })
        .await?;
    Ok(Json(answer))
}

impl App {
    fn listed(&self, dir: String) -> Result<FilesAnswer, ApiError> {
        let roots: &[PathBuf] = &self.options.workspaces;
        let listing = Some(Path::new(&dir))
            .filter(|dir| dir.is_absolute())
            .and_then(|dir| directory_listing::list(dir, roots, FILES_MAX));
        let listing = listing.ok_or_else(|| self.no_listing(&dir))?;
        Ok(FilesAnswer::new(dir, listing))
    }

    /// Searches a directory, or all workspaces. A server without a workspace has no files, which succeeds.
    fn searched(&self, dir: Option<String>, text: &str) -> Result<FilesAnswer, ApiError> {
        let roots: &[PathBuf] = &self.options.workspaces;
        let folders = match &dir {
            Some(dir) => vec![PathBuf::from(dir)],
            None => roots.to_vec(),
        };
        let mut answer = FilesAnswer::empty(dir.unwrap_or_default());
        for folder in folders {
            let found = Some(&folder)
                .filter(|folder| folder.is_absolute())
                .and_then(|folder| directory_listing::search(folder, roots, text, FILES_MAX));
            match found {
                Some((found, is_cut)) => answer.extend(&folder, found, is_cut),
                None if answer.dir.is_empty() => {}
                None => return Err(self.no_listing(&answer.dir)),
            }
        }
        answer.cut(FILES_MAX);
        Ok(answer)
    }

    /// Returns the error for a directory that cannot be listed. It must not reveal whether a directory outside exists.
    fn no_listing(&self, dir: &str) -> ApiError {
        match Path::new(dir) {
            path if path.is_absolute() && self.lies_inside(path) => ApiError::no_directory(dir),
            _ => ApiError::forbidden_cwd("the directory is not in a workspace of this server"),
        }
    }
}

/// Returns every variable with its value in the working directory of a request.
pub(super) async fn values(State(app): Shared, text: BodyText) -> Result<Json<ValuesAnswer>, ApiError> {
    let request = app.admit(text.request()?)?;
    let answer = app
        .work(move |app| {
            let request = app.conversations.resolved(&request)?.into_owned();
            let (reports, notes) = proem::variables(&request, app.caller())?;
            let models = Models::load(&request, app.caller())?;
            let model = request.model.as_deref().and_then(|name| models.find(name));
            let tokenizer = model.map_or(Tokenizer::Estimate, Model::tokenizer);
            let shape = |report| ValueShape::new(report, |text| tokenizer.count(text));
            Ok(ValuesAnswer {
                variables: reports.iter().map(shape).collect(),
                notes: notes.iter().map(OwnedNoteShape::from).collect(),
            })
        })
        .await?;
    Ok(Json(answer))
}
