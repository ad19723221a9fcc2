//! Parsers of repository data, exposed for the properties in `fuzz/` only: a whole build for each input would be a
//! thousand times slower.

use std::path::Path;

use super::{head as head_file, status_paths};

/// The ref that a `HEAD` names, if it may be shown.
#[must_use]
pub fn head(text: &str) -> Option<String> {
    head_file::read(text).ok().flatten().filter(|name| head_file::is_accepted(name))
}

/// Returns the unstaged and the staged paths that a short status lists, from the top of the tree.
#[must_use]
pub fn status(text: &str, below: &Path) -> Option<(Vec<String>, Vec<String>)> {
    status_paths::read(text, below).map(|listed| (listed.unstaged, listed.staged))
}
