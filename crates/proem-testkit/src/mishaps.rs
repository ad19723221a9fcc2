//! Mishaps: two prompts that differ as they did in somebody's life, and what must be said about it.
//!
//! | file | meaning |
//! |---|---|
//! | `about.txt` | what happened |
//! | `before/`, `after/` | each with `tree/`, `home/`, `config/` and `steps.toml`, all optional |
//! | `before.request.json`, `after.request.json` | the requests |
//! | `before.build.json`, `after.build.json` | in place of a request: a saved build |
//! | `expected.json` | what `proem diff` must say, without what can be derived from it |

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::{copy_tree, in_place, project_root, steps};

/// Two prompts, and what must be said about them.
#[derive(Debug)]
pub struct Mishap {
    folder: PathBuf,
}

/// One of the two, laid out.
#[derive(Debug)]
pub enum Side {
    /// A request, as JSON.
    Request(String),
    /// A saved build, as JSON.
    Saved(String),
}

/// All mishaps, by name.
#[must_use]
pub fn mishaps() -> Vec<Mishap> {
    let folders = fs::read_dir(project_root().join("corpus/mishaps")).unwrap();
    let mut found: Vec<Mishap> = folders.map(|entry| Mishap { folder: entry.unwrap().path() }).collect();
    found.sort_by(|a, b| a.folder.cmp(&b.folder));
    found
}

impl Mishap {
    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.folder.file_name().and_then(|name| name.to_str()).unwrap_or_default()
    }

    /// Looks at both sides, one after the other in the same place, and returns them with what must be said.
    pub fn look<T>(&self, look: impl Fn(&Side) -> T) -> (T, T, Value) {
        // Paths are part of prompts: every root has the same length.
        let root = tempfile::Builder::new().prefix("proem-case-").tempdir_in("/tmp").unwrap();
        let before = look(&self.lay_out("before", root.path()));
        let after = look(&self.lay_out("after", root.path()));
        let expected = fs::read_to_string(self.folder.join("expected.json")).unwrap();
        (before, after, serde_json::from_str(&in_place(&expected, root.path())).unwrap())
    }

    fn lay_out(&self, side: &str, root: &Path) -> Side {
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
            Ok(saved) => Side::Saved(placed(saved)),
            Err(_) => Side::Request(placed(read("request").unwrap())),
        }
    }
}
