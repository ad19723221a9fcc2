//! The files in a folder that a name or a pattern matches, by name.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use proem_core::limit::{RULE_DEPTH_MAX, RULE_ENTRIES_MAX, RULE_FOLDERS_MAX};

use super::{ReadPolicy, joined};
use crate::discover::ignored::{IgnoreFiles, Reader, Rules};
use crate::observe::deadline;
use crate::observe::file;
use crate::observe::listing_order;

/// Tells whether a name with a star is a supported pattern.
pub(super) fn is_pattern(name: &str) -> bool {
    name.split_once("**/*").is_some_and(|(folder, ending)| !folder.contains('*') && !ending.contains('*'))
}

/// The comparison of names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Case {
    Exact,
    /// Without regard to the case of letters.
    Ignored,
}

/// Returns the path of a name, or all paths that a pattern matches. A pattern is `FOLDER/**/*ENDING`.
pub(super) fn paths(folder: &Path, name: &str, case: Case, policy: &ReadPolicy) -> Vec<PathBuf> {
    let Some((below, ending)) = name.split_once("**/*") else { return named(folder, name, case, policy) };
    let (above, left, found) = (Vec::new(), RULE_ENTRIES_MAX, Vec::new());
    let mut list = List { ending, case, policy, above, left, found };
    for top in named(folder, below.trim_end_matches('/'), case, policy) {
        list.folder(&top);
    }
    list.found
}

/// Returns the paths of a name. If the case is ignored, entries that exist come by name, and without any the name stays
/// as it is written.
fn named(folder: &Path, name: &str, case: Case, policy: &ReadPolicy) -> Vec<PathBuf> {
    let written = joined(folder, name);
    if case == Case::Exact || name.contains("..") || policy.check_as_written(&written).is_err() {
        return vec![written];
    }
    let mut paths = vec![folder.to_owned()];
    for part in name.split('/') {
        paths = paths.iter().flat_map(|folder| entries_named(folder, part)).collect();
    }
    if paths.is_empty() { vec![written] } else { paths }
}

/// Returns the entries of a folder that have a name in any case.
fn entries_named(folder: &Path, name: &str) -> Vec<PathBuf> {
    let wanted = name.to_lowercase();
    let entries = file::read_dir(folder).into_iter().flatten().flatten().take(RULE_ENTRIES_MAX);
    let is_meant =
        |entry: &fs::DirEntry| entry.file_name().to_str().is_some_and(|name| name.to_lowercase() == wanted);
    let mut found: Vec<PathBuf> = entries.filter(is_meant).map(|entry| entry.path()).collect();
    listing_order::arrange(&mut found);
    found.sort_by(|a, b| a.as_os_str().as_encoded_bytes().cmp(b.as_os_str().as_encoded_bytes()));
    found
}

/// The folders below another one.
pub(super) struct Below<'b> {
    pub(super) policy: &'b ReadPolicy,
    pub(super) ignores: &'b IgnoreFiles,
    /// Names of folders that are passed over.
    pub(super) skip: &'b [String],
}

impl Below<'_> {
    /// Returns a folder and all folders below it, by path, and whether there are more than the limit. Folders that a
    /// `.gitignore` names and links that lead out are passed over.
    pub(super) fn folders(&self, top: &Path) -> (Vec<PathBuf>, bool) {
        let (mut found, mut waiting) = (Vec::new(), vec![(top.to_owned(), Vec::new(), Vec::new())]);
        let real_top = file::canonical(top).unwrap_or_else(|_| top.to_owned());
        while let Some((folder, above, mut rules)) = waiting.pop() {
            let real = file::canonical(&folder);
            let is_allowed = |real: &PathBuf| {
                self.policy.allows(real) && real.starts_with(&real_top) && !above.contains(real)
            };
            let Some(real) = real.ok().filter(is_allowed) else { continue };
            if deadline::check().is_err() || above.len() > RULE_DEPTH_MAX {
                continue;
            }
            if found.len() == RULE_FOLDERS_MAX {
                return (found, true);
            }
            rules.push(self.ignores.rules_of(&folder, Reader::Walk, |_| true, self.policy).0);
            let above: Vec<PathBuf> = above.into_iter().chain([real]).collect();
            let below = self.below(&folder, &rules);
            waiting.extend(below.into_iter().map(|path| (path, above.clone(), rules.clone())));
            found.push(folder);
        }
        (found, false)
    }

    /// Returns the folders in a folder, the last name first.
    fn below(&self, folder: &Path, rules: &[Arc<Rules>]) -> Vec<PathBuf> {
        let entries = file::read_dir(folder).into_iter().flatten().flatten().take(RULE_ENTRIES_MAX);
        let is_wanted = |entry: &fs::DirEntry| {
            let is_skipped = self.skip.iter().any(|name| entry.file_name() == name.as_str());
            !is_skipped && file::is_dir(&entry.path())
        };
        let mut below: Vec<PathBuf> = entries.filter(is_wanted).map(|entry| entry.path()).collect();
        below.retain(|path| self.ignores.excluding(rules, path, true).is_none());
        listing_order::arrange(&mut below);
        below.sort_by(|a, b| b.as_os_str().as_encoded_bytes().cmp(a.as_os_str().as_encoded_bytes()));
        below
    }
}

struct List<'l> {
    ending: &'l str,
    case: Case,
    policy: &'l ReadPolicy,
    /// The folders on the current path, so that links cannot form a circle.
    above: Vec<(u64, u64)>,
    left: usize,
    found: Vec<PathBuf>,
}

impl List<'_> {
    fn folder(&mut self, folder: &Path) {
        let Ok(status) = file::metadata(folder) else { return };
        let identity = (status.dev(), status.ino());
        let is_allowed = file::canonical(folder).is_ok_and(|real| self.policy.allows(&real));
        if self.above.contains(&identity) || self.above.len() > RULE_DEPTH_MAX || !is_allowed {
            return;
        }
        let entries = file::read_dir(folder).into_iter().flatten().flatten();
        let mut names: Vec<PathBuf> =
            entries.take(self.left).map(|entry| folder.join(entry.file_name())).collect();
        self.left = self.left.saturating_sub(names.len());
        listing_order::arrange(&mut names);
        names.sort_by(|a, b| a.as_os_str().as_encoded_bytes().cmp(b.as_os_str().as_encoded_bytes()));
        self.above.push(identity);
        for path in names.into_iter().take_while(|_| deadline::check().is_ok()) {
            let name = path.as_os_str().as_encoded_bytes();
            let is_meant = match self.case {
                Case::Exact => name.ends_with(self.ending.as_bytes()),
                Case::Ignored => name.to_ascii_lowercase().ends_with(self.ending.as_bytes()),
            };
            if file::is_dir(&path) {
                self.folder(&path);
            } else if is_meant {
                self.found.push(path);
            }
        }
        self.above.pop();
    }
}
