//! Looks for files of agents in their usual places.

use std::path::{Path, PathBuf};

use super::TrafficSource;
use super::rules::{CollectRules, Place};
use crate::observe::file::exists;

/// A place where a source has written something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundSource {
    /// The source.
    pub source: TrafficSource,
    /// The folder or file.
    pub path: PathBuf,
    /// The kind of its content, in words: `transcripts`, `rollouts`.
    pub what: &'static str,
}

/// Returns the usual places of all sources that exist, in the order of the table.
///
/// `env` reads an environment variable. Nothing is opened.
pub fn find(home: Option<&Path>, env: &dyn Fn(&str) -> Option<String>) -> Vec<FoundSource> {
    let mut found: Vec<FoundSource> = Vec::new();
    for place in &CollectRules::built_in().places {
        let Some(source) = TrafficSource::from_name(&place.source) else { continue };
        let Some(path) = resolve(place, home, env) else { continue };
        if exists(&path) && found.iter().all(|earlier| earlier.path != path) {
            found.push(FoundSource { source, path, what: &place.what });
        }
    }
    found
}

fn resolve(place: &Place, home: Option<&Path>, env: &dyn Fn(&str) -> Option<String>) -> Option<PathBuf> {
    let set = |name: &str| env(name).filter(|value| !value.is_empty());
    if place.unless.as_deref().is_some_and(|name| set(name).is_some()) {
        return None;
    }
    if let Some(below) = &place.home {
        return Some(home?.join(below));
    }
    let value = set(place.env.as_deref()?)?;
    let value = match &place.prefix {
        Some(prefix) => value.strip_prefix(prefix.as_str())?,
        None => &value,
    };
    let path = Path::new(value);
    let path = match (path.strip_prefix("~"), home) {
        (Ok(rest), Some(home)) => home.join(rest),
        _ => path.to_owned(),
    };
    // A relative value depends on where the agent ran.
    path.is_absolute().then(|| place.below.as_ref().map_or(path.clone(), |below| path.join(below)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_replace_the_usual_places() {
        let home = tempfile::tempdir().unwrap();
        for folder in [".claude/projects", "other/projects", ".codex/sessions", "bodies"] {
            std::fs::create_dir_all(home.path().join(folder)).unwrap();
        }
        let words = |found: Vec<FoundSource>| {
            let word = |one: FoundSource| {
                let below = one.path.strip_prefix(home.path()).unwrap().display().to_string();
                format!("{} {} {below}", one.source.name(), one.what)
            };
            found.into_iter().map(word).collect::<Vec<_>>()
        };
        let plain = find(Some(home.path()), &|_| None);
        assert_eq!(
            words(plain),
            ["claude-code transcripts .claude/projects", "codex rollouts .codex/sessions"]
        );
        let bodies = format!("file:{}", home.path().join("bodies").display());
        let set = find(Some(home.path()), &|name| match name {
            "CLAUDE_CONFIG_DIR" => Some(home.path().join("other").display().to_string()),
            "OTEL_LOG_RAW_API_BODIES" => Some(bodies.clone()),
            "CODEX_HOME" => Some("relative".to_owned()),
            _ => None,
        });
        assert_eq!(words(set), ["claude-code raw bodies bodies", "claude-code transcripts other/projects"]);
        assert!(find(None, &|_| None).is_empty());
    }
}
