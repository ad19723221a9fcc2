//! A folder with a home, a configuration and a workspace, in which prompts are built.

use std::fs;
use std::path::{Path, PathBuf};

use proem::conversation::{Changed, ConversationError, Pending};
use proem::hooks::{Message, ResourcePaths};
use proem::{Build, Caller, Conversation, Engine, RawMessage, Request, Tool};
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
        Session(engine.start(self.request(more), Caller::User).unwrap())
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

/// The user's part of one turn.
#[derive(Debug, Clone, Default)]
pub(crate) struct UserInput {
    pub(crate) text: Option<String>,
    pub(crate) images: Vec<Value>,
    pub(crate) messages: Vec<Message>,
    pub(crate) recalled: Option<String>,
}

pub(crate) fn said(text: &str) -> UserInput {
    UserInput { text: Some(text.into()), ..UserInput::default() }
}

/// The outcome of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Rebuild {
    Unchanged,
    /// The change of this field waits.
    Pending(&'static str),
    Opened {
        epoch: u64,
        reason: String,
    },
}

impl From<Changed> for Rebuild {
    fn from(changed: Changed) -> Self {
        let Changed { epoch, is_opened, pending, .. } = changed;
        match pending.last() {
            _ if is_opened => Self::Opened { epoch: epoch.head.number, reason: epoch.head.reason.clone() },
            Some(field) => Self::Pending(field.field),
            None => Self::Unchanged,
        }
    }
}

pub(crate) fn opened(epoch: u64, reason: &str) -> Rebuild {
    Rebuild::Opened { epoch, reason: reason.to_owned() }
}

/// A turn, with messages as maps.
pub(crate) struct Turn {
    pub(crate) system_prompt: String,
    pub(crate) messages: Vec<Message>,
    pub(crate) history: Vec<Message>,
    pub(crate) tools: Vec<proem::ToolDefinition>,
    pub(crate) changes: Vec<proem::PrefixChange>,
    pub(crate) expected_miss: Option<String>,
    pub(crate) notes: Vec<Note>,
}

type Changes<T> = Result<T, ConversationError>;

/// A conversation in memory.
pub(crate) struct Session(pub(crate) Conversation);

impl Session {
    /// Returns the frozen prompt. It is never freed, so that tests can borrow from it.
    pub(crate) fn build(&self) -> &'static Build {
        Box::leak(Box::new(self.0.epoch().unwrap().build()))
    }

    pub(crate) fn epoch(&self) -> u64 {
        self.0.epoch().unwrap().head.number
    }

    pub(crate) fn reason(&self) -> String {
        self.0.epoch().unwrap().head.reason.clone()
    }

    pub(crate) fn turn(&self, input: &UserInput) -> Turn {
        let UserInput { text, images, messages, recalled } = input.clone();
        let raw = |message: Message| serde_json::from_value(Value::Object(message)).unwrap();
        let turn = self.0.turn(Request {
            prompt: text,
            images: (!images.is_empty()).then_some(images),
            messages: Some(messages.into_iter().map(raw).collect()),
            recalled,
            ..Request::default()
        });
        let turn = turn.unwrap();
        let maps = |messages: &[RawMessage]| messages.iter().map(|one| one.to_map().unwrap()).collect();
        Turn {
            messages: maps(&turn.messages),
            history: maps(&turn.history),
            system_prompt: turn.system_prompt,
            tools: turn.tools,
            changes: turn.changes,
            expected_miss: turn.expected_miss,
            notes: turn.notes,
        }
    }

    pub(crate) fn set_active_tools(&self, names: &[&str]) -> Changes<Rebuild> {
        self.0.set_active_tools(names).map(Rebuild::from)
    }

    pub(crate) fn set_tool_registry(&self, tools: &[Tool]) -> Changes<Rebuild> {
        self.0.set_tool_registry(tools).map(Rebuild::from)
    }

    pub(crate) fn reload(&self) -> Changes<Rebuild> {
        self.0.reload().map(Rebuild::from)
    }

    pub(crate) fn switch_profile(&self, name: &str) -> Changes<Rebuild> {
        self.0.switch_profile(name).map(Rebuild::from)
    }

    pub(crate) fn add_resources(&self, paths: &ResourcePaths) -> Changes<Rebuild> {
        self.0.add_resources(paths).map(Rebuild::from)
    }

    /// Compares the frozen prompt with one that is built now.
    pub(crate) fn pending(&self) -> Changes<Pending> {
        self.0.drift().map(|plan| plan.pending)
    }
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
