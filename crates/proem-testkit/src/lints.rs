//! Prompts with something wrong with them, or with nothing, and what `proem check` must say.
//!
//! | file | meaning |
//! |---|---|
//! | `tree/`, `home/`, `config/`, `steps.toml` | as for other cases |
//! | `prompt.json` | the request, if it says anything; `corpus/defaults.json` pins what it does not say |
//! | `expected.json` | the findings that count, arguments, the exit code where it is not plain, and `once` where none may repeat |
//!
//! Keys and tokens have `{{+}}` in the middle, which goes when a case is laid out: they are made up, but whoever scans
//! the project for secrets cannot know that. What had it must appear in no output.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tempfile::TempDir;

use crate::{copy_tree, in_place, pinned_text, project_root, steps};

const SEAM: &str = "{{+}}";

/// A prompt and what must be said about it.
#[derive(Debug)]
pub struct Lint {
    folder: PathBuf,
}

/// A case laid out in a folder of its own.
#[derive(Debug)]
pub struct LaidLint {
    root: TempDir,
    /// The request, as JSON text.
    pub request: String,
    /// What must be said.
    pub expected: Value,
    /// What must not be said.
    pub secrets: Vec<String>,
}

impl LaidLint {
    /// The folder.
    #[must_use]
    pub fn root(&self) -> &Path {
        self.root.path()
    }
}

/// All cases, by name.
#[must_use]
pub fn lints() -> Vec<Lint> {
    let folders = fs::read_dir(project_root().join("corpus/lints")).unwrap();
    let mut found: Vec<Lint> = folders.map(|entry| Lint { folder: entry.unwrap().path() }).collect();
    found.sort_by(|a, b| a.folder.cmp(&b.folder));
    found
}

impl Lint {
    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.folder.file_name().and_then(|name| name.to_str()).unwrap_or_default()
    }

    /// Lays the case out.
    #[must_use]
    pub fn lay_out(&self) -> LaidLint {
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
        LaidLint { root, request, expected, secrets }
    }
}

/// Puts together what is apart in every file of a folder.
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
