//! A conversation's prompt: frozen, and rebuilt only for a reason.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use proem_core::note::{Code, Note, Severity};
use proem_core::profile::Reason;

use crate::build::Build;
use crate::conversation::pending::Pending;
use crate::deliver::turn::{self, Turn, TurnInput, UserInput};
use crate::engine::{self, Engine};
use crate::error::Error;
use crate::hooks::{self, DiscoverReason, Handler, ResourcePaths};
use crate::observe::host::Host;
use crate::observe::workspace::Workspace;
use crate::request::caller::Caller;
use crate::request::{Request, Tool, distinct_tools};
use crate::sections::Parts;
use crate::sections::build_state::BuildState;
use crate::settings::world::World;

impl Engine {
    /// Builds a prompt and keeps it for the turns of one conversation.
    ///
    /// ```
    /// use proem::{Caller, Engine, UserInput, Rebuild, Request};
    ///
    /// let request = Request::from_json(
    ///     r#"{"profile": "layers", "project": false, "tools": [{"name": "read"}, {"name": "bash"}]}"#,
    /// )?;
    /// let mut session = Engine::new().start(request, Caller::User)?;
    /// // The same tools in another order are no change.
    /// assert_eq!(session.set_active_tools(&["bash", "read"])?, Rebuild::Unchanged);
    /// assert!(matches!(session.set_active_tools(&["read"])?, Rebuild::Opened { epoch: 2, .. }));
    ///
    /// let turn = session.turn(&UserInput { text: Some("Hello".into()), ..UserInput::default() });
    /// assert!(turn.system_prompt.contains("- read: Read file contents"));
    /// assert_eq!(turn.messages.len(), 1);
    /// # Ok::<(), proem::Error>(())
    /// ```
    pub fn start(&self, request: Request, caller: Caller) -> Result<Session, Error> {
        Session::start(self.clone(), request, caller)
    }
}

/// The reason for which a prompt is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Trigger {
    /// The session began.
    Startup,
    /// Other tools are active.
    ActiveTools,
    /// Tools came, went, or are described otherwise.
    ToolRegistry,
    /// A caller requested a reload: everything is read again.
    Reload,
    /// An extension brought resources.
    Resources,
    /// A caller requested a reload of the skills.
    SkillsReload,
    /// The conversation goes on with another profile.
    ProfileSwitch,
}

impl Trigger {
    /// The reason that a profile's policy must name; a session may always begin.
    #[must_use]
    pub const fn reason(self) -> Option<Reason> {
        match self {
            Self::Startup => None,
            Self::ActiveTools | Self::ToolRegistry => Some(Reason::Tools),
            Self::Reload => Some(Reason::Reload),
            Self::Resources | Self::SkillsReload => Some(Reason::Resources),
            Self::ProfileSwitch => Some(Reason::Profile),
        }
    }
}

/// The outcome of a trigger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rebuild {
    /// Nothing that matters changed: the frozen prompt stays in force.
    Unchanged,
    /// The profile does not rebuild for this reason: the frozen prompt stays in force.
    NotAllowed(Reason),
    /// Nor for this one, but the change waits: the next prompt that is built has it.
    Pending(Reason),
    /// There is a new prompt.
    Opened {
        /// The number of its epoch, from 1.
        epoch: u64,
        /// The reason.
        trigger: Trigger,
    },
}

/// The prompt of one conversation: frozen until something that its profile allows rebuilds it.
#[derive(Clone)]
pub struct Session {
    engine: Engine,
    handlers: Vec<Handler>,
    request: Request,
    caller: Caller,
    memory: BuildState,
    rebuild: Vec<Reason>,
    /// All tools there are; the request holds the active ones.
    registry: Vec<Tool>,
    workspace: Workspace,
    build: Build,
    epoch: u64,
    trigger: Trigger,
    /// Tools that wait for the next epoch: the active ones, and all there will be.
    pending_tools: Option<Vec<Tool>>,
    pending_registry: Option<Vec<Tool>>,
    /// True until the first turn of this epoch.
    is_new: Once,
}

/// A flag that reads `true` once.
struct Once(AtomicBool);

impl Once {
    const fn new() -> Self {
        Self(AtomicBool::new(true))
    }

    fn take(&self) -> bool {
        self.0.swap(false, Ordering::Relaxed)
    }
}

impl Clone for Once {
    fn clone(&self) -> Self {
        Self(AtomicBool::new(self.0.load(Ordering::Relaxed)))
    }
}

impl Session {
    fn start(engine: Engine, request: Request, caller: Caller) -> Result<Self, Error> {
        let World { workspace, config, resolved, .. } = World::read(&request, caller)?;
        let profile = resolved.profile;
        let registry = request.tools.clone().unwrap_or_else(|| {
            let description = |name: &String| profile.tools.descriptions.get(name).cloned();
            let named = |name: &String| Tool {
                name: name.clone(),
                description: description(name),
                ..Tool::default()
            };
            profile.tools.default.iter().map(named).collect()
        });
        let handlers = hooks::handlers(&engine.hooks, &config.hooks.value);
        let mut memory = BuildState::default();
        let build = engine.build_with(&request, caller, &mut memory)?;
        let (rebuild, epoch, trigger) = (profile.rebuild.clone(), 1, Trigger::Startup);
        Ok(Self {
            engine,
            handlers,
            request,
            caller,
            memory,
            rebuild,
            registry,
            workspace,
            build,
            epoch,
            trigger,
            pending_tools: None,
            pending_registry: None,
            is_new: Once::new(),
        })
    }

    /// The prompt in force.
    #[must_use]
    pub const fn build(&self) -> &Build {
        &self.build
    }

    /// The number of the epoch in force, from 1.
    #[must_use]
    pub const fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Returns the reason for which the prompt in force was built.
    #[must_use]
    pub const fn trigger(&self) -> Trigger {
        self.trigger
    }

    /// Returns the reason for which the prompt in force was built, as a word; after a switch of the profile it names
    /// the profile.
    #[must_use]
    pub fn reason(&self) -> String {
        match self.trigger {
            Trigger::Startup => "startup".into(),
            Trigger::ActiveTools | Trigger::ToolRegistry => "tools".into(),
            Trigger::Reload => "reload".into(),
            Trigger::Resources => "resources".into(),
            Trigger::SkillsReload => "skills_reload".into(),
            Trigger::ProfileSwitch => format!("profile_switch:{}", self.build.frozen().profile()),
        }
    }

    /// Returns everything that the model sees in one turn. A hook's changes apply to this turn alone, and so do the
    /// facts on the `turn` carrier: they are observed again, while the frozen part stays the same. If that fails, the
    /// last facts are used, with a note.
    #[must_use]
    pub fn turn(&self, prompt: &UserInput) -> Turn {
        let mut notes: Vec<Note> = Vec::new();
        let now = match self.observe() {
            Ok(now) => now.map(|now| {
                notes.extend(now.notes().iter().filter(|note| note.severity > Severity::Info).cloned());
                now.suffix().behind(self.build.frozen())
            }),
            Err(error) => {
                notes.push(not_observed(&error));
                None
            }
        };
        let input = TurnInput {
            whole: now.as_ref().unwrap_or(self.build.whole()),
            tools: self.active(),
            model: self.request.model.as_deref(),
            cwd: self.workspace.cwd(),
            handlers: &self.handlers,
            caller: self.caller,
        };
        let mut turn = turn::turn(&input, prompt);
        turn.notes.append(&mut notes);
        // The prefix differs from that of the turn before, so one miss is expected.
        turn.expected_miss = (self.is_new.take() && self.epoch > 1).then(|| self.reason());
        turn
    }

    /// Returns the prompt in force followed by the facts of this moment, for a delivery. The frozen part stays the
    /// same. If the facts cannot be observed, the last ones are used.
    #[must_use]
    pub fn observed(&self) -> Build {
        let build = self.build.clone();
        match self.observe() {
            Ok(Some(now)) => build.with_suffix(now.into_parts().1),
            Ok(None) | Err(_) => build,
        }
    }

    /// Builds the part for one turn, if the profile has one.
    fn observe(&self) -> Result<Option<Build>, Error> {
        if self.build.suffix().is_empty() {
            return Ok(None);
        }
        let (mut memory, hooks) = (self.memory.clone(), &self.engine.hooks);
        engine::build_parts(&self.request, self.caller, hooks, &mut memory, Parts::Turn).map(Some)
    }

    /// Sets the active tools, by name and in this order. Unknown names are ignored; the same set in another order
    /// does not count as a change.
    pub fn set_active_tools(&mut self, names: &[&str]) -> Result<Rebuild, Error> {
        let mut tools: Vec<Tool> = Vec::new();
        for name in names {
            let known = self.registry.iter().find(|tool| tool.name == *name);
            tools.extend(known.filter(|tool| !tools.contains(tool)).cloned());
        }
        self.take_tools(tools, Trigger::ActiveTools)
    }

    /// Replaces all tools there are. Active ones stay active while they exist, and new ones become active.
    pub fn set_tool_registry(&mut self, registry: Vec<Tool>) -> Result<Rebuild, Error> {
        let active = self.active();
        let known: Vec<String> = self.registry.iter().map(|tool| tool.name.clone()).collect();
        let find = |name: &String| registry.iter().find(|tool| tool.name == *name).cloned();
        let mut tools: Vec<Tool> = active.iter().filter_map(|tool| find(&tool.name)).collect();
        tools.extend(registry.iter().filter(|tool| !known.contains(&tool.name)).cloned());
        let before = std::mem::replace(&mut self.registry, registry.clone());
        let rebuilt = self.take_tools(tools, Trigger::ToolRegistry);
        if !matches!(rebuilt, Ok(Rebuild::Opened { .. } | Rebuild::Unchanged)) {
            self.registry = before;
        }
        if matches!(rebuilt, Ok(Rebuild::Pending(_))) {
            self.pending_registry = Some(registry);
        }
        rebuilt
    }

    /// Reads everything again.
    pub fn reload(&mut self) -> Result<Rebuild, Error> {
        let memory = BuildState { reason: DiscoverReason::Reload, ..BuildState::default() };
        self.open(self.with_pending(), memory, Trigger::Reload)
    }

    /// Goes on with the files, skills and tools as they are now.
    pub fn reload_skills(&mut self) -> Result<Rebuild, Error> {
        let memory = BuildState { reason: DiscoverReason::Reload, ..BuildState::default() };
        self.open(self.with_pending(), memory, Trigger::SkillsReload)
    }

    /// Goes on with another profile.
    pub fn switch_profile(&mut self, name: &str) -> Result<Rebuild, Error> {
        let memory = BuildState { reason: DiscoverReason::Reload, ..BuildState::default() };
        let request = Request { profile: Some(name.to_owned()), ..self.with_pending() };
        self.open(request, memory, Trigger::ProfileSwitch)
    }

    /// Compares the frozen prompt with one that is built now. Nothing is changed.
    pub fn pending(&self) -> Result<Pending, Error> {
        let request = self.with_pending();
        let now = engine::build_with(&request, self.caller, &self.engine.hooks, &mut BuildState::default())?;
        let (before, after) = (&self.build, &now);
        Ok(Pending::between((before.frozen(), before.fingerprint()), (after.frozen(), after.fingerprint())))
    }

    /// The request with the tools that wait.
    fn with_pending(&self) -> Request {
        let tools = self.pending_tools.clone().or_else(|| self.request.tools.clone());
        Request { tools, ..self.request.clone() }
    }

    /// Adds paths that an extension brings, after the present ones.
    pub fn add_resources(&mut self, paths: &ResourcePaths) -> Result<Rebuild, Error> {
        let host = Host::observe(&self.request, self.caller)?;
        let mut memory = self.memory.clone();
        let mut resources = memory.resources.unwrap_or_default();
        let before = resources.clone();
        resources.add(paths, Path::new(self.workspace.cwd()), host.home().as_deref());
        if resources == before {
            return Ok(Rebuild::Unchanged);
        }
        memory.resources = Some(resources);
        memory.discovered.skills.clear();
        self.open(self.with_pending(), memory, Trigger::Resources)
    }

    fn active(&self) -> &[Tool] {
        self.request.tools.as_deref().unwrap_or(&self.registry)
    }

    fn take_tools(&mut self, tools: Vec<Tool>, trigger: Trigger) -> Result<Rebuild, Error> {
        let active = distinct_tools(self.active());
        let is_same = tools.len() == active.len() && tools.iter().all(|tool| active.contains(&tool));
        if is_same {
            (self.pending_tools, self.pending_registry) = (None, None);
            return Ok(Rebuild::Unchanged);
        }
        let request = Request { tools: Some(tools.clone()), ..self.request.clone() };
        let rebuilt = self.open(request, self.memory.clone(), trigger)?;
        if let Rebuild::NotAllowed(reason) = rebuilt {
            self.pending_tools = Some(tools);
            return Ok(Rebuild::Pending(reason));
        }
        Ok(rebuilt)
    }

    /// Opens a new epoch. If that fails, the old one stays in force.
    fn open(&mut self, request: Request, mut memory: BuildState, trigger: Trigger) -> Result<Rebuild, Error> {
        if let Some(reason) = trigger.reason().filter(|reason| !self.rebuild.contains(reason)) {
            return Ok(Rebuild::NotAllowed(reason));
        }
        let build = self.engine.build_with(&request, self.caller, &mut memory)?;
        if matches!(trigger, Trigger::Reload | Trigger::SkillsReload | Trigger::ProfileSwitch) {
            let World { config, resolved, .. } = World::read(&request, self.caller)?;
            self.rebuild.clone_from(&resolved.profile.rebuild);
            self.handlers = hooks::handlers(&self.engine.hooks, &config.hooks.value);
        }
        self.build = build;
        (self.request, self.memory, self.trigger) = (request, memory, trigger);
        if let Some(registry) = self.pending_registry.take() {
            self.registry = registry;
        }
        self.epoch += 1;
        self.pending_tools = None;
        self.is_new = Once::new();
        Ok(Rebuild::Opened { epoch: self.epoch, trigger })
    }
}

fn not_observed(error: &Error) -> Note {
    let message = format!("the facts of this turn are those of an earlier one: {error}");
    Note::new(Code::Absent, Severity::Warning, message)
}
