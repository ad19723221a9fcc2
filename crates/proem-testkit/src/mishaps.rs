//! Mishaps: pairs of prompts that differ as in a real incident, and the expected explanation.
//!
//! | file | meaning |
//! |---|---|
//! | `about.txt` | the incident |
//! | `before/`, `after/` | each with `tree/`, `home/`, `config/` and `steps.toml`, all optional |
//! | `before.request.json`, `after.request.json` | the requests |
//! | `before.build.json`, `after.build.json` | instead of a request: a saved build |
//! | `expected.json` | the expected output of `proem diff`, without values derived from it |

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::{copy_tree, in_place, project_root, steps};

/// A pair of prompts and the expected explanation.
#[derive(Debug)]
pub struct Mishap {
    folder: PathBuf,
}

/// One side of the pair.
#[derive(Debug)]
pub enum MishapSide {
    /// A request, as JSON.
    Request(String),
    /// A saved build, as JSON.
    Saved(String),
}

/// Returns all mishaps, by name.
#[must_use]
pub fn mishaps() -> Vec<Mishap> {
    let folders = fs::read_dir(project_root().join("corpus/mishaps")).unwrap();
    let mut found: Vec<Mishap> = folders.map(|entry| Mishap { folder: entry.unwrap().path() }).collect();
    found.sort_by(|a, b| a.folder.cmp(&b.folder));
    found
}

impl Mishap {
    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.folder.file_name().and_then(|name| name.to_str()).unwrap_or_default()
    }

    /// Runs a function on both sides, one after the other in the same folder, and returns the results with the
    /// expected explanation.
    pub fn look<T>(&self, look: impl Fn(&MishapSide) -> T) -> (T, T, Value) {
        // Paths are part of prompts, so all roots have the same length.
        let root = tempfile::Builder::new().prefix("proem-case-").tempdir_in("/tmp").unwrap();
        let before = look(&self.lay_out("before", root.path()));
        let after = look(&self.lay_out("after", root.path()));
        let expected = fs::read_to_string(self.folder.join("expected.json")).unwrap();
        (before, after, serde_json::from_str(&in_place(&expected, root.path())).unwrap())
    }

    fn lay_out(&self, side: &str, root: &Path) -> MishapSide {
        for part in ["tree", "home", "config"] {
            let target = root.join(part);
            if target.exists() {
                fs::remove_dir_all(&target).unwrap();
            }
            fs::create_dir(&target).unwrap();
            copy_tree(&self.folder.join(side).join(part), &target);
        }
        steps::run(&self.folder.join(side).join("steps.toml"), root);
        let read = |kind: &str| fs::read_to_string(self.folder.join(format!("{side}.{kind}.json")));
        let placed = |text: String| in_place(&text, root);
        match read("build") {
            Ok(saved) => MishapSide::Saved(placed(saved)),
            Err(_) => MishapSide::Request(placed(read("request").unwrap())),
        }
    }
}
