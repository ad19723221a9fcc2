//! A folder with a home, a configuration and a workspace, in which prompts are built.

use std::fs;
use std::path::{Path, PathBuf};

use proem::hooks::Message;
use proem::{Caller, Engine, Request, Session, Turn, UserInput};
use proem_core::note::{Code, Note};
use serde_json::{Value, json};
use tempfile::TempDir;

pub(crate) struct Site {
    root: TempDir,
}

impl Site {
    pub(crate) fn new() -> Self {
        let root = tempfile::Builder::new().prefix("proem-hooks-").tempdir().unwrap();
        for folder in ["home", "config", "work"] {
            fs::create_dir(root.path().join(folder)).unwrap();
        }
        Self { root }
    }

    /// Makes a site whose user has configured hooks.
    pub(crate) fn with_hooks(hooks: &[String]) -> Self {
        let site = Self::new();
        site.write("config/proem.toml", &hooks.concat());
        site
    }

    pub(crate) fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        self.root.path().join(path)
    }

    /// Writes a file; `{root}` in it is the site's own path.
    pub(crate) fn write(&self, path: &str, text: &str) {
        let place = self.path(path);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::write(place, text.replace("{root}", self.root.path().to_str().unwrap())).unwrap();
    }

    pub(crate) fn skill(&self, folder: &str, name: &str) {
        self.write(&format!("{folder}/SKILL.md"), &skill(name));
    }

    /// Reads a file that a hook wrote, as JSON.
    pub(crate) fn json(&self, path: &str) -> Value {
        serde_json::from_str(&fs::read_to_string(self.path(path)).unwrap()).unwrap()
    }

    /// Makes a request with everything pinned. `more` is merged into it, key by key.
    pub(crate) fn request(&self, more: Value) -> Request {
        let mut request = json!({
            "profile": "layers", "cwd": self.path("work"), "tools": [{"name": "read"}, {"name": "bash"}],
            "host": {
                "now": "2026-03-07T14:55:05Z", "timezone": "America/Chicago", "env": {},
                "home": self.path("home"), "config_dir": self.path("config"),
            },
        });
        let (Value::Object(fields), Value::Object(more)) = (&mut request, more) else { unreachable!() };
        fields.extend(more);
        Request::from_json(&request.to_string()).unwrap()
    }

    pub(crate) fn start(&self, engine: &Engine) -> Session {
        self.start_with(engine, json!({}))
    }

    pub(crate) fn start_with(&self, engine: &Engine, more: Value) -> Session {
        engine.start(self.request(more), Caller::User).unwrap()
    }

    /// A text without the site's own path.
    pub(crate) fn said(&self, text: &str) -> String {
        text.replace(self.root.path().to_str().unwrap(), "{root}")
    }

    /// The messages of the notes of one kind.
    pub(crate) fn noted(&self, notes: &[Note], code: Code) -> Vec<String> {
        notes.iter().filter(|note| note.code == code).map(|note| self.said(&note.message)).collect()
    }
}

pub(crate) fn skill(name: &str) -> String {
    format!("---\nname: {name}\ndescription: For {name}.\n---\n")
}

/// A `[[hook]]` that runs `script` in a shell.
pub(crate) fn hook(name: &str, event: &str, script: &str) -> String {
    hook_with(name, event, script, "")
}

/// The same, with more keys.
pub(crate) fn hook_with(name: &str, event: &str, script: &str, keys: &str) -> String {
    // A JSON string is also a TOML string.
    let script = serde_json::to_string(script).unwrap();
    format!(
        "[[hook]]\nname = \"{name}\"\nevent = \"{event}\"\ncommand = [\"/bin/sh\", \"-c\", {script}]\n{keys}\n"
    )
}

pub(crate) fn said(text: &str) -> UserInput {
    UserInput { text: Some(text.into()), ..UserInput::default() }
}

pub(crate) fn message(value: Value) -> Message {
    serde_json::from_value(value).unwrap()
}

/// The names of the skills that a system prompt lists, in order.
pub(crate) fn skills(system_prompt: &str) -> Vec<&str> {
    let lines = system_prompt.lines().map(str::trim);
    lines.filter_map(|line| line.strip_prefix("<name>")?.strip_suffix("</name>")).collect()
}

/// Messages as JSON.
pub(crate) fn messages(turn: &Turn) -> Value {
    json!(turn.messages)
}
