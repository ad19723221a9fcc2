//! The command line as a door: each action is a process, on a SQLite file.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;

use super::answer::{Answer, Failure, Outcome};
use super::http::{epochs, plan};
use super::library::{Branch, Library};
use super::run::{Door, Place};
use super::script::Action;

/// The command line in a workspace.
pub(super) struct CommandLine {
    /// The folder for the store, and for the files that flags name.
    folder: PathBuf,
    cwd: PathBuf,
    /// The configuration, if it is not that of this process.
    config: Option<PathBuf>,
}

impl CommandLine {
    pub(super) fn new(folder: &Path, place: &Place) -> Self {
        fs::create_dir(folder).unwrap();
        let (cwd, config) = (place.cwd.clone(), place.config.clone());
        let door = Self { folder: folder.to_owned(), cwd, config };
        // Commands that change a conversation do not make a store.
        drop(proem_store::open(&door.store()).unwrap());
        door
    }

    fn store(&self) -> String {
        self.folder.join("proem.db").to_str().unwrap().to_owned()
    }

    /// Writes a file for a flag. Returns the flag and its path.
    fn file(&self, flag: &str, text: &str) -> Vec<String> {
        let path = self.folder.join("input.json");
        fs::write(&path, text).unwrap();
        vec![flag.to_owned(), path.to_str().unwrap().to_owned()]
    }

    /// Returns the arguments of an action; `None` if there is no command for it.
    fn arguments(&self, id: &str, action: &Action) -> Option<Vec<String>> {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let conversation =
            |command: &str, more: Vec<String>| [words(&["conversation", command, id]), more].concat();
        Some(match action {
            Action::Turn(body) => {
                [words(&["turn", "--conversation", id]), self.file("--request", body)].concat()
            }
            Action::Reload(body) => conversation("reload", self.file("--request", body)),
            Action::ReloadSkills => conversation("reload", words(&["--only", "skills"])),
            Action::Plan(body) => {
                conversation("reload", [words(&["--plan"]), self.file("--request", body)].concat())
            }
            Action::Tools(body) => conversation("tools", self.file("--file", body)),
            Action::Profile(name) => conversation("profile", words(&[name])),
            Action::Fork(body) => {
                let Branch { id, role, .. } = Branch::read(body);
                let role = role.map_or_else(Vec::new, |role| vec!["--role".to_owned(), role]);
                conversation("fork", [vec![id], role].concat())
            }
            Action::Spawn(body) => {
                let Branch { id, rest, .. } = Branch::read(body);
                let rest = serde_json::to_string(&rest).unwrap();
                conversation("spawn", [vec![id], self.file("--request", &rest)].concat())
            }
            Action::Begin(body) => {
                conversation("compact", [words(&["--begin"]), self.file("--request", body)].concat())
            }
            Action::Commit(token) => conversation("compact", words(&["--commit", token])),
            Action::Abort(token) => conversation("compact", words(&["--abort", token])),
            Action::Show => conversation("show", Vec::new()),
            Action::Forget => conversation("rm", Vec::new()),
            Action::Active(_) | Action::Resources(_) | Action::Template(_) => return None,
        })
    }
}

impl Door for CommandLine {
    fn perform(&mut self, id: &str, action: &Action) -> Outcome {
        let Some(arguments) = self.arguments(id, action) else {
            let store = proem_store::open(&self.store()).unwrap();
            return Library::new(store.into(), self.config.as_deref()).perform(id, action);
        };
        let mut command = Command::new(env!("CARGO_BIN_EXE_proem"));
        command.args(arguments).args(["--store", &self.store(), "--format", "json"]);
        command.envs(self.config.as_ref().map(|config| ("PROEM_CONFIG_DIR", config)));
        let output = command.current_dir(&self.cwd).output().unwrap();
        if !output.status.success() {
            return Err(failure(&String::from_utf8(output.stderr).unwrap()));
        }
        let text = String::from_utf8(output.stdout).unwrap();
        Ok(match action {
            Action::Commit(_) => Answer::read(&text).only(&["epoch", "reason", "digest", "pending"]),
            Action::Plan(_) => plan(&text),
            Action::Show => epochs(&text),
            Action::Abort(_) | Action::Forget => Answer::default(),
            _ => Answer::read(&text),
        })
    }

    fn restart(&mut self) {
        // Each command is a process of its own.
    }
}

/// Reads a printed error: its first line, and its hint.
fn failure(text: &str) -> Failure {
    let line = |begin: &str| text.lines().find_map(|line| line.strip_prefix(begin));
    let fields = [("message", line("error: ")), ("hint", line("hint: "))];
    let fields = fields.into_iter().filter_map(|(name, text)| Some((name.to_owned(), json!(text?))));
    Failure(fields.collect::<BTreeMap<_, _>>())
}
