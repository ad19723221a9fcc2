//! Changes of a conversation: the reasons that open an epoch, what is read again, and changes that wait.

use std::sync::Arc;

use proem_core::cache_loss::CacheLoss;
use proem_core::frozen::Frozen;
use proem_core::note::{Code, Note, Severity};
use proem_core::profile::Reason;

use super::check::{check_surroundings, check_update};
use super::conversations::{
    BaseTemplate, Built, CHANGE_ATTEMPTS_MAX, Conversations, Loaded, LoadedEpoch, NewEpoch, StoredBase,
    has_base, pending_in, policy_of, received, viewer_of,
};
use super::error::ConversationError;
use super::notices::{NoticePrice, NoticeState, Prices, RebuildPrice};
use super::pending::Pending;
use super::state::State;
use super::tool_set::ToolSet;
use crate::build::{Build, PendingField, PromptPolicy};
use crate::conversation::store::{Epoch, StoreError};
use crate::hooks::{self, DiscoverReason, ResourcePaths};
use crate::output::stored_sources::{self, EpochDetails};
use crate::output::turn_shape::EpochChangeShape;
use crate::request::caller::Caller;
use crate::request::{Request, RequestUpdate, Tool};
use crate::sections::build_state::BuildState;
use crate::sections::tools::duplicates;
use crate::settings::world::World;

/// The fact that a change of the directory ends.
const CWD: &str = "prompt:cwd";

/// The outcome of a change.
#[derive(Debug)]
pub struct Changed {
    /// The epoch in force.
    pub epoch: Arc<LoadedEpoch>,
    /// True if this change opened it.
    pub is_opened: bool,
    /// The changes that wait for the next epoch.
    pub pending: Vec<PendingField>,
    /// Notes for the caller.
    pub notes: Vec<Note>,
}

impl Changed {
    /// Puts the outcome into its printed shape.
    #[must_use]
    pub fn shape(&self) -> EpochChangeShape {
        let head = &self.epoch.head;
        EpochChangeShape {
            epoch: head.number,
            opened: self.is_opened,
            reason: head.reason.clone(),
            digest: head.digest.clone(),
            pending: self.pending.clone(),
            notes: self.notes.iter().map(Into::into).collect(),
        }
    }
}

/// The effect that a rebuild would have.
#[derive(Debug)]
pub struct Plan {
    /// The epoch in force.
    pub kept: Arc<LoadedEpoch>,
    /// The prompt that would be built.
    pub next: Frozen,
    /// The differences.
    pub pending: Pending,
    /// `true` if the profile allows it.
    pub is_allowed: bool,
    /// The notice that the next turn would append instead, and its price.
    pub notice: Option<NoticePrice>,
    /// The price of the rebuild.
    pub rebuild: Option<RebuildPrice>,
    /// The version of the stored template that the prompt begins with, if it does.
    pub template_version: Option<u64>,
    /// The tools that would go with it.
    pub tools: Option<Vec<Tool>>,
}

/// A frozen prompt against what would be built now.
pub type Drift = Plan;

/// The files that a rebuild reads again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reading {
    /// None: it uses the texts of the epoch in force.
    Nothing,
    /// Skills; resources were added.
    AddedSkills,
    /// Skills, after hooks have run again.
    Skills,
    /// Everything.
    Everything,
}

/// A reason to open an epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Wish {
    pub(super) reason: Reason,
    /// The reason in an epoch's head, where that is not the policy's word.
    pub(super) word: Option<&'static str>,
    pub(super) reading: Reading,
}

impl Wish {
    pub(super) const fn new(reason: Reason, reading: Reading) -> Self {
        Self { reason, word: None, reading }
    }

    /// Returns the reason as an epoch records it; `profile` is that of the new prompt.
    fn recorded(self, profile: &str) -> String {
        match (self.word, self.reason) {
            (Some(word), _) => word.to_owned(),
            (None, Reason::Profile) => format!("profile_switch:{profile}"),
            (None, reason) => reason.word().to_owned(),
        }
    }
}

/// A conversation after a change, with the prompt if one was built.
pub(super) struct Advanced {
    pub(super) loaded: Arc<Loaded>,
    pub(super) is_opened: bool,
    pub(super) built: Option<Built>,
}

impl Conversations {
    /// Builds the prompt again from the files as they are now. The update is merged into the request first.
    pub fn reload(
        &self,
        id: &str,
        update: impl Into<RequestUpdate>,
        caller: Caller,
    ) -> Result<Changed, ConversationError> {
        let update = self.with_workspace_kept(received(update))?;
        let wish = Wish::new(Reason::Reload, Reading::Everything);
        check_update(&update, caller)?;
        let changed = self.change(id, caller, wish, |loaded| self.merged(loaded, &update, caller))?;
        self.forget_handlers(id);
        Ok(changed)
    }

    /// Searches for skills again; other files stay as they were read.
    pub fn reload_skills(&self, id: &str, caller: Caller) -> Result<Changed, ConversationError> {
        let wish = Wish { word: Some("skills_reload"), ..Wish::new(Reason::Resources, Reading::Skills) };
        let changed = self.change(id, caller, wish, |loaded| Ok(loaded.state.clone()))?;
        self.forget_handlers(id);
        Ok(changed)
    }

    /// Replaces all tools. Active ones stay active while they exist, and new ones become active.
    pub fn set_tool_registry(
        &self,
        id: &str,
        tools: &[Tool],
        caller: Caller,
    ) -> Result<Changed, ConversationError> {
        let notes = duplicates(tools)?;
        let request = Request { tools: Some(tools.to_vec()), ..Request::default() };
        let update = RequestUpdate::from(request);
        let wish = Wish::new(Reason::Tools, Reading::Nothing);
        let mut changed = self.change(id, caller, wish, |loaded| {
            let known = tools_of(loaded, caller)?;
            let state = State { tools: known, ..loaded.state.clone() };
            Ok(state.merge(&update))
        })?;
        changed.notes.extend(notes);
        Ok(changed)
    }

    /// Sets the active tools by name. Unknown names are ignored with a note; the same set in another order is not a
    /// change.
    pub fn set_active_tools(
        &self,
        id: &str,
        names: &[String],
        caller: Caller,
    ) -> Result<Changed, ConversationError> {
        let mut unknown = Vec::new();
        let wish = Wish::new(Reason::Tools, Reading::Nothing);
        let mut changed = self.change(id, caller, wish, |loaded| {
            let known = tools_of(loaded, caller)?.unwrap_or_default();
            let (tools, missing) = known.with_active(names);
            unknown = missing;
            // Tools of the profile stay unsaid while all of them are active.
            let is_own = loaded.state.tools.is_none() && tools == known;
            let tools = if is_own { None } else { Some(tools) };
            Ok(State { tools, ..loaded.state.clone() })
        })?;
        changed.notes.extend((!unknown.is_empty()).then(|| unknown_note(&unknown)));
        Ok(changed)
    }

    /// Adds skills, packs and asset folders after the present ones.
    pub fn add_resources(
        &self,
        id: &str,
        paths: &ResourcePaths,
        caller: Caller,
    ) -> Result<Changed, ConversationError> {
        let wish = Wish::new(Reason::Resources, Reading::AddedSkills);
        self.change(id, caller, wish, |loaded| {
            let resources = loaded.state.resources.clone().with(paths);
            Ok(State { resources, ..loaded.state.clone() })
        })
    }

    /// Goes on with another profile.
    pub fn switch_profile(
        &self,
        id: &str,
        profile: &str,
        caller: Caller,
    ) -> Result<Changed, ConversationError> {
        let request = Request { profile: Some(profile.to_owned()), ..Request::default() };
        let update = RequestUpdate::from(request);
        let wish = Wish::new(Reason::Profile, Reading::Everything);
        let changed = self.change(id, caller, wish, |loaded| self.merged(loaded, &update, caller))?;
        self.forget_handlers(id);
        Ok(changed)
    }

    fn forget_handlers(&self, id: &str) {
        let memory = self.recent.memory(id);
        memory.handlers.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
    }

    /// Changes the state of a conversation for a reason, and opens an epoch if the profile allows that.
    fn change(
        &self,
        id: &str,
        caller: Caller,
        wish: Wish,
        mut next: impl FnMut(&Loaded) -> Result<State, ConversationError>,
    ) -> Result<Changed, ConversationError> {
        let (mut before, mut is_narrowed) = (Vec::new(), false);
        let Advanced { loaded, is_opened, built } = self.locks.hold(id, || {
            for _ in 0..CHANGE_ATTEMPTS_MAX {
                let loaded = self.known(id)?;
                before = loaded.epoch.frozen.notes().to_vec();
                is_narrowed = viewer_of(&loaded.epoch, caller).is_none();
                let state = next(&loaded)?;
                if let Some(done) = self.advance(&loaded, state, wish, caller)? {
                    return Ok(done);
                }
            }
            let current = self.store.current_number(id)?;
            Err(ConversationError::from(StoreError::Conflict { current }))
        })?;
        let pending = loaded.pending();
        let policy = policy_of(&loaded.epoch, caller)?;
        let mut notes: Vec<Note> = pending.iter().map(|field| waiting(field.field, &policy)).collect();
        let built = built.iter().flat_map(|built| built.build.notes());
        let is_new = |note: &&Note| note.severity > Severity::Info && !before.contains(note);
        notes.extend(built.filter(is_new).cloned());
        notes.extend(
            (is_narrowed && is_opened && wish.reading == Reading::Everything).then(without_user_files),
        );
        Ok(Changed { epoch: Arc::clone(&loaded.epoch), is_opened, pending, notes })
    }

    /// Writes a new state, with a new epoch if there is something to rebuild and the policy allows it. `None` if another
    /// writer was first.
    pub(super) fn advance(
        &self,
        loaded: &Arc<Loaded>,
        mut state: State,
        wish: Wish,
        caller: Caller,
    ) -> Result<Option<Advanced>, ConversationError> {
        let policy = policy_of(&loaded.epoch, caller)?;
        // A change of a field needs other files only while it is there.
        let reads = wish.reason == Reason::Reload || wish.reading == Reading::Skills;
        let pending = pending_in(&loaded.epoch, &state);
        let is_wished = reads || pending.iter().any(|field| field.reason == Some(wish.reason.word()));
        if !is_wished || !policy.allows(wish.reason) {
            state.wants_reload |= reads && !policy.allows(wish.reason);
            return self.keep(loaded, &state, None);
        }
        self.advance_anyway(loaded, state, wish, caller)
    }

    /// Writes a new state, with a new epoch if the prompt is another one, whatever the policy says. `None` if another writer
    /// was first.
    pub(super) fn advance_anyway(
        &self,
        loaded: &Arc<Loaded>,
        mut state: State,
        wish: Wish,
        caller: Caller,
    ) -> Result<Option<Advanced>, ConversationError> {
        let built = self.rebuilt(loaded, &mut state, wish, caller)?;
        state.wants_reload = false;
        if is_same(&loaded.epoch, &built.build) {
            state.settled = Some(state.digest());
            state.observed.clone_from(&loaded.state.observed);
            return self.keep(loaded, &state, Some(built));
        }
        let epoch = next_epoch(loaded, &mut state, wish, &built)?;
        let done = self.commit(&loaded.epoch.head.conversation, Some(loaded), &state, Some(epoch))?;
        Ok(done.map(|loaded| Advanced { loaded, is_opened: true, built: Some(built) }))
    }

    /// Writes a new state without an epoch, unless nothing changed.
    fn keep(
        &self,
        loaded: &Arc<Loaded>,
        state: &State,
        built: Option<Built>,
    ) -> Result<Option<Advanced>, ConversationError> {
        let id = &loaded.epoch.head.conversation;
        let loaded = if *state == loaded.state {
            Some(Arc::clone(loaded))
        } else {
            self.commit(id, Some(loaded), state, None)?
        };
        Ok(loaded.map(|loaded| Advanced { loaded, is_opened: false, built }))
    }

    /// Builds the next prompt of a conversation.
    pub(super) fn rebuilt(
        &self,
        loaded: &Loaded,
        state: &mut State,
        wish: Wish,
        caller: Caller,
    ) -> Result<Built, ConversationError> {
        let reading = if state.wants_reload { Reading::Everything } else { reading(loaded, state, wish) };
        let pending = pending_in(&loaded.epoch, state);
        if pending.iter().any(|field| matches!(field.field, "cwd" | "workspace")) {
            state.leave_directory();
        }
        let request = state.build_request(self.name(&loaded.epoch.head.conversation));
        let (mut build_state, base) = self.sources(loaded, reading)?;
        build_state.added = state.resources.clone();
        let viewer = viewer_of(&loaded.epoch, caller);
        let mut built = self.build(&request, viewer.unwrap_or(caller), build_state, base)?;
        // The texts that are not read again keep their view.
        if viewer.is_none() && reading != Reading::Everything {
            built.caller = viewer_of(&loaded.epoch, Caller::User).unwrap_or(caller);
        }
        Ok(built)
    }

    /// Returns what a build starts from.
    fn sources(
        &self,
        loaded: &Loaded,
        reading: Reading,
    ) -> Result<(BuildState, StoredBase), ConversationError> {
        let fresh = || BuildState { reason: DiscoverReason::Reload, ..BuildState::default() };
        let head = &loaded.epoch.head;
        if reading == Reading::Everything {
            return Ok((fresh(), StoredBase::Current));
        }
        let stored = self.store.epoch(&head.conversation, head.number)?;
        // Epochs of the first release did not keep what was read.
        let Some(text) = stored.and_then(|epoch| epoch.sources) else {
            return Ok((fresh(), StoredBase::Current));
        };
        let mut state = stored_sources::build_state(&text).map_err(|error| StoreError::Damaged {
            what: format!("epoch {} of `{}`", head.number, head.conversation),
            why: format!("its sources: {error}").into(),
        })?;
        state.reason = DiscoverReason::Reload;
        forget_announced(loaded, &mut state);
        if matches!(reading, Reading::Skills | Reading::AddedSkills) {
            state.discovered.skills.clear();
            state.discovered.skill_directories.clear();
        }
        if reading == Reading::Skills {
            state.resources = None;
        }
        // A base that callers gave and have withdrawn hid the stored template, which was not read then.
        if has_base(&loaded.epoch.request) {
            return Ok((state, StoredBase::Current));
        }
        let text = loaded.epoch.details.as_ref().and_then(|details| details.template.clone());
        let template = text.map(|text| BaseTemplate { text, version: head.template_version });
        Ok((state, StoredBase::AsRead(template)))
    }

    /// Plans a reload. Nothing is stored.
    pub fn plan_reload(
        &self,
        id: &str,
        update: impl Into<RequestUpdate>,
        caller: Caller,
    ) -> Result<Plan, ConversationError> {
        let update = self.with_workspace_kept(update.into())?;
        let loaded = self.known(id)?;
        let state = loaded.state.merge(&update);
        self.plan(&loaded, state, Wish::new(Reason::Reload, Reading::Everything), caller)
    }

    /// Plans a change of tools. Nothing is stored.
    pub fn plan_tools(&self, id: &str, tools: &[Tool], caller: Caller) -> Result<Plan, ConversationError> {
        let loaded = self.known(id)?;
        let request = Request { tools: Some(tools.to_vec()), ..Request::default() };
        let state = State { tools: tools_of(&loaded, caller)?, ..loaded.state.clone() };
        let state = state.merge(&RequestUpdate::from(request));
        self.plan(&loaded, state, Wish::new(Reason::Tools, Reading::Nothing), caller)
    }

    fn plan(
        &self,
        loaded: &Loaded,
        mut state: State,
        wish: Wish,
        caller: Caller,
    ) -> Result<Plan, ConversationError> {
        if viewer_of(&loaded.epoch, caller).is_none() {
            return Err(ConversationError::OtherView);
        }
        let built = self.rebuilt(loaded, &mut state, wish, caller)?;
        let kept = Arc::clone(&loaded.epoch);
        let pending = differences(&kept, &built.build);
        let is_allowed = policy_of(&kept, caller)?.allows(wish.reason);
        let next = built.build.frozen().clone();
        let template_version = built.template.as_ref().and_then(|template| template.version);
        drop(built);
        let Prices { notice, rebuild } = self.prices(loaded, &state, (&pending, next.prefix()), caller)?;
        let tools = state.said().tools;
        Ok(Plan { kept, next, pending, is_allowed, notice, rebuild, template_version, tools })
    }

    /// Returns the state after a call.
    fn merged(
        &self,
        loaded: &Loaded,
        update: &RequestUpdate,
        caller: Caller,
    ) -> Result<State, ConversationError> {
        let state = loaded.state.merge(update);
        let request = self.resolved(&state.request)?;
        check_surroundings(update, &request, viewer_of(&loaded.epoch, caller).unwrap_or(caller))?;
        Ok(state)
    }

    /// Returns the handlers of hooks in a world.
    pub(super) fn handlers_in(&self, world: &World) -> Arc<[hooks::Handler]> {
        hooks::handlers(&self.engine.hooks, &world.config.hooks.value).into()
    }
}

impl State {
    /// Completes the state for an epoch that is opened: the profile and the working directory that it was built with, and
    /// the facts that are fixed now.
    pub(super) fn settle(&mut self, epoch: &Epoch) -> Result<(), ConversationError> {
        self.request.profile = Some(epoch.head.profile.clone());
        if self.request.workspace.is_none() {
            self.request.cwd = Some(epoch.head.cwd.clone());
        }
        self.settle_facts(epoch)
    }

    /// Completes the state for an epoch that is opened, except for what was said since it was built.
    pub(super) fn settle_facts(&mut self, epoch: &Epoch) -> Result<(), ConversationError> {
        self.settled = None;
        self.wants_reload = false;
        // The prompt that was built has everything that was announced.
        self.notices = NoticeState::default();
        let Some(sources) = &epoch.sources else { return Ok(()) };
        let details = EpochDetails::from_json(sources).map_err(|error| StoreError::Damaged {
            what: format!("epoch {} of `{}`", epoch.head.number, epoch.head.conversation),
            why: format!("its sources: {error}").into(),
        })?;
        for (key, value) in details.fixed {
            if !self.request.variables.contains_key(&key) {
                self.observed.entry(key).or_insert(value);
            }
        }
        Ok(())
    }

    /// Forgets the fixed facts of a working directory that the conversation leaves.
    pub(super) fn leave_directory(&mut self) {
        self.observed.remove(CWD);
    }
}

/// Makes the epoch of a prompt that was built, and completes the state for it.
pub(super) fn next_epoch(
    loaded: &Loaded,
    state: &mut State,
    wish: Wish,
    built: &Built,
) -> Result<Epoch, ConversationError> {
    let head = &loaded.epoch.head;
    let reason = wish.recorded(built.build.frozen().profile());
    let opening =
        NewEpoch { id: &head.conversation, number: head.number + 1, reason: &reason, request: &state.said() };
    let epoch = opening.epoch(built)?;
    state.settle(&epoch)?;
    Ok(epoch)
}

/// Returns the files to read: everything if a pending change needs other files.
fn reading(loaded: &Loaded, state: &State, wish: Wish) -> Reading {
    const OTHER_FILES: [&str; 4] = ["profile", "cwd", "workspace", "project"];
    let pending = pending_in(&loaded.epoch, state);
    let (next, frozen) = (&state.request.host, &loaded.epoch.request.host);
    let has_other_home = next.home != frozen.home || next.config_dir != frozen.config_dir;
    let needs_files = has_other_home || pending.iter().any(|field| OTHER_FILES.contains(&field.field));
    let adds_skills = pending.iter().any(|field| field.field == "resources");
    match wish.reading {
        Reading::Nothing | Reading::AddedSkills | Reading::Skills if needs_files => Reading::Everything,
        Reading::Nothing if adds_skills => Reading::AddedSkills,
        reading => reading,
    }
}

/// Drops what was read of sections of which changes were announced: the next prompt has them as they are now.
fn forget_announced(loaded: &Loaded, state: &mut BuildState) {
    if loaded.state.notices.is_empty() {
        return;
    }
    let sections = loaded.epoch.details.iter().flat_map(|details| &details.snapshot.sections);
    for section in sections {
        state.discovered.documents.remove(&section.id);
        state.discovered.skills.remove(&section.id);
        state.discovered.skill_directories.remove(&section.id);
        state.discovered.rules.remove(&section.id);
        state.discovered.instead.remove(&section.id);
    }
}

/// Returns the tools of a conversation: those that callers gave, else those of its profile.
fn tools_of(loaded: &Loaded, caller: Caller) -> Result<Option<ToolSet>, ConversationError> {
    if let Some(tools) = &loaded.state.tools {
        return Ok(Some(tools.clone()));
    }
    let tools = policy_of(&loaded.epoch, caller)?.tools();
    Ok((!tools.is_empty()).then(|| ToolSet::new(&tools)))
}

fn differences(kept: &LoadedEpoch, build: &Build) -> Pending {
    Pending::between((&kept.frozen, &kept.fingerprint()), (build.frozen(), build.fingerprint()))
}

/// Tells whether a prompt is that of an epoch, with its profile and its directory: turns use those of the epoch.
fn is_same(kept: &LoadedEpoch, build: &Build) -> bool {
    differences(kept, build).is_empty()
        && kept.head.profile == build.frozen().profile()
        && kept.head.cwd == build.policy().cwd
}

impl Plan {
    /// Returns what the cache loses.
    #[must_use]
    pub const fn cost(&self) -> Option<CacheLoss> {
        self.pending.change
    }
}

/// Notes a change that the frozen prompt does not have, with the operation that applies it.
pub(super) fn waiting(field: &str, policy: &PromptPolicy) -> Note {
    let PromptPolicy { profile, .. } = policy;
    let message = format!(
        "the change of `{field}` waits: the profile `{profile}` keeps its prompt until the next epoch"
    );
    let hint = if policy.allows(Reason::Reload) {
        "a reload of the conversation applies it"
    } else if policy.allows(Reason::Compaction) {
        "the next compaction applies it; for another prompt now, begin another conversation"
    } else if policy.allows(Reason::Profile) {
        "a switch of the profile applies it; for another prompt now, begin another conversation"
    } else if !policy.rebuild.is_empty() {
        "the next epoch applies it; for another prompt now, begin another conversation"
    } else {
        "the prompt of this conversation never changes: begin another conversation"
    };
    Note::new(Code::PendingChange, Severity::Info, message).with_hint(hint)
}

/// Notes that a server without the files of the user built a prompt that had them.
fn without_user_files() -> Note {
    let message = "the prompt was built with files of the user, which this server does not read: the new one has none of them";
    Note::new(Code::RootNotAllowed, Severity::Warning, message).with_hint(
        "start the server with `--user-files`, or reload on the machine of that user with `--store`",
    )
}

/// Notes names that no tool has.
fn unknown_note(names: &[String]) -> Note {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    let message = format!("no tool of the registry has the name {}: ignored", names.join(", "));
    Note::new(Code::UnknownName, Severity::Warning, message)
        .with_hint("give all tools first, with their definitions; then choose the active ones by name")
}
