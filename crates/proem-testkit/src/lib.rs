//! Corpus cases: a real tree, a request, and the expected bytes.
//!
//! A case is a folder below `corpus/`:
//!
//! | file | meaning |
//! |---|---|
//! | `request.json` | the request; `corpus/defaults.json` pins the host values that it leaves out |
//! | `tree/`, `home/`, `config/` | copied to a new folder; `cwd` is `tree` unless the request sets it |
//! | `steps.toml` | things that plain files cannot express: git history, links, FIFOs, sparse files |
//! | `expected.txt` | the bytes of the system carrier, compared raw |
//! | `expected.carriers.json` | the other carriers, if any |
//! | `expected.notes.json` | the notes |
//! | `expected.error.txt` | instead of all that: the message, the hint and the exit code |
//!
//! `{{root}}` in any of them is the new folder. `PROEM_BLESS=1` writes the results instead of comparing them;
//! `scripts/bless` does that and shows the difference.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::missing_panics_doc,
    clippy::print_stderr,
    reason = "a test that cannot be set up must stop, and says so"
)]

pub mod hidden;
pub mod hostile;
mod lints;
mod mishaps;
mod postgres;
mod steps;

pub use lints::{Lint, LintFolder, lints};
pub use mishaps::{Mishap, MishapSide, mishaps};
pub use postgres::{Authority, PostgresServer};
pub use steps::git;

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use tempfile::TempDir;

/// Compiles and runs the examples in Rust of a page.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/hooks.md")]
struct HooksPage;

/// The result of a case, from any way of running it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CaseOutcome {
    /// A prompt: all carriers by name, and the notes as JSON.
    Built {
        /// The carriers that have text.
        carriers: Map<String, Value>,
        /// The notes, as `{code, severity, message}`.
        notes: Value,
    },
    /// An error as the user sees it.
    Failed {
        /// The message.
        message: String,
        /// The hint.
        hint: Option<String>,
        /// The exit code.
        code: i32,
    },
}

/// A case of the corpus.
#[derive(Debug)]
pub struct Case {
    folder: PathBuf,
}

/// A case set up in its own temporary folder.
#[derive(Debug)]
pub struct CaseFolder {
    root: TempDir,
    /// The request with all host values pinned, as JSON text.
    pub request: String,
}

/// Returns the root of the project.
#[must_use]
pub fn project_root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_owned()
}

/// Returns all cases, by path. Every folder with a `request.json` is a case.
#[must_use]
pub fn cases() -> Vec<Case> {
    let mut found = Vec::new();
    collect(&project_root().join("corpus"), &mut found);
    found.sort_by(|a, b| a.folder.cmp(&b.folder));
    assert!(!found.is_empty(), "the corpus is empty");
    found
}

fn collect(folder: &Path, found: &mut Vec<Case>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.join("request.json").exists() {
            found.push(Case { folder: path });
        } else if path.is_dir() {
            collect(&path, found);
        }
    }
}

impl Case {
    /// Returns the path of the case below `corpus/`.
    #[must_use]
    pub fn name(&self) -> String {
        self.folder.strip_prefix(project_root().join("corpus")).unwrap().display().to_string()
    }

    /// Sets the case up in a new folder.
    #[must_use]
    pub fn lay_out(&self) -> CaseFolder {
        // Notes count bytes, including those of paths, so all roots have the same length.
        let root = tempfile::Builder::new().prefix("proem-case-").tempdir_in("/tmp").unwrap();
        for part in ["tree", "home", "config"] {
            let target = root.path().join(part);
            fs::create_dir(&target).unwrap();
            copy_tree(&self.folder.join(part), &target);
        }
        steps::run(&self.folder.join("steps.toml"), root.path());
        let request = pinned(&self.folder.join("request.json"));
        let request = in_place(&request, root.path());
        CaseFolder { root, request }
    }

    /// Returns the content of a file of the case, if it exists.
    #[must_use]
    pub fn file(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.folder.join(name)).ok()
    }

    /// Compares one file with a result, or writes it when blessing; `None` means that the file must not exist.
    pub fn check_file(&self, laid: &CaseFolder, name: &str, content: Option<&str>) {
        let root = laid.root.path().to_str().unwrap();
        let content = content.map(|text| text.replace(root, "{{root}}").into_bytes());
        if std::env::var_os("PROEM_BLESS").is_some() {
            return write_or_remove(&self.folder.join(name), content.as_deref());
        }
        let expected = fs::read(self.folder.join(name)).ok();
        assert!(
            expected == content,
            "{}/{name} differs\nexpected: {}\n   found: {}",
            self.name(),
            show(expected.as_deref()),
            show(content.as_deref()),
        );
    }

    /// Compares a result with the expected files, or writes them when blessing.
    pub fn check(&self, laid: &CaseFolder, outcome: &CaseOutcome) {
        let files = expected_files(outcome, laid.root.path());
        if std::env::var_os("PROEM_BLESS").is_some() {
            for (name, content) in files {
                write_or_remove(&self.folder.join(name), content.as_deref());
            }
            return;
        }
        for (name, content) in files {
            let expected = fs::read(self.folder.join(name)).ok();
            assert!(
                expected.as_deref() == content.as_deref(),
                "{}/{name} differs\nexpected: {}\n   found: {}",
                self.name(),
                show(expected.as_deref()),
                show(content.as_deref()),
            );
        }
    }
}

/// Returns the model for a provider's payload, unless the case names one.
#[must_use]
pub fn payload_model(provider: &str) -> &'static str {
    match provider {
        "anthropic" | "acp" => "claude-opus-5",
        "bedrock" => "us.anthropic.claude-sonnet-5-20260915-v1:0",
        "gemini" => "gemini-3.8-flash",
        "deepseek" => "deepseek-v4-pro",
        _ => "gpt-5.6-sol",
    }
}

/// Runs `check` on every case and reports all failures together.
pub fn for_each_case(check: impl Fn(&Case)) {
    for_each_case_of("", check);
}

/// Runs `check` on every case below a folder of the corpus.
pub fn for_each_case_of(folder: &str, check: impl Fn(&Case)) {
    let cases: Vec<Case> = cases().into_iter().filter(|case| case.name().starts_with(folder)).collect();
    assert!(!cases.is_empty(), "the corpus has no {folder}");
    let failed: Vec<String> = cases
        .iter()
        .filter(|case| std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| check(case))).is_err())
        .map(Case::name)
        .collect();
    assert!(failed.is_empty(), "{} cases failed: {}", failed.len(), failed.join(", "));
    eprintln!("{} cases passed", cases.len());
}

/// Returns the expected files of a result; `None` means that the file must not exist.
fn expected_files(outcome: &CaseOutcome, root: &Path) -> [(&'static str, Option<Vec<u8>>); 4] {
    let root = root.to_str().unwrap();
    let placed = |text: &str| text.replace(root, "{{root}}").into_bytes();
    let pretty = |value: &Value| placed(&(serde_json::to_string_pretty(value).unwrap() + "\n"));
    let (mut text, mut carriers_file, mut notes_file, mut error) = (None, None, None, None);
    match outcome {
        CaseOutcome::Built { carriers, notes } => {
            let mut others = carriers.clone();
            text = others.remove("system").map(|system| placed(system.as_str().unwrap()));
            carriers_file = (!others.is_empty()).then(|| pretty(&Value::Object(others)));
            notes_file = (notes != &json!([])).then(|| pretty(notes));
        }
        CaseOutcome::Failed { message, hint, code } => {
            let hint = hint.as_ref().map_or_else(String::new, |hint| format!("hint: {hint}\n"));
            error = Some(placed(&format!("error: {message}\n{hint}exit: {code}\n")));
        }
    }
    [
        ("expected.txt", text),
        ("expected.carriers.json", carriers_file),
        ("expected.notes.json", notes_file),
        ("expected.error.txt", error),
    ]
}

fn write_or_remove(path: &Path, content: Option<&[u8]>) {
    match content {
        Some(bytes) => fs::write(path, bytes).unwrap(),
        None if path.exists() => fs::remove_file(path).unwrap(),
        None => {}
    }
}

fn show(bytes: Option<&[u8]>) -> String {
    bytes.map_or_else(|| "no such file".into(), |bytes| format!("{:?}", String::from_utf8_lossy(bytes)))
}

/// Returns the request merged over the defaults.
fn pinned(path: &Path) -> String {
    let mut request = read_json(&project_root().join("corpus/defaults.json"));
    merge(&mut request, read_json(path));
    // Messages contain line numbers, so the order of keys must not depend on the map type.
    serde_json::to_string_pretty(&sorted(request)).unwrap()
}

fn read_json(path: &Path) -> Value {
    let text = fs::read_to_string(path).unwrap();
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns a request merged over the pinned host values, with its own profile.
fn pinned_text(request: &str) -> String {
    let mut pinned = read_json(&project_root().join("corpus/defaults.json"));
    pinned.as_object_mut().unwrap().remove("profile");
    merge(&mut pinned, serde_json::from_str(request).unwrap());
    serde_json::to_string_pretty(&sorted(pinned)).unwrap()
}

fn sorted(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<(String, Value)> = fields.into_iter().collect();
            fields.sort_by(|(a, _), (b, _)| a.cmp(b));
            Value::Object(fields.into_iter().map(|(key, value)| (key, sorted(value))).collect())
        }
        other => other,
    }
}

/// Merges `over` into `under`: objects are merged, other values replaced.
fn merge(under: &mut Value, over: Value) {
    match (under, over) {
        (Value::Object(under), Value::Object(over)) => {
            for (key, value) in over {
                merge(under.entry(key).or_insert(Value::Null), value);
            }
        }
        (under, over) => *under = over,
    }
}

pub(crate) fn in_place(text: &str, root: &Path) -> String {
    text.replace("{{root}}", root.to_str().unwrap())
}

/// Copies files and folders.
fn copy_tree(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).into_iter().flatten() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            fs::create_dir(&target).unwrap();
            copy_tree(&entry.path(), &target);
        } else {
            fs::write(target, fs::read(entry.path()).unwrap()).unwrap();
        }
    }
}

impl CaseFolder {
    /// Returns the folder of the case.
    #[must_use]
    pub fn root(&self) -> &Path {
        self.root.path()
    }
}
