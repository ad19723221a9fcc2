//! The text of a template section: the profile's own, or the text that replaces the base.

use std::path::Path;

use proem_core::limit::TEMPLATE_BYTES_MAX;
use proem_core::profile::{Content, Profile, SectionRecipe, Syntax, TemplateRecipe};
use proem_core::source::Source;
use proem_core::stability::Stability;

use crate::discover::Owner;
use crate::discover::libraries::{self, Libraries};
use crate::discover::override_files::FileText;
use crate::error::Error;
use crate::error::FileRole;
use crate::jinja::Asset;
use crate::jinja::reference::{self, Reference};
use crate::observe::file::{Cap, read_source_text};
use crate::request::Request;
use crate::request::caller::Author;
use crate::sections::jinja_job::bad_reference;
use crate::sections::resolver::Resolver;
use crate::settings::config::{Config, SettingOrigin};

/// The section that `system`, `template` and the configured template replace.
pub(crate) const SECTION: &str = "base";

const TEMPLATE: Cap = Cap::new(TEMPLATE_BYTES_MAX);

/// A template's text, and everything that follows from where it comes from.
#[derive(Debug)]
pub(crate) struct LoadedTemplate {
    pub(crate) content: String,
    pub(crate) syntax: Syntax,
    pub(crate) origin: Source,
    pub(crate) author: Author,
    pub(crate) stability: Stability,
    /// The reference, for a text from a library.
    pub(crate) reference: Option<Reference>,
}

/// The places that template texts are loaded from.
pub(crate) struct TemplateSources<'s> {
    pub(crate) request: &'s Request,
    pub(crate) config: &'s Config,
    pub(crate) libraries: &'s Libraries,
    pub(crate) profile: &'s Profile,
}

impl TemplateSources<'_> {
    /// Returns the text with which the request or the configuration replaces the base, if any.
    pub(crate) fn replacement(
        &self,
        resolver: &Resolver<'_>,
        syntax: Syntax,
    ) -> Result<Option<LoadedTemplate>, Error> {
        if let Some(text) = &self.request.system {
            return of_request(self.request, "system", text, Syntax::Plain).map(Some);
        }
        if let Some(text) = &self.request.template {
            return of_request(self.request, "template", text, syntax).map(Some);
        }
        if let Some(reference) = &self.request.instruction {
            let loaded = self.asset(reference, "the request's `instruction`", syntax);
            return loaded.map(Some).map_err(|error| error.in_field("instruction"));
        }
        configured(self.config, resolver)
    }

    /// The template that a section of the profile has by itself.
    pub(crate) fn of_profile(
        &self,
        section: &SectionRecipe,
        template: &TemplateRecipe,
        author: Author,
    ) -> Result<LoadedTemplate, Error> {
        match template {
            TemplateRecipe::Asset(reference, syntax) => {
                let named_by = format!("section `{}` of the profile `{}`", section.id, self.profile.name);
                self.asset(reference, &named_by, *syntax)
            }
            TemplateRecipe::Text(text, syntax) => {
                let key = format!("section.{}.template", section.id);
                let (content, stability) = (text.clone(), self.profile.stability_of(&key));
                let origin = Source::Profile { profile: self.profile.name.as_str().into(), key: key.into() };
                Ok(LoadedTemplate { content, syntax: *syntax, origin, author, stability, reference: None })
            }
        }
    }

    /// Loads the template that formats a collected section: its name, its text, and its author.
    pub(crate) fn format(&self, reference: &str, named_by: &str) -> Result<(String, Asset, Author), Error> {
        let LoadedTemplate { content, origin, author, stability, reference, .. } =
            self.asset(reference, named_by, Syntax::Jinja)?;
        let name = reference.as_ref().map_or_else(String::new, ToString::to_string);
        Ok((name, Asset { reference, text: content, origin, stability }, author))
    }

    fn asset(&self, reference: &str, named_by: &str, syntax: Syntax) -> Result<LoadedTemplate, Error> {
        let refuse = |message: String, hint: Option<String>| Error::NoAsset {
            message,
            hint,
            named_by: named_by.to_owned(),
            field: None,
        };
        let parsed = reference::parse(reference, None, &self.profile.jinja.aliases)
            .map_err(|why| refuse(bad_reference(reference, why), Some(why.hint().to_owned())))?;
        let asset = self.libraries.load(&parsed).map_err(|missing| refuse(missing.message, missing.hint))?;
        let author = libraries::author(parsed.library);
        let Asset { text: content, origin, stability, reference } = asset;
        Ok(LoadedTemplate { content, syntax, origin, author, stability, reference })
    }
}

/// Returns the text of a file that replaces a section's own. A file of the project, and every file that a profile of
/// the project names, is read with the project's rights, whatever its path.
pub(crate) fn of_file(file: FileText, syntax: Option<Syntax>, named_by: Author) -> LoadedTemplate {
    let owner = match file.owner {
        Owner::User => Author::User,
        Owner::Project => Author::Other,
    };
    let author = owner.max(named_by);
    LoadedTemplate {
        syntax: syntax.unwrap_or_else(|| syntax_of(Path::new(&file.path))),
        origin: Source::File { path: file.path.into(), place: None },
        content: file.text,
        author,
        stability: file.owner.stability(),
        reference: None,
    }
}

/// Derives the template language from a file's extension.
fn syntax_of(path: &Path) -> Syntax {
    let is_jinja = path.extension().is_some_and(|extension| extension == "j2");
    if is_jinja { Syntax::Jinja } else { Syntax::Bracket }
}

/// Refuses a request that replaces the base in more than one way.
pub(crate) fn refuse_two(request: &Request) -> Result<(), Error> {
    let said =
        [("system", &request.system), ("template", &request.template), ("instruction", &request.instruction)];
    let said: Vec<&str> = said.iter().filter(|(_, text)| text.is_some()).map(|(field, _)| *field).collect();
    match said.as_slice() {
        [first, second, ..] => Err(Error::request_with_hint(
            format!("`{first}` and `{second}` both replace the base"),
            "give one of them",
        )),
        _ => Ok(()),
    }
}

/// Tells whether the profile has a base that can be replaced.
pub(crate) fn is_in(profile: &Profile) -> bool {
    profile
        .sections
        .iter()
        .any(|section| section.id == SECTION && matches!(section.content, Content::Template(_)))
}

fn of_request(request: &Request, field: &str, text: &str, syntax: Syntax) -> Result<LoadedTemplate, Error> {
    if text.len() > TEMPLATE_BYTES_MAX {
        let message = format!("`{field}` has {} bytes, and {TEMPLATE_BYTES_MAX} are allowed", text.len());
        return Err(Error::request(message));
    }
    let (origin, syntax) = match (&request.template_path, field) {
        (Some(path), "template") => {
            let is_jinja = syntax_of(Path::new(path)) == Syntax::Jinja;
            (
                Source::File { path: path.as_str().into(), place: None },
                if is_jinja { Syntax::Jinja } else { syntax },
            )
        }
        _ => (Source::Request { field: field.into(), place: None }, syntax),
    };
    Ok(LoadedTemplate {
        content: text.to_owned(),
        syntax,
        origin,
        author: Author::User,
        stability: Stability::Session,
        reference: None,
    })
}

/// The template that the configuration names. One that a workspace names is read as the workspace.
fn configured(config: &Config, resolver: &Resolver<'_>) -> Result<Option<LoadedTemplate>, Error> {
    let Some(path) = &config.template.value else { return Ok(None) };
    let (author, stability) = match config.template.origin {
        SettingOrigin::Workspace(_) => (Author::Other, Stability::Project),
        SettingOrigin::Default | SettingOrigin::User(_) | SettingOrigin::Environment(_) => {
            (Author::User, Stability::User)
        }
    };
    // The file's extension decides the syntax: the file stays the same when the profile changes.
    let syntax = syntax_of(path);
    let shown = path.display().to_string();
    let text = read_source_text(path, &resolver.read_policy(author), TEMPLATE)
        .map_err(|why| Error::File { role: FileRole::Template, path: shown.clone(), why })?;
    Ok(Some(LoadedTemplate {
        content: text,
        syntax,
        origin: Source::File { path: shown.into(), place: None },
        author,
        stability,
        reference: None,
    }))
}
