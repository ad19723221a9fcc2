//! Prompts with and without problems, and the expected findings of `proem check`.
//!
//! | file | meaning |
//! |---|---|
//! | `tree/`, `home/`, `config/`, `steps.toml` | as for other cases |
//! | `prompt.json` | the request, if any; `corpus/defaults.json` pins the host values that it leaves out |
//! | `expected.json` | the expected findings, arguments, and the exit code if it is not the usual one, and `once` where no finding may repeat |
//!
//! Keys and tokens contain `{{+}}`, which is removed during setup: they are invented, but a secret scanner run on
//! this project cannot know that. The assembled values must not appear in any output.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tempfile::TempDir;

use crate::{copy_tree, in_place, pinned_text, project_root, steps};

const SEAM: &str = "{{+}}";

/// A prompt and its expected findings.
#[derive(Debug)]
pub struct Lint {
    folder: PathBuf,
}

/// A case set up in its own temporary folder.
#[derive(Debug)]
pub struct LintFolder {
    root: TempDir,
    /// The request, as JSON text.
    pub request: String,
    /// The expected findings.
    pub expected: Value,
    /// The secrets that must not be printed.
    pub secrets: Vec<String>,
}

impl LintFolder {
    /// Returns the folder.
    #[must_use]
    pub fn root(&self) -> &Path {
        self.root.path()
    }
}

/// Returns all cases, by name.
#[must_use]
pub fn lints() -> Vec<Lint> {
    let folders = fs::read_dir(project_root().join("corpus/lints")).unwrap();
    let mut found: Vec<Lint> = folders.map(|entry| Lint { folder: entry.unwrap().path() }).collect();
    found.sort_by(|a, b| a.folder.cmp(&b.folder));
    found
}

impl Lint {
    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.folder.file_name().and_then(|name| name.to_str()).unwrap_or_default()
    }

    /// Sets the case up.
    #[must_use]
    pub fn lay_out(&self) -> LintFolder {
        let root = tempfile::Builder::new().prefix("proem-case-").tempdir_in("/tmp").unwrap();
        let mut secrets = Vec::new();
        for part in ["tree", "home", "config"] {
            let target = root.path().join(part);
            fs::create_dir(&target).unwrap();
            copy_tree(&self.folder.join(part), &target);
            close_seams(&target, &mut secrets);
        }
        let read = |name: &str| fs::read_to_string(self.folder.join(name)).ok();
        let placed = root.path().join("steps.toml");
        if let Some(text) = read("steps.toml") {
            fs::write(&placed, closed(&text, &mut secrets)).unwrap();
            steps::run(&placed, root.path());
        }
        let request = closed(&read("prompt.json").unwrap_or_else(|| "{}".into()), &mut secrets);
        let request = in_place(&pinned_text(&request), root.path());
        let expected = serde_json::from_str(&read("expected.json").unwrap()).unwrap();
        LintFolder { root, request, expected, secrets }
    }
}

/// Removes the seams in all files of a folder.
fn close_seams(folder: &Path, secrets: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            close_seams(&entry.path(), secrets);
        } else if kind.is_file()
            && let Ok(text) = fs::read_to_string(entry.path())
            && text.contains(SEAM)
        {
            fs::write(entry.path(), closed(&text, secrets)).unwrap();
        }
    }
}

fn closed(text: &str, secrets: &mut Vec<String>) -> String {
    let is_apart = |character: char| character.is_whitespace() || "\"'`".contains(character);
    let words = text.split(is_apart).filter(|word| word.contains(SEAM));
    secrets.extend(words.map(|word| {
        let (before, behind) = word.split_once(SEAM).unwrap();
        let begin: String = before.chars().rev().take(4).collect();
        begin.chars().rev().chain(behind.chars().take(16)).collect()
    }));
    text.replace(SEAM, "")
}
