//! Renders the sections of a profile, one by one.

pub(crate) mod base_text;
pub(crate) mod bindings;
mod brace_slots;
pub(crate) mod build_state;
mod collected;
pub(crate) mod jinja_job;
pub(crate) mod resolver;
pub(crate) mod scope;
pub(crate) mod snapshot;
pub(crate) mod sources;
mod template_text;
pub(crate) mod text_findings;
pub(crate) mod text_policy;
pub(crate) mod tools;
pub(crate) mod unused_fields;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use proem_core::bracket::outline::{self, Outline};
use proem_core::bracket::{self, Template, diagnose, lint};
use proem_core::carrier::Carrier;
use proem_core::draft::{self, Draft, Section};
use proem_core::fact::Absence;
use proem_core::file_outcome::FileOutcome;
use proem_core::note::{Code, Note, Severity};
use proem_core::profile::{Content, JinjaRecipe, Part, Profile, SectionRecipe, Syntax};
use proem_core::rendered::Rendered;
use proem_core::source::Source;
use proem_core::stability::Stability;

use crate::discover::catalog::Catalog;
use crate::discover::{DiscoveredFiles, SearchRoots, Trail, out_of_reach};
use crate::error::Error;
use crate::jinja::{Asset, Context, Options};
use crate::observe::host::Host;
use crate::observe::workspace::Workspace;
use crate::request::Request;
use crate::request::caller::Author;
use crate::request::caller::Caller;
use crate::sections::resolver::Resolver;
use crate::sections::text_policy::{Treatment, is_of_file};
use crate::sections::tools::Tools;
use crate::settings::world::World;
use base_text::{LoadedTemplate, TemplateSources};
use bindings::SectionPolicies;
use build_state::BuildState;
use jinja_job::Job;
use snapshot::{SectionSources, Snapshot};
use sources::Sources;

pub(crate) fn jinja_options(profile: &Profile) -> Options {
    let JinjaRecipe { trim_blocks, lstrip_blocks, aliases, .. } = profile.jinja.clone();
    Options { trim_blocks, lstrip_blocks, aliases }
}

/// The sections to build.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Parts {
    All,
    /// The sections of one turn alone.
    Turn,
    /// The frozen sections that do not hold changes of their sources back.
    Announced,
}

impl Parts {
    /// Tells whether a section belongs to these parts.
    pub(crate) fn include(self, recipe: &SectionRecipe) -> bool {
        match self {
            Self::All => true,
            Self::Turn => recipe.part != Part::Prefix,
            Self::Announced => is_announced(recipe),
        }
    }
}

/// Tells whether a section is frozen and does not hold changes of its sources back.
pub(crate) fn is_announced(recipe: &SectionRecipe) -> bool {
    !recipe.on_change.is_hold() && recipe.part == Part::Prefix && recipe.carrier != Carrier::Turn
}

/// The collected content of a section.
pub(crate) enum SectionContent {
    /// Nothing, because of this source.
    Absent(Source),
    /// Text that is finished, with its source.
    Rendered(Rendered, Source),
    /// A template that is still to be rendered.
    Template(LoadedTemplate),
}

impl From<(Option<Rendered>, Source)> for SectionContent {
    fn from((rendered, source): (Option<Rendered>, Source)) -> Self {
        match rendered {
            Some(rendered) => Self::Rendered(rendered, source),
            None => Self::Absent(source),
        }
    }
}

/// Renders the sections of one profile.
pub(crate) struct Builder<'b> {
    pub(crate) sources: TemplateSources<'b>,
    pub(crate) caller: Caller,
    pub(crate) catalog: &'b Catalog,
    pub(crate) workspace: &'b Workspace,
    pub(crate) host: &'b Host,
    pub(crate) is_of_workspace: bool,
    has_stored_template: bool,
    pub(crate) resolver: Resolver<'b>,
    pub(crate) options: Options,
    pub(crate) tools: &'b Tools,
    pub(crate) treatment: Treatment,
    pub(crate) places: SearchRoots,
    pub(crate) skill_paths: &'b [PathBuf],
    snapshot: &'b mut Snapshot,
    pub(crate) discovered: &'b mut DiscoveredFiles,
    frozen_facts: &'b mut BTreeSet<String>,
    turn_facts: &'b mut BTreeMap<String, Result<String, Absence>>,
    pub(crate) outline: Option<&'b mut Outline>,
    pub(crate) lints: Option<&'b mut Vec<Note>>,
    /// The number of lints before the section that is worked on.
    lints_before: usize,
    pub(crate) notes: Vec<Note>,
    /// The sources whose absence a note explains.
    absent: Vec<Source>,
    pub(crate) considered: Vec<FileOutcome>,
    /// The lines of the directory of skills.
    pub(crate) skill_directory: Option<String>,
}

impl<'b> Builder<'b> {
    /// Prepares to render the sections of a profile.
    pub(crate) fn new(
        world: &'b World,
        sources: &'b Sources,
        request: &'b Request,
        caller: Caller,
        state: &'b mut BuildState,
    ) -> Self {
        let World { host, config, resolved, .. } = world;
        let (profile, workspace) = (&*resolved.profile, &sources.workspace);
        Self {
            sources: TemplateSources { request, config, libraries: &sources.libraries, profile },
            caller,
            catalog: &sources.catalog,
            workspace,
            host,
            is_of_workspace: resolved.is_of_workspace,
            has_stored_template: state.has_stored_template,
            resolver: Resolver::new(request, host, workspace, config).with_profile(profile),
            options: jinja_options(profile),
            treatment: Treatment::new(profile, config),
            places: SearchRoots::new(host, workspace),
            skill_paths: &sources.resources.skills,
            snapshot: &mut state.snapshot,
            discovered: &mut state.discovered,
            frozen_facts: &mut state.frozen_facts,
            turn_facts: &mut state.turn_facts,
            outline: state.outline.as_mut(),
            lints: state.lints.as_mut(),
            lints_before: 0,
            tools: &sources.tools,
            notes: sources.notes.clone(),
            absent: Vec::new(),
            considered: Vec::new(),
            skill_directory: None,
        }
    }

    /// Collects the content of a section: discovers files, resolves facts, reads templates.
    pub(crate) fn collect(&mut self, recipe: &SectionRecipe) -> Result<SectionContent, Error> {
        self.lints_before = self.lints.as_ref().map_or(0, |lints| lints.len());
        if is_announced(recipe) {
            self.snapshot.sections.push(SectionSources::new(recipe));
        }
        let has_tool = recipe.when_tool.as_deref().is_none_or(|tool| self.tools.may_use(tool));
        if let Some(tool) = recipe.when_tool.as_ref().filter(|_| !has_tool) {
            self.notes.push(left_out(&recipe.id, tool));
        }
        if !has_tool || (recipe.when_project && !self.has_project()) {
            return Ok(SectionContent::Absent(Source::Request { field: "tools".into(), place: None }));
        }
        Ok(match &recipe.content {
            Content::Template(template) => {
                let mut text = self.template_text(recipe, template)?;
                if is_of_file(&text.origin) {
                    self.treatment.treat(&mut text.content, &text.origin, &mut self.notes)?;
                }
                text.stability = recipe.stability.unwrap_or(text.stability);
                SectionContent::Template(text)
            }
            Content::Given(field) => self.given(*field, recipe)?.into(),
            Content::Collected(collection) => self.collected(collection, recipe)?.into(),
        })
    }

    /// Renders the content of a section and puts its frame around it.
    pub(crate) fn render_section(
        &mut self,
        recipe: &SectionRecipe,
        content: SectionContent,
    ) -> Result<Section, Error> {
        let is_template = matches!(&content, SectionContent::Template(text) if !is_of_file(&text.origin));
        let (content, source) = match content {
            SectionContent::Absent(source) => (None, source),
            SectionContent::Rendered(rendered, source) => (Some(rendered), source),
            SectionContent::Template(text) => {
                let origin = text.origin.clone();
                (Some(self.render(text, recipe.carrier)?), origin)
            }
        };
        if let Some(lints) = self.lints.as_deref_mut()
            && (recipe.part != Part::Prefix || recipe.carrier == Carrier::Turn)
        {
            // Texts of the turn may change with it.
            let new = lints.split_off(self.lints_before);
            lints.extend(new.into_iter().filter(|note| note.code != Code::VolatileInPrefix));
        }
        let seen = self.resolver.take_seen();
        if let Some(sources) = self.sources_of(recipe)
            && !matches!(recipe.content, Content::Collected(_))
        {
            match &content {
                _ if is_template => sources.facts(&seen),
                Some(rendered) => sources.text(&source, rendered.text()),
                None => {}
            }
        }
        if recipe.part == Part::Prefix {
            self.frozen_facts.extend(seen.into_keys());
        } else {
            self.turn_facts.extend(seen);
        }
        let rendered =
            content.map_or_else(Rendered::new, |content| draft::wrap(self.sources.profile, recipe, content));
        if rendered.is_empty() && recipe.files.as_ref().is_some_and(|files| files.env.is_some()) {
            self.note_absence(&recipe.id, &source);
        }
        let (id, carrier, fresh_line) = (recipe.id.clone(), recipe.carrier, recipe.fresh_line);
        let accepts = recipe.accepts.unwrap_or(Stability::Session);
        Ok(Section { id, carrier, rendered, source, fresh_line, accepts, part: recipe.part })
    }

    /// Returns where the sources of a section are recorded, if its changes matter.
    pub(super) fn sources_of(&mut self, recipe: &SectionRecipe) -> Option<&mut SectionSources> {
        let last = self.snapshot.sections.last_mut();
        last.filter(|section| is_announced(recipe) && section.id == recipe.id)
    }

    /// Puts the sections together, with all notes and every file that was considered.
    pub(crate) fn assemble(mut self, sections: Vec<Section>) -> Result<Draft, Error> {
        self.resolver.take_refusal()?;
        let TemplateSources { request, config, profile, .. } = self.sources;
        let mut draft = draft::assemble(profile, sections)?;
        draft.notes.splice(0..0, config.notes.iter().cloned());
        draft.notes.append(&mut self.resolver.take_notes());
        draft.notes.append(&mut self.notes);
        draft.notes.extend(unused_fields::fields(request, profile));
        draft.notes.extend(unused_fields::template(config, profile));
        keep_first(&mut draft.notes, &out_of_reach());
        draft.considered = self.resolver.into_considered();
        draft.considered.append(&mut self.considered);
        draft.considered.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(draft)
    }

    pub(super) fn remember(&mut self, trail: Trail) {
        self.notes.extend(trail.notes);
        self.considered.extend(trail.considered);
    }

    pub(crate) fn has_project(&self) -> bool {
        self.sources.request.project != Some(false)
    }

    fn render(&mut self, text: LoadedTemplate, carrier: Carrier) -> Result<Rendered, Error> {
        match text.syntax {
            Syntax::Bracket => self.render_bracket(&text, carrier),
            Syntax::Jinja => self.render_jinja(text),
            Syntax::Slots => self.render_slots(&text, carrier),
            Syntax::Plain => {
                let mut rendered = Rendered::new();
                rendered.push(&text.content, text.origin, None, text.stability);
                Ok(rendered)
            }
        }
    }

    fn render_bracket(&mut self, text: &LoadedTemplate, carrier: Carrier) -> Result<Rendered, Error> {
        let policies = &self.sources.profile.bracket;
        let template = Template::parse_with(&text.content, policies);
        let author = self.author(text.author);
        let facts = self.resolver.resolve(template.wanted(), author);
        let given: BTreeSet<&str> = self.sources.request.variables.keys().map(String::as_str).collect();
        self.notes.extend(diagnose::diagnose(&template, &text.origin, &given, policies));
        let absences = diagnose::absences(&template, &text.origin, &facts);
        self.absent.extend(absences.iter().filter_map(|note| note.source.clone()));
        self.notes.extend(absences);
        let bound = bracket::bind(&template, &facts, policies).map_err(|error| Error::Policy {
            template: Box::new(text.origin.clone()),
            error: Box::new(error),
        })?;
        draft::check_bytes(carrier, bracket::rendered_bytes(&template, &bound))?;
        if let Some(outline) = self.outline.as_deref_mut().filter(|_| is_of_request(&text.origin)) {
            *outline = outline::outline(&template, &bound);
        }
        if let Some(lints) = self.lints.as_deref_mut() {
            lints.extend(lint::lint(&template, &text.origin, &facts));
        }
        Ok(bracket::render_with_spans(&template, &bound, &text.origin, text.stability))
    }

    fn render_jinja(&mut self, text: LoadedTemplate) -> Result<Rendered, Error> {
        let LoadedTemplate { content, origin, author, stability, reference, .. } = text;
        let name = reference.as_ref().map_or_else(|| origin.to_string(), ToString::to_string);
        let asset = Asset { reference, text: content, origin, stability };
        let context = bindings::context(self.sources.request, self.sources.profile, self.tools);
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
        let (options, treatment) = (&self.options, Some(self.treatment));
        let job = Job { name, asset, author, context, options, libraries, treatment };
        let (rendered, notes) = jinja_job::render(&job, &mut self.resolver)?;
        self.notes.extend(notes);
        Ok(rendered)
    }

    /// Returns the author of a text; for a remote caller, never the user.
    fn author(&self, author: Author) -> Author {
        if self.caller.is_remote() { Author::Other } else { author }
    }

    /// Returns the read policies of sections: instructions with the rights of the profile's author, residents with
    /// the workspace's own. A profile of the workspace must not reach into the user's files.
    pub(crate) fn policies(&self) -> SectionPolicies {
        let instructions = self.resolver.discovery_policy(self.profile_author(), &self.places);
        SectionPolicies { instructions, own_files: self.workspace.own_files(self.host) }
    }
}

/// Tells whether a text is the template that the request brings.
fn is_of_request(origin: &Source) -> bool {
    matches!(origin, Source::Request { field, .. } if **field == *"template")
}

/// Keeps the first of several equal notes, which each section adds for itself.
fn keep_first(notes: &mut Vec<Note>, repeated: &Note) {
    let mut is_known = false;
    notes.retain(|note| note != repeated || !std::mem::replace(&mut is_known, true));
}

fn left_out(section: &str, tool: &str) -> Note {
    let message = format!("the section `{section}` is left out: the tool `{tool}` is not active");
    let source = Source::Request { field: "tools".into(), place: None };
    Note::new(Code::LeftOut, Severity::Info, message).with_source(source)
}
