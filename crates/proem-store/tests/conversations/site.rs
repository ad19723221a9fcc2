//! A folder with a home, a configuration, a workspace and a store, in which conversations are held.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use proem::hooks::{HookError, ResourcePaths, ResourcesDiscover};
use proem::{Caller, Engine, Hook, PendingField, Request, Tool, Turn};
use proem_core::carrier::Carrier;
use proem_core::frozen::Frozen;
use proem_core::note::{Code, Note};
use proem_store::{ConversationError, Conversations, LoadedEpoch, MemoryStore, SqliteStore, Store};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Long enough for any machine.
pub(crate) const PATIENT: Duration = Duration::from_mins(5);

pub(crate) struct Site {
    root: TempDir,
}

impl Site {
    pub(crate) fn new() -> Self {
        let root = tempfile::Builder::new().prefix("proem-conversations-").tempdir().unwrap();
        for folder in ["home", "config", "work", "other"] {
            fs::create_dir(root.path().join(folder)).unwrap();
        }
        let site = Self { root };
        // A text of the test, because the built-in one may change.
        site.write("config/prompts.toml", "[prompt]\ncompaction = \"Summarise it.\"\n");
        site
    }

    pub(crate) fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        self.root.path().join(path)
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        let place = self.path(path);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::write(place, text).unwrap();
    }

    /// Defines a profile of the user that differs from another one in its policy.
    pub(crate) fn profile(&self, name: &str, extends: &str, rebuild: &str) {
        let text = format!("name = \"{name}\"\nextends = \"{extends}\"\nrebuild = {rebuild}\n");
        self.write(&format!("config/profiles/{name}.toml"), &text);
    }

    /// Creates a request with everything pinned. The keys of `more` replace its own.
    pub(crate) fn request(&self, more: Value) -> Request {
        let mut request = json!({
            "profile": "default", "cwd": self.path("work"), "tools": [{"name": "read"}, {"name": "bash"}],
            "host": self.host("2026-03-07T14:55:05Z"),
        });
        let (Value::Object(fields), Value::Object(more)) = (&mut request, more) else { unreachable!() };
        fields.extend(more);
        Request::from_json(&request.to_string()).unwrap()
    }

    /// Returns the facts of the machine at a moment.
    pub(crate) fn host(&self, now: &str) -> Value {
        json!({
            "now": now, "timezone": "America/Chicago", "env": {}, "os": "linux", "os_name": "Linux",
            "home": self.path("home"), "config_dir": self.path("config"),
        })
    }

    /// Replaces the path of the site in a text.
    pub(crate) fn said(&self, text: &str) -> String {
        text.replace(self.root.path().to_str().unwrap(), "{root}")
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.path("data/proem.db")
    }

    pub(crate) fn sqlite(&self) -> Arc<dyn Store> {
        Arc::new(SqliteStore::open(&self.database()).unwrap())
    }
}

/// Runs a check on a fresh site with each kind of store that needs no server.
pub(crate) fn on_each_store(check: impl Fn(&Site, &Arc<dyn Store>)) {
    let site = Site::new();
    let memory: Arc<dyn Store> = Arc::new(MemoryStore::new());
    check(&site, &memory);
    let site = Site::new();
    check(&site, &site.sqlite());
}

/// Creates conversations without hooks.
pub(crate) fn conversations(store: &Arc<dyn Store>) -> Conversations {
    Conversations::new(Arc::clone(store), Engine::new())
}

pub(crate) fn turn(conversations: &Conversations, request: &Request) -> Turn {
    conversations.turn("c", request, Caller::User).unwrap()
}

/// Returns the system prompt of a frozen prompt.
pub(crate) fn system(frozen: &Frozen) -> &str {
    frozen.body().text(Carrier::System).unwrap()
}

/// Returns the epoch's number, its reason and its system prompt.
pub(crate) fn summary(epoch: &LoadedEpoch) -> (u64, &str, &str) {
    (epoch.head.number, &epoch.head.reason, system(&epoch.frozen))
}

/// Returns the same of the epoch that a turn used.
pub(crate) fn turn_summary(turn: &Turn) -> (u64, &str, &str) {
    (turn.epoch, &turn.reason, system(&turn.frozen))
}

/// Returns the fields that wait for the next epoch.
pub(crate) fn waiting(pending: &[PendingField]) -> Vec<&str> {
    pending.iter().map(|pending| pending.field).collect()
}

/// Returns the expected note about a change that waits.
pub(crate) fn waits(field: &str, profile: &str) -> String {
    format!("the change of `{field}` waits: the profile `{profile}` keeps its prompt until the next epoch")
}

/// Returns numbers and reasons of all epochs of the conversation `c`.
pub(crate) fn history(store: &Arc<dyn Store>) -> Vec<(u64, String)> {
    store.epochs("c").unwrap().into_iter().map(|head| (head.number, head.reason)).collect()
}

/// Returns the expected value of [`history`].
pub(crate) fn epochs(reasons: &[&str]) -> Vec<(u64, String)> {
    (1..).zip(reasons.iter().map(|reason| (*reason).to_owned())).collect()
}

pub(crate) fn tool(name: &str) -> Tool {
    Tool { name: name.into(), ..Tool::default() }
}

/// Returns the messages of the notes of one kind.
pub(crate) fn noted(notes: &[Note], code: Code) -> Vec<&str> {
    notes.iter().filter(|note| note.code == code).map(|note| note.message.as_str()).collect()
}

/// Formats an error as people see it: the message, and the hint after it.
pub(crate) fn shown(site: &Site, error: &ConversationError) -> String {
    site.said(&format!("{error}\nhint: {}", error.hint().unwrap_or_default()))
}

/// A hook that runs a function once while a prompt is built.
pub(crate) struct Meanwhile(Mutex<Option<Box<dyn FnOnce() + Send>>>);

impl Meanwhile {
    pub(crate) fn new(what: impl FnOnce() + Send + 'static) -> Self {
        Self(Mutex::new(Some(Box::new(what))))
    }
}

impl Hook for Meanwhile {
    fn name(&self) -> &'static str {
        "meanwhile"
    }

    fn time_max(&self) -> Duration {
        PATIENT
    }

    fn resources_discover(&self, _: &ResourcesDiscover) -> Result<Option<ResourcePaths>, HookError> {
        let what = self.0.lock().unwrap().take();
        if let Some(what) = what {
            what();
        }
        Ok(None)
    }
}

/// Creates conversations that run a function while the next prompt is built.
pub(crate) fn interrupted(store: &Arc<dyn Store>, what: impl FnOnce() + Send + 'static) -> Conversations {
    Conversations::new(Arc::clone(store), Engine::new().with_hook(Meanwhile::new(what)))
}

/// A hook that counts the searches for files.
#[derive(Clone, Default)]
pub(crate) struct Counter(Arc<AtomicUsize>);

impl Counter {
    pub(crate) fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

impl Hook for Counter {
    fn name(&self) -> &'static str {
        "counter"
    }

    fn resources_discover(&self, _: &ResourcesDiscover) -> Result<Option<ResourcePaths>, HookError> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Ok(None)
    }
}
