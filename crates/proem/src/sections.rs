//! Renders the sections of a profile, one by one.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use proem_core::bracket::{self, Template, diagnose};
use proem_core::carrier::Carrier;
use proem_core::considered::{Considered, Outcome};
use proem_core::draft::{self, Draft, Section};
use proem_core::note::{Code, Note, Severity};
use proem_core::profile::{
    AppendFiles, Collection, Content, DocumentsRecipe, GivenField, JinjaRecipe, Part, Profile, SectionRecipe,
    SkillDirectoryRecipe, SkillsRecipe, Syntax, TemplateRecipe,
};
use proem_core::rendered::Rendered;
use proem_core::source::Source;
use proem_core::stability::Stability;
use proem_core::text::Place;

use crate::base::{self, Sources, Text};
use crate::catalog::{Catalog, Entry};
use crate::collect::{self, Collected, Policies};
use crate::discover::instead::{self, FileText, Take};
use crate::discover::{self, Discovered, Owner, Places, Trail, documents, skill_directory, skills};
use crate::engine::{Caller, Parts};
use crate::error::Error;
use crate::host::Host;
use crate::jinja::{Asset, Context, Options};
use crate::render::{self, Job};
use crate::request::OneOrMany;
use crate::resolve::{Author, Resolver};
use crate::tools::Tools;
use crate::workspace::Workspace;

pub(crate) fn jinja_options(profile: &Profile) -> Options {
    let JinjaRecipe { trim_blocks, lstrip_blocks, aliases, .. } = profile.jinja.clone();
    Options { trim_blocks, lstrip_blocks, aliases }
}

/// Renders the sections of one profile.
pub(crate) struct Builder<'b> {
    pub(crate) sources: Sources<'b>,
    pub(crate) caller: Caller,
    pub(crate) catalog: &'b Catalog,
    pub(crate) workspace: &'b Workspace,
    pub(crate) host: &'b Host,
    pub(crate) is_of_workspace: bool,
    pub(crate) resolver: Resolver<'b>,
    pub(crate) options: Options,
    pub(crate) tools: Tools,
    pub(crate) places: Places,
    pub(crate) skill_paths: &'b [PathBuf],
    pub(crate) discovered: &'b mut Discovered,
    pub(crate) parts: Parts,
    pub(crate) notes: Vec<Note>,
    pub(crate) considered: Vec<Considered>,
}

impl Builder<'_> {
    pub(crate) fn draft(mut self) -> Result<Draft, Error> {
        let profile = self.sources.profile;
        self.check_catalog()?;
        let parts = self.parts;
        let is_wanted = |recipe: &&SectionRecipe| parts == Parts::All || recipe.part != Part::Prefix;
        let wanted = profile.sections.iter().filter(is_wanted);
        let sections = wanted.map(|recipe| self.section(recipe)).collect::<Result<_, _>>()?;
        let mut draft = draft::assemble(profile, sections)?;
        draft.notes.append(&mut self.resolver.take_notes());
        draft.notes.append(&mut self.notes);
        draft.considered = self.resolver.into_considered();
        draft.considered.append(&mut self.considered);
        draft.considered.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(draft)
    }

    fn section(&mut self, recipe: &SectionRecipe) -> Result<Section, Error> {
        let has_tool = recipe.when_tool.as_deref().is_none_or(|tool| self.tools.may_use(tool));
        let is_wanted = has_tool && (!recipe.when_project || self.has_project());
        if let Some(tool) = recipe.when_tool.as_ref().filter(|_| !has_tool) {
            self.notes.push(left_out(&recipe.id, tool));
        }
        let (content, source) = match &recipe.content {
            _ if !is_wanted => (None, Source::Request { field: "tools".to_owned(), place: None }),
            Content::Template(template) => {
                let mut text = self.template_text(recipe, template)?;
                text.stability = recipe.stability.unwrap_or(text.stability);
                let origin = text.origin.clone();
                (Some(self.render(text, recipe.carrier)?), origin)
            }
            Content::Given(field) => self.given(*field, recipe),
            Content::Collected(collection) => self.collected(collection, recipe)?,
        };
        let rendered =
            content.map_or_else(Rendered::new, |content| draft::wrap(self.sources.profile, recipe, content));
        let (id, carrier, fresh_line) = (recipe.id.clone(), recipe.carrier, recipe.fresh_line);
        let accepts = recipe.accepts.unwrap_or(Stability::Session);
        Ok(Section { id, carrier, rendered, source, fresh_line, accepts, part: recipe.part })
    }

    /// The template of a section: what the request or the configuration says in place of the base,
    /// else what a file says, else the profile's own.
    fn template_text(&mut self, recipe: &SectionRecipe, template: &TemplateRecipe) -> Result<Text, Error> {
        if recipe.id == base::SECTION
            && let Some(text) = self.sources.replacement(&self.resolver, template.syntax())?
        {
            self.shadow_files(recipe, &text.origin);
            return Ok(text);
        }
        if let Some(file) = self.files(recipe, Take::First).into_iter().next() {
            return Ok(base::of_file(file, recipe.files.as_ref().and_then(|files| files.syntax)));
        }
        self.sources.of_profile(recipe, template, self.profile_author())
    }

    const fn profile_author(&self) -> Author {
        if self.is_of_workspace { Author::Other } else { Author::User }
    }

    /// The files that stand for a section's text, the most specific first.
    fn files(&mut self, recipe: &SectionRecipe, take: Take) -> Vec<FileText> {
        let Some(files) = &recipe.files else { return Vec::new() };
        let paths: Vec<(PathBuf, Owner)> = files
            .paths
            .iter()
            .filter_map(|path| self.places.path(path))
            .filter(|(_, owner)| *owner == Owner::User || self.has_project())
            .collect();
        let (policy, places) = (self.policies().instructions, &self.places);
        let known = self.discovered.instead.entry(recipe.id.clone());
        let (found, trail) = known.or_insert_with(|| instead::find(&paths, take, places, &policy)).clone();
        self.remember(trail);
        found
    }

    /// Lists the files that would have stood for a section if nothing else did.
    fn shadow_files(&mut self, recipe: &SectionRecipe, by: &Source) {
        let paths = recipe.files.iter().flat_map(|files| &files.paths);
        let paths: Vec<PathBuf> = paths.filter_map(|path| Some(self.places.path(path)?.0)).collect();
        for path in paths.iter().filter(|path| path.exists()) {
            let (path, why) = (path.display().to_string(), Some(format!("by {by}")));
            self.considered.push(Considered { path, outcome: Outcome::Shadowed, why });
        }
    }

    fn remember(&mut self, trail: Trail) {
        self.notes.extend(trail.notes);
        self.considered.extend(trail.considered);
    }

    fn has_project(&self) -> bool {
        self.sources.request.project != Some(false)
    }

    /// Text that the request gives for a section of its own; where it says nothing, what files say.
    fn given(&mut self, field: GivenField, recipe: &SectionRecipe) -> (Option<Rendered>, Source) {
        let stability = recipe.stability.unwrap_or(Stability::Session);
        let source = Source::Request { field: field.word().to_owned(), place: None };
        let mut rendered = Rendered::new();
        let text = match (field, &self.sources.request.append) {
            (GivenField::Recalled, _) => self.sources.request.recalled.clone().unwrap_or_default(),
            (GivenField::Append, Some(texts)) => joined(texts),
            (GivenField::Append, None) => return self.append_files(recipe),
        };
        rendered.push(&text, source.clone(), None, stability);
        (Some(rendered).filter(|rendered| !rendered.is_empty()), source)
    }

    fn append_files(&mut self, recipe: &SectionRecipe) -> (Option<Rendered>, Source) {
        let take = match self.sources.profile.append {
            AppendFiles::First => Take::First,
            AppendFiles::Both => Take::All,
        };
        let files = self.files(recipe, take);
        let key = format!("section.{}.files", recipe.id);
        let words = Source::Profile { profile: self.sources.profile.name.clone(), key };
        let mut rendered = Rendered::new();
        let mut source = Source::Request { field: GivenField::Append.word().to_owned(), place: None };
        // The least specific comes first, so that the project has the last word.
        for file in files.iter().rev() {
            let stability = recipe.stability.unwrap_or(file.owner.stability());
            source = discover::file(&file.path);
            if !rendered.is_empty() {
                rendered.push("\n\n", words.clone(), None, stability);
            }
            rendered.push(&file.text, source.at(Place { line: 1, column: 1 }), None, stability);
        }
        if files.len() > 1 {
            source = words;
        }
        (Some(rendered).filter(|rendered| !rendered.is_empty()), source)
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
        let context = collect::context(self.sources.request, self.sources.profile, &self.tools);
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

    /// What may be read for sections: instructions as whoever wrote the profile may, residents as the
    /// workspace's own. A profile of the workspace must not reach into the user's files.
    fn policies(&self) -> Policies {
        let instructions = self.resolver.read_policy(self.author(self.profile_author()));
        Policies { instructions, own_files: self.workspace.own_files(self.host) }
    }

    /// Collects what a section is about, and puts it into the words of its format.
    fn collected(
        &mut self,
        what: &Collection,
        recipe: &SectionRecipe,
    ) -> Result<(Option<Rendered>, Source), Error> {
        let Collected { binding, source, notes, considered } = match what {
            Collection::Documents(documents) => self.documents(documents, &recipe.id),
            Collection::Skills(skills) => self.skills(skills, &recipe.id),
            Collection::SkillDirectory(skills) => self.skill_directory(skills, &recipe.id),
            _ => collect::collect(what, self.sources.request, self.workspace, &self.policies())?,
        };
        self.notes.extend(notes);
        self.considered.extend(considered);
        // A format that is not there is found also while there is nothing to put into words.
        let (name, asset, author) = self.format(recipe)?;
        let Some((variable, binding)) = binding else { return Ok((None, source)) };
        let mut bindings = BTreeMap::from([(variable.to_owned(), binding)]);
        let texts = collect::texts(self.sources.profile);
        bindings.extend(texts.map(|texts| ("texts".to_owned(), texts)));
        let context = Context { bindings, aliases: self.options.aliases.clone(), ..Context::default() };
        let rendered = self.run(name, asset, author, context)?;
        Ok((Some(rendered), source))
    }

    fn documents(&mut self, recipe: &DocumentsRecipe, section: &str) -> Collected {
        let (policy, has_project) = (self.policies().instructions, self.has_project());
        let source = self.rules(section);
        let known = self.discovered.documents.entry(section.to_owned());
        let (documents, trail) =
            known.or_insert_with(|| documents::find(recipe, &self.places, &policy, has_project));
        collect::documents(documents, source, trail.clone())
    }

    fn skills(&mut self, recipe: &SkillsRecipe, section: &str) -> Collected {
        let (policy, has_project) = (self.policies().instructions, self.has_project());
        let (source, more) = (self.rules(section), self.skill_paths);
        let known = self.discovered.skills.entry(section.to_owned());
        let find = || skills::find(recipe, more, &self.places, &policy, has_project);
        collect::skills(known.or_insert_with(find), source)
    }

    fn skill_directory(&mut self, recipe: &SkillDirectoryRecipe, section: &str) -> Collected {
        let (policy, has_project) = (self.policies().instructions, self.has_project());
        let source = self.rules(section);
        let known = self.discovered.skill_directories.entry(section.to_owned());
        let (skills, trail) =
            known.or_insert_with(|| skill_directory::find(recipe, &self.places, &policy, has_project));
        collect::skill_directory(skills, source, trail.clone())
    }

    /// The rules by which files are collected: what a list of them comes from as a whole.
    fn rules(&self, section: &str) -> Source {
        let key = format!("section.{section}.collect");
        Source::Profile { profile: self.sources.profile.name.clone(), key }
    }

    /// The template that puts collected things into words.
    fn format(&self, recipe: &SectionRecipe) -> Result<(String, Asset, Author), Error> {
        let key = recipe.format.as_deref().unwrap_or_default();
        if key.starts_with('$') {
            let named_by = format!("section `{}` of the profile `{}`", recipe.id, self.sources.profile.name);
            return self.sources.format(key, &named_by);
        }
        let entry = self.catalog.entry(key).ok_or_else(|| Error::NoWording {
            key: key.to_owned(),
            known: self.catalog.entries().map(|(key, _)| key.to_owned()).collect(),
            section: recipe.id.clone(),
        })?;
        Ok((entry.name(key), wording(key, entry), entry.author))
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

fn left_out(section: &str, tool: &str) -> Note {
    let message = format!("the section `{section}` is left out: the tool `{tool}` is not active");
    let source = Source::Request { field: "tools".to_owned(), place: None };
    Note::new(Code::LeftOut, Severity::Info, message).with_source(source)
}

/// A wording of the catalog as a template. It lies in no library, so its includes must be qualified.
fn wording(key: &str, entry: &Entry) -> Asset {
    let origin = match &entry.path {
        Some(path) => Source::Pack { path: path.clone(), key: key.to_owned(), place: None },
        None => Source::BuiltIn { name: format!("catalog/{key}"), place: None },
    };
    Asset { reference: None, text: entry.text.clone(), origin, stability: entry.stability }
}

/// The texts of `append`, joined with a blank line, empty ones left out.
fn joined(texts: &OneOrMany) -> String {
    let texts = texts.texts().iter().filter(|text| !text.is_empty());
    texts.map(String::as_str).collect::<Vec<_>>().join("\n\n")
}
