//! When a prompt is built, and when the stored one is used.

mod answer;
mod change;
mod compact;
mod evidence;
mod recent;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use proem::stored_prompt::StoredPrompt;
use proem::{Build, Caller, Engine, Error, Fingerprint, PromptPolicy, Request};
use proem_core::frozen::{Frozen, Suffix};
use proem_core::note::{Code, Note, Severity};

use crate::record::{Epoch, EpochHead, History, now};
use crate::{Store, StoreError, is_conversation_id};

pub use answer::{Answer, ConversationError};
pub use change::{Drift, Plan, Rebuilt};
pub use compact::{Begun, TIME_OF_COMPACTION};

use recent::Recent;

/// The reason of the first epoch.
const STARTUP: &str = "startup";

/// What an epoch takes in memory besides its texts, about: the fields of its head, of its request, and their places.
const OVERHEAD_BYTES: usize = 2048;

/// How much larger the description of a prompt is in memory than in its stored form, about.
const DESCRIPTION_GROWTH: usize = 3;

/// Most attempts to read a conversation that is removed and begun again at the same time.
const HISTORY_ATTEMPTS_MAX: usize = 8;

/// Conversations in a store.
pub struct Conversations {
    store: Arc<dyn Store>,
    engine: Engine,
    recent: Recent,
    /// Epochs that were opened here, by reason.
    opened: Mutex<BTreeMap<String, u64>>,
}

/// An epoch whose prompt has been read.
#[derive(Debug)]
pub struct Kept {
    /// What is known about it.
    pub head: EpochHead,
    /// The prompt.
    pub frozen: Frozen,
    /// The request that it was built for.
    pub request: Request,
    /// What it takes in memory without the answer, about.
    bytes: usize,
    answer: OnceLock<Arc<[u8]>>,
}

impl Kept {
    pub(crate) fn of(epoch: Epoch) -> Result<Self, StoreError> {
        let name = format!("epoch {} of `{}`", epoch.head.number, epoch.head.conversation);
        let damaged = |why: String| StoreError::Damaged { what: name.clone(), why };
        let bytes = epoch.prompt.texts.values().map(String::len).sum::<usize>()
            + epoch.request.len()
            + DESCRIPTION_GROWTH * epoch.prompt.description.len()
            + OVERHEAD_BYTES;
        let frozen = epoch.prompt.frozen().map_err(|error| damaged(error.to_string()))?;
        if frozen.digest().hex() != epoch.head.digest {
            return Err(damaged("its prompt is not that of its digest".into()));
        }
        let mut request = Request::from_json(&epoch.request).map_err(|error| damaged(error.to_string()))?;
        // Kept without it, so that conversations with the same request share one text.
        request.conversation = Some(epoch.head.conversation.clone());
        Ok(Self { head: epoch.head, frozen, request, bytes, answer: OnceLock::new() })
    }

    /// What it takes in memory, about; without an answer that it shares with another one.
    fn bytes(&self, is_shared: bool) -> usize {
        self.bytes + self.answer.get().filter(|_| !is_shared).map_or(0, |answer| answer.len())
    }

    /// The fingerprint of what is sent.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::new(self.frozen.digest(), self.request.tools.as_deref().unwrap_or_default())
    }
}

/// The current epoch of a conversation, and the heads of all of them.
type Shown = (Arc<Kept>, Vec<EpochHead>);

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

    /// Where they are kept.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// The current epoch of a conversation, as it is stored.
    pub fn current(&self, id: &str) -> Result<Option<Arc<Kept>>, ConversationError> {
        check_id(id)?;
        // Before anything is read: what is read then is at least as new.
        let generation = self.store.generation()?;
        if let Some(known) = self.recent.current(id, generation) {
            return Ok(Some(known));
        }
        if self.recent.holds(id) {
            let Some(head) = self.store.current_head(id)? else { return Ok(None) };
            if let Some(known) = self.recent.get(&head, generation) {
                return Ok(Some(known));
            }
        }
        let Some(epoch) = self.store.current(id)? else { return Ok(None) };
        let kept = Arc::new(Kept::of(epoch)?);
        self.recent.put(&kept, generation);
        Ok(Some(kept))
    }

    /// What an epoch is answered with, in whatever form the caller has for it: made once, and held in memory with
    /// the epoch.
    pub fn answer_of(&self, kept: &Arc<Kept>, make: impl FnOnce(&Kept) -> Vec<u8>) -> Arc<[u8]> {
        if let Some(known) = kept.answer.get() {
            return Arc::clone(known);
        }
        let mut is_shared = false;
        let answer = kept.answer.get_or_init(|| {
            let (answer, is_known) = self.recent.shared(&kept.head.digest, make(kept));
            is_shared = is_known;
            answer
        });
        self.recent.has_grown(kept, is_shared);
        Arc::clone(answer)
    }

    /// One epoch of a conversation.
    pub fn epoch(&self, id: &str, number: u64) -> Result<Option<Kept>, ConversationError> {
        check_id(id)?;
        Ok(self.store.epoch(id, number)?.map(Kept::of).transpose()?)
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
    fn known(&self, id: &str) -> Result<Arc<Kept>, ConversationError> {
        self.current(id)?.ok_or_else(|| ConversationError::NoConversation(id.to_owned()))
    }

    fn remember(&self, epoch: Epoch) -> Result<Arc<Kept>, ConversationError> {
        let kept = Arc::new(Kept::of(epoch)?);
        // It was opened by now, and so in no generation that is known: the next turn asks.
        self.recent.put(&kept, None);
        Ok(kept)
    }

    /// Everything that one turn needs. The first turn builds and keeps the prompt, later ones get it as it was
    /// kept; a change that the request names opens a new epoch if the profile allows that.
    pub fn turn(&self, id: &str, request: &Request, caller: Caller) -> Result<Answer, ConversationError> {
        let request = &Request { conversation: Some(id.to_owned()), ..request.clone() };
        let (kept, is_reused, mut notes) = if let Some(kept) = self.current(id)? {
            self.follow(kept, request, caller)?
        } else {
            let build = self.build(request, caller)?;
            let opening = Opening { id, number: 1, reason: STARTUP, request, caller };
            let (kept, is_own) = self.open(&opening, &build)?;
            let notes = if is_own { build.notes().to_vec() } else { Vec::new() };
            (kept, !is_own, notes)
        };
        let mut suffix = Suffix::default();
        if kept.head.has_turn {
            let now = Request { profile: Some(kept.head.profile.clone()), ..request.clone() };
            match self.engine.observe(&now, caller) {
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

    /// A later turn for which nothing has to be built, observed or waited for: the current epoch as it is. `None`
    /// when that cannot be: then [`turn`](Self::turn) answers.
    pub fn turn_at_once(&self, id: &str, request: &Request) -> Result<Option<Arc<Kept>>, ConversationError> {
        check_id(id)?;
        if !self.store.is_near() {
            return Ok(None);
        }
        let known = self.current(id)?.filter(|kept| !kept.head.has_turn);
        Ok(known.filter(|kept| change::is_followed(kept, request)))
    }

    /// Builds a prompt. Where the request names no base, the current template of the store is it; that is not kept with
    /// the request, so that the next prompt is built from the template that is current then.
    fn build(&self, request: &Request, caller: Caller) -> Result<Build, ConversationError> {
        let has_base =
            request.system.is_some() || request.template.is_some() || request.instruction.is_some();
        let stored = if has_base { None } else { self.store.template()? };
        let Some(stored) = stored else { return Ok(self.engine.build(request, caller)?) };
        let request = Request { template: Some(stored.text), ..request.clone() };
        Ok(self.engine.build(&request, caller)?)
    }

    /// Stores an epoch. Of several that are opened at once one wins, and every caller gets that one.
    fn open(&self, opening: &Opening<'_>, build: &Build) -> Result<(Arc<Kept>, bool), ConversationError> {
        let epoch = opening.epoch(build)?;
        let stored = self.store_epoch(&epoch)?;
        let is_own = stored == epoch;
        Ok((self.remember(stored)?, is_own))
    }

    /// Stores an epoch, and counts it if it is the one that won.
    fn store_epoch(&self, epoch: &Epoch) -> Result<Epoch, ConversationError> {
        let stored = self.store.open(epoch)?;
        if stored == *epoch {
            let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
            *opened.entry(epoch.head.reason.clone()).or_default() += 1;
        }
        Ok(stored)
    }
}

/// An epoch that is to be opened, and why.
struct Opening<'o> {
    id: &'o str,
    number: u64,
    reason: &'o str,
    request: &'o Request,
    caller: Caller,
}

impl Opening<'_> {
    /// The epoch as it is to be stored.
    fn epoch(&self, build: &Build) -> Result<Epoch, ConversationError> {
        let policy = PromptPolicy::from_request(self.request, self.caller)?;
        let prompt = StoredPrompt::from_frozen(build.frozen())
            .map_err(|error| StoreError::Damaged { what: "the prompt".into(), why: error.to_string() })?;
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
        let request = Request { profile, cwd, ..without_turn(self.request) };
        Ok(Epoch { head, prompt, request: request.to_json()? })
    }
}

/// The request without what belongs to one turn: it is kept to build the next prompt from.
fn without_turn(request: &Request) -> Request {
    Request {
        messages: None,
        prompt: None,
        images: None,
        recalled: None,
        conversation: None,
        ..request.clone()
    }
}

fn check_id(id: &str) -> Result<(), ConversationError> {
    if is_conversation_id(id) { Ok(()) } else { Err(ConversationError::BadId) }
}
