//! The text about the files that the agent may read and write.

use std::path::{Component, Path, PathBuf};

use crate::error::Error;
use crate::request::{Permission, Scope, ScopeRule};

/// Refuses a scope that no prompt can be built from.
pub(crate) fn check(scope: &Scope) -> Result<(), Error> {
    if scope.allow.is_empty() {
        return Err(Error::request_with_hint(
            "`scope.allow` is empty",
            "allow at least one path, or leave `scope` out: then the working directory is allowed",
        ));
    }
    scope.allow.iter().chain(&scope.deny).try_for_each(check_rule)
}

/// The summary: every allowed path as readable, then the writable ones, in the order of declaration.
///
/// Without a scope the working directory is readable and writable, with everything below it.
pub(crate) fn summary(scope: Option<&Scope>, cwd: &Path) -> Result<String, Error> {
    let whole = ScopeRule {
        target: cwd.display().to_string(),
        permission: Some(Permission::Write),
        recursive: Some(true),
    };
    let allowed: Vec<&ScopeRule> = scope.map_or_else(|| vec![&whole], |scope| scope.allow.iter().collect());
    scope.map_or_else(|| check_rule(&whole), check)?;
    let mut lines = vec!["Readable:".to_owned()];
    lines.extend(allowed.iter().map(|rule| line(rule)));
    let writable: Vec<&ScopeRule> =
        allowed.into_iter().filter(|rule| rule.permission == Some(Permission::Write)).collect();
    if !writable.is_empty() {
        lines.push("Writable:".to_owned());
        lines.extend(writable.iter().map(|rule| line(rule)));
    }
    Ok(lines.join("\n"))
}

fn check_rule(rule: &ScopeRule) -> Result<(), Error> {
    if rule.target.chars().any(char::is_control) {
        let message = format!("the scope's target `{}` has control characters", rule.target.escape_debug());
        return Err(Error::request_with_hint(message, "a path in a prompt stands on one line"));
    }
    if rule.target.starts_with('/') {
        return Ok(());
    }
    let message = format!("the scope's target `{}` is not an absolute path", rule.target);
    Err(Error::request_with_hint(message, "write the whole path, from `/` on"))
}

fn line(rule: &ScopeRule) -> String {
    let depth = if rule.recursive == Some(false) { " [non-recursive]" } else { "" };
    format!("  - {}{depth}", canonical(Path::new(&rule.target)).display())
}

/// The real path of the deepest part that exists, and the rest as it is written, without `.`, `..` and
/// doubled slashes.
fn canonical(path: &Path) -> PathBuf {
    let existing = path
        .ancestors()
        .find_map(|ancestor| Some((ancestor, crate::observe::file::canonical(ancestor).ok()?)));
    let Some((ancestor, mut real)) = existing else { return path.to_owned() };
    for component in path.strip_prefix(ancestor).unwrap_or(Path::new("")).components() {
        match component {
            Component::ParentDir => drop(real.pop()),
            Component::Normal(name) => real.push(name),
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    real
}
