//! Conversations: decides when a prompt is built and when the stored one is used.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use proem_core::frozen::{Frozen, Suffix};
use proem_core::note::{Code, Note, Severity};

use super::answer::{Answer, ConversationError};
use super::change;
use super::prompt_policy::PromptPolicy;
use super::recent::Recent;
use crate::build::{Build, Fingerprint};
use crate::conversation::store::record::now;
use crate::conversation::store::{Epoch, EpochHead, History, Store, StoreError, is_conversation_id};
use crate::engine::Engine;
use crate::error::Error;
use crate::hooks::DiscoverReason;
use crate::output::stored_prompt::StoredPrompt;
use crate::request::caller::Caller;
use crate::request::update::without_call;
use crate::request::{Request, RequestUpdate};
use crate::sections::build_state::BuildState;

/// The reason of the first epoch.
const STARTUP: &str = "startup";

/// The approximate size of an epoch in memory without its texts: the fields of its head and request, and map entries.
const OVERHEAD_BYTES: usize = 2048;

/// The approximate ratio of the size of a prompt's description in memory to its stored size.
const DESCRIPTION_GROWTH: usize = 3;

/// Most attempts to read a conversation that is removed and begun again at the same time.
const HISTORY_ATTEMPTS_MAX: usize = 8;

/// Conversations in a store.
pub struct Conversations {
    pub(super) store: Arc<dyn Store>,
    pub(super) engine: Engine,
    recent: Recent,
    /// Epochs that were opened here, by reason.
    opened: Mutex<BTreeMap<String, u64>>,
}

/// An epoch whose prompt has been read.
#[derive(Debug)]
pub struct LoadedEpoch {
    /// Its head: number, reason, digests.
    pub head: EpochHead,
    /// The prompt.
    pub frozen: Frozen,
    /// The request that it was built for.
    pub request: Request,
    /// Its approximate size in memory.
    pub(super) bytes: usize,
}

impl LoadedEpoch {
    /// Reads the prompt and the request of a stored epoch.
    pub fn from_stored(epoch: Epoch) -> Result<Self, StoreError> {
        let name = format!("epoch {} of `{}`", epoch.head.number, epoch.head.conversation);
        let damaged = |why: String| StoreError::Damaged { what: name.clone(), why: why.into() };
        let bytes = epoch.prompt.texts.values().map(String::len).sum::<usize>()
            + epoch.request.len()
            + DESCRIPTION_GROWTH * epoch.prompt.description.len()
            + OVERHEAD_BYTES;
        let frozen = epoch.prompt.frozen().map_err(|error| damaged(error.to_string()))?;
        if frozen.digest().hex() != epoch.head.digest {
            return Err(damaged("its prompt is not that of its digest".into()));
        }
        let mut request = Request::from_json(&epoch.request).map_err(|error| damaged(error.to_string()))?;
        // It is stored without it, so that conversations with the same request share one text.
        request.conversation = Some(epoch.head.conversation.clone());
        Ok(Self { head: epoch.head, frozen, request, bytes })
    }

    /// The fingerprint of what is sent.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::new(self.frozen.digest(), self.request.tools.as_deref().unwrap_or_default())
    }
}

/// The current epoch of a conversation, and the heads of all of them.
type Shown = (Arc<LoadedEpoch>, Vec<EpochHead>);

impl Conversations {
    /// Conversations that are kept in `store`, with prompts that `engine` builds.
    #[must_use]
    pub fn new(store: Arc<dyn Store>, engine: Engine) -> Self {
        Self {
            store,
            engine: engine.without_hook_output(),
            recent: Recent::default(),
            opened: Mutex::default(),
        }
    }

    /// Returns the number of epochs that were opened through this value, by reason. Epochs of other processes do not count.
    #[must_use]
    pub fn opened(&self) -> BTreeMap<String, u64> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the store.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// The current epoch of a conversation, as it is stored.
    pub fn current(&self, id: &str) -> Result<Option<Arc<LoadedEpoch>>, ConversationError> {
        check_id(id)?;
        // The generation comes first, so that the epoch read below is at least as new.
        let generation = self.store.generation()?;
        if let Some(known) = self.recent.current(id, generation) {
            return Ok(Some(known));
        }
        if self.recent.contains(id) {
            let Some(head) = self.store.current_head(id)? else { return Ok(None) };
            if let Some(known) = self.recent.get(&head, generation) {
                return Ok(Some(known));
            }
        }
        let Some(epoch) = self.store.current(id)? else { return Ok(None) };
        let kept = Arc::new(LoadedEpoch::from_stored(epoch)?);
        self.recent.put(&kept, generation);
        Ok(Some(kept))
    }

    /// One epoch of a conversation.
    pub fn epoch(&self, id: &str, number: u64) -> Result<Option<LoadedEpoch>, ConversationError> {
        check_id(id)?;
        Ok(self.store.epoch(id, number)?.map(LoadedEpoch::from_stored).transpose()?)
    }

    /// The current epoch of a conversation, and all its epochs, as they were at one moment.
    pub fn history(&self, id: &str) -> Result<Option<Shown>, ConversationError> {
        for _ in 0..HISTORY_ATTEMPTS_MAX {
            let current = self.current(id)?;
            let History { current: number, epochs } = self.store.history(id)?;
            let Some(head) = epochs.iter().find(|head| head.number == number) else {
                // Either there is none, or it was made or removed between the two questions.
                if current.is_none() {
                    return Ok(None);
                }
                continue;
            };
            // Epochs do not change: one that was read before or after that moment is the one of that moment.
            let kept = match current.filter(|kept| kept.head == *head) {
                Some(kept) => Some(kept),
                None => self.epoch(id, number)?.filter(|kept| kept.head == *head).map(Arc::new),
            };
            if let Some(kept) = kept {
                return Ok(Some((kept, epochs)));
            }
        }
        Err(StoreError::Conflict { current: self.store.current_number(id)? }.into())
    }

    /// The current epoch; a conversation that is not known is an error.
    pub(super) fn known(&self, id: &str) -> Result<Arc<LoadedEpoch>, ConversationError> {
        self.current(id)?.ok_or_else(|| ConversationError::NoConversation(id.to_owned()))
    }

    pub(super) fn remember(&self, epoch: Epoch) -> Result<Arc<LoadedEpoch>, ConversationError> {
        let kept = Arc::new(LoadedEpoch::from_stored(epoch)?);
        // Its generation is not known: the next turn queries the store.
        self.recent.put(&kept, None);
        Ok(kept)
    }

    /// Answers one turn. The first one builds and stores the prompt, and later ones get the stored prompt. What a later turn
    /// does not give stays as it was; a change that it gives opens a new epoch if the profile allows that.
    pub fn turn(
        &self,
        id: &str,
        update: impl Into<RequestUpdate>,
        caller: Caller,
    ) -> Result<Answer, ConversationError> {
        let update = update.into();
        let (kept, is_reused, mut notes) = if let Some(kept) = self.current(id)? {
            self.follow(kept, &update, caller)?
        } else {
            let request = &Request { conversation: Some(id.to_owned()), ..update.given().clone() };
            let build = self.build(request, caller)?;
            let opening = NewEpoch { id, number: 1, reason: STARTUP, request, caller };
            let (kept, is_own) = self.open(&opening, &build)?;
            let notes = if is_own { build.notes().to_vec() } else { Vec::new() };
            (kept, !is_own, notes)
        };
        let mut suffix = Suffix::default();
        if kept.head.has_turn {
            match self.engine.observe(&turn_request(&kept, &update), caller) {
                Ok(observed) => {
                    notes.extend(observed.notes);
                    suffix = observed.suffix;
                }
                Err(error) => {
                    let message = format!("the facts of this turn could not be observed: {error}");
                    notes.push(Note::new(Code::Absent, Severity::Warning, message));
                }
            }
        }
        let whole = kept.head.has_turn.then(|| suffix.behind(&kept.frozen));
        Ok(Answer { kept, is_reused, suffix, whole, notes })
    }

    /// Returns the current epoch if a turn needs nothing else: nothing is built, observed or waited for. `None` for every
    /// other turn, which [`turn`](Self::turn) answers.
    pub fn turn_at_once(
        &self,
        id: &str,
        update: &RequestUpdate,
    ) -> Result<Option<Arc<LoadedEpoch>>, ConversationError> {
        check_id(id)?;
        if !self.store.is_near() {
            return Ok(None);
        }
        let known = self.current(id)?.filter(|kept| !kept.head.has_turn);
        Ok(known.filter(|kept| change::is_followed(kept, update)))
    }

    /// Builds a prompt for the first time.
    pub(super) fn build(&self, request: &Request, caller: Caller) -> Result<Build, ConversationError> {
        self.build_for(DiscoverReason::Startup, request, caller)
    }

    /// Builds a prompt. Where the request names no base, the current template of the store is it; that is not kept with
    /// the request, so that the next prompt is built from the template that is current then.
    pub(super) fn build_for(
        &self,
        reason: DiscoverReason,
        request: &Request,
        caller: Caller,
    ) -> Result<Build, ConversationError> {
        let mut state = BuildState { reason, ..BuildState::default() };
        let has_base =
            request.system.is_some() || request.template.is_some() || request.instruction.is_some();
        let stored = if has_base { None } else { self.store.template()? };
        let Some(stored) = stored else { return Ok(self.engine.build_with(request, caller, &mut state)?) };
        let request = Request { template: Some(stored.text), ..request.clone() };
        Ok(self.engine.build_with(&request, caller, &mut state)?)
    }

    /// Stores an epoch. Of several that are opened at once one wins, and every caller gets that one.
    pub(super) fn open(
        &self,
        opening: &NewEpoch<'_>,
        build: &Build,
    ) -> Result<(Arc<LoadedEpoch>, bool), ConversationError> {
        let epoch = opening.epoch(build)?;
        let stored = self.store_epoch(&epoch)?;
        let is_own = stored == epoch;
        Ok((self.remember(stored)?, is_own))
    }

    /// Stores an epoch, and counts it if it is the one that won.
    pub(super) fn store_epoch(&self, epoch: &Epoch) -> Result<Epoch, ConversationError> {
        let stored = self.store.open(epoch)?;
        if stored == *epoch {
            let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
            *opened.entry(epoch.head.reason.clone()).or_default() += 1;
        }
        Ok(stored)
    }
}

/// An epoch that is to be opened, and why.
pub(super) struct NewEpoch<'o> {
    pub(super) id: &'o str,
    pub(super) number: u64,
    pub(super) reason: &'o str,
    pub(super) request: &'o Request,
    pub(super) caller: Caller,
}

impl NewEpoch<'_> {
    /// The epoch as it is to be stored.
    pub(super) fn epoch(&self, build: &Build) -> Result<Epoch, ConversationError> {
        let policy = PromptPolicy::from_request(self.request, self.caller)?;
        let prompt = StoredPrompt::from_frozen(build.frozen()).map_err(|error| StoreError::Damaged {
            what: "the prompt".into(),
            why: error.to_string().into(),
        })?;
        let head = EpochHead {
            conversation: self.id.to_owned(),
            number: self.number,
            reason: self.reason.to_owned(),
            digest: build.frozen().digest().hex(),
            fingerprint: build.fingerprint().whole.hex(),
            profile: build.frozen().profile().to_owned(),
            engine: env!("CARGO_PKG_VERSION").to_owned(),
            cwd: policy.cwd,
            model: self.request.model.clone(),
            has_turn: policy.has_turn,
            opened_at: now(),
        };
        head.check().map_err(Error::request)?;
        // What the request left to the configuration and to the process is part of what was frozen.
        let (profile, cwd) = (Some(head.profile.clone()), Some(head.cwd.clone()));
        let request = Request { profile, cwd, ..without_call(self.request) };
        Ok(Epoch { head, prompt, request: request.to_json()? })
    }
}

/// Returns the request of one turn: what the epoch was built from, with the fields of this turn. Changes that wait for
/// another epoch do not count.
fn turn_request(kept: &LoadedEpoch, update: &RequestUpdate) -> Request {
    let mut merged = update.apply_to(&kept.request);
    merged.profile = Some(kept.head.profile.clone());
    merged.cwd.clone_from(&kept.request.cwd);
    merged.tools.clone_from(&kept.request.tools);
    let given = update.given();
    Request {
        conversation: kept.request.conversation.clone(),
        messages: given.messages.clone(),
        prompt: given.prompt.clone(),
        images: given.images.clone(),
        recalled: given.recalled.clone(),
        ..merged
    }
}

pub(super) fn check_id(id: &str) -> Result<(), ConversationError> {
    if is_conversation_id(id) { Ok(()) } else { Err(ConversationError::BadId) }
}
