//! A directory of skills as one line each, with a hash of every body: an edited body changes its line, and with it the
//! prompt.
//!
//! Front matter here is not YAML but lines of `key: value`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use proem_core::digest::Digest;
use proem_core::fact::Absence;
use proem_core::file_outcome::Outcome;
use proem_core::limit::{RESIDENT_BYTES_MAX, SKILL_FOLDERS_MAX};
use proem_core::note::{Code, Note, Severity};
use proem_core::profile::SkillDirectoryRecipe;

use super::{Owner, SearchRoots, Trail, file};
use crate::observe::file::{Cap, ReadPolicy, metadata, read, read_dir, shown};
use crate::observe::listing_order;

const CAP: Cap = Cap::new(RESIDENT_BYTES_MAX);
const DESCRIPTION_CHARACTERS_MAX: usize = 80;
const HASH_DIGITS: usize = 12;

/// A skill's line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) name: String,
    pub(crate) text: String,
    pub(crate) location: String,
    pub(crate) owner: Owner,
}

/// Finds skills, sorted by name; of two with the same name the first is taken. `more` are directories that a
/// conversation or a hook adds.
pub(crate) fn find(
    recipe: &SkillDirectoryRecipe,
    more: &[PathBuf],
    places: &SearchRoots,
    policy: &ReadPolicy,
    has_project: bool,
) -> (Vec<Line>, Trail) {
    let mut search = Search {
        recipe,
        policy,
        places,
        lines: BTreeMap::new(),
        folders: 0,
        owner: Owner::Project,
        trail: Trail::default(),
    };
    for (root, owner) in recipe.roots.iter().filter_map(|root| places.path(root)) {
        // Folders in the home directory are the user's, unless that is the working directory.
        if (owner == Owner::Project && !has_project) || (owner == Owner::User && places.is_cwd(&root)) {
            continue;
        }
        search.owner = owner;
        for directory in &recipe.directories {
            search.root(&root.join(directory));
        }
    }
    search.owner = Owner::User;
    for path in more {
        search.root(path);
    }
    (search.lines.into_values().collect(), search.trail)
}

struct Search<'s> {
    recipe: &'s SkillDirectoryRecipe,
    policy: &'s ReadPolicy,
    places: &'s SearchRoots,
    lines: BTreeMap<String, Line>,
    folders: usize,
    owner: Owner,
    trail: Trail,
}

impl Search<'_> {
    fn root(&mut self, path: &Path) {
        // Checked before any access: the answer must not reveal which files exist outside.
        if let Err(why) = self.policy.check_as_written(path) {
            return self.trail.out_of_reach(&shown(path), &why);
        }
        match metadata(path) {
            Ok(found) if found.is_dir() => {}
            _ => return self.trail.unread(&shown(path), &Absence::NoSuchFile),
        }
        match crate::observe::file::canonical(path) {
            Ok(real) if self.policy.allows(&real) => self.folder(path, 0),
            _ => self.trail.unread(&shown(path), &Absence::OutsideRoots),
        }
    }

    fn folder(&mut self, path: &Path, depth: usize) {
        self.folders += 1;
        if self.folders > SKILL_FOLDERS_MAX {
            if self.folders == SKILL_FOLDERS_MAX + 1 {
                let why = "too many folders lie in directories of skills";
                self.trail.consider(&shown(path), Outcome::OverBudget, Some(why.to_owned()));
                let note = Note::new(
                    Code::OverLimit,
                    Severity::Warning,
                    format!("{} is not searched: {why}", shown(path)),
                );
                self.trail.notes.push(note.with_source(file(&shown(path))));
            }
            return;
        }
        let skill = path.join("SKILL.md");
        if metadata(&skill).is_ok_and(|found| !found.is_dir()) {
            return self.skill(&skill);
        }
        if depth == self.recipe.depth_max {
            return;
        }
        for folder in folders(path) {
            self.folder(&folder, depth + 1);
        }
    }

    fn skill(&mut self, path: &Path) {
        let location = shown(path);
        let text = read(path, self.policy, CAP).and_then(|found| {
            self.trail.notes.extend(self.places.link_outside(path, &found.real));
            found.into_text()
        });
        let text = match text {
            Ok(text) => text.replace("\r\n", "\n"),
            Err(why) => return self.trail.unread(&location, &why),
        };
        let folder = path.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
        let Entry { name, text } = entry(&text, &folder);
        if let Some(first) = self.lines.get(&name) {
            let why = format!("by {}, which has the same name", first.location);
            let message =
                format!("the skill `{}` is not listed: {} comes first", name.escape_debug(), first.location);
            let note = Note::new(Code::Shadowed, Severity::Warning, message);
            self.trail.notes.push(note.with_source(file(&location)));
            return self.trail.consider(&location, Outcome::Shadowed, Some(why));
        }
        self.trail.consider(&location, Outcome::Used, None);
        self.lines.insert(name.clone(), Line { name, text, location, owner: self.owner });
    }
}

/// Returns the subfolders of a folder by name, without hidden ones and links.
fn folders(path: &Path) -> Vec<PathBuf> {
    let Ok(entries) = read_dir(path) else { return Vec::new() };
    let is_wanted = |entry: &fs::DirEntry| {
        let is_hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
        !is_hidden && entry.file_type().is_ok_and(|kind| kind.is_dir())
    };
    let mut folders: Vec<PathBuf> =
        entries.flatten().filter(is_wanted).map(|entry| path.join(entry.file_name())).collect();
    listing_order::arrange(&mut folders);
    folders.sort_by(|a, b| a.as_os_str().as_encoded_bytes().cmp(b.as_os_str().as_encoded_bytes()));
    folders
}

/// A skill as it appears in its line.
struct Entry {
    name: String,
    text: String,
}

fn entry(text: &str, folder: &str) -> Entry {
    let (fields, body) = split(text);
    let value =
        |names: &[&str]| names.iter().find_map(|name| fields.as_ref()?.get(*name)).map(String::as_str);
    let heading = || body.lines().find_map(|line| line.strip_prefix("# ")).map(str::trim);
    let name = value(&["name"]).filter(|name| !name.is_empty());
    let name =
        name.or_else(|| if fields.is_none() { heading() } else { None }).filter(|name| !name.is_empty());
    let name = name.unwrap_or(folder).to_owned();
    let description = value(&["description"]).unwrap_or_default().lines().next().unwrap_or_default().trim();
    let description: String = description.chars().take(DESCRIPTION_CHARACTERS_MAX).collect();
    let run_mode =
        value(&["runas", "run_mode", "run-mode"]).filter(|mode| !mode.is_empty()).unwrap_or("direct");
    let hash = Digest::new(body.trim().as_bytes()).hex();
    let tools = value(&["allowed-tools", "allowed_tools", "allowedtools"]).unwrap_or_default();
    let mut tools: Vec<&str> = tools.split(',').map(str::trim).filter(|tool| !tool.is_empty()).collect();
    tools.sort_unstable();
    let fields = [
        one_field(&name),
        one_field(&description),
        one_field(run_mode),
        hash.chars().take(HASH_DIGITS).collect(),
        one_field(&tools.join(",")),
    ];
    Entry { name, text: fields.join(" | ") }
}

/// Removes characters that would end a field or a line.
fn one_field(text: &str) -> String {
    text.replace('|', "/").replace(['\n', '\r', '\u{B}', '\u{C}', '\u{85}', '\u{2028}', '\u{2029}'], " ")
}

/// Returns the fields between `---` lines, by key in lower case, and the body. Without such lines there are no fields.
fn split(text: &str) -> (Option<BTreeMap<String, String>>, &str) {
    let Some(inner) = text.strip_prefix("---\n") else { return (None, text) };
    let Some((head, body)) = inner.split_once("\n---\n") else { return (None, text) };
    let mut fields = BTreeMap::new();
    for line in head.lines() {
        if let Some((key, value)) = line.split_once(':') {
            fields.insert(key.trim().to_lowercase(), unquoted(value.trim()).to_owned());
        }
    }
    (Some(fields), body)
}

/// Removes one pair of matching quotes.
fn unquoted(value: &str) -> &str {
    let pairs = ['"', '\''];
    let inner = pairs.iter().find_map(|quote| value.strip_prefix(*quote)?.strip_suffix(*quote));
    inner.unwrap_or(value)
}
