//! One conversation, as a handle.

use std::sync::Arc;

use super::change::{Changed, Plan};
use super::compact::StartedCompaction;
use super::conversations::{Conversations, LoadedEpoch};
use super::error::ConversationError;
use super::store::{MemoryStore, Store};
use crate::build::PendingField;
use crate::deliver::turn::Turn;
use crate::engine::Engine;
use crate::hooks::ResourcePaths;
use crate::request::caller::Caller;
use crate::request::{Request, RequestUpdate, Tool};

/// The id of a conversation in memory whose request has none.
const UNNAMED: &str = "conversation";

/// One conversation: its prompt is frozen until something that its profile allows rebuilds it.
#[derive(Clone)]
pub struct Conversation {
    conversations: Arc<Conversations>,
    id: String,
    caller: Caller,
}

impl Engine {
    /// Begins a conversation in the memory of this process: builds its prompt and freezes it.
    ///
    /// ```
    /// use proem::{Caller, Engine, Request};
    ///
    /// let request = Request::from_json(
    ///     r#"{"profile": "layers", "project": false, "tools": [{"name": "read"}, {"name": "bash"}]}"#,
    /// )?;
    /// let conversation = Engine::new().start(request, Caller::User)?;
    /// // The same tools in another order do not change the prompt.
    /// assert!(!conversation.set_active_tools(&["bash", "read"])?.is_opened);
    /// let changed = conversation.set_active_tools(&["read"])?;
    /// assert!(changed.is_opened && changed.epoch.head.number == 2);
    ///
    /// let turn = conversation.turn(Request { prompt: Some("Hello".into()), ..Request::default() })?;
    /// assert!(turn.system_prompt.contains("- read: Read file contents"));
    /// assert_eq!(turn.messages.len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn start(
        &self,
        request: impl Into<RequestUpdate>,
        caller: Caller,
    ) -> Result<Conversation, ConversationError> {
        let update = request.into();
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let (id, conversations) = match &update.given().conversation {
            Some(id) => (id.clone(), Conversations::in_memory(store, self.clone())),
            None => (UNNAMED.to_owned(), Conversations::unnamed(store, self.clone())),
        };
        let conversation = Conversation::new(Arc::new(conversations), &id, caller);
        conversation.conversations.begin(&id, update, caller)?;
        Ok(conversation)
    }

    /// Answers one turn of a conversation that is not kept.
    pub fn turn(&self, request: impl Into<RequestUpdate>, caller: Caller) -> Result<Turn, ConversationError> {
        let conversations = Conversations::unnamed(Arc::new(MemoryStore::new()), self.clone());
        conversations.turn(UNNAMED, request, caller)
    }
}

impl Conversation {
    /// A conversation of a store. It exists from its first turn on.
    #[must_use]
    pub fn new(conversations: Arc<Conversations>, id: &str, caller: Caller) -> Self {
        Self { conversations, id: id.to_owned(), caller }
    }

    /// Returns its id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the epoch in force.
    pub fn epoch(&self) -> Result<Arc<LoadedEpoch>, ConversationError> {
        let current = self.conversations.current(&self.id)?;
        current.ok_or_else(|| ConversationError::NoConversation(self.id.clone()))
    }

    /// Answers one turn: the frozen prompt, and everything else that the model sees.
    pub fn turn(&self, update: impl Into<RequestUpdate>) -> Result<Turn, ConversationError> {
        self.conversations.turn(&self.id, update, self.caller)
    }

    /// Reads everything again.
    pub fn reload(&self) -> Result<Changed, ConversationError> {
        self.conversations.reload(&self.id, RequestUpdate::default(), self.caller)
    }

    /// Searches for skills again.
    pub fn reload_skills(&self) -> Result<Changed, ConversationError> {
        self.conversations.reload_skills(&self.id, self.caller)
    }

    /// Replaces all tools. Active ones stay active while they exist, and new ones become active.
    pub fn set_tool_registry(&self, tools: &[Tool]) -> Result<Changed, ConversationError> {
        self.conversations.set_tool_registry(&self.id, tools, self.caller)
    }

    /// Sets the active tools, by name and in this order. Unknown names are ignored with a note; the same set in another
    /// order does not count as a change.
    pub fn set_active_tools(&self, names: &[&str]) -> Result<Changed, ConversationError> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        self.conversations.set_active_tools(&self.id, &names, self.caller)
    }

    /// Adds skills, packs and asset folders after the present ones.
    pub fn add_resources(&self, paths: &ResourcePaths) -> Result<Changed, ConversationError> {
        self.conversations.add_resources(&self.id, paths, self.caller)
    }

    /// Goes on with another profile.
    pub fn switch_profile(&self, profile: &str) -> Result<Changed, ConversationError> {
        self.conversations.switch_profile(&self.id, profile, self.caller)
    }

    /// Compares the frozen prompt with one that is built now. Nothing is changed.
    pub fn drift(&self) -> Result<Plan, ConversationError> {
        self.conversations.plan_reload(&self.id, RequestUpdate::default(), self.caller)
    }

    /// Begins a conversation with the prompt of this one; the role is delivered before its first prompt.
    pub fn fork(&self, id: &str, role: Option<&str>) -> Result<Self, ConversationError> {
        self.conversations.fork(&self.id, id, role, self.caller)?;
        Ok(Self::new(Arc::clone(&self.conversations), id, self.caller))
    }

    /// Begins a conversation with a prompt of its own, by the profile that the update names.
    pub fn spawn(
        &self,
        id: &str,
        update: impl Into<RequestUpdate>,
    ) -> Result<super::branches::Branched, ConversationError> {
        self.conversations.spawn(&self.id, id, update, self.caller)
    }

    /// Returns the changes that wait for the next epoch.
    pub fn pending(&self) -> Result<Vec<PendingField>, ConversationError> {
        self.conversations.pending(&self.id)
    }

    /// Begins a compaction. The epoch in force stays in force until it is committed.
    pub fn begin_compaction(
        &self,
        update: impl Into<RequestUpdate>,
    ) -> Result<StartedCompaction, ConversationError> {
        self.conversations.begin_compaction(&self.id, update, self.caller)
    }

    /// Opens the epoch after a compaction.
    pub fn commit_compaction(&self, token: &str) -> Result<Arc<LoadedEpoch>, ConversationError> {
        self.conversations.commit_compaction(&self.id, token, self.caller)
    }

    /// Ends a compaction without an epoch.
    pub fn abort_compaction(&self, token: &str) -> Result<(), ConversationError> {
        self.conversations.abort_compaction(&self.id, token)
    }
}

/// Makes a request for one turn of the user's.
impl From<&str> for RequestUpdate {
    fn from(prompt: &str) -> Self {
        Self::from(Request { prompt: Some(prompt.to_owned()), ..Request::default() })
    }
}
