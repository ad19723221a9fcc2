//! The files in a folder that a name or a pattern matches, by name.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use proem_core::limit::{RULE_DEPTH_MAX, RULE_ENTRIES_MAX};

use super::{ReadPolicy, joined};
use crate::observe::deadline;
use crate::observe::file;
use crate::observe::listing_order;

/// Tells whether a name with a star is a supported pattern.
pub(super) fn is_pattern(name: &str) -> bool {
    name.split_once("**/*").is_some_and(|(folder, ending)| !folder.contains('*') && !ending.contains('*'))
}

/// Returns the path of a name, or all paths that a pattern matches. A pattern is `FOLDER/**/*ENDING`.
pub(super) fn paths(folder: &Path, name: &str, policy: &ReadPolicy) -> Vec<PathBuf> {
    let Some((below, ending)) = name.split_once("**/*") else { return vec![joined(folder, name)] };
    let top = joined(folder, below.trim_end_matches('/'));
    let mut list = List { ending, policy, above: Vec::new(), left: RULE_ENTRIES_MAX, found: Vec::new() };
    list.folder(&top);
    list.found
}

struct List<'l> {
    ending: &'l str,
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
            let is_meant = path.as_os_str().as_encoded_bytes().ends_with(self.ending.as_bytes());
            if file::is_dir(&path) {
                self.folder(&path);
            } else if is_meant {
                self.found.push(path);
            }
        }
        self.above.pop();
    }
}
