//! Notices: messages that are appended to a conversation and say what changed since its prompt was frozen. The prefix stays,
//! so that the cache of the provider stays, too.
//!
//! A notice and the snapshot that it leads to are written in one change of the state, which fails if another writer was
//! first: of two turns at once, one stores the notice, and both deliver its bytes.

mod changes;
mod edit;
mod history;
mod observe;
mod price;
mod render;
mod state;

use std::collections::BTreeMap;
use std::sync::PoisonError;

use proem_core::limit::{NOTICES_BYTES_MAX, NOTICES_MAX};
use proem_core::note::{Code, Note, Severity};
use proem_core::profile::Reason;

pub(crate) use observe::Watch;
pub(super) use price::Prices;
pub use price::{CheaperAfter, NoticePrice, RebuildPrice};
pub(super) use render::NoticeName;
pub(crate) use state::NoticeState;

use self::changes::{Change, Differences};
use self::observe::{Observation, Observed};
use super::change::{Advanced, Reading, Wish};
use super::conversations::{CHANGE_ATTEMPTS_MAX, Conversations, Loaded, TurnMemory, viewer_of};
use super::error::ConversationError;
use super::state::State;
use super::wording::{Wording, packs_of_hooks};
use crate::conversation::store::StoreError;
use crate::deliver::{Notice, NoticePlace};
use crate::engine::within_limits;
use crate::output::stored_sources::{self, EpochDetails};
use crate::request::caller::Caller;
use crate::request::{Request, RequestUpdate};
use crate::settings::models::Models;

/// The reason of an epoch that a changed source opened.
const THAW: Wish = Wish { word: Some("thaw"), ..Wish::new(Reason::Reload, Reading::Everything) };

/// The notices of an epoch that were delivered before a call.
#[derive(Debug, Clone, Copy)]
pub(super) struct DeliveredBefore {
    epoch: u64,
    number: u64,
}

/// One turn that may have something to announce.
pub(super) struct NoticeTurn<'t> {
    pub(super) update: &'t RequestUpdate,
    pub(super) caller: Caller,
    pub(super) memory: &'t TurnMemory,
    pub(super) before: Option<DeliveredBefore>,
    /// True if the prompt was built in this turn from the files as they are.
    pub(super) is_new: bool,
}

/// The result of looking for changes.
pub(super) struct Noticed {
    pub(super) advanced: Advanced,
    /// The notices that this turn delivers, in order.
    pub(super) due: Vec<Notice>,
    pub(super) notes: Vec<Note>,
}

impl Conversations {
    /// Returns the notices that were delivered before a call: what another call delivers meanwhile is still due in this one.
    pub(super) fn delivered_before(&self, id: &str) -> Result<Option<DeliveredBefore>, ConversationError> {
        let loaded = self.load(id)?;
        Ok(loaded.map(|loaded| DeliveredBefore {
            epoch: loaded.epoch.head.number,
            number: loaded.state.notices.delivered,
        }))
    }

    /// Looks for changed sources, stores a notice of them, and returns the notices that this turn delivers.
    pub(super) fn notices(
        &self,
        mut advanced: Advanced,
        turn: &NoticeTurn<'_>,
    ) -> Result<Noticed, ConversationError> {
        let id = advanced.loaded.epoch.head.conversation.clone();
        let mut is_new = turn.is_new;
        for _ in 0..CHANGE_ATTEMPTS_MAX {
            let loaded = &advanced.loaded;
            let request = self.turn_request(loaded, turn.update);
            let place = place(&request, turn.caller)?;
            let observed = self.observed_changes(loaded, &request, turn, (place, is_new))?;
            let Observed { mut observation, differences, mut notes } = observed;
            if differences.thaws {
                match self.thawed(&advanced, turn)? {
                    Some(thawed) => (advanced, is_new) = (thawed, true),
                    None => advanced.loaded = self.known(&id)?,
                }
                continue;
            }
            let mut state = loaded.state.clone();
            if !differences.is_empty() {
                match self.announce(loaded, &mut state, (&request, turn.caller), &differences) {
                    Ok(held) => notes.extend(held),
                    // A pack that cannot be read, for example: the conversation goes on, and the next turn tries again.
                    Err(ConversationError::Build(error)) => {
                        observation = None;
                        notes.push(not_looked_at(&error.to_string()));
                    }
                    Err(error) => return Err(error),
                }
            }
            let number = turn.before.filter(|before| before.epoch == loaded.epoch.head.number);
            let number = number.map_or(0, |before| before.number);
            let messages = turn.update.given().messages.as_deref();
            let (due, found) = history::due(&state.notices.list, messages, number);
            let due: Vec<Notice> =
                if place == NoticePlace::Nowhere { Vec::new() } else { due.into_iter().cloned().collect() };
            notes.extend(found);
            if let Some(last) = due.last() {
                state.notices.delivered = state.notices.delivered.max(last.number);
            }
            if state != loaded.state {
                let Some(written) = self.commit(&id, Some(loaded), &state, None)? else {
                    advanced.loaded = self.known(&id)?;
                    continue;
                };
                advanced.loaded = written;
            }
            if let Some(observation) = observation {
                remember_sources(&advanced.loaded, turn.memory, observation, &notes);
            }
            return Ok(Noticed { advanced, due, notes });
        }
        Err(StoreError::Conflict { current: self.store.current_number(&id)? }.into())
    }

    /// Opens an epoch because a source changed whose section says so. `None` if another writer was first.
    fn thawed(
        &self,
        advanced: &Advanced,
        turn: &NoticeTurn<'_>,
    ) -> Result<Option<Advanced>, ConversationError> {
        let loaded = &advanced.loaded;
        let id = &loaded.epoch.head.conversation;
        self.locks.hold(id, || self.advance_anyway(loaded, loaded.state.clone(), THAW, turn.caller))
    }

    /// Adds a notice of changes to a state, and returns notes about changes that are not announced.
    fn announce(
        &self,
        loaded: &Loaded,
        state: &mut State,
        (request, caller): (&Request, Caller),
        differences: &Differences,
    ) -> Result<Vec<Note>, ConversationError> {
        for section in &differences.held {
            state.notices.hold(section);
        }
        let changes = &differences.changes;
        if changes.is_empty() {
            return Ok(Vec::new());
        }
        let is_full = state.notices.list.len() >= NOTICES_MAX || state.notices.bytes() >= NOTICES_BYTES_MAX;
        if is_full {
            return Ok(vec![too_many()]);
        }
        let notice = self.rendered(loaded, state, (request, caller), changes)?;
        state.notices.list.push(notice);
        for change in changes {
            state.notices.announce(change);
        }
        Ok(Vec::new())
    }

    /// Writes the text of a notice.
    fn rendered(
        &self,
        loaded: &Loaded,
        state: &State,
        (request, caller): (&Request, Caller),
        changes: &[Change],
    ) -> Result<Notice, ConversationError> {
        let head = &loaded.epoch.head;
        let is_of_prompt = |change: &Change| {
            change.before.as_ref().is_some_and(|before| before.text.is_none()) && change.item.text.is_some()
        };
        let earlier =
            if changes.iter().any(is_of_prompt) { self.announced_texts(loaded)? } else { BTreeMap::new() };
        let name = NoticeName {
            conversation: &head.conversation,
            epoch: head.number,
            number: state.notices.next_number(),
        };
        let request = self.resolved(request)?;
        let viewer = viewer_of(&loaded.epoch, caller).unwrap_or(caller);
        let found = loaded.epoch.details.as_ref().map(EpochDetails::found);
        let notice = within_limits(|| {
            let world = crate::settings::world::World::read(&request, viewer)?;
            let packs = packs_of_hooks(found, &loaded.state.resources, &world);
            let wording = Wording::load(&world, &request, &packs)?;
            render::notice(name, changes, &earlier, world.resolved.profile.notices, &wording)
        });
        Ok(notice?)
    }

    fn announced_texts(&self, loaded: &Loaded) -> Result<BTreeMap<String, String>, ConversationError> {
        let head = &loaded.epoch.head;
        let stored = self.store.epoch(&head.conversation, head.number)?;
        let Some(text) = stored.and_then(|epoch| epoch.sources) else { return Ok(BTreeMap::new()) };
        let texts = stored_sources::announced_texts(&text).map_err(|error| StoreError::Damaged {
            what: format!("epoch {} of `{}`", head.number, head.conversation),
            why: format!("its sources: {error}").into(),
        })?;
        Ok(texts)
    }
}

/// Keeps the sources of a conversation as they were seen and announced.
fn remember_sources(loaded: &Loaded, memory: &TurnMemory, observation: Observation, notes: &[Note]) {
    // What a later turn repeats while nothing changes: sources that cannot be read, and those that are held.
    let lasts = |note: &&Note| matches!(note.code, Code::Unreadable | Code::ChangeHeld);
    let kept = notes.iter().filter(lasts).cloned().collect();
    let watch = observation.watch(loaded, kept);
    *memory.watch.lock().unwrap_or_else(PoisonError::into_inner) = watch;
}

impl Differences {
    fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.held.is_empty()
    }
}

/// Returns where a notice can stand in a turn.
fn place(request: &Request, caller: Caller) -> Result<NoticePlace, ConversationError> {
    let place = NoticePlace::of_words(request);
    if place != NoticePlace::Nowhere || request.provider.is_none() || request.messages.is_none() {
        return Ok(place);
    }
    // Behind the result of a tool, where the model takes messages of the system.
    Ok(NoticePlace::of_call(request, &Models::load(request, caller)?)?)
}

fn too_many() -> Note {
    let message =
        format!("the changes are not announced: this epoch has {NOTICES_MAX} notices, or very long ones");
    Note::new(Code::ChangeHeld, Severity::Warning, message)
        .with_hint("a reload or a compaction of the conversation takes the sources as they are then")
}

/// Returns a note that the sources of a prompt could not be looked at.
fn not_looked_at(why: &str) -> Note {
    let message = format!("changes of the sources of this prompt are not looked for: {why}");
    Note::new(Code::Unreadable, Severity::Info, message)
}

/// Tells whether an epoch has sections whose changes matter.
pub(super) fn watches(loaded: &Loaded) -> bool {
    loaded.epoch.details.as_ref().is_some_and(|details| !details.snapshot.is_empty())
}

/// Tells whether a policy or a snapshot opens an epoch for a changed source.
pub(super) fn thaws(loaded: &Loaded) -> bool {
    loaded.epoch.details.as_ref().is_some_and(|details| details.snapshot.thaws())
}
