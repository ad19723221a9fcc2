//! The installed version of an agent, found without running it: from the package beside the program on the search path.

use std::path::{Path, PathBuf};

use proem_core::limit::ANCESTORS_MAX;
use proem_core::profile::AgentRecipe;
use serde::Deserialize;

use crate::observe::file::{Cap, ReadPolicy, canonical, check_regular, read_bytes};

/// Most bytes of a `package.json` that is looked at.
const PACKAGE: Cap = Cap::new(1 << 20);

/// A program of an agent on the search path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installed {
    /// The path of the program.
    pub path: PathBuf,
    /// Its version, if a package beside it or its path has it.
    pub version: Option<String>,
}

/// The keys of a package that are read.
#[derive(Deserialize)]
struct Package {
    name: String,
    version: String,
}

/// Finds the program of an agent in the directories of a search path. Nothing is run, and entries that are not absolute,
/// which could lie in a repository, are passed over.
#[must_use]
pub fn installed(agent: &AgentRecipe, search_path: &str) -> Option<Installed> {
    let program = agent.program.as_deref()?;
    let folders = search_path.split(':').map(Path::new).filter(|folder| folder.is_absolute());
    let (path, real) = folders.map(|folder| folder.join(program)).find_map(|path| {
        let real = canonical(&path).ok().filter(|real| check_regular(real).is_ok())?;
        Some((path, real))
    })?;
    let version = agent.package.as_deref().and_then(|package| version_beside(&real, package));
    Some(Installed { path, version: version.or_else(|| version_in(&real)) })
}

/// Returns the version of the package that a file belongs to.
fn version_beside(file: &Path, package: &str) -> Option<String> {
    file.ancestors().skip(1).take(ANCESTORS_MAX).find_map(|folder| {
        let manifests =
            [folder.join("package.json"), folder.join("node_modules").join(package).join("package.json")];
        manifests.iter().find_map(|path| {
            let bytes = read_bytes(path, &ReadPolicy::user(None, &[]), PACKAGE).ok()?;
            let found: Package = serde_json::from_slice(&bytes).ok()?;
            (found.name == package).then_some(found.version)
        })
    })
}

/// Returns the last part of a path that is a version: some installers keep each one in a folder, or a file, of its name.
fn version_in(path: &Path) -> Option<String> {
    let mut parts = path.components().rev().filter_map(|part| part.as_os_str().to_str());
    let is_version =
        |part: &&str| part.split('.').count() == 3 && numbers(part).is_some_and(|found| found.len() == 3);
    parts.find(is_version).map(str::to_owned)
}

/// Tells whether a version is later than another one; `None` if one of them has no numbers to compare.
#[must_use]
pub fn is_newer(version: &str, known: &str) -> Option<bool> {
    Some(numbers(version)? > numbers(known)?)
}

/// Returns the numbers of the first word that has any: `SDK 1.0.32` gives 1, 0 and 32.
fn numbers(version: &str) -> Option<Vec<u64>> {
    let word =
        version.split([' ', ',']).find(|word| word.starts_with(|first: char| first.is_ascii_digit()))?;
    let word = word.split(['-', '+']).next().unwrap_or(word);
    word.split('.').map(|number| number.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use proem_core::profile::{KnownBy, Seen};

    use super::*;

    fn agent() -> AgentRecipe {
        AgentRecipe {
            title: "Codex".into(),
            version: "0.169.0".into(),
            as_of: "2026-11-18".into(),
            known_by: KnownBy::Run,
            seen: Seen::Prompt,
            program: Some("codex".into()),
            package: Some("@openai/codex".into()),
        }
    }

    #[test]
    fn the_version_stands_in_the_package_beside_the_program() -> std::io::Result<()> {
        let root = tempfile::tempdir()?;
        let (bin, package) = (root.path().join("bin"), root.path().join("lib/node_modules/@openai/codex"));
        fs::create_dir_all(&bin)?;
        fs::create_dir_all(package.join("bin"))?;
        fs::write(package.join("bin/codex.js"), "exit 1")?;
        fs::write(package.join("package.json"), r#"{"name": "@openai/codex", "version": "0.170.1"}"#)?;
        symlink(package.join("bin/codex.js"), bin.join("codex"))?;
        let search_path = format!("relative:/nowhere:{}", bin.display());
        let found = installed(&agent(), &search_path).and_then(|found| found.version);
        assert_eq!(found.as_deref(), Some("0.170.1"));
        assert_eq!(installed(&agent(), "/nowhere"), None);
        Ok(())
    }

    #[test]
    fn a_folder_may_be_called_after_the_version() -> std::io::Result<()> {
        let root = tempfile::tempdir()?;
        let versions = root.path().join("versions");
        fs::create_dir_all(&versions)?;
        fs::write(versions.join("0.170.2"), "")?;
        symlink(versions.join("0.170.2"), root.path().join("codex"))?;
        let search_path = root.path().display().to_string();
        let found = installed(&agent(), &search_path).and_then(|found| found.version);
        assert_eq!(found.as_deref(), Some("0.170.2"));
        Ok(())
    }

    #[test]
    fn versions_are_compared_by_their_numbers() {
        assert_eq!(is_newer("0.170.0", "0.169.0"), Some(true));
        assert_eq!(is_newer("2.1.99", "2.1.327"), Some(false));
        assert_eq!(is_newer("1.0.32", "SDK 1.0.32"), Some(false));
        assert_eq!(is_newer("unknown", "1.0.0"), None);
    }
}
