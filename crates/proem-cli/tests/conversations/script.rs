//! The scripts of `corpus/conversations`: the steps of one conversation, and the answers that they must have.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::hook_server::Behaviour;

/// The machine that a conversation sees unless its first turn gives a `host`.
const HOST: &str = r#"{"now": "2026-03-07T14:55:05Z", "timezone": "UTC", "os": "linux", "os_name": "Linux", "os_version": "6.1", "hostname": "workbench", "shell": "/bin/sh"}"#;

/// One conversation, as data.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Script {
    #[serde(skip)]
    pub(super) name: String,
    /// A sentence that the steps show to be true.
    pub(super) about: String,
    /// The findings of the audit that the script would have found.
    #[serde(default)]
    pub(super) findings: Vec<String>,
    /// The files of the workspace at the beginning, by path.
    #[serde(default)]
    pub(super) files: BTreeMap<String, String>,
    /// True if the workspace is a git repository with all these files in one commit.
    #[serde(default)]
    pub(super) git: bool,
    /// The doors that cannot run the script, and why.
    #[serde(default)]
    pub(super) skip: BTreeMap<String, String>,
    /// The lines of the user's own `proem.toml`.
    #[serde(default)]
    pub(super) settings: Vec<String>,
    /// Further files of the user's configuration, by path.
    #[serde(default)]
    pub(super) config: BTreeMap<String, String>,
    /// A server of hooks, by path.
    #[serde(default)]
    pub(super) server: BTreeMap<String, Behaviour>,
    pub(super) steps: Vec<Step>,
}

/// One step. It has exactly one action: one of the fields before `name`.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[expect(clippy::struct_excessive_bools, reason = "each is an action that has no content")]
pub(super) struct Step {
    turn: Option<Box<RawValue>>,
    reload: Option<Box<RawValue>>,
    reload_skills: bool,
    plan: Option<Box<RawValue>>,
    tools: Option<Box<RawValue>>,
    active: Option<Vec<String>>,
    profile: Option<String>,
    resources: Option<Box<RawValue>>,
    fork: Option<Box<RawValue>>,
    spawn: Option<Box<RawValue>>,
    begin: Option<Box<RawValue>>,
    commit: Option<String>,
    abort: Option<String>,
    template: Option<String>,
    show: bool,
    forget: bool,
    write: Option<BTreeMap<String, String>>,
    remove: Option<Vec<String>>,
    git: Option<Vec<String>>,
    configure: Option<Vec<String>>,
    restart: bool,
    /// The name by which later steps refer to the answer of this one.
    #[serde(rename = "as")]
    pub(super) name: Option<String>,
    /// The conversation; without one, that of the script.
    #[serde(rename = "in")]
    pub(super) conversation: Option<String>,
    /// Values in the answer, by path.
    pub(super) expect: BTreeMap<String, Value>,
    /// The fields of the error that the step must have; without it, the step must succeed.
    pub(super) error: Option<BTreeMap<String, Value>>,
}

/// A request to a conversation.
#[derive(Debug, Clone)]
pub(super) enum Action {
    Turn(String),
    Reload(String),
    ReloadSkills,
    Plan(String),
    Tools(String),
    Active(Vec<String>),
    Profile(String),
    Resources(String),
    /// With `id` and `role`.
    Fork(String),
    /// With `id` and fields of a request.
    Spawn(String),
    Begin(String),
    /// With the name of the step that began the compaction.
    Commit(String),
    Abort(String),
    Template(String),
    Show,
    Forget,
}

/// Makes an action of its text.
type MakeAction = fn(String) -> Action;

/// A change of the surroundings.
pub(super) enum Event<'s> {
    Write(&'s BTreeMap<String, String>),
    Remove(&'s [String]),
    Git(&'s [String]),
    Configure(&'s [String]),
    Restart,
}

/// The content of a step.
pub(super) enum Content<'s> {
    Action(Action),
    Event(Event<'s>),
}

impl Script {
    /// Reads all scripts, by name.
    pub(super) fn all(folder: &Path) -> Vec<Self> {
        let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let mut scripts: Vec<Self> = paths
            .filter(|path| path.extension().is_some_and(|end| end == "json"))
            .map(|path| read(&path))
            .collect();
        scripts.sort_by(|one, other| one.name.cmp(&other.name));
        scripts
    }

    /// Tells whether the script changes the store or the process for all conversations.
    pub(super) fn needs_own_server(&self) -> bool {
        self.has_own_config() || self.steps.iter().any(|step| step.restart || step.template.is_some())
    }

    /// Tells whether the script has a configuration of its own.
    pub(super) fn has_own_config(&self) -> bool {
        !self.settings.is_empty()
    }

    /// Tells whether the script stores a template, which all conversations of a store share.
    pub(super) fn needs_own_store(&self) -> bool {
        self.steps.iter().any(|step| step.template.is_some())
    }
}

fn read(path: &Path) -> Script {
    let text = fs::read_to_string(path).unwrap();
    let script: Result<Script, _> = serde_json::from_str(&text);
    let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
    let script = script.map_err(|error| format!("{}: {error}", path.display())).unwrap();
    let configures = script.steps.iter().any(|step| step.configure.is_some());
    assert!(!configures || script.has_own_config(), "{name}: without `settings` all scripts share one file");
    for step in &script.steps {
        assert_eq!(step.actions(), 1, "{name}: a step has exactly one action");
    }
    assert!(script.about.ends_with('.'), "{name}: `about` is a sentence");
    Script { name, ..script }
}

impl Step {
    /// Returns the number of its actions.
    fn actions(&self) -> usize {
        let bodies = [
            &self.turn,
            &self.reload,
            &self.plan,
            &self.tools,
            &self.resources,
            &self.begin,
            &self.fork,
            &self.spawn,
        ];
        let texts = [&self.profile, &self.commit, &self.abort, &self.template];
        let flags = [self.reload_skills, self.show, self.forget, self.restart];
        let others = [self.active.is_some(), self.write.is_some(), self.remove.is_some(), self.git.is_some()];
        let others = others.into_iter().chain([self.configure.is_some()]);
        bodies.into_iter().flatten().count()
            + texts.into_iter().flatten().count()
            + flags.into_iter().chain(others).filter(|is_set| *is_set).count()
    }

    /// Returns its content for the workspace `cwd`. The first turn of a conversation gets the workspace and the machine.
    pub(super) fn content(&self, cwd: &str, is_first: bool) -> Content<'_> {
        if let Some(files) = &self.write {
            return Content::Event(Event::Write(files));
        }
        if let Some(paths) = &self.remove {
            return Content::Event(Event::Remove(paths));
        }
        if let Some(arguments) = &self.git {
            return Content::Event(Event::Git(arguments));
        }
        if let Some(lines) = &self.configure {
            return Content::Event(Event::Configure(lines));
        }
        if self.restart {
            return Content::Event(Event::Restart);
        }
        Content::Action(self.action(cwd, is_first))
    }

    fn action(&self, cwd: &str, is_first: bool) -> Action {
        let text = |raw: &RawValue| placed(&body(raw), cwd);
        if let Some(raw) = &self.turn {
            let body = text(raw);
            return Action::Turn(if is_first { pinned(&body, cwd) } else { body });
        }
        let bodies: [(_, MakeAction); 7] = [
            (&self.fork, Action::Fork),
            (&self.spawn, Action::Spawn),
            (&self.reload, Action::Reload),
            (&self.plan, Action::Plan),
            (&self.tools, Action::Tools),
            (&self.resources, Action::Resources),
            (&self.begin, Action::Begin),
        ];
        let texts: [(_, MakeAction); 4] = [
            (&self.profile, Action::Profile),
            (&self.commit, Action::Commit),
            (&self.abort, Action::Abort),
            (&self.template, Action::Template),
        ];
        let bodies = bodies.into_iter().filter_map(|(raw, action)| raw.as_ref().map(|raw| action(text(raw))));
        let texts = texts.into_iter().filter_map(|(text, action)| text.clone().map(action));
        let active = self.active.clone().map(Action::Active);
        let flags = [
            (self.reload_skills, Action::ReloadSkills),
            (self.show, Action::Show),
            (self.forget, Action::Forget),
        ];
        let flags = flags.into_iter().filter(|(is_set, _)| *is_set).map(|(_, action)| action);
        bodies.chain(texts).chain(active).chain(flags).next().unwrap()
    }
}

/// Returns the text of a body: a JSON string stands for its content, so that a body can be invalid.
fn body(raw: &RawValue) -> String {
    serde_json::from_str::<String>(raw.get()).unwrap_or_else(|_| raw.get().to_owned())
}

/// Puts paths into a text.
pub(super) fn placed(text: &str, cwd: &str) -> String {
    text.replace("{cwd}", cwd)
}

/// Adds the workspace and the machine to a first request that does not give them. Its own bytes stay as they are.
fn pinned(body: &str, cwd: &str) -> String {
    let Ok(fields) = serde_json::from_str::<BTreeMap<String, Box<RawValue>>>(body) else {
        return body.to_owned();
    };
    let given = [("cwd", format!("{cwd:?}")), ("host", HOST.to_owned())];
    let is_given =
        |field: &str| fields.contains_key(field) || (field == "cwd" && fields.contains_key("workspace"));
    let missing = given.into_iter().filter(|(field, _)| !is_given(field));
    let missing: Vec<String> = missing.map(|(field, value)| format!("\"{field}\": {value}")).collect();
    let own = body.trim().trim_start_matches('{');
    let comma = if missing.is_empty() || fields.is_empty() { "" } else { ", " };
    format!("{{{}{comma}{own}", missing.join(", "))
}
