//! The text of a section before it is rendered.

use std::path::{Path, PathBuf};

use proem_core::fact::Absence;
use proem_core::file_outcome::{FileOutcome, Outcome};
use proem_core::limit::TEMPLATE_BYTES_MAX;
use proem_core::note::{Code, Note, Severity};
use proem_core::profile::{AppendFiles, FilesRecipe, GivenField, SectionRecipe, TemplateRecipe};
use proem_core::rendered::Rendered;
use proem_core::source::Source;
use proem_core::stability::Stability;
use proem_core::text::{Place, is_javascript_space};

use super::Builder;
use crate::discover::override_files::{self, FileText, NotUtf8, Take};
use crate::discover::{self, Owner, Trail};
use crate::error::Error;
use crate::observe::file::{Cap, exists, read_source_utf8, without_dots};
use crate::request::OneOrMany;
use crate::request::caller::Author;
use crate::sections::base_text::{self, LoadedTemplate};

const FILE: Cap = Cap::new(TEMPLATE_BYTES_MAX);

impl Builder<'_> {
    /// Returns the template of a section: the one from the request or the configuration that replaces the base, else
    /// the text of a file, else the profile's own.
    pub(super) fn template_text(
        &mut self,
        recipe: &SectionRecipe,
        template: &TemplateRecipe,
    ) -> Result<LoadedTemplate, Error> {
        if recipe.id == base_text::SECTION
            && let Some(mut text) = self.sources.replacement(&self.resolver, template.syntax())?
        {
            self.shadow_files(recipe, &text.origin);
            // An editor sends the profile's own template back until it is edited, which stays the same for as long as ever.
            let is_sent = matches!(&text.origin, Source::Request { field, .. } if **field == *"template");
            if is_sent
                && let Ok(own) = self.sources.of_profile(recipe, template, self.profile_author())
                && own.content == text.content
            {
                text.stability = own.stability;
            }
            return Ok(text);
        }
        let files = recipe.files.as_ref();
        if let Some(files) = files
            && let Some(path) = self.path_of_environment(files, &recipe.id)
        {
            let file = self.file_of_environment(&path, &recipe.id);
            return Ok(base_text::of_file(file, files.syntax, self.profile_author()));
        }
        if let Some(file) = self.files(recipe, Take::First).into_iter().next() {
            let syntax = files.and_then(|files| files.syntax);
            return Ok(base_text::of_file(file, syntax, self.profile_author()));
        }
        self.sources.of_profile(recipe, template, self.profile_author())
    }

    /// Returns the file that the environment names to replace the section's text. A profile of the workspace cannot
    /// choose the variable: its value would appear in notes as a path, and it may be a secret.
    fn path_of_environment(&mut self, files: &FilesRecipe, section: &str) -> Option<PathBuf> {
        let name = files.env.as_deref()?;
        if self.is_of_workspace && !self.resolver.allows_env(name) {
            let why = Absence::EnvNotAllowed;
            let message = format!("the section `{section}` does not ask the environment for `{name}`: {why}");
            let note = Note::new(why.code(), why.severity(), message);
            self.notes.push(why.hint().into_iter().fold(note, Note::with_hint));
            return None;
        }
        let value = self.host.env(name).ok()?;
        let named = value.trim_matches(is_javascript_space);
        (!named.is_empty()).then(|| without_dots(&self.places.cwd().join(named)))
    }

    /// Reads a file that the environment names, on every build. If it is missing, the section has no text: nothing
    /// else replaces it.
    fn file_of_environment(&mut self, path: &Path, section: &str) -> FileText {
        let shown = crate::observe::file::shown(path);
        let policy = self.policies().instructions;
        if let Err(why) = policy.check_as_written(path)
            && policy.is_served()
        {
            let mut trail = Trail::default();
            trail.out_of_reach(&shown, &why);
            self.remember(trail);
        }
        let text = read_source_utf8(path, &policy, FILE);
        let (outcome, why) = match &text {
            Ok(text) if text.chars().all(is_javascript_space) => (Outcome::Empty, Some("it is empty".into())),
            Ok(_) => (Outcome::Used, None),
            Err(why) => (Outcome::from_absence(why), Some(why.to_string())),
        };
        if let Some(why) = why.as_ref().filter(|_| outcome != Outcome::Empty) {
            let message = format!("the section `{section}` is absent: {shown}: {why}");
            let source = discover::file(&shown);
            self.absent.push(source.clone());
            self.notes.push(Note::new(Code::Absent, Severity::Info, message).with_source(source));
        }
        self.considered.push(FileOutcome { path: shown.clone(), outcome, why });
        FileText { path: shown, text: text.unwrap_or_default(), owner: Owner::User }
    }

    /// Notes a text that comes out empty, unless it is known why.
    pub(super) fn note_absence(&mut self, section: &str, source: &Source) {
        let source = source.without_place();
        if !self.absent.contains(&source) {
            self.absent.push(source.clone());
            let message = format!("the section `{section}` is absent: {source} comes out empty");
            self.notes.push(Note::new(Code::Absent, Severity::Info, message).with_source(source));
        }
    }

    pub(super) const fn profile_author(&self) -> Author {
        if self.is_of_workspace { Author::Other } else { Author::User }
    }

    /// Returns the files that replace a section's text, the most specific first.
    fn files(&mut self, recipe: &SectionRecipe, take: Take) -> Vec<FileText> {
        let Some(files) = &recipe.files else { return Vec::new() };
        let paths: Vec<(PathBuf, Owner)> = files
            .paths
            .iter()
            .filter_map(|path| self.places.path(path))
            .filter(|(_, owner)| *owner == Owner::User || self.has_project())
            .collect();
        let not_utf8 = if files.lossy { NotUtf8::Replace } else { NotUtf8::LeaveOut };
        let (policy, places) = (self.policies().instructions, &self.places);
        let known = self.discovered.instead.entry(recipe.id.clone());
        let (found, trail) =
            known.or_insert_with(|| override_files::find(&paths, (take, not_utf8), places, &policy)).clone();
        self.remember(trail);
        found
    }

    /// Lists the files that would have stood for a section if nothing else did.
    fn shadow_files(&mut self, recipe: &SectionRecipe, by: &Source) {
        let paths = recipe.files.iter().flat_map(|files| &files.paths);
        let policy = self.policies().instructions;
        let paths: Vec<PathBuf> = paths.filter_map(|path| Some(self.places.path(path)?.0)).collect();
        let may_look = |path: &&PathBuf| !policy.is_served() || policy.check_as_written(path).is_ok();
        for path in paths.iter().filter(may_look).filter(|path| exists(path)) {
            let (path, why) = (path.display().to_string(), Some(format!("by {by}")));
            self.note_shadowed(&path);
            self.considered.push(FileOutcome { path, outcome: Outcome::Shadowed, why });
        }
        if let Some(path) = &self.sources.config.template.value {
            self.note_shadowed(&path.display().to_string());
        }
    }

    /// Notes a file that the template of the store replaces: the caller did not choose that template in the request.
    fn note_shadowed(&mut self, path: &str) {
        if self.has_stored_template {
            let message = format!("{path} is not used: the stored template is the base");
            let hint =
                "give `system`, `template` or `instruction` in the request, or store an empty template";
            let note = Note::new(Code::Shadowed, Severity::Warning, message).with_hint(hint);
            self.notes.push(note.with_source(discover::file(path)));
        }
    }

    /// Returns the text that the request gives for a section of its own, or else the text of its files.
    pub(super) fn given(
        &mut self,
        field: GivenField,
        recipe: &SectionRecipe,
    ) -> Result<(Option<Rendered>, Source), Error> {
        let stability = recipe.stability.unwrap_or(Stability::Session);
        let source = Source::Request { field: field.word().into(), place: None };
        let mut rendered = Rendered::new();
        let text = match (field, &self.sources.request.append) {
            (GivenField::Recalled, _) => self.sources.request.recalled.clone().unwrap_or_default(),
            (GivenField::Append, Some(texts)) => joined(texts),
            (GivenField::Append, None) => return self.append_files(recipe),
        };
        rendered.push(&text, source.clone(), None, stability);
        Ok((Some(rendered).filter(|rendered| !rendered.is_empty()), source))
    }

    fn append_files(&mut self, recipe: &SectionRecipe) -> Result<(Option<Rendered>, Source), Error> {
        let take = match self.sources.profile.append {
            AppendFiles::First => Take::First,
            AppendFiles::Both => Take::All,
        };
        let mut files = self.files(recipe, take);
        for file in &mut files {
            self.treatment.treat(&mut file.text, &discover::file(&file.path), &mut self.notes)?;
        }
        let key = format!("section.{}.files", recipe.id);
        let words = Source::Profile { profile: self.sources.profile.name.as_str().into(), key: key.into() };
        let mut rendered = Rendered::new();
        let mut source = Source::Request { field: GivenField::Append.word().into(), place: None };
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
        Ok((Some(rendered).filter(|rendered| !rendered.is_empty()), source))
    }
}

/// The texts of `append`, joined with a blank line, empty ones left out.
fn joined(texts: &OneOrMany) -> String {
    let texts = texts.texts().iter().filter(|text| !text.is_empty());
    texts.map(String::as_str).collect::<Vec<_>>().join("\n\n")
}
