//! The whole pipeline on one screen: parse → resolve → render → assemble → freeze.

use std::collections::BTreeSet;

use proem_core::bracket::{self, Template, diagnose};
use proem_core::carrier::Carrier;
use proem_core::draft::{self, Section};
use proem_core::frozen::{Frozen, Suffix, freeze};
use proem_core::note::{Code, Note, Severity};
use proem_core::profile::{Content, GivenField, Profile, SectionRecipe, Syntax, TemplateRecipe};
use proem_core::rendered::Rendered;
use proem_core::source::Source;
use proem_core::stability::Stability;

use crate::base::{self, Text};
use crate::config::Config;
use crate::error::Error;
use crate::host::Host;
use crate::profiles::{Found, Profiles};
use crate::request::{OneOrMany, Request};
use crate::resolve::{Author, Resolver};
use crate::workspace::Workspace;

/// Who asks for a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caller {
    /// The user, on their own machine: templates in the request are the user's own.
    User,
    /// Somebody at the other end of a connection.
    Remote,
}

/// A finished prompt: what is frozen, and what belongs to this turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Build {
    /// What stays for the life of the epoch.
    pub frozen: Frozen,
    /// What belongs to this turn alone.
    pub suffix: Suffix,
}

impl Build {
    /// The system prompt; `None` when there is nothing to send.
    #[must_use]
    pub fn system(&self) -> Option<&str> {
        self.text(Carrier::System)
    }

    /// The text of a carrier; `None` when nothing rides on it.
    #[must_use]
    pub fn text(&self, carrier: Carrier) -> Option<&str> {
        self.frozen.body().text(carrier).or_else(|| self.suffix.body().text(carrier))
    }
}

/// Builds the prompt that `request` asks for.
///
/// A failed build is an error, never a substitute prompt.
pub fn build(request: &Request, caller: Caller) -> Result<Build, Error> {
    let host = Host::new(&request.host)?;
    let workspace = Workspace::open(request.cwd.as_deref())?;
    let config = Config::load(&host, &workspace)?;
    let name = request.profile.as_deref().unwrap_or(&config.profile.value);
    let Found { profile, is_of_workspace, notes } = Profiles::new(&host, &workspace).find(name)?;

    base::refuse_two(request)?;
    let resolver = Resolver::new(request, &host, &workspace, &config);
    let mut builder =
        Builder { request, caller, config: &config, profile: &profile, is_of_workspace, resolver, notes };
    let sections = builder.sections()?;
    let mut draft = draft::assemble(&profile, sections)?;

    draft.notes.extend(config.notes.iter().cloned());
    draft.notes.append(&mut builder.notes);
    draft.notes.extend(unused_fields(request, &profile));
    draft.notes.extend(unused_template(&config, &profile));
    draft.considered = builder.resolver.into_considered();
    let (frozen, suffix) = freeze(draft);
    Ok(Build { frozen, suffix })
}

/// Renders the sections of one profile.
struct Builder<'b> {
    request: &'b Request,
    caller: Caller,
    config: &'b Config,
    profile: &'b Profile,
    is_of_workspace: bool,
    resolver: Resolver<'b>,
    notes: Vec<Note>,
}

impl Builder<'_> {
    fn sections(&mut self) -> Result<Vec<Section>, Error> {
        self.profile.sections.iter().map(|recipe| self.section(recipe)).collect()
    }

    fn section(&mut self, recipe: &SectionRecipe) -> Result<Section, Error> {
        let (content, source) = match &recipe.content {
            Content::Template(template) => {
                let mut text = self.template_text(recipe, template)?;
                text.stability = recipe.stability.unwrap_or(text.stability);
                (self.render(&text, recipe.carrier)?, text.origin)
            }
            Content::Given(field) => {
                given(self.request, *field, recipe.stability.unwrap_or(Stability::Session))
            }
        };
        let rendered = draft::wrap(self.profile, recipe, content);
        Ok(Section { id: recipe.id.clone(), carrier: recipe.carrier, rendered, source })
    }

    /// The template of a section: what the request or the configuration says in place of the base,
    /// else the profile's own.
    fn template_text(&self, recipe: &SectionRecipe, template: &TemplateRecipe) -> Result<Text, Error> {
        if recipe.id == base::SECTION
            && let Some(text) =
                base::replacement(self.request, self.config, &self.resolver, template.syntax())?
        {
            return Ok(text);
        }
        let author = if self.is_of_workspace { Author::Other } else { Author::User };
        base::of_profile(self.profile, recipe, template, author)
    }

    fn render(&mut self, text: &Text, carrier: Carrier) -> Result<Rendered, Error> {
        match text.syntax {
            Syntax::Bracket => self.render_bracket(text, carrier),
            Syntax::Plain => {
                let mut rendered = Rendered::new();
                rendered.push(&text.content, text.origin.clone(), None, text.stability);
                Ok(rendered)
            }
        }
    }

    fn render_bracket(&mut self, text: &Text, carrier: Carrier) -> Result<Rendered, Error> {
        let policies = &self.profile.bracket;
        let template = Template::parse_with(&text.content, policies);
        let author = if self.caller == Caller::Remote { Author::Other } else { text.author };
        let facts = self.resolver.resolve(template.wanted(), author);
        let given: BTreeSet<&str> = self.request.variables.keys().map(String::as_str).collect();
        self.notes.extend(diagnose::diagnose(&template, &text.origin, &given, policies));
        self.notes.extend(diagnose::absences(&template, &text.origin, &facts));
        let bound = bracket::bind(&template, &facts, policies).map_err(|error| Error::Policy {
            template: Box::new(text.origin.clone()),
            error: Box::new(error),
        })?;
        let bytes = bracket::rendered_bytes(&template, &bound);
        draft::check_bytes(carrier, bytes)?;
        Ok(bracket::render_with_spans(&template, &bound, &text.origin, text.stability))
    }
}

/// Text that the request gives for a section of its own.
fn given(request: &Request, field: GivenField, stability: Stability) -> (Rendered, Source) {
    let source = Source::Request { field: field.word().to_owned(), place: None };
    let text = match field {
        GivenField::Append => append(request),
        GivenField::Recalled => request.recalled.clone().unwrap_or_default(),
    };
    let mut rendered = Rendered::new();
    rendered.push(&text, source.clone(), None, stability);
    (rendered, source)
}

/// The texts of `append`, joined with a blank line, empty ones left out.
fn append(request: &Request) -> String {
    let texts = request.append.as_ref().map(OneOrMany::texts).unwrap_or_default();
    texts.iter().filter(|text| !text.is_empty()).map(String::as_str).collect::<Vec<_>>().join("\n\n")
}

/// Notes the fields of the request that this profile has no use for.
fn unused_fields(request: &Request, profile: &Profile) -> Vec<Note> {
    let takes =
        |field: GivenField| profile.sections.iter().any(|section| section.content == Content::Given(field));
    let fields = [
        ("system", request.system.is_some() && !base::is_in(profile)),
        ("template", request.template.is_some() && !base::is_in(profile)),
        ("instruction", request.instruction.is_some() && !base::is_in(profile)),
        ("tools", request.tools.is_some()),
        ("scope", request.scope.is_some()),
        ("packs", request.packs.is_some()),
        ("residents", request.residents.is_some()),
        ("project", request.project.is_some()),
        ("first_user_text", request.first_user_text.is_some()),
        ("append", request.append.is_some() && !takes(GivenField::Append)),
        ("recalled", request.recalled.is_some() && !takes(GivenField::Recalled)),
    ];
    let unused = fields.into_iter().filter(|(_, is_unused)| *is_unused);
    unused.map(|(field, _)| unused_field(field, &profile.name)).collect()
}

/// Notes a configured template that has nothing to replace.
fn unused_template(config: &Config, profile: &Profile) -> Option<Note> {
    let path = config.template.value.as_ref().filter(|_| !base::is_in(profile))?;
    let message = format!("the profile `{}` has no base that {} could replace", profile.name, path.display());
    Some(Note::new(Code::UnusedField, Severity::Warning, message))
}

fn unused_field(field: &str, profile: &str) -> Note {
    let message = format!("the profile `{profile}` has no use for the request's `{field}`");
    Note::new(Code::UnusedField, Severity::Info, message)
        .with_source(Source::Request { field: field.to_owned(), place: None })
}
