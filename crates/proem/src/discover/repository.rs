//! Searches all directories of a project for files of agents, without git.
//!
//! Folders that a `.gitignore` names are not entered, and neither are `node_modules`, `.git` and other repositories.
//! Folders and files of agents are exceptions: agents ignore `.gitignore`, so a hostile commit must not be able to hide
//! such a file by listing it there.

use std::collections::BTreeSet;
use std::fs::{self, FileType};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use proem_core::fact::Absence;
use proem_core::limit::{ANCESTORS_MAX, CHECK_ENTRIES_MAX, CHECK_FILES_MAX};
use proem_core::note::{Code, Note, Severity};

use super::ignored::{Reader, Rules};
use super::roster::{Role, Roster, is_fixture};
use super::{SearchRoots, Trail, file};
use crate::observe::file::{Identity, ReadPolicy, canonical, shown};
use crate::observe::listing_order;

/// Folders that belong to other programs.
const PASSED_OVER: [&str; 5] = [".git", ".hg", ".jj", ".svn", "node_modules"];

/// A file of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) path: PathBuf,
    /// The path below the root.
    pub(crate) parts: Vec<String>,
    pub(crate) role: Role,
    /// True if the file, or a folder on the way to it, is a link.
    pub(crate) is_linked: bool,
}

/// The files of a project.
#[derive(Debug, Default)]
pub(crate) struct Repository {
    pub(crate) entries: Vec<Entry>,
    /// The number of directories searched.
    pub(crate) directories: usize,
    pub(crate) notes: Vec<Note>,
}

/// Finds all files of agents below the root of a project, sorted by path.
pub(crate) fn find(places: &SearchRoots, policy: &ReadPolicy, roster: &Roster) -> Repository {
    let mut walk = Walk {
        places,
        policy,
        roster,
        rules: Vec::new(),
        links: Vec::new(),
        seen: BTreeSet::new(),
        parts: Vec::new(),
        left: CHECK_ENTRIES_MAX,
        is_linked: false,
        found: Repository::default(),
    };
    walk.folder(places.project());
    walk.is_linked = true;
    for (path, parts) in std::mem::take(&mut walk.links) {
        walk.parts = parts;
        walk.linked_folder(&path);
    }
    let mut found = walk.found;
    found.notes.extend(places.ignores().take_note());
    found.entries.sort_by(|a, b| a.parts.cmp(&b.parts));
    found
}

/// Makes a note about a file that cannot be read.
pub(crate) fn unread(path: &Path, why: &Absence) -> Vec<Note> {
    let path = shown(path);
    if *why == Absence::NoSuchFile {
        let target = fs::read_link(&path).map(|target| shown(&target)).unwrap_or_default();
        let message = format!("it is a broken link to {target}");
        return vec![Note::new(Code::Unreadable, Severity::Warning, message).with_source(file(&path))];
    }
    let mut trail = Trail::default();
    trail.unread(&path, why);
    trail.notes
}

struct Walk<'w> {
    places: &'w SearchRoots,
    policy: &'w ReadPolicy,
    roster: &'w Roster,
    /// The rules of the folders on the current path.
    rules: Vec<Arc<Rules>>,
    /// Links to folders, which are followed last.
    links: Vec<(PathBuf, Vec<String>)>,
    /// The folders that were entered through links.
    seen: BTreeSet<Identity>,
    /// The names on the path from the root.
    parts: Vec<String>,
    /// The number of entries that may still be examined.
    left: usize,
    is_linked: bool,
    found: Repository,
}

impl Walk<'_> {
    fn folder(&mut self, folder: &Path) {
        let Some(entries) = self.list(folder) else { return };
        self.found.directories += 1;
        let has = |name: &str| entries.iter().any(|(own, _)| own == name);
        let (rules, is_new) = self.places.ignores().rules_of(folder, Reader::Walk, has, self.policy);
        for own in rules.unread.iter().filter(|_| is_new) {
            self.found.notes.extend(own.why.iter().flat_map(|why| unread(&own.path, why)));
        }
        self.rules.push(rules);
        for (name, kind) in entries {
            let path = folder.join(&name);
            self.parts.push(name);
            self.entry(&path, kind);
            self.parts.pop();
        }
        self.rules.pop();
    }

    fn entry(&mut self, path: &Path, kind: FileType) {
        let parts: Vec<&str> = self.parts.iter().map(String::as_str).collect();
        let is_folder = kind.is_dir() || (kind.is_symlink() && path.is_dir());
        if !is_folder {
            let (role, meant) = (self.roster.role(&parts), self.roster.meant(&parts));
            if let Some(meant) = meant.filter(|_| !is_fixture(&parts)) {
                self.variant(path, meant);
            }
            if let Some(role) = role {
                self.take(path, role, kind.is_symlink());
            }
            return;
        }
        let name = parts.last().copied().unwrap_or_default();
        if PASSED_OVER.contains(&name) {
            return;
        }
        if kind.is_symlink() {
            if !self.is_linked && self.roster.is_folder(&parts) {
                self.links.push((path.to_owned(), self.parts.clone()));
            }
            return;
        }
        // Another repository, such as a submodule or a worktree, is checked by itself.
        let is_ignored = || self.places.ignores().excluding(&self.rules, path, true).is_some();
        if path.join(".git").exists() || (!self.roster.is_of_agent(&parts) && is_ignored()) {
            return;
        }
        // An agent that is started deeper does not search that far up either.
        if self.parts.len() < ANCESTORS_MAX {
            self.folder(path);
        } else {
            self.over_limit(path, &format!("it lies more than {ANCESTORS_MAX} folders deep"));
        }
    }

    /// Follows a link to a folder inside the project; other links are ignored.
    fn linked_folder(&mut self, path: &Path) {
        let Ok(real) = canonical(path) else { return };
        if !real.starts_with(self.places.real_project()) {
            self.found.notes.extend(self.places.link_outside(path, &real));
            return;
        }
        let Ok(found) = fs::metadata(&real) else { return };
        if self.seen.insert(Identity::from_metadata(&found)) {
            self.folder(path);
        }
    }

    /// Returns the entries of a folder by name; `None` if the limit is reached or it cannot be read.
    fn list(&mut self, folder: &Path) -> Option<Vec<(String, FileType)>> {
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) => {
                let why = Absence::Unreadable(crate::error::reason(&error));
                self.found.notes.extend(unread(folder, &why));
                return None;
            }
        };
        let mut found = Vec::new();
        for entry in entries.flatten() {
            if self.left == 0 {
                self.over_limit(folder, &format!("the project has more than {CHECK_ENTRIES_MAX} entries"));
                return None;
            }
            self.left -= 1;
            // Agents do not search for names that are not UTF-8.
            if let (Ok(name), Ok(kind)) = (entry.file_name().into_string(), entry.file_type()) {
                found.push((name, kind));
            }
        }
        listing_order::arrange(&mut found);
        found.sort_by(|a, b| a.0.cmp(&b.0));
        Some(found)
    }

    fn take(&mut self, path: &Path, role: Role, is_link: bool) {
        if self.found.entries.len() == CHECK_FILES_MAX {
            self.over_limit(path, &format!("the project has more than {CHECK_FILES_MAX} files of agents"));
            return;
        }
        let (path, parts, is_linked) = (path.to_owned(), self.parts.clone(), is_link || self.is_linked);
        self.found.entries.push(Entry { path, parts, role, is_linked });
    }

    fn variant(&mut self, path: &Path, meant: &str) {
        // If the right name exists as well, this is a separate file; on some file systems it is the same one.
        if path.with_file_name(meant).exists() {
            return;
        }
        let name = path.file_name().map(|name| shown(Path::new(name))).unwrap_or_default();
        let message = format!("no agent reads it: `{}` is not `{meant}`", spelt(&name));
        let note = Note::new(Code::NameVariant, Severity::Warning, message);
        let note = note.with_hint(format!("call it `{meant}` if it is meant to be read by agents"));
        self.found.notes.push(note.with_source(file(&shown(path))));
    }

    /// Notes the first entry over the limit.
    fn over_limit(&mut self, path: &Path, why: &str) {
        if self.found.notes.iter().any(|note| note.code == Code::OverLimit) {
            return;
        }
        let message = format!("it is not checked, and other files may be missed, too: {why}");
        let note = Note::new(Code::OverLimit, Severity::Warning, message);
        let note = note.with_hint("check the folders one by one: `proem check --all --cwd FOLDER`");
        self.found.notes.push(note.with_source(file(&shown(path))));
    }
}

/// Escapes every non-ASCII character of a name: it may look like an ASCII one.
fn spelt(name: &str) -> String {
    let spell = |character: char| match character {
        ascii if ascii.is_ascii() => ascii.to_string(),
        other => format!("<U+{:04X}>", u32::from(other)),
    };
    name.chars().map(spell).collect()
}
