//! One turn: the stored prompt, the facts of the moment, hooks, and the answer.

mod at_once;
mod notes;

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};

use proem_core::fact::Absence;
use proem_core::frozen::Suffix;
use proem_core::note::{Code, Note, Severity};
use proem_core::profile::Reason;
use proem_core::variable::{self, ReadFrom};

use super::change::{Advanced, Reading, Wish};
use super::check::{check_surroundings, check_update};
use super::conversations::{
    Built, CHANGE_ATTEMPTS_MAX, Conversations, Loaded, LoadedEpoch, NewEpoch, StoredBase, TurnMemory,
    check_id, policy_of, received, turn_request_in, viewer_of,
};
use super::error::ConversationError;
use super::notices::{NoticeTurn, Noticed};
use super::state::{HookedPrompt, State};
use super::wording::messages::{self, ConvertedMessages};
use super::wording::packs_of_hooks;
use crate::build::{Build, PendingField, PromptPolicy, Signature};
use crate::conversation::store::StoreError;
use crate::deliver::turn::{Call, CallInput, Turn, call};
use crate::engine::within_limits;
use crate::error::Error;
use crate::hooks::Handler;
use crate::output::stored_sources::EpochDetails;
use crate::request::caller::Caller;
use crate::request::{Request, RequestUpdate};
use crate::sections::build_state::BuildState;
use crate::settings::world::World;

/// The reason of the first epoch.
const STARTUP: &str = "startup";

/// A conversation at the beginning of a turn.
struct Started {
    advanced: Advanced,
    is_first: bool,
    /// The reason for an expected cache miss of the prefix.
    expected_miss: Option<String>,
    /// True if this turn needs another session than the last one.
    is_other_session: bool,
}

impl Started {
    /// A turn before which nothing else happened.
    const fn new(advanced: Advanced, is_first: bool) -> Self {
        Self { advanced, is_first, expected_miss: None, is_other_session: false }
    }
}

impl Conversations {
    /// Answers one turn. The first one builds and stores the prompt, and later ones get the stored prompt. What a later turn
    /// does not give stays as it was; a change that it gives opens a new epoch if the profile allows that, and waits
    /// otherwise.
    pub fn turn(
        &self,
        id: &str,
        update: impl Into<RequestUpdate>,
        caller: Caller,
    ) -> Result<Turn, ConversationError> {
        let update = self.with_workspace_kept(received(update))?;
        check_id(id)?;
        // A turn that is refused changes nothing.
        check_update(&update, caller)?;
        let before = self.delivered_before(id)?;
        let started = self.start_turn(id, &update, caller)?;
        let Started { advanced, is_first, mut expected_miss, is_other_session } = started;
        let memory = self.recent.memory(id);
        let looking = NoticeTurn { update: &update, caller, memory: &memory, before, is_new: is_first };
        let number = advanced.loaded.epoch.head.number;
        let Noticed { advanced, due, notes: found } = self.notices(advanced, &looking)?;
        let Advanced { loaded, is_opened, built } = advanced;
        let epoch = &loaded.epoch;
        if epoch.head.number != number {
            expected_miss = self.delivers_opened(&loaded)?.or(expected_miss);
        }
        let mut notes = notes::of_start(&loaded, &update, caller, is_first || is_opened)?;
        notes.extend(is_other_session.then(notes::other_session));
        notes.extend(found);
        let request = self.turn_request(&loaded, &update);
        let texts: Vec<&str> = due.iter().map(|notice| notice.text.as_str()).collect();
        let (world, fresh) = match built {
            Some(Built { world, build, state, .. }) => {
                remember(&memory, state.turn_facts);
                (Some(world), Some(build))
            }
            None => (None, None),
        };
        let viewer = viewer_of(epoch, caller).unwrap_or(caller);
        let world = TurnWorld { conversations: self, read: world, request: &request, caller: viewer };
        let (suffix, mut world) = self.suffix(epoch, (world, fresh), &memory, &mut notes);
        let handlers = self.handlers(&mut world, &memory);
        let delivered = converted(&loaded, &mut world)?;
        notes.extend(delivered.notes);
        let build = Build::new(epoch.frozen.as_ref().clone(), suffix, &request, policy_of(epoch, caller)?);
        let input = CallInput {
            build: &build,
            request: delivered.request.as_ref().unwrap_or(&request),
            handlers: &handlers,
            withheld: &delivered.withheld,
            continued: continued(&loaded, &request),
            notices: &texts,
            cache_of: loaded.state.branches.cache_of(),
            caller: self.engine.reader(caller),
        };
        let made = call(&input, caller)?;
        self.engine.report(&made.failures);
        self.remember_hooked(&loaded, &request, &made)?;
        notes.extend(made.notes);
        Ok(Turn {
            conversation: epoch.head.conversation.clone(),
            epoch: epoch.head.number,
            reason: epoch.head.reason.clone(),
            is_reused: !is_first && !is_opened,
            frozen: Arc::clone(&epoch.frozen),
            suffix: build.suffix().clone(),
            fingerprint: epoch.head.fingerprint.clone(),
            signature: signature(&loaded, &request),
            system_prompt: made.system_prompt,
            messages: made.messages,
            history: made.history,
            tools: made.tools,
            payload: made.payload,
            pending: loaded.pending(),
            changes: made.changes,
            expected_miss,
            notices: due,
            notes,
        })
    }

    /// Opens the first epoch of a conversation, unless it has one.
    pub fn begin(
        &self,
        id: &str,
        update: impl Into<RequestUpdate>,
        caller: Caller,
    ) -> Result<Arc<LoadedEpoch>, ConversationError> {
        let update = self.with_workspace_kept(received(update))?;
        check_id(id)?;
        self.locks.hold(id, || {
            for _ in 0..CHANGE_ATTEMPTS_MAX {
                if let Some(known) = self.load(id)? {
                    return Ok(Arc::clone(&known.epoch));
                }
                if let Some(begun) = self.first_epoch(id, &update, caller, Delivered::No)? {
                    return Ok(Arc::clone(&begun.loaded.epoch));
                }
            }
            self.conflict(id)
        })
    }

    fn conflict<T>(&self, id: &str) -> Result<T, ConversationError> {
        Err(StoreError::Conflict { current: self.store.current_number(id)? }.into())
    }

    /// Records that a turn delivers the prompt of an epoch that it opened itself, and returns the reason for the miss.
    fn delivers_opened(&self, opened: &Arc<Loaded>) -> Result<Option<String>, ConversationError> {
        let head = &opened.epoch.head;
        if opened.state.is_delivered(&head.digest) {
            return Ok(None);
        }
        let state = opened.state.after_turn(&head.digest);
        let written = self.commit(&head.conversation, Some(opened), &state, None)?;
        // Another writer was first, and reports it.
        Ok(written.map(|_| head.reason.clone()))
    }

    /// Merges a turn into the state, and opens an epoch where that is due.
    fn start_turn(
        &self,
        id: &str,
        update: &RequestUpdate,
        caller: Caller,
    ) -> Result<Started, ConversationError> {
        // Most turns change nothing, and need no lock.
        if let Some(loaded) = self.load(id)?
            && loaded.state.merge(update) == loaded.state
            && loaded.state.is_delivered(&loaded.epoch.head.digest)
            && wish_of(&loaded.pending(), update, &policy_of(&loaded.epoch, caller)?).is_none()
        {
            let advanced = Advanced { loaded, is_opened: false, built: None };
            return Ok(Started::new(advanced, false));
        }
        self.locks.hold(id, || {
            for _ in 0..CHANGE_ATTEMPTS_MAX {
                let started = match self.load(id)? {
                    None => self
                        .first_epoch(id, update, caller, Delivered::Yes)?
                        .map(|advanced| Started::new(advanced, true)),
                    Some(loaded) => self.later_turn(&loaded, update, caller)?,
                };
                if let Some(started) = started {
                    return Ok(started);
                }
            }
            self.conflict(id)
        })
    }

    /// Builds and stores the first prompt. `None` if another writer was first.
    fn first_epoch(
        &self,
        id: &str,
        update: &RequestUpdate,
        caller: Caller,
        delivered: Delivered,
    ) -> Result<Option<Advanced>, ConversationError> {
        let mut state = State::begin(update);
        let mut request = state.build_request(self.name(id));
        // The first words of the user and recalled text belong to this call; the build uses them.
        let given = update.given();
        request.messages.clone_from(&given.messages);
        request.prompt.clone_from(&given.prompt);
        request.recalled.clone_from(&given.recalled);
        let built = self.build(&request, caller, BuildState::default(), StoredBase::Current)?;
        let opening = NewEpoch { id, number: 1, reason: STARTUP, request: &state.said() };
        let epoch = opening.epoch(&built)?;
        state.settle(&epoch)?;
        if delivered == Delivered::Yes {
            state = state.after_turn(&epoch.head.digest);
        }
        let done = self.commit(id, None, &state, Some(epoch))?;
        Ok(done.map(|loaded| Advanced { loaded, is_opened: true, built: Some(built) }))
    }

    /// Merges a later turn. `None` if another writer was first.
    fn later_turn(
        &self,
        loaded: &Arc<Loaded>,
        update: &RequestUpdate,
        caller: Caller,
    ) -> Result<Option<Started>, ConversationError> {
        let state = loaded.state.merge(update);
        let viewer = viewer_of(&loaded.epoch, caller).unwrap_or(caller);
        check_surroundings(update, &*self.resolved(&state.request)?, viewer)?;
        let pending = super::conversations::pending_in(&loaded.epoch, &state);
        let wish = wish_of(&pending, update, &policy_of(&loaded.epoch, caller)?);
        let advanced = match wish {
            Some(wish) => self.advance(loaded, state, wish, caller)?,
            None if state == loaded.state => {
                Some(Advanced { loaded: Arc::clone(loaded), is_opened: false, built: None })
            }
            None => {
                let id = &loaded.epoch.head.conversation;
                let done = self.commit(id, Some(loaded), &state, None)?;
                done.map(|loaded| Advanced { loaded, is_opened: false, built: None })
            }
        };
        let Some(advanced) = advanced else { return Ok(None) };
        let head = &advanced.loaded.epoch.head;
        let before = &advanced.loaded.state;
        if before.is_delivered(&head.digest) {
            return Ok(Some(Started::new(advanced, false)));
        }
        // The prefix differs from that of the turn before, so one miss is expected; or the session does. Only one caller
        // reports it.
        let is_other_prefix = before.delivered.as_ref().is_some_and(|digest| *digest != head.digest);
        let expected_miss = is_other_prefix.then(|| head.reason.clone());
        let state = before.after_turn(&head.digest);
        let is_other_session = before.session.is_some() && before.session != state.session;
        let done = self.commit(&head.conversation, Some(&advanced.loaded), &state, None)?;
        let started = match done {
            Some(loaded) => Started {
                advanced: Advanced { loaded, ..advanced },
                is_first: false,
                expected_miss,
                is_other_session,
            },
            // Another writer was first. If this call opened the epoch, its answer must still say so.
            None if advanced.is_opened => Started::new(advanced, false),
            None => return Ok(None),
        };
        Ok(Some(started))
    }

    /// Returns the request of a turn: pending changes do not count, and the fields of this call do.
    pub(super) fn turn_request(&self, loaded: &Loaded, update: &RequestUpdate) -> Request {
        let name = self.name(&loaded.epoch.head.conversation);
        let given = update.given().clone();
        Request {
            messages: given.messages,
            prompt: given.prompt,
            images: given.images,
            recalled: given.recalled,
            per_prompt: given.per_prompt,
            touched: given.touched,
            provider: given.provider,
            ttl: given.ttl,
            cached_content: given.cached_content,
            ..turn_request_in(&loaded.epoch, &loaded.state, name)
        }
    }

    /// Returns the part for this turn: that of a build that was just made, or one that is observed now. If it cannot be
    /// observed, the boundary and the last values stay.
    fn suffix<'r>(
        &'r self,
        epoch: &LoadedEpoch,
        (mut world, fresh): (TurnWorld<'r>, Option<Build>),
        memory: &TurnMemory,
        notes: &mut Vec<Note>,
    ) -> (Suffix, TurnWorld<'r>) {
        if !epoch.head.has_turn {
            return (Suffix::default(), world);
        }
        let observed = match fresh {
            Some(build) => Ok(build.into_parts().1),
            None => self.observed(epoch, &mut world, memory, notes),
        };
        let mut last = memory.suffix.lock().unwrap_or_else(PoisonError::into_inner);
        let suffix = match observed {
            Ok(suffix) => suffix,
            Err(error) => {
                notes.push(notes::not_observed(&error));
                last.clone().unwrap_or_else(|| Suffix::from_boundary(epoch.boundary()))
            }
        };
        *last = Some(suffix.clone());
        (suffix, world)
    }

    /// Observes the part for one turn. Values that git did not give in time are those of an earlier turn.
    fn observed(
        &self,
        epoch: &LoadedEpoch,
        world: &mut TurnWorld<'_>,
        memory: &TurnMemory,
        notes: &mut Vec<Note>,
    ) -> Result<Suffix, Error> {
        let request = world.request.clone();
        let observe = |request: &Request, world: &World| -> Result<_, Error> {
            // The templates of a turn may lie in the folders that the frozen part was built with.
            let mut state = BuildState {
                resources: epoch.details.as_ref().map(EpochDetails::found),
                added: epoch.details.as_ref().map(|details| details.resources.clone()).unwrap_or_default(),
                ..BuildState::default()
            };
            let build = self.engine.observe_in(world, request, &mut state)?;
            Ok((build, state.turn_facts))
        };
        let (build, facts) = within_limits(|| {
            let world = world.read()?;
            let (build, facts) = observe(&request, world)?;
            let known = memory.facts.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let lost = known.into_iter().filter(|(key, _)| facts.get(key).is_some_and(is_git_failure));
            let lost: BTreeMap<String, Option<String>> =
                lost.map(|(key, value)| (key, Some(value))).collect();
            if lost.is_empty() {
                return Ok((build, facts));
            }
            let mut again = request.clone();
            again.variables.extend(lost);
            // The notes about git belong to this turn, whatever it shows.
            notes.extend(build.notes().iter().filter(|note| note.code == Code::GitFailed).cloned());
            let (repaired, _) = observe(&again, world)?;
            Ok((repaired, facts))
        })?;
        remember(memory, facts);
        let (frozen, suffix) = build.into_parts();
        notes.extend(frozen.notes().iter().filter(|note| note.severity > Severity::Info).cloned());
        Ok(suffix)
    }

    /// Returns the handlers of hooks: those of the last build or first turn in this process.
    fn handlers(&self, world: &mut TurnWorld<'_>, memory: &TurnMemory) -> Arc<[Handler]> {
        let known = memory.handlers.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(known) = known {
            return known;
        }
        let handlers = match world.read() {
            Ok(world) => self.handlers_in(world),
            // The settings cannot be read: hooks of the program still run.
            Err(_) => crate::hooks::handlers(&self.engine.hooks, &[]).into(),
        };
        *memory.handlers.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&handlers));
        handlers
    }

    /// Keeps the system prompt that hooks made, for the calls that continue this prompt of the user.
    fn remember_hooked(
        &self,
        loaded: &Loaded,
        request: &Request,
        made: &Call,
    ) -> Result<(), ConversationError> {
        let frozen = &loaded.epoch.frozen;
        let is_changed = !made.changes.is_empty();
        let hooked = is_changed.then(|| HookedPrompt::new(frozen, &made.system_prompt));
        if hooked == loaded.state.hooked || (request.prompt.is_none() && !is_changed) {
            return Ok(());
        }
        let id = &loaded.epoch.head.conversation;
        self.locks.hold(id, || {
            for _ in 0..CHANGE_ATTEMPTS_MAX {
                // Another turn may have removed the conversation, or opened an epoch.
                let Some(now) = self.load(id)?.filter(|now| now.epoch.head == loaded.epoch.head) else {
                    return Ok(());
                };
                let state = State { hooked: hooked.clone(), ..now.state.clone() };
                if state == now.state || self.commit(id, Some(&now), &state, None)?.is_some() {
                    return Ok(());
                }
            }
            self.conflict(id)
        })
    }
}

/// Converts messages of neutral roles.
fn converted(loaded: &Loaded, world: &mut TurnWorld<'_>) -> Result<ConvertedMessages, ConversationError> {
    let request = world.request;
    if !messages::are_in(request) {
        return Ok(ConvertedMessages::default());
    }
    let found = loaded.epoch.details.as_ref().map(EpochDetails::found);
    Ok(within_limits(|| {
        let world = world.read()?;
        let packs = packs_of_hooks(found, &loaded.state.resources, world);
        messages::convert(world, request, &packs)
    })?)
}

/// Returns the system prompt that hooks made for the prompt of the user that a turn continues.
fn continued(loaded: &Loaded, request: &Request) -> Option<String> {
    let hooked = loaded.state.hooked.as_ref().filter(|_| request.prompt.is_none())?;
    hooked.text(&loaded.epoch.frozen)
}

/// Returns the signature of the running session: what is delivered, with the backend and the servers of the request.
fn signature(loaded: &Loaded, request: &Request) -> Signature {
    let Request { backend, mcp_servers, .. } = loaded.state.request.clone();
    let request = Request { backend, mcp_servers, ..request.clone() };
    Signature::new(&request, &loaded.epoch.frozen, &loaded.epoch.head.cwd)
}

/// Tells whether a first epoch answers a turn.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Delivered {
    Yes,
    No,
}

/// The surroundings of a turn, read at most once.
struct TurnWorld<'r> {
    conversations: &'r Conversations,
    read: Option<World>,
    request: &'r Request,
    caller: Caller,
}

impl TurnWorld<'_> {
    fn read(&mut self) -> Result<&World, Error> {
        let world = if let Some(world) = self.read.take() {
            world
        } else {
            let request = self.conversations.resolved(self.request);
            let request = request.map_err(|error| match error {
                ConversationError::Build(error) => error,
                other => Error::request(other.to_string()),
            })?;
            World::read(&request, self.caller)?
        };
        Ok(self.read.insert(world))
    }
}

/// Returns the reason to open an epoch in a turn: the first change that this turn gives and that the policy follows.
fn wish_of(pending: &[PendingField], update: &RequestUpdate, policy: &PromptPolicy) -> Option<Wish> {
    const WISHES: [(&str, Wish); 4] = [
        ("profile", Wish::new(Reason::Profile, Reading::Everything)),
        ("cwd", Wish::new(Reason::Cwd, Reading::Everything)),
        ("workspace", Wish::new(Reason::Cwd, Reading::Everything)),
        ("tools", Wish::new(Reason::Tools, Reading::Nothing)),
    ];
    let is_given = |field: &str| update.names(field) || update.removes(field);
    let is_pending = |field: &str| pending.iter().any(|pending| pending.field == field);
    WISHES
        .into_iter()
        .find(|(field, wish)| is_given(field) && is_pending(field) && policy.allows(wish.reason))
        .map(|(_, wish)| wish)
}

/// Keeps the values that git gave, for a turn in which it fails.
fn remember(memory: &TurnMemory, facts: BTreeMap<String, Result<String, Absence>>) {
    let mut known = memory.facts.lock().unwrap_or_else(PoisonError::into_inner);
    let of_git = facts.into_iter().filter(|(key, _)| is_of_git(key));
    known.extend(of_git.filter_map(|(key, value)| Some((key, value.ok()?))));
}

fn is_of_git(key: &str) -> bool {
    variable::find(key).is_some_and(|variable| variable.read_from() == ReadFrom::Git)
}

fn is_git_failure(value: &Result<String, Absence>) -> bool {
    matches!(value, Err(Absence::TimedOut | Absence::GitFailed(_)))
}
