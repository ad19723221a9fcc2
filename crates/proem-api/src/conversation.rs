//! One conversation of a store, with requests and answers as JSON.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use proem::deliver::{DeliverOptions, ProviderName, RawMessage, deliver};
use proem::hooks::ResourcePaths;
use proem::models::Models;
use proem::request::RequestUpdate;
use proem::turn_shape::TurnShape;
use proem::{Caller, Tool, Turn};
use proem_store::{Changed, ConversationError, Conversations, LoadedEpoch};
use serde::de::DeserializeOwned;

use crate::epoch::EpochAnswer;
use crate::failure::Failure;
use crate::fields::merged;
use crate::hook::{Callable, CallableHook};
use crate::shapes::{ChangeAnswer, ConversationAnswer, DiffAnswer};
use crate::store::{Opened, Store};

const CALLER: Caller = Caller::User;

/// A conversation of a store. It exists from its first turn on.
pub struct Conversation {
    store: Arc<Store>,
    id: String,
    handle: u64,
    /// The fields of a request that the next turn gets, until one succeeds.
    fields: Mutex<Option<String>>,
    hooks: Mutex<Vec<CallableHook>>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Conversation {
    fn drop(&mut self) {
        self.store.forget(self.handle);
    }
}

impl Conversation {
    /// Makes a handle. The fields of the request go with its first turn.
    pub fn new(store: &Arc<Store>, id: &str, fields: &str) -> Result<Self, Failure> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        if !proem_store::is_conversation_id(id) {
            return Err(ConversationError::BadId.into());
        }
        let update = RequestUpdate::from_json(fields)?;
        if update.given().conversation.as_ref().is_some_and(|named| named != id) {
            return Err(Failure::bad_request("`conversation` is not the id of this conversation"));
        }
        let fields = Some(fields.to_owned()).filter(|fields| fields.trim() != "{}");
        let handle = NEXT.fetch_add(1, Ordering::Relaxed);
        Ok(Self {
            store: Arc::clone(store),
            id: id.to_owned(),
            handle,
            fields: Mutex::new(fields),
            hooks: Mutex::default(),
        })
    }

    /// Returns its id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns its store.
    #[must_use]
    pub const fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// Registers a callable for `before_agent_start`, `context` or `resources_discover`, after those that are registered.
    pub fn add_hook(&self, event: &str, name: &str, callable: Arc<dyn Callable>) -> Result<(), Failure> {
        let hook = CallableHook::new(event, name, callable)?;
        locked(&self.hooks).push(hook);
        Ok(())
    }

    fn conversations(&self) -> Result<(Arc<Opened>, Arc<Conversations>), Failure> {
        let opened = self.store.current()?;
        let hooks = locked(&self.hooks);
        let conversations = opened.conversations(self.handle, &hooks);
        Ok((opened, conversations))
    }

    /// Answers one turn.
    pub fn turn(&self, fields: &str) -> Result<Turn, Failure> {
        let (_opened, conversations) = self.conversations()?;
        let turn = self.with_fields(fields, |update| conversations.turn(&self.id, update, CALLER))?;
        Ok(turn)
    }

    /// Does work with the fields of a call and those that wait for the first one.
    fn with_fields<T>(
        &self,
        fields: &str,
        work: impl FnOnce(RequestUpdate) -> Result<T, ConversationError>,
    ) -> Result<T, Failure> {
        let waiting = locked(&self.fields).clone();
        let update = match &waiting {
            None => RequestUpdate::from_json(fields)?,
            Some(waiting) => RequestUpdate::from_json(&merged(waiting, fields)?)?,
        };
        if update.given().conversation.as_ref().is_some_and(|named| *named != self.id) {
            return Err(Failure::bad_request("`conversation` is not the id of this conversation"));
        }
        let done = work(update)?;
        let mut kept = locked(&self.fields);
        if *kept == waiting {
            *kept = None;
        }
        Ok(done)
    }

    /// Builds the prompt again from the files as they are now.
    pub fn reload(&self, fields: &str) -> Result<String, Failure> {
        let (_opened, all) = self.conversations()?;
        changed(&self.with_fields(fields, |update| all.reload(&self.id, update, CALLER))?)
    }

    /// Searches for skills again; other files stay as they were read.
    pub fn reload_skills(&self) -> Result<String, Failure> {
        changed(&self.conversations()?.1.reload_skills(&self.id, CALLER)?)
    }

    /// Replaces all tools: a JSON list.
    pub fn set_tool_registry(&self, tools: &str) -> Result<String, Failure> {
        let tools: Vec<Tool> = parsed("tools", tools)?;
        changed(&self.conversations()?.1.set_tool_registry(&self.id, &tools, CALLER)?)
    }

    /// Sets the active tools, by name.
    pub fn set_active_tools(&self, names: &[String]) -> Result<String, Failure> {
        changed(&self.conversations()?.1.set_active_tools(&self.id, names, CALLER)?)
    }

    /// Adds skills, packs and asset folders: an object with lists of paths.
    pub fn add_resources(&self, paths: &str) -> Result<String, Failure> {
        let paths: ResourcePaths = parsed("resources", paths)?;
        changed(&self.conversations()?.1.add_resources(&self.id, &paths, CALLER)?)
    }

    /// Goes on with another profile.
    pub fn switch_profile(&self, profile: &str) -> Result<String, Failure> {
        changed(&self.conversations()?.1.switch_profile(&self.id, profile, CALLER)?)
    }

    /// Begins a compaction.
    pub fn begin_compaction(&self, fields: &str) -> Result<String, Failure> {
        let (_opened, all) = self.conversations()?;
        let begun = self.with_fields(fields, |update| all.begin_compaction(&self.id, update, CALLER))?;
        Ok(serde_json::to_string(&begun.shape())?)
    }

    /// Opens the epoch after a compaction.
    pub fn commit_compaction(&self, token: &str) -> Result<String, Failure> {
        let (_opened, all) = self.conversations()?;
        let epoch = all.commit_compaction(&self.id, token, CALLER)?;
        let pending = all.pending(&self.id)?;
        changed(&Changed { epoch, is_opened: true, pending, notes: Vec::new() })
    }

    /// Ends a compaction without an epoch.
    pub fn abort_compaction(&self, token: &str) -> Result<(), Failure> {
        Ok(self.conversations()?.1.abort_compaction(&self.id, token)?)
    }

    /// Shows the changes that a reload would make. Nothing is changed.
    pub fn plan(&self, fields: &str) -> Result<String, Failure> {
        let (_opened, all) = self.conversations()?;
        let plan = all.plan_reload(&self.id, RequestUpdate::from_json(fields)?, CALLER)?;
        Ok(serde_json::to_string(&ChangeAnswer::planned(&all, &self.id, &plan, CALLER)?)?)
    }

    /// Shows the changes that other tools would make: a JSON list. Nothing is changed.
    pub fn plan_tools(&self, tools: &str) -> Result<String, Failure> {
        let tools: Vec<Tool> = parsed("tools", tools)?;
        let (_opened, all) = self.conversations()?;
        let plan = all.plan_tools(&self.id, &tools, CALLER)?;
        Ok(serde_json::to_string(&ChangeAnswer::planned(&all, &self.id, &plan, CALLER)?)?)
    }

    /// Compares two epochs.
    pub fn diff(&self, from: u64, to: u64) -> Result<String, Failure> {
        let (_opened, all) = self.conversations()?;
        let (before, after) = (self.stored(&all, from)?, self.stored(&all, to)?);
        Ok(serde_json::to_string(&DiffAnswer::new(&before, &after, CALLER)?)?)
    }

    fn stored(&self, all: &Conversations, number: u64) -> Result<LoadedEpoch, Failure> {
        if all.current(&self.id)?.is_none() {
            return Err(ConversationError::NoConversation(self.id.clone()).into());
        }
        let found = all.epoch(&self.id, number)?;
        found.ok_or_else(|| Failure::new("not_found", format!("there is no epoch {number}")))
    }

    /// Returns one epoch with the source of every byte, and the payload for a provider if one is named.
    pub fn epoch(&self, number: u64, provider: Option<&str>) -> Result<String, Failure> {
        let (_opened, all) = self.conversations()?;
        let kept = self.stored(&all, number)?;
        let (mut payload, mut notes) = (None, Vec::new());
        if let Some(name) = provider {
            let provider = ProviderName::find(name).map_err(|unknown| {
                let failure = Failure::bad_request(unknown.to_string());
                Failure { hint: unknown.hint(), ..failure }
            })?;
            let models = Models::load(&kept.request, CALLER)?;
            let options = DeliverOptions::default();
            let delivered = deliver(provider.provider, &kept.build(), &kept.request, &models, &options)?;
            payload = Some(delivered.payload);
            notes = delivered.notes;
        }
        Ok(serde_json::to_string(&EpochAnswer::new(&kept, payload, &notes))?)
    }

    /// Returns the conversation: its frozen prompt, and all epochs.
    pub fn history(&self) -> Result<String, Failure> {
        let (_opened, all) = self.conversations()?;
        let found = all.history(&self.id)?;
        let (kept, epochs) = found.ok_or_else(|| ConversationError::NoConversation(self.id.clone()))?;
        Ok(serde_json::to_string(&ConversationAnswer::new(&kept, epochs, all.branches(&self.id)?))?)
    }

    /// Returns the changes that wait for the next epoch.
    pub fn pending(&self) -> Result<String, Failure> {
        Ok(serde_json::to_string(&self.conversations()?.1.pending(&self.id)?)?)
    }

    /// Begins a conversation with the prompt of this one.
    pub fn fork(&self, id: &str, role: Option<&str>) -> Result<String, Failure> {
        let (_opened, all) = self.conversations()?;
        Ok(serde_json::to_string(&all.fork(&self.id, id, role, CALLER)?.shape())?)
    }

    /// Begins a conversation with a prompt of its own, from this one.
    pub fn spawn(&self, id: &str, fields: &str) -> Result<String, Failure> {
        let (_opened, all) = self.conversations()?;
        let update = RequestUpdate::from_json(fields)?;
        Ok(serde_json::to_string(&all.spawn(&self.id, id, update, CALLER)?.shape())?)
    }

    /// Forgets the conversation; tells whether there was one.
    pub fn remove(&self) -> Result<bool, Failure> {
        self.store.remove(&self.id)
    }
}

fn changed(changed: &Changed) -> Result<String, Failure> {
    Ok(serde_json::to_string(&ChangeAnswer::from(changed))?)
}

fn parsed<T: DeserializeOwned>(what: &str, text: &str) -> Result<T, Failure> {
    serde_json::from_str(text).map_err(|error| Failure::bad_request(format!("`{what}` is invalid: {error}")))
}

/// Returns the answer to a turn as JSON.
pub fn turn_json(turn: &Turn) -> Result<String, Failure> {
    Ok(serde_json::to_string(&TurnShape::new(turn))?)
}

/// Returns messages as a JSON list, each in its own spelling.
#[must_use]
pub fn messages_json(messages: &[RawMessage]) -> String {
    let texts: Vec<&str> = messages.iter().map(RawMessage::get).collect();
    format!("[{}]", texts.join(","))
}
