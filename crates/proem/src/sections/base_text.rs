//! The text of a template section: the profile's own, or what takes the place of the base.

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
use crate::observe::file::{Cap, read_text};
use crate::request::Request;
use crate::request::caller::Author;
use crate::sections::jinja_job::bad_reference;
use crate::sections::resolver::Resolver;
use crate::settings::config::{Config, Origin};

/// The section that `system`, `template` and the configured template replace.
pub(crate) const SECTION: &str = "base";

const TEMPLATE: Cap = Cap::new(TEMPLATE_BYTES_MAX);

/// A template's text, and everything that follows from where it comes from.
#[derive(Debug)]
pub(crate) struct Text {
    pub(crate) content: String,
    pub(crate) syntax: Syntax,
    pub(crate) origin: Source,
    pub(crate) author: Author,
    pub(crate) stability: Stability,
    /// The reference, for a text from a library.
    pub(crate) reference: Option<Reference>,
}

/// Where the text of templates is found.
pub(crate) struct TemplateSources<'s> {
    pub(crate) request: &'s Request,
    pub(crate) config: &'s Config,
    pub(crate) libraries: &'s Libraries,
    pub(crate) profile: &'s Profile,
}

impl TemplateSources<'_> {
    /// What the request or the configuration puts in place of the base, if anything.
    pub(crate) fn replacement(&self, resolver: &Resolver<'_>, syntax: Syntax) -> Result<Option<Text>, Error> {
        if let Some(text) = &self.request.system {
            return of_request(self.request, "system", text, Syntax::Plain).map(Some);
        }
        if let Some(text) = &self.request.template {
            return of_request(self.request, "template", text, syntax).map(Some);
        }
        if let Some(reference) = &self.request.instruction {
            return self.asset(reference, "the request's `instruction`", syntax).map(Some);
        }
        configured(self.config, resolver)
    }

    /// The template that a section of the profile has by itself.
    pub(crate) fn of_profile(
        &self,
        section: &SectionRecipe,
        template: &TemplateRecipe,
        author: Author,
    ) -> Result<Text, Error> {
        match template {
            TemplateRecipe::Asset(reference, syntax) => {
                let named_by = format!("section `{}` of the profile `{}`", section.id, self.profile.name);
                self.asset(reference, &named_by, *syntax)
            }
            TemplateRecipe::Text(text, syntax) => {
                let key = format!("section.{}.template", section.id);
                let (content, stability) = (text.clone(), self.profile.stability_of(&key));
                let origin = Source::Profile { profile: self.profile.name.as_str().into(), key: key.into() };
                Ok(Text { content, syntax: *syntax, origin, author, stability, reference: None })
            }
        }
    }

    /// The template that puts collected things into words, its name, and who wrote it.
    pub(crate) fn format(&self, reference: &str, named_by: &str) -> Result<(String, Asset, Author), Error> {
        let Text { content, origin, author, stability, reference, .. } =
            self.asset(reference, named_by, Syntax::Jinja)?;
        let name = reference.as_ref().map_or_else(String::new, ToString::to_string);
        Ok((name, Asset { reference, text: content, origin, stability }, author))
    }

    fn asset(&self, reference: &str, named_by: &str, syntax: Syntax) -> Result<Text, Error> {
        let refuse = |message: String, hint: Option<String>| Error::NoAsset {
            message,
            hint,
            named_by: named_by.to_owned(),
        };
        let parsed = reference::parse(reference, None, &self.profile.jinja.aliases)
            .map_err(|why| refuse(bad_reference(reference, why), Some(why.hint().to_owned())))?;
        let asset = self.libraries.load(&parsed).map_err(|missing| refuse(missing.message, missing.hint))?;
        let author = libraries::author(parsed.library);
        let Asset { text: content, origin, stability, reference } = asset;
        Ok(Text { content, syntax, origin, author, stability, reference })
    }
}

/// The text of a file that stands for a section's own. A project's file is read as the project's, and so is every file
/// that a profile of the project names, whatever the path looks like.
pub(crate) fn of_file(file: FileText, syntax: Option<Syntax>, named_by: Author) -> Text {
    let owner = match file.owner {
        Owner::User => Author::User,
        Owner::Project => Author::Other,
    };
    let author = owner.max(named_by);
    Text {
        syntax: syntax.unwrap_or_else(|| syntax_of(Path::new(&file.path))),
        origin: Source::File { path: file.path.into(), place: None },
        content: file.text,
        author,
        stability: file.owner.stability(),
        reference: None,
    }
}

/// The language that a file's name says.
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

fn of_request(request: &Request, field: &str, text: &str, syntax: Syntax) -> Result<Text, Error> {
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
    Ok(Text {
        content: text.to_owned(),
        syntax,
        origin,
        author: Author::User,
        stability: Stability::Session,
        reference: None,
    })
}

/// The template that the configuration names. One that a workspace names is read as the workspace.
fn configured(config: &Config, resolver: &Resolver<'_>) -> Result<Option<Text>, Error> {
    let Some(path) = &config.template.value else { return Ok(None) };
    let (author, stability) = match config.template.origin {
        Origin::Workspace(_) => (Author::Other, Stability::Project),
        Origin::Default | Origin::User(_) | Origin::Environment(_) => (Author::User, Stability::User),
    };
    // The file says its syntax, because it stays while profiles change.
    let syntax = syntax_of(path);
    let shown = path.display().to_string();
    let text = read_text(path, &resolver.read_policy(author), TEMPLATE).map_err(|why| Error::File {
        role: FileRole::Template,
        path: shown.clone(),
        why,
    })?;
    Ok(Some(Text {
        content: text,
        syntax,
        origin: Source::File { path: shown.into(), place: None },
        author,
        stability,
        reference: None,
    }))
}
