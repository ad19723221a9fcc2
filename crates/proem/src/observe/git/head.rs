//! The current branch, from `HEAD` alone.

use proem_core::fact::Absence;

use super::refs::{Refs, is_object_id, is_ref_name};
use super::repository::{POINTER, Repository};

/// The branch as `git rev-parse --abbrev-ref HEAD` prints it: `HEAD` when detached.
pub(super) fn branch(repository: &Repository) -> Result<String, Absence> {
    let Some(name) = target(repository)? else { return Ok("HEAD".into()) };
    if !is_accepted(&name) {
        return Err(Absence::GitFailed("HEAD does not name a ref that git accepts".into()));
    }
    let refs = Refs::new(repository);
    if !refs.exists(&name)? {
        return Err(Absence::UnbornBranch);
    }
    shorten(&name, &refs)
}

/// The ref that `HEAD` points to; `None` when it holds a commit instead.
pub(super) fn target(repository: &Repository) -> Result<Option<String>, Absence> {
    let path = repository.own.join("HEAD");
    // The oldest repositories have a symbolic link here. Its place cannot be read from the link, so only the user may
    // follow it.
    if repository.bounds.is_none()
        && let Ok(link) = std::fs::read_link(&path)
    {
        return Ok(Some(link.to_str().unwrap_or_default().to_owned()));
    }
    let text = repository.read(&path, POINTER).map_err(|why| Absence::GitFailed(format!("HEAD: {why}")))?;
    read(&text)
}

/// Parses the content of `HEAD`: returns the ref that it names, or `None` if it holds a commit.
pub(super) fn read(text: &str) -> Result<Option<String>, Absence> {
    let text = text.trim_end();
    match text.strip_prefix("ref:") {
        Some(name) => Ok(Some(name.trim_start().to_owned())),
        None if is_object_id(text) => Ok(None),
        None => Err(Absence::GitFailed("HEAD holds neither a ref nor a commit".into())),
    }
}

/// Tells whether a ref may be shown. Git itself lets the C1 controls pass, which some terminals obey.
pub(super) fn is_accepted(name: &str) -> bool {
    name.starts_with("refs/") && is_ref_name(name) && !name.chars().any(char::is_control)
}

/// Returns the shortest unambiguous name of this ref, by git's own order of interpretation.
fn shorten(name: &str, refs: &Refs<'_>) -> Result<String, Absence> {
    const RULES: [&str; 3] = ["refs/heads/", "refs/tags/", "refs/remotes/"];
    let Some((rule, short)) = RULES.iter().find_map(|rule| Some((*rule, name.strip_prefix(rule)?))) else {
        return Ok(name.strip_prefix("refs/").unwrap_or(name).to_owned());
    };
    let mut others = vec![format!("refs/{short}"), format!("refs/remotes/{short}/HEAD")];
    others.extend(RULES.iter().filter(|other| **other != rule).map(|other| format!("{other}{short}")));
    if is_root_name(short) {
        others.push(short.to_owned());
    }
    for other in &others {
        if refs.exists(other)? {
            return Ok(name.strip_prefix("refs/").unwrap_or(name).to_owned());
        }
    }
    Ok(short.to_owned())
}

/// Names such as `ORIG_HEAD`, which git also looks for beside `HEAD`.
fn is_root_name(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_uppercase() || matches!(byte, b'_' | b'-'))
}
