//! Instruction files that apply to the paths which an agent has touched: those in folders below the working directory, and
//! rules whose patterns match.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use ignore::gitignore::GitignoreBuilder;
use proem_core::fact::Absence;
use proem_core::limit::{FILE_BYTES_MAX, PATH_BYTES_MAX, TOUCHED_FOLDERS_MAX, TOUCHED_MAX};
use proem_core::note::{Code, Note, Severity};
use proem_core::profile::{Collection, Content, DocumentsRecipe, RulesRecipe, SectionRecipe};
use proem_core::source::Source;

use super::{SectionSources, Snapshot};
use crate::discover::agent_rules::{self, ConditionalFile};
use crate::discover::{SearchRoots, documents};
use crate::error::Error;
use crate::observe::deadline;
use crate::observe::file::{Cap, is_dir, read_utf8, shown, without_dots};
use crate::sections::bindings::{self, SectionContent};
use crate::sections::{Builder, is_announced};

/// The paths of one turn, and the documents that earlier ones led to.
#[derive(Clone, Copy, Default)]
pub(crate) struct TouchedPaths<'t> {
    /// The paths, relative to the working directory.
    pub(crate) paths: &'t [String],
    /// The documents, by section.
    pub(crate) known: &'t [(String, String)],
}

/// Sources that apply to touched paths.
#[derive(Debug, Default)]
pub(crate) struct TouchedSources {
    pub(crate) found: Snapshot,
    pub(crate) notes: Vec<Note>,
}

impl Builder<'_> {
    /// Finds the sources that apply to touched paths.
    pub(crate) fn touched(&mut self, touched: TouchedPaths<'_>) -> Result<TouchedSources, Error> {
        let mut sources = TouchedSources::default();
        let paths = self.inside(touched.paths, &mut sources.notes);
        if paths.is_empty() && touched.known.is_empty() {
            return Ok(sources);
        }
        let profile = self.sources.profile;
        for recipe in profile.sections.iter().filter(|recipe| is_announced(recipe)) {
            let Content::Collected(what) = &recipe.content else { continue };
            let is_known = |(section, _): &&(String, String)| *section == recipe.id;
            let known: Vec<&str> =
                touched.known.iter().filter(is_known).map(|(_, path)| path.as_str()).collect();
            let folders = self.folders(&paths, &known, &mut sources.notes);
            let mut found = SectionSources::new(recipe);
            match what {
                Collection::Documents(documents) => {
                    for folder in &folders {
                        let places = self.places.below(folder);
                        self.documents_below(documents, (recipe, what), &places, &mut found)?;
                    }
                }
                Collection::Rules(rules) => {
                    for folder in &folders {
                        let places = self.places.below(folder);
                        self.rules_below(rules, (recipe, what), &places, &mut found)?;
                    }
                    self.conditional(recipe, (&paths, &known), &mut found)?;
                }
                _ => continue,
            }
            sources.found.sections.push(found);
        }
        Ok(sources)
    }

    /// Returns the paths that lie in the workspace, without `.` and `..`.
    fn inside(&self, touched: &[String], notes: &mut Vec<Note>) -> Vec<PathBuf> {
        if touched.len() > TOUCHED_MAX {
            let left = touched.len() - TOUCHED_MAX;
            let message = format!("{left} touched paths are left out: a turn takes {TOUCHED_MAX}");
            notes.push(Note::new(Code::OverLimit, Severity::Warning, message));
        }
        let mut outside = Vec::new();
        let mut paths = Vec::new();
        for written in touched.iter().take(TOUCHED_MAX) {
            let path = without_dots(&self.places.cwd().join(written));
            let is_valid = written.len() <= PATH_BYTES_MAX && !written.contains('\0');
            if is_valid && self.places.is_in_project(&path) {
                paths.push(path);
            } else {
                outside.push(written);
            }
        }
        if let Some(first) = outside.first() {
            let first: String = first.chars().take(200).collect();
            let message = match outside.len() {
                1 => format!("the touched path {} lies outside the workspace", shown(Path::new(&first))),
                count => format!(
                    "{count} touched paths lie outside the workspace, the first is {}",
                    shown(Path::new(&first))
                ),
            };
            notes.push(Note::new(Code::RootNotAllowed, Severity::Warning, message + ": ignored"));
        }
        paths
    }

    /// Returns the folders that the paths lie in, as far as they exist, and those of documents that are known. A folder
    /// above another one is searched with it.
    fn folders(&self, paths: &[PathBuf], known: &[&str], notes: &mut Vec<Note>) -> Vec<PathBuf> {
        let project = self.places.project();
        let mut folders: BTreeSet<PathBuf> = BTreeSet::new();
        let mut kinds: BTreeMap<&Path, bool> = BTreeMap::new();
        let known = known.iter().filter_map(|path| Path::new(path).parent());
        for path in paths.iter().map(PathBuf::as_path).chain(known) {
            // The path itself may be a folder, and it need not exist.
            let mut above = path.ancestors().take_while(|folder| folder.starts_with(project));
            let existing = above.find(|folder| *kinds.entry(folder).or_insert_with(|| is_dir(folder)));
            folders.extend(existing.map(Path::to_owned));
        }
        let leaves: Vec<PathBuf> = folders
            .iter()
            .filter(|folder| {
                let mut behind = folders.range::<PathBuf, _>((
                    std::ops::Bound::Excluded((*folder).clone()),
                    std::ops::Bound::Unbounded,
                ));
                !behind.next().is_some_and(|next| next.starts_with(folder))
            })
            .cloned()
            .collect();
        if leaves.len() > TOUCHED_FOLDERS_MAX {
            let left = leaves.len() - TOUCHED_FOLDERS_MAX;
            let message =
                format!("{left} folders of touched paths are not searched: over {TOUCHED_FOLDERS_MAX}");
            notes.push(Note::new(Code::OverLimit, Severity::Warning, message));
        }
        leaves.into_iter().take(TOUCHED_FOLDERS_MAX).collect()
    }

    fn documents_below(
        &mut self,
        documents: &DocumentsRecipe,
        (recipe, what): (&SectionRecipe, &Collection),
        places: &SearchRoots,
        found: &mut SectionSources,
    ) -> Result<(), Error> {
        deadline_passed()?;
        let scope = documents::DocumentScope {
            has_project: self.has_project(),
            refuses_nul: self.treatment.refuses_nul(),
        };
        let (files, trail) = documents::find(documents, places, &self.policies().instructions, scope);
        let unread = trail.unread.clone();
        let content = bindings::documents(&files, self.rules(&recipe.id), trail);
        self.add_new(content, what, found)?;
        found.too_large(&unread);
        Ok(())
    }

    fn rules_below(
        &mut self,
        rules: &RulesRecipe,
        (recipe, what): (&SectionRecipe, &Collection),
        places: &SearchRoots,
        found: &mut SectionSources,
    ) -> Result<(), Error> {
        deadline_passed()?;
        let policy = self.policies().instructions;
        let Ok(files) = agent_rules::find(rules, places, &policy, self.has_project()) else { return Ok(()) };
        let names = (self.sources.profile.name.as_str(), recipe.id.as_str());
        let cwd = places.cwd().to_string_lossy().into_owned();
        let content = bindings::rules(&files, self.rules(&recipe.id), names, &cwd);
        self.add_new(content, what, found)
    }

    /// Adds documents that no folder before had.
    fn add_new(
        &mut self,
        content: SectionContent,
        what: &Collection,
        found: &mut SectionSources,
    ) -> Result<(), Error> {
        let SectionContent { mut binding, considered, .. } = content;
        if let Some((_, binding)) = &mut binding {
            self.treatment.binding(binding, &mut self.notes)?;
        }
        let mut here = SectionSources { items: Vec::new(), unread: Vec::new(), ..found.clone() };
        here.collected(what, binding.as_ref(), &considered);
        here.items.retain(|item| !found.items.iter().any(|known| known.key == item.key));
        found.items.append(&mut here.items);
        found.unread.append(&mut here.unread);
        Ok(())
    }

    /// Adds the files that apply to some files only, if one of these was touched.
    fn conditional(
        &mut self,
        recipe: &SectionRecipe,
        (paths, known): (&[PathBuf], &[&str]),
        found: &mut SectionSources,
    ) -> Result<(), Error> {
        let Some(files) = self.discovered.rules.get(&recipe.id).map(|rules| rules.conditional.clone()) else {
            return Ok(());
        };
        for file in files {
            let is_known = known.contains(&file.path.as_str());
            if !is_known && !paths.iter().any(|path| applies(&file, self.places.project(), path)) {
                continue;
            }
            deadline_passed()?;
            let policy = self.policies().instructions;
            match read_utf8(Path::new(&file.path), &policy, RULE) {
                Ok(text) => {
                    let source = Source::File { path: file.path.as_str().into(), place: None };
                    let mut text = body(&text).to_owned();
                    self.treatment.treat(&mut text, &source, &mut self.notes)?;
                    found.rule(&file.path, &file.patterns, &text);
                }
                Err(Absence::NoSuchFile) => {}
                Err(_) => found.unread.push(file.path.clone()),
            }
        }
        Ok(())
    }
}

const RULE: Cap = Cap::new(FILE_BYTES_MAX);

fn deadline_passed() -> Result<(), Error> {
    deadline::check().map_err(|why| Error::Stopped { why })
}

/// Returns the text behind the front matter.
fn body(text: &str) -> &str {
    let Some(rest) = text.trim_start_matches('\u{FEFF}').strip_prefix("---") else { return text };
    let Some(end) = rest.find("\n---") else { return text };
    let behind = rest.get(end + 4..).unwrap_or_default();
    behind.split_once('\n').map_or("", |(_, body)| body)
}

/// Tells whether a file applies to a path, by its patterns.
fn applies(file: &ConditionalFile, project: &Path, path: &Path) -> bool {
    let mut builder = GitignoreBuilder::new(project);
    for pattern in agent_rules::patterns(&file.patterns) {
        // A pattern that is not one matches nothing.
        let _ = builder.add_line(None, &pattern);
    }
    builder.build().is_ok_and(|patterns| patterns.matched_path_or_any_parents(path, false).is_ignore())
}

/// Notes paths that a conversation has no use for.
pub(crate) fn without_use() -> Note {
    let message =
        "the request's `touched` is not used: the profile announces no changes of instruction files";
    Note::new(Code::UnusedField, Severity::Warning, message)
        .with_hint("set `on_change = \"notify\"` in a section of the profile with instruction files")
}
