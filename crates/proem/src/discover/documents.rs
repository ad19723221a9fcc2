//! Instruction files: the user's own first, then from the root down to the working directory.

use std::path::{Path, PathBuf};

use proem_core::fact::Absence;
use proem_core::file_outcome::Outcome;
use proem_core::limit::{ANCESTORS_MAX, DOCUMENTS_BYTES_MAX, DOCUMENTS_MAX, Size, VARIANT_ENTRIES_MAX};
use proem_core::line_map::LineMap;
use proem_core::note::{Code, Note, Severity};
use proem_core::profile::{CutRecipe, DocumentsRecipe, PerDirectory, Trim, Walk};
use proem_core::text;
use proem_core::text_safety::confusable::is_variant;

use super::{Owner, SearchRoots, Trail, file};
use crate::observe::file::{
    Cap, Identity, ReadFile, ReadPolicy, canonical, exists, read, read_dir, read_head, shown, with_looks,
};

const CAP: Cap = Cap::new(DOCUMENTS_BYTES_MAX);

/// An instruction file.
#[derive(Debug, Clone)]
pub(crate) struct Document {
    pub(crate) path: String,
    pub(crate) text: String,
    pub(crate) owner: Owner,
    /// The lines of the file that the text consists of.
    pub(crate) line_map: LineMap,
    identity: Identity,
    /// The size of the file; larger than the text if a large file is cut anyway.
    bytes: usize,
    /// The note for a file that a link from elsewhere led to.
    outside: Option<Box<Note>>,
}

impl Document {
    /// Makes a document that an earlier search found.
    pub(crate) fn restored(path: String, text: String, owner: Owner, line_map: LineMap) -> Self {
        let (bytes, identity) = (text.len(), Identity::default());
        Self { path, text, owner, line_map, identity, bytes, outside: None }
    }
}

/// The scope of a search.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DocumentScope {
    /// False to search for the user's own files only.
    pub(crate) has_project: bool,
    /// True to refuse files with a NUL byte.
    pub(crate) refuses_nul: bool,
}

/// Finds instruction files.
pub(crate) fn find(
    recipe: &DocumentsRecipe,
    places: &SearchRoots,
    policy: &ReadPolicy,
    wanted: DocumentScope,
) -> (Vec<Document>, Trail) {
    let DocumentScope { has_project, refuses_nul } = wanted;
    let named = |folders: &[String]| -> Vec<(PathBuf, Owner)> {
        folders.iter().filter_map(|folder| places.path(folder)).collect()
    };
    let (global, last) = (named(&recipe.global), named(&recipe.last));
    let folders = if has_project { folders(recipe.walk, places) } else { Vec::new() };
    let all = global.iter().chain(&last).map(|(folder, _)| folder).chain(&folders);
    let mut search = Search {
        outside: all.filter(|folder| !places.is_in_project(folder)).cloned().collect(),
        recipe,
        places,
        policy,
        refuses_nul,
        documents: Vec::new(),
        bytes: 0,
        taken: Vec::new(),
        trail: Trail::default(),
    };
    for (folder, owner) in &global {
        search.folder(folder, *owner);
    }
    for folder in folders.iter().rev() {
        search.folder(folder, Owner::Project);
    }
    for (folder, owner) in &last {
        if !places.is_cwd(folder) {
            search.folder(folder, *owner);
        }
    }
    if has_project && places.cwd().ancestors().nth(ANCESTORS_MAX).is_some() {
        search.trail.notes.push(too_deep(places.cwd()));
    }
    (search.documents, search.trail)
}

/// Returns the directories of the project, from the working directory upwards.
fn folders(walk: Walk, places: &SearchRoots) -> Vec<PathBuf> {
    let all = places.cwd().ancestors().take(ANCESTORS_MAX).map(Path::to_owned);
    match walk {
        Walk::RootToCwd => all.collect(),
        Walk::RepositoryToCwd => places.upwards().map(Path::to_owned).collect(),
        Walk::Cwd => all.take(1).collect(),
    }
}

struct Search<'s> {
    recipe: &'s DocumentsRecipe,
    places: &'s SearchRoots,
    policy: &'s ReadPolicy,
    refuses_nul: bool,
    /// The folders outside of the project that are also searched.
    outside: Vec<PathBuf>,
    documents: Vec<Document>,
    bytes: usize,
    /// The names found so far.
    taken: Vec<String>,
    trail: Trail,
}

impl Search<'_> {
    fn folder(&mut self, folder: &Path, owner: Owner) {
        let mut chosen: Option<String> = None;
        for name in &self.recipe.names {
            let path = folder.join(name);
            if self.recipe.once_per_name && self.taken.contains(name) {
                if exists(&path) {
                    let why = "by the file of that name in an earlier directory".to_owned();
                    self.trail.consider(&shown(&path), Outcome::Shadowed, Some(why));
                }
                continue;
            }
            // A directory's name must not begin a line of the prompt.
            let shown = shown(&path);
            if let Some(chosen) = &chosen {
                if exists(&path) {
                    let why = format!("by {chosen}: a directory gives one file");
                    self.trail.consider(&shown, Outcome::Shadowed, Some(why));
                }
                continue;
            }
            if let Some(part) = self.denied(name) {
                if exists(&path) {
                    self.trail.consider(
                        &shown,
                        Outcome::Refused,
                        Some(format!("names with `{part}` are never read")),
                    );
                }
                continue;
            }
            match self.read(&path, &shown, owner) {
                Ok(document) if self.is_passed_over(&document.text) => {
                    self.trail.consider(&shown, Outcome::Empty, None);
                }
                Ok(document) => {
                    if self.recipe.per_directory == PerDirectory::First {
                        chosen = Some(shown);
                    }
                    self.taken.push(name.clone());
                    self.take(document);
                }
                Err(why @ Absence::OutsideRoots) if self.policy.check_as_written(&path).is_err() => {
                    self.trail.out_of_reach(&shown, &why);
                }
                Err(why) => self.trail.unread(&shown, &why),
            }
        }
        if chosen.is_none() && owner == Owner::Project && self.places.is_in_project(folder) {
            self.variants(folder);
        }
    }

    /// Tells whether a file is ignored, so that another one may take its place.
    fn is_passed_over(&self, text: &str) -> bool {
        let is_blank = match self.recipe.trim {
            Some(Trim::Javascript) => text.is_empty(),
            None => text.trim().is_empty(),
        };
        (self.recipe.once_per_name && text.is_empty()) || (self.recipe.skip_empty && is_blank)
    }

    fn denied(&self, name: &str) -> Option<&str> {
        let deny = self.recipe.deny.as_deref().filter(|deny| !deny.is_empty())?;
        let name = name.rsplit('/').next().unwrap_or(name).to_lowercase();
        deny.iter().map(String::as_str).find(|part| name.contains(&part.to_lowercase()))
    }

    /// Notes misspelt names in the project: otherwise the user would not learn why such files have no effect.
    fn variants(&mut self, folder: &Path) {
        // A file beside them does not change what is found.
        let Ok(entries) = with_looks(|| read_dir(folder)).0 else { return };
        let names = entries
            .take(VARIANT_ENTRIES_MAX + 1)
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let mut names: Vec<String> = names.collect();
        // A partial list would depend on chance.
        if names.len() > VARIANT_ENTRIES_MAX {
            return;
        }
        names.sort();
        for name in names {
            if let Some(wanted) = self.recipe.names.iter().find(|wanted| is_variant(&name, wanted)) {
                let path = shown(&folder.join(&name));
                let why = format!("its name is not {wanted}, byte for byte");
                self.trail.notes.push(variant(&path, &name, wanted));
                self.trail.consider(&path, Outcome::Malformed, Some(why));
            }
        }
    }

    fn read(&mut self, path: &Path, shown: &str, owner: Owner) -> Result<Document, Absence> {
        let found = match self.open(path, self.policy) {
            // The link leads to a file that the search reads anyway.
            Err(Absence::OutsideProject(_)) if self.is_searched(path) => {
                self.open(path, &self.policy.clone().fenced(None))
            }
            found => found,
        }?;
        let outside = self.places.link_outside(path, &found.real).map(Box::new);
        let identity = found.identity;
        let size = usize::try_from(found.size).unwrap_or(usize::MAX);
        let mut text = found.into_head()?;
        if let Some(offset) = memchr::memchr(0, text.as_bytes()).filter(|_| self.refuses_nul) {
            return Err(Absence::HasNul(offset));
        }
        let mut line_map = LineMap::whole();
        if let Some(Trim::Javascript) = self.recipe.trim {
            let rest = text.trim_start_matches(text::is_javascript_space);
            line_map = LineMap::from_place(text::Places::new(&text).at(text.len() - rest.len()));
            text = rest.trim_end_matches(text::is_javascript_space).to_owned();
        }
        let bytes = size.max(text.len());
        Ok(Document { path: shown.to_owned(), text, owner, line_map, identity, bytes, outside })
    }

    fn open(&self, path: &Path, policy: &ReadPolicy) -> Result<ReadFile, Absence> {
        // A file that is cut needs only its beginning.
        match self.recipe.cut {
            Some(_) => read_head(path, policy, CAP.bytes_max),
            None => read(path, policy, CAP),
        }
    }

    /// Tells whether a link leads to a file outside of the project that is searched for.
    fn is_searched(&self, link: &Path) -> bool {
        let Ok(real) = canonical(link) else { return false };
        let files =
            self.outside.iter().flat_map(|folder| self.recipe.names.iter().map(|name| folder.join(name)));
        files.into_iter().any(|file| canonical(&file).is_ok_and(|file| file == real))
    }

    /// Adds a document unless it is a duplicate or exceeds the limit.
    fn take(&mut self, mut document: Document) {
        if let Some(cut) = &self.recipe.cut
            && !self.cut(cut, &mut document)
        {
            return;
        }
        let Document { path, text, identity, .. } = &document;
        if !self.recipe.keep_twins
            && let Some(first) = self.documents.iter().find(|known| known.identity == *identity)
        {
            let why = format!("of {}", first.path);
            self.trail.consider(path, Outcome::Duplicate, Some(why));
            return;
        }
        let bytes = self.bytes + text.len();
        if self.documents.len() == DOCUMENTS_MAX || bytes > DOCUMENTS_BYTES_MAX {
            let why = format!(
                "of {DOCUMENTS_MAX} files and {} for all instruction files",
                Size::new(DOCUMENTS_BYTES_MAX)
            );
            self.trail.notes.push(no_room(path, &why));
            self.trail.consider(path, Outcome::OverBudget, Some(why));
            return;
        }
        let (outcome, why) = match text.len() {
            0 => (Outcome::Empty, Some("only its path is in the prompt".to_owned())),
            _ => (Outcome::Used, None),
        };
        self.trail.consider(path, outcome, why);
        self.trail.notes.extend(document.outside.as_deref().cloned());
        self.bytes = bytes;
        self.documents.push(document);
    }

    /// Cuts a document to the remaining size; returns whether any is left.
    fn cut(&mut self, cut: &CutRecipe, document: &mut Document) -> bool {
        let room = cut.bytes_max.saturating_sub(self.bytes);
        if room == 0 {
            let why = format!("of {} bytes for all files", cut.bytes_max);
            self.trail.notes.push(no_room(&document.path, &why));
            self.trail.consider(&document.path, Outcome::OverBudget, Some(why));
            return false;
        }
        let allowed = cut.file_bytes_max.min(room);
        let is_over = document.text.len() > cut.file_bytes_max || document.text.len() > room;
        // A file cut to its own limit may still be too long with its marker.
        if is_over {
            let kept = text::clip(&document.text, allowed).len();
            self.trail.notes.push(is_cut(&document.path, document.bytes - kept, document.bytes));
            document.text.truncate(kept);
            document.line_map = document.line_map.clone().with_added(cut.marker.len());
            document.text.push_str(&cut.marker);
        }
        true
    }
}

/// Escapes every non-ASCII character of a name: it may look like an ASCII one.
fn visible(name: &str) -> String {
    let spell = |character: char| match character {
        ascii if ascii.is_ascii() => ascii.to_string(),
        other => format!("<U+{:04X}>", u32::from(other)),
    };
    name.chars().map(spell).collect()
}

fn variant(path: &str, name: &str, wanted: &str) -> Note {
    let message = format!("{path} is not read: `{}` is not `{wanted}`", visible(name));
    Note::new(Code::NameVariant, Severity::Warning, message)
        .with_hint(format!("call it `{wanted}` if it is meant to be instructions"))
        .with_source(file(path))
}

fn is_cut(path: &str, lost: usize, bytes: usize) -> Note {
    let message = format!("{path} is cut: {lost} of its {bytes} bytes are left out");
    Note::new(Code::OverLimit, Severity::Warning, message).with_source(file(path))
}

fn no_room(path: &str, why: &str) -> Note {
    let message = format!("{path} is left out: over the limit {why}");
    Note::new(Code::OverLimit, Severity::Warning, message)
        .with_hint("shorten the instruction files above it")
        .with_source(file(path))
}

fn too_deep(cwd: &Path) -> Note {
    let message = format!("the working directory lies more than {ANCESTORS_MAX} levels deep");
    Note::new(Code::OverLimit, Severity::Warning, format!("{message}: the topmost are not searched"))
        .with_source(file(&cwd.display().to_string()))
}
