//! Compaction in two steps: a summarising call, then a new epoch.

use std::sync::Arc;

use proem_core::carrier::Carrier;
use proem_core::frozen::{Body, Suffix};
use proem_core::note::{Code, Note, Severity};
use proem_core::profile::{Compaction as Way, Reason};
use serde_json::value::RawValue;

use super::change::{Reading, Wish, next_epoch};
use super::check::{check_surroundings, check_update};
use super::conversations::{
    CHANGE_ATTEMPTS_MAX, Conversations, Loaded, LoadedEpoch, check_id, policy_of, received, viewer_of,
};
use super::error::ConversationError;
use super::state::State;
use super::wording::messages::{self, ConvertedMessages};
use super::wording::{compaction_instructions, packs_of_hooks};
use crate::build::Build;
use crate::conversation::store::record::now;
use crate::conversation::store::{CompactionRecord, Epoch, StoreError};
use crate::deliver::RawMessage;
use crate::deliver::turn::{CallInput, call};
use crate::engine::within_limits;
use crate::error::Error;
use crate::output::stored_sources::EpochDetails;
use crate::output::turn_shape::CompactionShape;
use crate::request::caller::Caller;
use crate::request::update::without_call;
use crate::request::{Request, RequestUpdate};
use crate::settings::world::World;

/// The longest that a compaction may take, in milliseconds.
pub const TIME_OF_COMPACTION: i64 = 15 * 60 * 1000;

/// A compaction that was begun.
#[derive(Debug)]
pub struct StartedCompaction {
    /// Its token.
    pub token: String,
    /// The policy of the summarising call.
    pub way: Way,
    /// The epoch that it starts from.
    pub from: u64,
    /// The prompt of the summarising call.
    pub body: Body,
    /// The instructions to the model. With [`Way::Append`] it stands at the end of the system prompt already; with
    /// [`Way::Aligned`] it is the last message of the user.
    pub instructions: String,
    /// The messages of the summarising call.
    pub messages: Vec<RawMessage>,
    /// The body of the summarising request, if the update names a provider.
    pub payload: Option<Box<RawValue>>,
    /// Notes about the payload.
    pub notes: Vec<Note>,
}

impl StartedCompaction {
    /// Puts the summarising call into its printed shape.
    #[must_use]
    pub fn shape(&self) -> CompactionShape {
        let carriers = Carrier::ALL.into_iter();
        CompactionShape {
            token: self.token.clone(),
            policy: match self.way {
                Way::Append => "append",
                Way::Aligned => "aligned",
            },
            carriers: carriers.filter_map(|carrier| Some((carrier.word(), self.text(carrier)?))).collect(),
            instructions: self.instructions.clone(),
            epoch: self.from,
            messages: self.messages.clone(),
            payload: self.payload.clone(),
            notes: self.notes.iter().map(Into::into).collect(),
        }
    }

    /// The text of a carrier in the summarising call.
    #[must_use]
    pub fn text(&self, carrier: Carrier) -> Option<String> {
        let text = self.body.text(carrier).map(str::to_owned);
        match (self.way, carrier) {
            (Way::Append, Carrier::System) => {
                Some(format!("{}\n\n{}", text.unwrap_or_default(), self.instructions))
            }
            _ => text,
        }
    }
}

const WISH: Wish = Wish::new(Reason::Compaction, Reading::Everything);

impl Conversations {
    /// Begins a compaction. The epoch in force stays in force until the compaction is committed; the update is merged
    /// into the request of the prompt behind it. A `provider` in it adds the body of the summarising request.
    pub fn begin_compaction(
        &self,
        id: &str,
        update: impl Into<RequestUpdate>,
        caller: Caller,
    ) -> Result<StartedCompaction, ConversationError> {
        let update = self.with_workspace_kept(received(update))?;
        check_update(&update, caller)?;
        let loaded = self.known(id)?;
        let policy = policy_of(&loaded.epoch, caller)?;
        if !policy.allows(Reason::Compaction) && policy.compaction == Way::Append {
            return Err(ConversationError::NotAllowed { reason: "compaction", profile: policy.profile });
        }
        let mut state = loaded.state.merge(&update);
        let viewer = viewer_of(&loaded.epoch, caller).unwrap_or(caller);
        check_surroundings(&update, &*self.resolved(&state.request)?, viewer)?;
        let (rebuilt, build, instructions, sent) = match policy.compaction {
            Way::Aligned => {
                let request = state.build_request(self.name(id));
                let world = World::read(&*self.resolved(&request)?, viewer)?;
                let build = Build::new(
                    loaded.epoch.frozen.as_ref().clone(),
                    Suffix::default(),
                    &request,
                    policy.clone(),
                );
                let sent = converted(&loaded, &update, (&world, &request))?;
                (None, build, compaction_instructions(&world, &request)?, sent)
            }
            Way::Append => {
                let built = self.rebuilt(&loaded, &mut state, WISH, caller)?;
                let request = state.build_request(self.name(id));
                let instructions = compaction_instructions(&built.world, &request)?;
                let epoch = next_epoch(&loaded, &mut state, WISH, &built)?;
                let appended = Suffix::from_system_text(&format!("\n\n{instructions}"));
                let sent = converted(&loaded, &update, (&built.world, &request))?;
                (Some(epoch), built.build.with_suffix(appended), instructions, sent)
            }
        };
        let call = (&build, policy.compaction, instructions);
        let mut started = self.summarise(&loaded, (&update, sent), call, caller)?;
        started.notes.extend(of_turns_alone(&update));
        self.store.begin_compaction(&CompactionRecord {
            token: started.token.clone(),
            conversation: id.to_owned(),
            from: loaded.epoch.head.number,
            rebuilt,
            request: update.to_remembered_json()?,
            expires_at: now() + TIME_OF_COMPACTION,
            opened: None,
        })?;
        Ok(started)
    }

    /// Makes the summarising call.
    fn summarise(
        &self,
        loaded: &Loaded,
        (update, sent): (&RequestUpdate, ConvertedMessages),
        (build, way, instructions): (&Build, Way, String),
        caller: Caller,
    ) -> Result<StartedCompaction, ConversationError> {
        let epoch = &loaded.epoch;
        let given = update.given();
        let request = Request {
            conversation: self.name(&epoch.head.conversation).map(str::to_owned),
            tools: epoch.request.tools.clone(),
            model: loaded.state.merge(update).request.model,
            messages: sent.request.map_or_else(|| given.messages.clone(), |request| request.messages),
            prompt: (way == Way::Aligned).then(|| instructions.clone()),
            provider: given.provider.clone(),
            ttl: given.ttl,
            cached_content: given.cached_content.clone(),
            ..without_call(&epoch.request)
        };
        let input = CallInput {
            build,
            request: &request,
            handlers: &[],
            withheld: &[],
            continued: None,
            notices: &[],
            cache_of: loaded.state.branches.cache_of(),
            caller,
        };
        let made = call(&input, caller)?;
        let body = match way {
            Way::Aligned => epoch.frozen.body().clone(),
            Way::Append => build.frozen().body().clone(),
        };
        Ok(StartedCompaction {
            token: token()?,
            way,
            from: epoch.head.number,
            body,
            instructions,
            messages: made.messages,
            payload: made.payload,
            notes: sent.notes.into_iter().chain(made.notes).collect(),
        })
    }

    /// Opens the epoch behind a compaction. Of two that were begun from one epoch the first opens it, and the
    /// other gets that one. Asked again, a compaction that was committed gives the epoch that it opened, until its
    /// time is over: an answer may have been lost on its way.
    pub fn commit_compaction(
        &self,
        id: &str,
        token: &str,
        caller: Caller,
    ) -> Result<Arc<LoadedEpoch>, ConversationError> {
        let record = self.begun(id, token)?;
        if let Some(number) = record.opened {
            let known = self.epoch(id, number)?.ok_or(ConversationError::NoCompaction)?;
            return Ok(Arc::new(known));
        }
        let opened = self.locks.hold(id, || {
            for _ in 0..CHANGE_ATTEMPTS_MAX {
                if let Some(opened) = self.open_compacted(id, &record, caller)? {
                    return Ok(opened);
                }
            }
            Err(ConversationError::from(StoreError::Conflict { current: self.store.current_number(id)? }))
        })?;
        // Another caller may have opened an epoch for another reason meanwhile.
        if opened.head.reason != Reason::Compaction.word() {
            self.store.end_compaction(token, None)?;
            return Err(StoreError::Conflict { current: self.store.current_number(id)? }.into());
        }
        self.store.end_compaction(token, Some(opened.head.number))?;
        Ok(opened)
    }

    /// Opens the epoch of a compaction, or returns the one that another caller opened. `None` if another writer was first.
    fn open_compacted(
        &self,
        id: &str,
        record: &CompactionRecord,
        caller: Caller,
    ) -> Result<Option<Arc<LoadedEpoch>>, ConversationError> {
        let loaded = self.known(id)?;
        let update = RequestUpdate::from_json(&record.request)?;
        // The epoch after `from` decides which compaction was first, not the current one.
        if loaded.epoch.head.number != record.from {
            let behind = self.store.epoch(id, record.from + 1)?.ok_or(ConversationError::NoCompaction)?;
            // The other compaction opened the epoch. What this one said waits for the next.
            let state = loaded.state.merge(&update);
            if behind.head.reason == Reason::Compaction.word()
                && state != loaded.state
                && self.commit(id, Some(&loaded), &state, None)?.is_none()
            {
                return Ok(None);
            }
            return Ok(Some(Arc::new(LoadedEpoch::from_stored(behind)?)));
        }
        let waited = loaded.pending();
        let mut state = loaded.state.merge(&update);
        let epoch = match &record.rebuilt {
            Some(rebuilt) => {
                if rebuilt.head.cwd != loaded.epoch.head.cwd {
                    state.leave_directory();
                }
                // It was built when the compaction began; what was said since then still waits.
                let waits = |field: &str| waited.iter().any(|waiting| waiting.field == field);
                let is_of_build = |field: &str| update.names(field) || update.removes(field) || !waits(field);
                if is_of_build("profile") {
                    state.request.profile = Some(rebuilt.head.profile.clone());
                }
                if is_of_build("cwd") && state.request.workspace.is_none() {
                    state.request.cwd = Some(rebuilt.head.cwd.clone());
                }
                state.settle_facts(rebuilt)?;
                rebuilt.clone()
            }
            None => self.aligned_epoch(&loaded, &mut state, caller)?,
        };
        let done = self.commit(id, Some(&loaded), &state, Some(epoch))?;
        Ok(done.map(|loaded| Arc::clone(&loaded.epoch)))
    }

    /// Makes the epoch after an aligned compaction: rebuilt, or with the very same bytes if the profile keeps its prompt
    /// through compactions.
    fn aligned_epoch(
        &self,
        loaded: &Loaded,
        state: &mut State,
        caller: Caller,
    ) -> Result<Epoch, ConversationError> {
        let head = &loaded.epoch.head;
        if policy_of(&loaded.epoch, caller)?.allows(Reason::Compaction) {
            let built = self.rebuilt(loaded, state, WISH, caller)?;
            return next_epoch(loaded, state, WISH, &built);
        }
        // The notices stay in force, and the summary has taken the place of the messages that had them.
        state.notices.delivered = 0;
        let same = self.store.epoch(&head.conversation, head.number)?;
        let mut next = same.ok_or(ConversationError::NoCompaction)?;
        next.head.number += 1;
        next.head.reason = Reason::Compaction.word().into();
        next.head.opened_at = now();
        Ok(next)
    }

    /// Returns the fields that a compaction was begun with.
    pub fn update_of_compaction(&self, id: &str, token: &str) -> Result<RequestUpdate, ConversationError> {
        Ok(RequestUpdate::from_json(&self.begun(id, token)?.request)?)
    }

    /// Ends a compaction without an epoch.
    pub fn abort_compaction(&self, id: &str, token: &str) -> Result<(), ConversationError> {
        if self.begun(id, token)?.opened.is_some() {
            return Err(ConversationError::NoCompaction);
        }
        self.store.end_compaction(token, None)?;
        Ok(())
    }

    /// A compaction of this conversation that is still open.
    fn begun(&self, id: &str, token: &str) -> Result<CompactionRecord, ConversationError> {
        check_id(id)?;
        // No token has one, and not every store can be asked for it.
        if token.contains('\0') {
            return Err(ConversationError::NoCompaction);
        }
        let found = self.store.compaction(token)?;
        let is_open = |begun: &CompactionRecord| begun.conversation == id && begun.expires_at >= now();
        found.filter(is_open).ok_or(ConversationError::NoCompaction)
    }
}

/// Notes the fields that a summarising call has no use for.
fn of_turns_alone(update: &RequestUpdate) -> impl Iterator<Item = Note> {
    let Request { prompt, recalled, images, .. } = update.given();
    let given =
        [("prompt", prompt.is_some()), ("recalled", recalled.is_some()), ("images", images.is_some())];
    given.into_iter().filter(|(_, is_given)| *is_given).map(|(field, _)| {
        let message = format!("a compaction has no use for `{field}`: the instructions end its messages");
        Note::new(Code::UnusedField, Severity::Warning, message).with_hint("give it to the next turn")
    })
}

/// Converts messages of neutral roles for the summarising call.
fn converted(
    loaded: &Loaded,
    update: &RequestUpdate,
    (world, request): (&World, &Request),
) -> Result<ConvertedMessages, Error> {
    let request = Request { messages: update.given().messages.clone(), ..request.clone() };
    if !messages::are_in(&request) {
        return Ok(ConvertedMessages::default());
    }
    let found = loaded.epoch.details.as_ref().map(EpochDetails::found);
    within_limits(|| {
        let packs = packs_of_hooks(found, &loaded.state.resources, world);
        messages::convert(world, &request, &packs)
    })
}

/// 128 random bits, in hexadecimal.
fn token() -> Result<String, StoreError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| StoreError::Unavailable {
        place: "the system's random numbers".into(),
        why: error.to_string().into(),
    })?;
    Ok(format!("{:032x}", u128::from_be_bytes(bytes)))
}
