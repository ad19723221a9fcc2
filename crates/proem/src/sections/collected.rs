//! Sections made of things that are collected.

use std::collections::BTreeMap;

use proem_core::profile::{
    Collection, DocumentsRecipe, RulesRecipe, SectionRecipe, SkillDirectoryRecipe, SkillsRecipe, Unreadable,
};
use proem_core::rendered::Rendered;
use proem_core::source::Source;

use super::Builder;
use crate::discover::catalog::Entry;
use crate::discover::{agent_rules, documents, skill_directory, skills};
use crate::error::Error;
use crate::jinja::{Asset, Binding, Context};
use crate::request::caller::Author;
use crate::sections::bindings::{self, SectionContent};
use crate::sections::jinja_job::{self, Job};

impl Builder<'_> {
    /// Collects the content of a section and renders it with the section's format.
    pub(super) fn collected(
        &mut self,
        what: &Collection,
        recipe: &SectionRecipe,
    ) -> Result<(Option<Rendered>, Source), Error> {
        let SectionContent { mut binding, mut more, source, notes, considered } = match what {
            Collection::Documents(documents) => self.documents(documents, &recipe.id)?,
            Collection::Skills(skills) => self.skills(skills, &recipe.id),
            Collection::SkillDirectory(skills) => self.skill_directory(skills, &recipe.id),
            Collection::Rules(rules) => self.instruction_rules(rules, &recipe.id)?,
            _ => bindings::collect(what, self.sources.request, self.workspace, &self.policies())?,
        };
        self.notes.extend(notes);
        self.considered.extend(considered.iter().cloned());
        for (_, binding) in binding.iter_mut().chain(&mut more) {
            self.treatment.binding(binding, &mut self.notes)?;
        }
        if let Some(sources) = self.sources_of(recipe) {
            sources.collected(what, binding.as_ref(), &considered);
        }
        if let Collection::Documents(_) = what {
            self.note_too_large(recipe);
        }
        if let (Collection::SkillDirectory(_), Some((_, Binding::Items { items, .. }))) = (what, &binding) {
            let lines: Vec<&str> =
                items.iter().flat_map(|item| &item.fields).map(|field| &*field.text).collect();
            self.skill_directory = Some(lines.join("\n"));
        }
        // The format is loaded first, so that a missing one is reported even if there is nothing to render.
        let (name, asset, author) = self.format(recipe)?;
        let Some((variable, binding)) = binding else { return Ok((None, source)) };
        let mut bindings = BTreeMap::from([(variable.to_owned(), binding)]);
        bindings.extend(more.into_iter().map(|(name, binding)| (name.to_owned(), binding)));
        let texts = bindings::texts(self.sources.profile);
        bindings.extend(texts.map(|texts| ("texts".to_owned(), texts)));
        let context = Context { bindings, aliases: self.options.aliases.clone(), ..Context::default() };
        let rendered = self.run(name, asset, author, context)?;
        Ok((Some(rendered), source))
    }

    /// Records documents that are too large to be read, where changes matter.
    fn note_too_large(&mut self, recipe: &SectionRecipe) {
        let unread = self.discovered.documents.get(&recipe.id).map(|(_, trail)| trail.unread.clone());
        if let Some((sources, unread)) = self.sources_of(recipe).zip(unread) {
            sources.too_large(&unread);
        }
    }

    fn documents(&mut self, recipe: &DocumentsRecipe, section: &str) -> Result<SectionContent, Error> {
        let (policy, source) = (self.policies().instructions, self.rules(section));
        let is_in_message = recipe.unless_first_user_starts.as_deref().is_some_and(|start| {
            self.sources.request.first_user_words().is_some_and(|text| text.starts_with(start))
        });
        let wanted = documents::DocumentScope {
            has_project: self.has_project() && !is_in_message,
            refuses_nul: self.treatment.refuses_nul(),
        };
        let known = self.discovered.documents.entry(section.to_owned());
        let (documents, trail) =
            known.or_insert_with(|| documents::find(recipe, &self.places, &policy, wanted));
        if recipe.unreadable == Unreadable::Error
            && let Some((path, why)) = trail.unread.first()
        {
            return Err(Error::Instructions { path: path.clone(), why: why.clone() });
        }
        Ok(bindings::documents(documents, source, trail.clone()))
    }

    fn instruction_rules(&mut self, recipe: &RulesRecipe, section: &str) -> Result<SectionContent, Error> {
        let (policy, has_project) = (self.policies().instructions, self.has_project());
        let source = self.rules(section);
        if !self.discovered.rules.contains_key(section) {
            let found = agent_rules::find(recipe, &self.places, &policy, has_project);
            let found = found.map_err(|why| Error::SectionRules {
                section: section.to_owned(),
                profile: self.sources.profile.name.clone(),
                why,
            })?;
            self.discovered.rules.insert(section.to_owned(), found);
        }
        let found = self.discovered.rules.get(section).cloned().unwrap_or_default();
        let cwd = crate::observe::file::canonical(self.places.cwd())
            .unwrap_or_else(|_| self.places.cwd().to_owned());
        let names = (self.sources.profile.name.as_str(), section);
        Ok(bindings::rules(&found, source, names, &cwd.to_string_lossy()))
    }

    fn skills(&mut self, recipe: &SkillsRecipe, section: &str) -> SectionContent {
        let (policy, has_project) = (self.policies().instructions, self.has_project());
        let (source, more) = (self.rules(section), self.skill_paths);
        let known = self.discovered.skills.entry(section.to_owned());
        let find = || skills::find(recipe, more, &self.places, &policy, has_project);
        bindings::skills(known.or_insert_with(find), source)
    }

    fn skill_directory(&mut self, recipe: &SkillDirectoryRecipe, section: &str) -> SectionContent {
        let (policy, has_project) = (self.policies().instructions, self.has_project());
        let (source, more) = (self.rules(section), self.skill_paths);
        let known = self.discovered.skill_directories.entry(section.to_owned());
        let find = || skill_directory::find(recipe, more, &self.places, &policy, has_project);
        let (skills, trail) = known.or_insert_with(find);
        bindings::skill_directory(skills, source, trail.clone())
    }

    /// The source of a list of files as a whole: the rules by which they are collected.
    pub(super) fn rules(&self, section: &str) -> Source {
        let key = format!("section.{section}.collect");
        Source::Profile { profile: self.sources.profile.name.as_str().into(), key: key.into() }
    }

    /// Loads the template that formats the collected content.
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
    pub(crate) fn check_catalog(&mut self) -> Result<(), Error> {
        self.notes.extend(self.catalog.notes().iter().cloned());
        for (key, entry) in self.catalog.all() {
            let (author, libraries) = (entry.author, self.sources.libraries);
            let (name, asset, context) = (entry.name(key), wording(key, entry), Context::default());
            let (options, treatment) = (&self.options, None);
            jinja_job::check(&Job { name, asset, author, context, options, libraries, treatment })?;
        }
        Ok(())
    }
}

/// A wording of the catalog as a template. It lies in no library, so its includes must be qualified.
fn wording(key: &str, entry: &Entry) -> Asset {
    let origin = match &entry.path {
        Some(path) => Source::Pack { path: path.as_str().into(), key: key.into(), place: None },
        None => Source::BuiltIn { name: format!("catalog/{key}").into(), place: None },
    };
    Asset { reference: None, text: entry.text.clone(), origin, stability: entry.stability }
}
