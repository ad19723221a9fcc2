//! Setup steps for things that plain files cannot express: git history, links, FIFOs, sparse files.

use std::fs;
use std::path::Path;
use std::process::Command;

use rustix::fs::{CWD, FileType, mknodat};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Steps {
    #[serde(default)]
    step: Vec<Step>,
}

/// One step; exactly one key is set. Paths are relative to the case's root.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Step {
    /// Runs git in `tree`, or in the folder given as `-C`.
    Git(Vec<String>),
    Write {
        path: String,
        text: String,
    },
    Hex {
        path: String,
        bytes: String,
    },
    Folder(String),
    Link {
        path: String,
        target: String,
    },
    /// Adds a hard link; both paths are relative to the case's root.
    HardLink {
        path: String,
        target: String,
    },
    Fifo(String),
    Sparse {
        path: String,
        bytes: u64,
    },
    Repeat {
        path: String,
        text: String,
        times: usize,
    },
    Remove(String),
}

pub(crate) fn run(file: &Path, root: &Path) {
    let Ok(text) = fs::read_to_string(file) else { return };
    let steps: Steps = toml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    for step in steps.step {
        apply(step, root);
    }
}

fn apply(step: Step, root: &Path) {
    let at = |path: &str| {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        path
    };
    match step {
        Step::Git(arguments) => {
            let arguments: Vec<String> = arguments.iter().map(|text| super::in_place(text, root)).collect();
            git(&root.join("tree"), &arguments);
        }
        Step::Write { path, text } => fs::write(at(&path), super::in_place(&text, root)).unwrap(),
        Step::Hex { path, bytes } => fs::write(at(&path), from_hex(&bytes)).unwrap(),
        Step::Folder(path) => fs::create_dir_all(at(&path)).unwrap(),
        Step::Link { path, target } => {
            std::os::unix::fs::symlink(super::in_place(&target, root), at(&path)).unwrap();
        }
        Step::HardLink { path, target } => fs::hard_link(root.join(target), at(&path)).unwrap(),
        Step::Fifo(path) => mknodat(CWD, at(&path), FileType::Fifo, 0o644.into(), 0).unwrap(),
        Step::Sparse { path, bytes } => fs::File::create(at(&path)).unwrap().set_len(bytes).unwrap(),
        Step::Repeat { path, text, times } => fs::write(at(&path), text.repeat(times)).unwrap(),
        Step::Remove(path) => fs::remove_file(root.join(path)).unwrap(),
    }
}

/// Runs git with a fixed identity, fixed dates and its own configuration.
pub fn git(folder: &Path, arguments: &[String]) {
    let output = Command::new("git")
        .args(arguments)
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .envs([("GIT_AUTHOR_NAME", "A"), ("GIT_AUTHOR_EMAIL", "a@example.org")])
        .envs([("GIT_COMMITTER_NAME", "A"), ("GIT_COMMITTER_EMAIL", "a@example.org")])
        .envs([("GIT_AUTHOR_DATE", "2026-01-01T00:00:00Z"), ("GIT_COMMITTER_DATE", "2026-01-01T00:00:00Z")])
        .output()
        .unwrap();
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

fn from_hex(text: &str) -> Vec<u8> {
    let digits: String = text.split_whitespace().collect();
    let pairs = digits.as_bytes().chunks(2);
    pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}
