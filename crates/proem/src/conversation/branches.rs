//! Forks and spawned conversations: those from which a conversation began, and those that began from it.

use std::sync::Arc;

use proem_core::estimate::Estimate;
use proem_core::limit::{CHILDREN_MAX, NOTICE_TOKENS_MAX};
use proem_core::note::{Code, Note, Severity};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::check::check_update;
use super::conversations::{
    Built, CHANGE_ATTEMPTS_MAX, Conversations, Loaded, LoadedEpoch, NewEpoch, StoredBase, check_id, received,
    turn_request_in, viewer_of,
};
use super::error::ConversationError;
use super::notices::NoticeName;
use super::state::State;
use super::wording::{Wording, packs_of_hooks};
use crate::conversation::store::record::now;
use crate::conversation::store::{Epoch, StoreError};
use crate::engine::within_limits;
use crate::error::Error;
use crate::output::stored_sources::{self, EpochDetails};
use crate::output::turn_shape::OwnedNoteShape;
use crate::request::caller::Caller;
use crate::request::{Request, RequestUpdate};
use crate::sections::build_state::BuildState;
use crate::settings::world::World;

/// The way in which a conversation began from another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum BranchKind {
    /// With the prompt of the other one.
    Fork,
    /// With a prompt of its own.
    Spawn,
}

/// A conversation from which another one began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Parent {
    /// Its id. It may have been removed since.
    pub conversation: String,
    /// The number of its epoch at that time.
    pub epoch: u64,
    /// The way in which the next one began from it.
    pub kind: BranchKind,
}

/// A conversation that began from another one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Child {
    /// Its id. It may have been removed since.
    pub conversation: String,
    /// The way in which it began.
    pub kind: BranchKind,
    /// The SHA-256 of the prefix that it began with, in hexadecimal.
    pub digest: String,
}

/// The relatives of a conversation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Branches {
    /// The conversations from which this one began, the nearest one first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parents: Vec<Parent>,
    /// The conversations that began from this one, the oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<Child>,
}

impl Branches {
    /// Tells whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.parents.is_empty() && self.children.is_empty()
    }

    /// Returns the conversation whose cache serves this one: the one that it was forked from, and so on.
    #[must_use]
    pub fn cache_of(&self) -> Option<&str> {
        let forks = self.parents.iter().take_while(|parent| parent.kind == BranchKind::Fork);
        forks.last().map(|parent| parent.conversation.as_str())
    }
}

/// A conversation that began from another one.
#[derive(Debug)]
pub struct Branched {
    /// Its first epoch.
    pub epoch: Arc<LoadedEpoch>,
    /// The conversation from which it began.
    pub parent: Parent,
    /// True for the first child of its parent with this prompt: send one request with it, and the others once the first
    /// token of the answer has arrived. A fork is served by the cache of its parent, so that this is false.
    pub prime: bool,
    /// Notes for the caller.
    pub notes: Vec<Note>,
}

/// A conversation that began from another one, as it is printed.
#[derive(Debug, Serialize, JsonSchema)]
pub struct BranchShape {
    /// Its id.
    pub conversation: String,
    /// The id of the conversation from which it began.
    pub parent: String,
    /// The number of its epoch.
    pub epoch: u64,
    /// The profile.
    pub profile: String,
    /// The SHA-256 of its prefix, in hexadecimal.
    pub digest: String,
    /// True for the first child with this prompt: send one request with it, wait for its first token, then send the others.
    pub prime: bool,
    /// Notes for the reader.
    pub notes: Vec<OwnedNoteShape>,
}

impl Branched {
    /// Puts it into its printed shape.
    #[must_use]
    pub fn shape(&self) -> BranchShape {
        let head = &self.epoch.head;
        BranchShape {
            conversation: head.conversation.clone(),
            parent: self.parent.conversation.clone(),
            epoch: head.number,
            profile: head.profile.clone(),
            digest: head.digest.clone(),
            prime: self.prime,
            notes: self.notes.iter().map(Into::into).collect(),
        }
    }
}

impl Conversations {
    /// Returns the relatives of a conversation.
    pub fn branches(&self, id: &str) -> Result<Branches, ConversationError> {
        Ok(self.known(id)?.state.branches.clone())
    }

    /// Begins a conversation with the prompt, the tools, the request and the notices of another one. The caller sends the
    /// history. A role is delivered like a notice, before the first prompt. The same call again returns the same fork.
    pub fn fork(
        &self,
        parent: &str,
        id: &str,
        role: Option<&str>,
        caller: Caller,
    ) -> Result<Branched, ConversationError> {
        check_id(id)?;
        check_role(role)?;
        let loaded = self.parent_of(parent, id)?;
        if let Some(known) = self.known_branch(parent, id, BranchKind::Fork)? {
            return self.branched(&known, Vec::new());
        }
        let head = &loaded.epoch.head;
        let stored = self.store.epoch(parent, head.number)?;
        let mut epoch = stored.ok_or_else(|| ConversationError::NoConversation(parent.to_owned()))?;
        id.clone_into(&mut epoch.head.conversation);
        epoch.head.number = 1;
        "fork".clone_into(&mut epoch.head.reason);
        epoch.head.opened_at = now();
        let branches = Branches { parents: lineage(&loaded, BranchKind::Fork), children: Vec::new() };
        let mut state = State { branches, hooked: None, ..loaded.state.clone() };
        if let Some(role) = role.filter(|role| !role.trim().is_empty()) {
            let name = NoticeName { conversation: id, epoch: 1, number: state.notices.next_number() };
            let wording = |wording: &Wording<'_>| name.role(role, wording);
            let notice = self.with_wording(&loaded, caller, wording)?;
            state.notices.push(notice);
        }
        self.begin_branch((parent, id), &state, epoch, Vec::new())
    }

    /// Begins a conversation with a prompt of its own, which all children with the same profile and sources share. The
    /// update names the profile; the directory and the machine are those of the parent unless it gives others. The same call
    /// again returns the same child.
    pub fn spawn(
        &self,
        parent: &str,
        id: &str,
        update: impl Into<RequestUpdate>,
        caller: Caller,
    ) -> Result<Branched, ConversationError> {
        let update = self.with_workspace_kept(received(update))?;
        check_id(id)?;
        check_update(&update, caller)?;
        check_spawn(&update)?;
        let loaded = self.parent_of(parent, id)?;
        if let Some(known) = self.known_branch(parent, id, BranchKind::Spawn)? {
            return self.branched(&known, Vec::new());
        }
        let mut state = State::begin(&placed(update, &loaded.state.request));
        // A prompt with the name of its conversation could not be shared.
        let request = state.build_request(None);
        let (build_state, mut notes) = self.inherited(&loaded, &request, caller)?;
        let built = self.build(&request, caller, build_state, StoredBase::Current)?;
        let opening = NewEpoch { id, number: 1, reason: "spawn", request: &state.said() };
        let epoch = opening.epoch(&built)?;
        let Built { build, .. } = built;
        notes.extend(build.notes().iter().filter(|note| note.severity > Severity::Info).cloned());
        state.settle(&epoch)?;
        state.branches.parents = lineage(&loaded, BranchKind::Spawn);
        self.begin_branch((parent, id), &state, epoch, notes)
    }

    /// Returns the parent of a branch that is to begin.
    fn parent_of(&self, parent: &str, id: &str) -> Result<Arc<Loaded>, ConversationError> {
        let loaded = self.known(parent)?;
        if parent == id {
            return Err(ConversationError::Exists(id.to_owned()));
        }
        let children = &loaded.state.branches.children;
        if children.len() >= CHILDREN_MAX && !children.iter().any(|child| child.conversation == id) {
            return Err(ConversationError::TooManyChildren(parent.to_owned()));
        }
        Ok(loaded)
    }

    /// Returns a branch that an earlier call began; fails if another conversation has its id.
    fn known_branch(
        &self,
        parent: &str,
        id: &str,
        kind: BranchKind,
    ) -> Result<Option<Arc<Loaded>>, ConversationError> {
        let Some(known) = self.load(id)? else { return Ok(None) };
        let nearest = known.state.branches.parents.first();
        let is_same = nearest.is_some_and(|nearest| nearest.conversation == parent && nearest.kind == kind);
        if is_same { Ok(Some(known)) } else { Err(ConversationError::Exists(id.to_owned())) }
    }

    /// Stores a branch, and names it in its parent.
    fn begin_branch(
        &self,
        (parent, id): (&str, &str),
        state: &State,
        epoch: Epoch,
        notes: Vec<Note>,
    ) -> Result<Branched, ConversationError> {
        let kind = state.branches.parents.first().map_or(BranchKind::Fork, |nearest| nearest.kind);
        let begun = match self.commit(id, None, state, Some(epoch))? {
            Some(begun) => begun,
            // Another caller was first.
            None => match self.known_branch(parent, id, kind)? {
                Some(known) => known,
                None => return Err(StoreError::Conflict { current: self.store.current_number(id)? }.into()),
            },
        };
        self.branched(&begun, notes)
    }

    /// Names a branch in its parent, and tells whether it is the first one with its prompt.
    fn branched(&self, child: &Loaded, notes: Vec<Note>) -> Result<Branched, ConversationError> {
        let Some(parent) = child.state.branches.parents.first().cloned() else {
            return Err(ConversationError::NoConversation(child.epoch.head.conversation.clone()));
        };
        let id = &child.epoch.head.conversation;
        let named =
            Child { conversation: id.clone(), kind: parent.kind, digest: child.epoch.head.digest.clone() };
        for _ in 0..CHANGE_ATTEMPTS_MAX {
            // The parent may have been removed: the branch needs nothing of it.
            let Some(loaded) = self.load(&parent.conversation)? else {
                return Ok(Branched { epoch: Arc::clone(&child.epoch), parent, prime: true, notes });
            };
            let mut state = loaded.state.clone();
            let children = &mut state.branches.children;
            if !children.iter().any(|known| known.conversation == *id) {
                children.push(named.clone());
            }
            let first = children
                .iter()
                .find(|known| known.kind == BranchKind::Spawn && known.digest == named.digest)
                .map(|known| known.conversation.clone());
            let is_written = state == loaded.state
                || self.commit(&parent.conversation, Some(&loaded), &state, None)?.is_some();
            if is_written {
                let prime = parent.kind == BranchKind::Spawn && first.as_ref() == Some(id);
                return Ok(Branched { epoch: Arc::clone(&child.epoch), parent, prime, notes });
            }
        }
        let current = self.store.current_number(&parent.conversation)?;
        Err(StoreError::Conflict { current }.into())
    }

    /// Returns what a child takes from the files as its parent read them, by the sections that its profile inherits.
    fn inherited(
        &self,
        parent: &Loaded,
        request: &Request,
        caller: Caller,
    ) -> Result<(BuildState, Vec<Note>), ConversationError> {
        let mut state = BuildState::default();
        let world = World::read(&*self.resolved(request)?, caller)?;
        let profile = &world.resolved.profile;
        if profile.spawn.inherit.is_empty() {
            return Ok((state, Vec::new()));
        }
        // What the parent read is not for every reader.
        let is_visible = viewer_of(&parent.epoch, caller).is_some();
        let head = &parent.epoch.head;
        let stored = self.store.epoch(&head.conversation, head.number)?;
        let text = stored.and_then(|epoch| epoch.sources).filter(|_| is_visible);
        let read = text.as_deref().map(stored_sources::build_state).transpose();
        let mut read = read.map_err(|error| StoreError::Damaged {
            what: format!("epoch {} of `{}`", head.number, head.conversation),
            why: format!("its sources: {error}").into(),
        })?;
        let mut notes = Vec::new();
        for id in &profile.spawn.inherit {
            let is_section = profile.sections.iter().any(|section| section.id == *id);
            // What was announced since is newer than what was read.
            let is_current = !parent.state.notices.has_announced(id);
            let taken =
                is_section && is_current && read.as_mut().is_some_and(|read| take(&mut state, read, id));
            if !taken && (!is_section || is_current) {
                notes.push(not_inherited(id, is_section));
            }
        }
        Ok((state, notes))
    }

    /// Runs `work` with the wording of a conversation.
    fn with_wording<T>(
        &self,
        loaded: &Loaded,
        caller: Caller,
        work: impl FnOnce(&Wording<'_>) -> Result<T, Error>,
    ) -> Result<T, ConversationError> {
        let name = self.name(&loaded.epoch.head.conversation);
        let request = turn_request_in(&loaded.epoch, &loaded.state, name);
        let request = self.resolved(&request)?;
        let viewer = viewer_of(&loaded.epoch, caller).unwrap_or(caller);
        let found = loaded.epoch.details.as_ref().map(EpochDetails::found);
        let done = within_limits(|| {
            let world = World::read(&request, viewer)?;
            let packs = packs_of_hooks(found, &loaded.state.resources, &world);
            work(&Wording::load(&world, &request, &packs)?)
        });
        Ok(done?)
    }
}

/// Moves what was read for a section. False if it was not read, or nothing was found.
fn take(state: &mut BuildState, read: &mut BuildState, id: &str) -> bool {
    let (to, from) = (&mut state.discovered, &mut read.discovered);
    let documents = from.documents.remove_entry(id).map(|(id, found)| to.documents.insert(id, found));
    let skills = from.skills.remove_entry(id).map(|(id, found)| to.skills.insert(id, found));
    let rules = from.rules.remove_entry(id).map(|(id, found)| to.rules.insert(id, found));
    let lines = from.skill_directories.remove_entry(id);
    let lines = lines.map(|(id, found)| to.skill_directories.insert(id, found));
    let instead = from.instead.remove_entry(id).map(|(id, found)| to.instead.insert(id, found));
    documents.is_some() || skills.is_some() || rules.is_some() || lines.is_some() || instead.is_some()
}

/// Returns the line of conversations from which a branch of this one begins.
fn lineage(parent: &Loaded, kind: BranchKind) -> Vec<Parent> {
    let head = &parent.epoch.head;
    let nearest = Parent { conversation: head.conversation.clone(), epoch: head.number, kind };
    std::iter::once(nearest).chain(parent.state.branches.parents.iter().cloned()).take(PARENTS_MAX).collect()
}

/// The conversations that a line names.
const PARENTS_MAX: usize = 256;

/// Gives a child the place of its parent, unless the update gives another one.
fn placed(update: RequestUpdate, parent: &Request) -> RequestUpdate {
    let is_said = |field: &str| update.names(field) || update.removes(field);
    let mut given = update.given().clone();
    if !is_said("cwd") && !is_said("workspace") {
        given.cwd.clone_from(&parent.cwd);
        given.workspace.clone_from(&parent.workspace);
    }
    if !is_said("host") {
        given.host = parent.host.clone();
    }
    if !is_said("project") {
        given.project = parent.project;
    }
    if !is_said("workspace_id") {
        given.workspace_id.clone_from(&parent.workspace_id);
    }
    update.with_given(given)
}

fn check_role(role: Option<&str>) -> Result<(), Error> {
    let tokens = role.map_or(0, |role| Estimate::from_text(role).tokens());
    if tokens <= NOTICE_TOKENS_MAX {
        return Ok(());
    }
    Err(Error::request_with_hint(
        format!("`role` has about {tokens} tokens, and {NOTICE_TOKENS_MAX} are allowed"),
        "put the text into a file of the workspace, and name the file in the role",
    ))
}

/// Refuses fields of one call: a prompt that is shared cannot depend on them.
fn check_spawn(update: &RequestUpdate) -> Result<(), Error> {
    let Request { prompt, messages, recalled, profile, .. } = update.given();
    let given =
        [("prompt", prompt.is_some()), ("messages", messages.is_some()), ("recalled", recalled.is_some())];
    if let Some((field, _)) = given.into_iter().find(|(_, is_given)| *is_given) {
        return Err(Error::request_with_hint(
            format!("a spawned conversation begins without `{field}`"),
            "send it with its first turn",
        ));
    }
    if profile.is_none() {
        return Err(Error::request_with_hint("`profile` is missing", "name the profile of the child"));
    }
    Ok(())
}

fn not_inherited(id: &str, is_section: bool) -> Note {
    let why = if is_section { "the parent read no files for it" } else { "the profile has no such section" };
    let message = format!("the section `{id}` is not inherited: {why}");
    Note::new(Code::LeftOut, Severity::Warning, message)
}
