//! Callables of another language as hooks: events and answers are JSON, as for the commands of a configuration.

use std::sync::Arc;

use proem::Hook;
use proem::hooks::{
    AgentStart, BeforeAgentStart, ContextEvent, HookError, HookEvent, Message, ResourcePaths,
    ResourcesDiscover,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::failure::Failure;

/// A callable of another language.
pub trait Callable: Send + Sync {
    /// Calls it with an event, and returns its answer as JSON; `null` for none. An error is the text of what it raised.
    fn call(&self, event: String) -> Result<String, String>;
}

/// A callable that is registered for one event.
#[derive(Clone)]
pub(crate) struct CallableHook {
    name: String,
    event: HookEvent,
    callable: Arc<dyn Callable>,
}

impl CallableHook {
    /// Registers a callable for the event of a name.
    pub(crate) fn new(event: &str, name: &str, callable: Arc<dyn Callable>) -> Result<Self, Failure> {
        let events = [HookEvent::ResourcesDiscover, HookEvent::BeforeAgentStart, HookEvent::Context];
        let found = events.into_iter().find(|known| known.word() == event);
        let event = found.ok_or_else(|| {
            let words = events.map(HookEvent::word).join("`, `");
            Failure::bad_request(format!("unknown event `{event}`"))
                .with_hint(format!("use one of `{words}`"))
        })?;
        Ok(Self { name: name.to_owned(), event, callable })
    }

    /// Calls it, if it is registered for this event.
    fn ask<A: DeserializeOwned>(
        &self,
        event: HookEvent,
        sent: &impl Serialize,
    ) -> Result<Option<A>, HookError> {
        if event != self.event {
            return Ok(None);
        }
        let sent = serde_json::to_string(sent).map_err(HookError::from_error)?;
        let answer = self.callable.call(sent).map_err(HookError::new)?;
        serde_json::from_str(&answer)
            .map_err(|error| HookError::new(format!("its answer is invalid: {error}")))
    }
}

impl Hook for CallableHook {
    fn name(&self) -> &str {
        &self.name
    }

    fn resources_discover(&self, event: &ResourcesDiscover) -> Result<Option<ResourcePaths>, HookError> {
        self.ask(HookEvent::ResourcesDiscover, event)
    }

    fn before_agent_start(&self, event: &BeforeAgentStart) -> Result<Option<AgentStart>, HookError> {
        self.ask(HookEvent::BeforeAgentStart, event)
    }

    fn context(&self, event: &ContextEvent) -> Result<Option<Vec<Message>>, HookError> {
        #[derive(serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Answer {
            messages: Vec<Message>,
        }
        let Some(answer) = self.ask::<Box<RawValue>>(HookEvent::Context, event)? else { return Ok(None) };
        let invalid = |error: serde_json::Error| HookError::new(format!("its answer is invalid: {error}"));
        // A list of messages stands for an object with that list.
        if answer.get().starts_with('[') {
            return serde_json::from_str(answer.get()).map(Some).map_err(invalid);
        }
        let Answer { messages } = serde_json::from_str(answer.get()).map_err(invalid)?;
        Ok(Some(messages))
    }
}
