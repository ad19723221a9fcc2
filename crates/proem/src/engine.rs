//! The whole pipeline on one screen: parse → resolve → render → assemble → freeze.

use std::collections::{BTreeMap, BTreeSet};

use proem_core::bracket::{self, Template, diagnose};
use proem_core::carrier::Carrier;
use proem_core::considered::Considered;
use proem_core::draft::{self, Draft, Section};
use proem_core::frozen::{Frozen, Suffix, freeze};
use proem_core::note::{Code, Note, Severity};
use proem_core::profile::{
    Collection, Content, GivenField, JinjaRecipe, Profile, SectionRecipe, Syntax, TemplateRecipe,
};
use proem_core::rendered::Rendered;
use proem_core::source::Source;
use proem_core::stability::Stability;

use crate::base::{self, Sources, Text};
use crate::catalog::{Catalog, Entry};
use crate::collect::{self, Collected, Policies};
use crate::config::Config;
use crate::error::Error;
use crate::host::Host;
use crate::jinja::{Asset, Context, Options};
use crate::libraries::Libraries;
use crate::profiles::{Found, Profiles};
use crate::render::{self, Job};
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
    let libraries = Libraries::new(&host, &workspace);
    let catalog = if profile.sections.iter().any(|section| section.format.is_some()) {
        Catalog::load(
            &host,
            &workspace,
            request.packs.as_deref().unwrap_or_default(),
            request.project != Some(false),
        )?
    } else {
        Catalog::default()
    };
    let sources = Sources { request, config: &config, libraries: &libraries, profile: &profile };
    let resolver = Resolver::new(request, &host, &workspace, &config).with_profile(&profile);
    let builder = Builder {
        sources,
        caller,
        catalog: &catalog,
        workspace: &workspace,
        host: &host,
        is_of_workspace,
        resolver,
        options: jinja_options(&profile),
        notes,
        considered: Vec::new(),
    };
    let mut draft = builder.draft()?;
    draft.notes.splice(0..0, config.notes.iter().cloned());
    draft.notes.extend(unused_fields(request, &profile));
    draft.notes.extend(unused_template(&config, &profile));
    let (frozen, suffix) = freeze(draft);
    Ok(Build { frozen, suffix })
}

fn jinja_options(profile: &Profile) -> Options {
    let JinjaRecipe { trim_blocks, lstrip_blocks, aliases, .. } = profile.jinja.clone();
    Options { trim_blocks, lstrip_blocks, aliases }
}

/// Renders the sections of one profile.
struct Builder<'b> {
    sources: Sources<'b>,
    caller: Caller,
    catalog: &'b Catalog,
    workspace: &'b Workspace,
    host: &'b Host,
    is_of_workspace: bool,
    resolver: Resolver<'b>,
    options: Options,
    notes: Vec<Note>,
    considered: Vec<Considered>,
}

impl Builder<'_> {
    fn draft(mut self) -> Result<Draft, Error> {
        let profile = self.sources.profile;
        self.check_catalog()?;
        let sections =
            profile.sections.iter().map(|recipe| self.section(recipe)).collect::<Result<_, _>>()?;
        let mut draft = draft::assemble(profile, sections)?;
        draft.notes.append(&mut self.notes);
        draft.considered = self.resolver.into_considered();
        draft.considered.append(&mut self.considered);
        draft.considered.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(draft)
    }

    fn section(&mut self, recipe: &SectionRecipe) -> Result<Section, Error> {
        let (content, source) = match &recipe.content {
            Content::Template(template) => {
                let mut text = self.template_text(recipe, template)?;
                text.stability = recipe.stability.unwrap_or(text.stability);
                let origin = text.origin.clone();
                (Some(self.render(text, recipe.carrier)?), origin)
            }
            Content::Given(field) => {
                let stability = recipe.stability.unwrap_or(Stability::Session);
                let (content, source) = given(self.sources.request, *field, stability);
                (Some(content).filter(|content| !content.is_empty()), source)
            }
            Content::Collected(collection) => self.collected(*collection, recipe)?,
        };
        let rendered =
            content.map_or_else(Rendered::new, |content| draft::wrap(self.sources.profile, recipe, content));
        let (id, carrier, fresh_line) = (recipe.id.clone(), recipe.carrier, recipe.fresh_line);
        Ok(Section { id, carrier, rendered, source, fresh_line })
    }

    /// The template of a section: what the request or the configuration says in place of the base,
    /// else the profile's own.
    fn template_text(&self, recipe: &SectionRecipe, template: &TemplateRecipe) -> Result<Text, Error> {
        if recipe.id == base::SECTION
            && let Some(text) = self.sources.replacement(&self.resolver, template.syntax())?
        {
            return Ok(text);
        }
        let author = if self.is_of_workspace { Author::Other } else { Author::User };
        self.sources.of_profile(recipe, template, author)
    }

    fn render(&mut self, text: Text, carrier: Carrier) -> Result<Rendered, Error> {
        match text.syntax {
            Syntax::Bracket => self.render_bracket(&text, carrier),
            Syntax::Jinja => self.render_jinja(text),
            Syntax::Plain => {
                let mut rendered = Rendered::new();
                rendered.push(&text.content, text.origin, None, text.stability);
                Ok(rendered)
            }
        }
    }

    fn render_bracket(&mut self, text: &Text, carrier: Carrier) -> Result<Rendered, Error> {
        let policies = &self.sources.profile.bracket;
        let template = Template::parse_with(&text.content, policies);
        let author = self.author(text.author);
        let facts = self.resolver.resolve(template.wanted(), author);
        let given: BTreeSet<&str> = self.sources.request.variables.keys().map(String::as_str).collect();
        self.notes.extend(diagnose::diagnose(&template, &text.origin, &given, policies));
        self.notes.extend(diagnose::absences(&template, &text.origin, &facts));
        let bound = bracket::bind(&template, &facts, policies).map_err(|error| Error::Policy {
            template: Box::new(text.origin.clone()),
            error: Box::new(error),
        })?;
        draft::check_bytes(carrier, bracket::rendered_bytes(&template, &bound))?;
        Ok(bracket::render_with_spans(&template, &bound, &text.origin, text.stability))
    }

    fn render_jinja(&mut self, text: Text) -> Result<Rendered, Error> {
        let Text { content, origin, author, stability, reference, .. } = text;
        let name = reference.as_ref().map_or_else(|| origin.to_string(), ToString::to_string);
        let asset = Asset { reference, text: content, origin, stability };
        let context = collect::context(self.sources.request, self.sources.profile);
        self.run(name, asset, author, context)
    }

    fn run(
        &mut self,
        name: String,
        asset: Asset,
        author: Author,
        context: Context,
    ) -> Result<Rendered, Error> {
        let (author, libraries) = (self.author(author), self.sources.libraries);
        let job = Job { name, asset, author, context, options: &self.options, libraries };
        let (rendered, notes) = render::render(&job, &mut self.resolver)?;
        self.notes.extend(notes);
        Ok(rendered)
    }

    /// Over a connection nobody is the user.
    fn author(&self, author: Author) -> Author {
        if self.caller == Caller::Remote { Author::Other } else { author }
    }

    /// What may be read for sections: the project's instructions as the caller may, residents as the
    /// workspace's own.
    fn policies(&self) -> Policies {
        let instructions = self.resolver.read_policy(self.author(Author::User));
        Policies { instructions, own_files: self.workspace.own_files(self.host) }
    }

    /// Collects what a section is about, and puts it into the words of its format.
    fn collected(
        &mut self,
        what: Collection,
        recipe: &SectionRecipe,
    ) -> Result<(Option<Rendered>, Source), Error> {
        let Collected { binding, source, notes, considered } =
            collect::collect(what, self.sources.request, self.workspace, &self.policies())?;
        self.notes.extend(notes);
        self.considered.extend(considered);
        let Some((variable, binding)) = binding else { return Ok((None, source)) };
        let key = recipe.format.as_deref().unwrap_or_default();
        let entry = self.catalog.entry(key).ok_or_else(|| Error::NoWording {
            key: key.to_owned(),
            known: self.catalog.entries().map(|(key, _)| key.to_owned()).collect(),
            section: recipe.id.clone(),
        })?;
        let bindings = BTreeMap::from([(variable.to_owned(), binding)]);
        let context = Context { bindings, aliases: self.options.aliases.clone(), ..Context::default() };
        let rendered = self.run(entry.name(key), wording(key, entry), entry.author, context)?;
        Ok((Some(rendered), source))
    }

    /// Checks every wording that was read, used or not, before anything is rendered.
    fn check_catalog(&mut self) -> Result<(), Error> {
        self.notes.extend(self.catalog.notes().iter().cloned());
        for (key, entry) in self.catalog.all() {
            let (author, libraries) = (entry.author, self.sources.libraries);
            let (name, asset, context) = (entry.name(key), wording(key, entry), Context::default());
            render::check(&Job { name, asset, author, context, options: &self.options, libraries })?;
        }
        Ok(())
    }
}

/// A wording of the catalog as a template. It lies in no library, so its includes must be qualified.
fn wording(key: &str, entry: &Entry) -> Asset {
    let origin = match &entry.path {
        Some(path) => Source::Pack { path: path.clone(), key: key.to_owned(), place: None },
        None => Source::BuiltIn { name: format!("catalog/{key}"), place: None },
    };
    Asset { reference: None, text: entry.text.clone(), origin, stability: entry.stability }
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
    let collects = |what: &[Collection]| {
        profile
            .sections
            .iter()
            .any(|section| matches!(section.content, Content::Collected(own) if what.contains(&own)))
    };
    let is_catalogued = profile.sections.iter().any(|section| section.format.is_some());
    let has_tools = profile.jinja.variables.values().any(|key| key == "prompt:tools");
    let fields = [
        ("system", request.system.is_some() && !base::is_in(profile)),
        ("template", request.template.is_some() && !base::is_in(profile)),
        ("instruction", request.instruction.is_some() && !base::is_in(profile)),
        ("tools", request.tools.is_some() && !has_tools),
        ("scope", request.scope.is_some() && !collects(&[Collection::Scope])),
        ("packs", request.packs.is_some() && !is_catalogued),
        (
            "residents",
            request.residents.is_some() && !collects(&[Collection::Knowledge, Collection::Workflows]),
        ),
        ("project", request.project.is_some() && !is_catalogued),
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
