//! Conversations in a store: reads them, builds their prompts, and writes changes.

mod locks;
mod recent;
mod workspaces;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use proem_core::carrier::Carrier;
use proem_core::frozen::{Body, Frozen, Suffix};
use proem_core::profile::Compaction;
use proem_core::source::Source;

use super::error::ConversationError;
use super::state::{FrozenInputs, State};
use crate::build::{Build, Fingerprint, PendingField, PromptPolicy};
use crate::conversation::store::record::now;
use crate::conversation::store::{
    Commit, Epoch, EpochHead, History, StateRecord, Store, StoreError, is_conversation_id,
};
use crate::engine::{Engine, within_limits};
use crate::error::Error;
use crate::hooks::ResourcePaths;
use crate::observe::workspace::absolute_cwd;
use crate::output::stored_prompt::StoredPrompt;
use crate::output::stored_sources::EpochDetails;
use crate::request::bundle::VirtualWorkspace;
use crate::request::caller::Caller;
use crate::request::update::without_call;
use crate::request::{Request, RequestUpdate};
use crate::sections::build_state::BuildState;
use crate::settings::world::World;
use locks::ConversationLocks;
pub(super) use recent::{Recent, TurnMemory};

/// The approximate size of an epoch in memory without its texts: the fields of its head and request, and map entries.
const OVERHEAD_BYTES: usize = 2048;

/// The approximate ratio of the size of a prompt's description in memory to its stored size.
const DESCRIPTION_GROWTH: usize = 3;

/// Most attempts to read a conversation that is removed and begun again at the same time.
const HISTORY_ATTEMPTS_MAX: usize = 8;

/// Most attempts to change a conversation that other processes change at the same time.
pub(super) const CHANGE_ATTEMPTS_MAX: usize = 32;

/// Conversations in a store.
///
/// ```
/// use std::sync::Arc;
///
/// use proem::conversation::Conversations;
/// use proem::store::MemoryStore;
/// use proem::{Caller, Engine, Request};
///
/// let conversations = Conversations::new(Arc::new(MemoryStore::new()), Engine::new());
/// let request = Request::from_json(r#"{"profile": "template", "system": "Be brief.", "prompt": "Hello"}"#)?;
/// let first = conversations.turn("chat-1", request, Caller::User)?;
/// let next = Request { prompt: Some("And now?".into()), messages: Some(first.history), ..Request::default() };
/// let next = conversations.turn("chat-1", next, Caller::User)?;
/// assert!(next.is_reused && !first.is_reused);
/// assert_eq!(next.system_prompt, first.system_prompt);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Conversations {
    pub(super) store: Arc<dyn Store>,
    pub(super) engine: Engine,
    pub(super) recent: Recent,
    pub(super) locks: ConversationLocks,
    /// False if prompts do not learn the id of their conversation.
    is_named: bool,
    /// Epochs that were opened here, by reason.
    opened: Mutex<BTreeMap<String, u64>>,
    /// The workspaces that requests used last.
    workspaces: Mutex<VecDeque<VirtualWorkspace>>,
}

/// An epoch whose prompt has been read.
#[derive(Debug)]
pub struct LoadedEpoch {
    /// Its head: number, reason, digests.
    pub head: EpochHead,
    /// The prompt.
    pub frozen: Arc<Frozen>,
    /// The request that it was built for.
    pub request: Request,
    pub(super) details: Option<EpochDetails>,
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
        let details = epoch.sources.as_deref().map(EpochDetails::from_json).transpose();
        let details = details.map_err(|error| damaged(format!("its sources: {error}")))?;
        Ok(Self { head: epoch.head, frozen: Arc::new(frozen), request, details, bytes })
    }

    /// The fingerprint of what is sent.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::new(self.frozen.digest(), self.request.tools.as_deref().unwrap_or_default())
    }

    /// Returns the prompt as it was built, without anything of a turn.
    #[must_use]
    pub fn build(&self) -> Build {
        let policy = self.details.as_ref().map(|details| details.policy.clone());
        let policy = policy.unwrap_or_else(|| PromptPolicy {
            profile: self.head.profile.clone(),
            rebuild: Vec::new(),
            compaction: Compaction::Aligned,
            has_turn: self.head.has_turn,
            cwd: self.head.cwd.clone(),
            default_tools: Vec::new(),
            unused_fields: Vec::new(),
        });
        Build::new(self.frozen.as_ref().clone(), Suffix::default(), &self.request, policy)
    }

    /// Returns the text between the frozen part and that of a turn.
    pub(super) fn boundary(&self) -> &str {
        self.details.as_ref().map_or("", |details| &details.boundary)
    }

    /// Returns the keys of the variables that the text depends on. Epochs of the first release did not keep them: then
    /// those with a value in the text count.
    fn facts(&self) -> BTreeSet<String> {
        match &self.details {
            Some(details) => details.facts.clone(),
            None => variables(self.frozen.body()),
        }
    }
}

/// Returns the keys of the variables that have a value in a text.
fn variables(body: &Body) -> BTreeSet<String> {
    let spans = Carrier::ALL.into_iter().flat_map(|carrier| body.spans(carrier));
    let keys = spans.filter_map(|span| match &span.source {
        Source::Variable { key, .. } => Some(key.to_string()),
        _ => None,
    });
    keys.collect()
}

/// A conversation as it was read: its current epoch and its state.
#[derive(Debug)]
pub(super) struct Loaded {
    pub(super) epoch: Arc<LoadedEpoch>,
    pub(super) state: State,
    /// The version of the state; 0 if none is stored.
    pub(super) version: u64,
    pub(super) bytes: usize,
}

impl Loaded {
    fn new(epoch: Arc<LoadedEpoch>, record: Option<&StateRecord>) -> Result<Self, StoreError> {
        let state = match record {
            None => State::from_epoch(&epoch.request, &epoch.head.digest),
            Some(record) => State::from_json(&record.text).map_err(|why| StoreError::Damaged {
                what: format!("the state of `{}`", epoch.head.conversation),
                why: why.into(),
            })?,
        };
        let bytes = epoch.bytes + record.map_or(0, |record| 2 * record.text.len());
        Ok(Self { epoch, state, version: record.map_or(0, |record| record.version), bytes })
    }

    /// Returns the changes that the frozen prompt does not have.
    pub(super) fn pending(&self) -> Vec<PendingField> {
        pending_in(&self.epoch, &self.state)
    }
}

/// Returns the changes of a state that the prompt of an epoch does not have.
pub(super) fn pending_in(epoch: &LoadedEpoch, state: &State) -> Vec<PendingField> {
    with_inputs(epoch, |inputs| state.pending(inputs))
}

/// Returns the request of a turn with a state in an epoch.
pub(super) fn turn_request_in(epoch: &LoadedEpoch, state: &State, conversation: Option<&str>) -> Request {
    with_inputs(epoch, |inputs| state.turn_request(inputs, conversation))
}

fn with_inputs<T>(epoch: &LoadedEpoch, work: impl FnOnce(FrozenInputs<'_>) -> T) -> T {
    let none = ResourcePaths::default();
    let resources = epoch.details.as_ref().map_or(&none, |details| &details.resources);
    let unused = epoch.details.as_ref().map_or(&[][..], |details| &details.policy.unused_fields);
    work(FrozenInputs { request: &epoch.request, resources, facts: &epoch.facts(), unused })
}

/// A prompt that was built for a conversation, with the world that it was built in.
pub(super) struct Built {
    pub(super) world: World,
    pub(super) build: Build,
    pub(super) state: BuildState,
    /// The store's template, if it is the base.
    pub(super) template: Option<BaseTemplate>,
    /// The caller whose view of files it was built with.
    pub(super) caller: Caller,
}

/// The template of the store for a build.
pub(super) enum StoredBase {
    /// The current one.
    Current,
    /// The one of an earlier epoch.
    AsRead(Option<BaseTemplate>),
}

/// A template of the store as the base of a prompt.
#[derive(Debug, Clone)]
pub(super) struct BaseTemplate {
    pub(super) text: String,
    /// Not known for epochs of earlier versions.
    pub(super) version: Option<u64>,
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
            locks: ConversationLocks::default(),
            is_named: true,
            opened: Mutex::default(),
            workspaces: Mutex::default(),
        }
    }

    /// Conversations of one process: notes have everything that the user may see.
    pub(super) fn in_memory(store: Arc<dyn Store>, engine: Engine) -> Self {
        Self { engine: engine.clone(), ..Self::new(store, engine) }
    }

    /// Conversations of one process whose prompts do not learn their ids.
    pub(super) fn unnamed(store: Arc<dyn Store>, engine: Engine) -> Self {
        Self { is_named: false, ..Self::in_memory(store, engine) }
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
        Ok(self.load(id)?.map(|loaded| Arc::clone(&loaded.epoch)))
    }

    /// Reads a conversation, from memory if it has not changed.
    pub(super) fn load(&self, id: &str) -> Result<Option<Arc<Loaded>>, ConversationError> {
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
        let Some(current) = self.store.current(id)? else { return Ok(None) };
        let epoch = Arc::new(LoadedEpoch::from_stored(current.epoch)?);
        let loaded = Arc::new(Loaded::new(epoch, current.state.as_ref())?);
        self.recent.put(&loaded, generation);
        Ok(Some(loaded))
    }

    /// One epoch of a conversation.
    pub fn epoch(&self, id: &str, number: u64) -> Result<Option<LoadedEpoch>, ConversationError> {
        check_id(id)?;
        Ok(self.store.epoch(id, number)?.map(LoadedEpoch::from_stored).transpose()?)
    }

    /// Returns the changes that the frozen prompt of a conversation does not have.
    pub fn pending(&self, id: &str) -> Result<Vec<PendingField>, ConversationError> {
        Ok(self.known(id)?.pending())
    }

    /// Returns the working directory and the workspace that the next prompt of a conversation is built in, as far as they
    /// were given.
    pub fn next_place(
        &self,
        id: &str,
    ) -> Result<(Option<String>, Option<VirtualWorkspace>), ConversationError> {
        let request = &self.known(id)?.state.request;
        Ok((request.cwd.clone(), request.workspace.clone()))
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

    /// Reads a conversation; one that is not known is an error.
    pub(super) fn known(&self, id: &str) -> Result<Arc<Loaded>, ConversationError> {
        self.load(id)?.ok_or_else(|| ConversationError::NoConversation(id.to_owned()))
    }

    /// Returns the id for prompts, if they learn it.
    pub(super) fn name<'i>(&self, id: &'i str) -> Option<&'i str> {
        self.is_named.then_some(id)
    }

    /// Builds a prompt in a world that is read once. Where the request names no base and the profile takes it, the
    /// template of the store is the base; it is not kept with the request.
    pub(super) fn build(
        &self,
        request: &Request,
        caller: Caller,
        mut state: BuildState,
        base: StoredBase,
    ) -> Result<Built, ConversationError> {
        let template = match base {
            _ if has_base(request) => None,
            StoredBase::Current => self
                .store
                .live_template()?
                .map(|template| BaseTemplate { text: template.text, version: Some(template.version) }),
            StoredBase::AsRead(template) => template,
        };
        let request = &*self.resolved(request)?;
        let built = within_limits(|| {
            let world = World::read(request, caller)?;
            let template = template.filter(|_| world.resolved.profile.stored_template);
            state.has_stored_template = template.is_some();
            let with_template = |template: &BaseTemplate| Request {
                template: Some(template.text.clone()),
                ..request.clone()
            };
            let with_template = template.as_ref().map(with_template);
            let request = with_template.as_ref().unwrap_or(request);
            let build = self.engine.build_in(&world, request, &mut state)?;
            Ok(Built { world, build, state, template, caller })
        });
        Ok(built?)
    }

    /// Builds the prompt that a conversation would begin with, with the template of the store where its profile takes it.
    /// Nothing is stored.
    pub fn prompt(&self, request: &Request, caller: Caller) -> Result<Build, ConversationError> {
        Ok(self.build(request, caller, BuildState::default(), StoredBase::Current)?.build)
    }

    /// Writes a new state, and an epoch if there is one. `None` if another writer was first.
    pub(super) fn commit(
        &self,
        id: &str,
        before: Option<&Loaded>,
        state: &State,
        epoch: Option<Epoch>,
    ) -> Result<Option<Arc<Loaded>>, ConversationError> {
        let based_on = before.map_or(0, |before| before.version);
        let text = state.to_json().map_err(|error| StoreError::Damaged {
            what: format!("the state of `{id}`"),
            why: error.to_string().into(),
        })?;
        let record = StateRecord { version: next_version(based_on), text };
        let change = Commit { conversation: id, based_on, state: &record, epoch: epoch.as_ref() };
        if !self.store.commit(&change)? {
            return Ok(None);
        }
        let epoch = match (epoch, before) {
            (Some(epoch), _) => {
                let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
                *opened.entry(epoch.head.reason.clone()).or_default() += 1;
                Arc::new(LoadedEpoch::from_stored(epoch)?)
            }
            (None, Some(before)) => Arc::clone(&before.epoch),
            (None, None) => return Ok(None),
        };
        let loaded = Arc::new(Loaded::new(epoch, Some(&record))?);
        // Its generation is not known: the next turn queries the store.
        self.recent.put(&loaded, None);
        Ok(Some(loaded))
    }
}

/// Returns the policy of an epoch. Epochs of the first release did not keep it: then that of the profile counts.
pub(super) fn policy_of(epoch: &LoadedEpoch, caller: Caller) -> Result<PromptPolicy, ConversationError> {
    if let Some(details) = &epoch.details {
        return Ok(details.policy.clone());
    }
    let world = World::read(&epoch.request, caller)?;
    Ok(PromptPolicy::new(&world.resolved.profile, world.workspace.cwd()))
}

/// Returns the caller that sees the files as the prompt of an epoch did, so that a later build finds no difference that is
/// one of the door alone. `None` if `caller` may not see them all.
pub(super) fn viewer_of(epoch: &LoadedEpoch, caller: Caller) -> Option<Caller> {
    match epoch.details.as_ref().and_then(|details| details.view.as_ref()) {
        Some(view) => view.seen_by(caller),
        // Epochs of earlier versions did not keep it.
        None => Some(caller),
    }
}

/// Returns the version of the next state. It comes from the clock, so that a conversation that is removed and begun again
/// does not get a version that it had.
fn next_version(based_on: u64) -> u64 {
    let microseconds = jiff::Timestamp::now().as_microsecond();
    u64::try_from(microseconds).unwrap_or(1).max(based_on + 1)
}

/// An epoch that is to be opened, and why.
pub(super) struct NewEpoch<'o> {
    pub(super) id: &'o str,
    pub(super) number: u64,
    pub(super) reason: &'o str,
    pub(super) request: &'o Request,
}

impl NewEpoch<'_> {
    /// The epoch as it is to be stored.
    pub(super) fn epoch(&self, built: &Built) -> Result<Epoch, ConversationError> {
        let Built { world, build, state, template, caller } = built;
        let fixed = &world.resolved.profile.fixed;
        let damaged = |why: String| StoreError::Damaged { what: "the prompt".into(), why: why.into() };
        let prompt = StoredPrompt::from_frozen(build.frozen()).map_err(|error| damaged(error.to_string()))?;
        let boundary = build.suffix().boundary();
        let base = (template.as_ref().map(|template| template.text.clone()), *caller);
        let details = EpochDetails::new(build.policy(), boundary, state, fixed, base);
        let sources = details.to_json(state).map_err(|error| damaged(error.to_string()))?;
        let policy = build.policy();
        let head = EpochHead {
            conversation: self.id.to_owned(),
            number: self.number,
            reason: self.reason.to_owned(),
            digest: build.frozen().digest().hex(),
            fingerprint: build.fingerprint().whole.hex(),
            profile: build.frozen().profile().to_owned(),
            engine: env!("CARGO_PKG_VERSION").to_owned(),
            cwd: policy.cwd.clone(),
            model: self.request.model.clone(),
            has_turn: policy.has_turn,
            opened_at: now(),
            template_version: template.as_ref().and_then(|template| template.version),
        };
        head.check().map_err(Error::request)?;
        // What the request left to the configuration and to the process is part of what was frozen.
        let (profile, cwd) = (Some(head.profile.clone()), Some(head.cwd.clone()));
        let cwd = cwd.filter(|_| self.request.workspace.is_none());
        let request = Request { profile, cwd, ..without_call(self.request) };
        Ok(Epoch { head, prompt, request: request.to_json()?, sources: Some(sources) })
    }
}

/// Tells whether a request names the base of its prompt.
pub(super) const fn has_base(request: &Request) -> bool {
    request.system.is_some() || request.template.is_some() || request.instruction.is_some()
}

/// Takes an update as a caller gave it. A relative directory becomes absolute: a later call may come from another one.
pub(super) fn received(update: impl Into<RequestUpdate>) -> RequestUpdate {
    let update = update.into();
    match update.given().cwd.as_deref().and_then(absolute_cwd) {
        Some(cwd) => update.with_cwd(cwd),
        None => update,
    }
}

pub(super) fn check_id(id: &str) -> Result<(), ConversationError> {
    if is_conversation_id(id) { Ok(()) } else { Err(ConversationError::BadId) }
}
