//! One handler, in Rust or of the configuration, called so that it cannot break the build.

use std::sync::Arc;

use super::configured::{ConfiguredHook, HookEvent};
use super::watched::watched;
use super::{
    AgentStart, BeforeAgentStart, ContextEvent, Hook, HookError, HookFailure, HookFailureReason, Message,
    ResourcePaths, ResourcesDiscover,
};

/// A registered handler.
#[derive(Clone)]
pub(crate) enum Handler {
    Rust(Arc<dyn Hook>),
    Configured(ConfiguredHook),
}

/// All handlers: the program's own first, then those of the configuration.
pub(crate) fn handlers(own: &[Arc<dyn Hook>], configured: &[ConfiguredHook]) -> Vec<Handler> {
    let own = own.iter().cloned().map(Handler::Rust);
    own.chain(configured.iter().cloned().map(Handler::Configured)).collect()
}

impl Handler {
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Rust(hook) => hook.name().to_owned(),
            Self::Configured(hook) => hook.name.clone(),
        }
    }

    /// A failed call of this handler.
    pub(super) fn failure(&self, event: HookEvent, why: HookFailureReason) -> HookFailure {
        HookFailure::new(self.name(), event, why)
    }

    pub(super) fn resources_discover(
        &self,
        event: &ResourcesDiscover,
    ) -> Result<Option<ResourcePaths>, HookFailureReason> {
        match self {
            Self::Rust(hook) => called(hook, event.clone(), |hook, event| hook.resources_discover(event)),
            Self::Configured(hook) => hook.ask(HookEvent::ResourcesDiscover, event),
        }
    }

    pub(super) fn before_agent_start(
        &self,
        event: &BeforeAgentStart,
    ) -> Result<Option<AgentStart>, HookFailureReason> {
        match self {
            Self::Rust(hook) => called(hook, event.clone(), |hook, event| hook.before_agent_start(event)),
            Self::Configured(hook) => hook.ask(HookEvent::BeforeAgentStart, event),
        }
    }

    pub(super) fn context(&self, event: &ContextEvent) -> Result<Option<Vec<Message>>, HookFailureReason> {
        #[derive(serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Answer {
            messages: Vec<Message>,
        }
        match self {
            Self::Rust(hook) => called(hook, event.clone(), |hook, event| hook.context(event)),
            Self::Configured(hook) => {
                let answer: Option<Answer> = hook.ask(HookEvent::Context, event)?;
                Ok(answer.map(|answer| answer.messages))
            }
        }
    }
}

/// Calls a Rust handler on a thread of its own.
fn called<E, A>(
    hook: &Arc<dyn Hook>,
    event: E,
    call: impl FnOnce(&dyn Hook, &E) -> Result<A, HookError> + Send + 'static,
) -> Result<A, HookFailureReason>
where
    E: Send + 'static,
    A: Send + 'static,
{
    let (own, time_max) = (Arc::clone(hook), hook.time_max());
    watched(time_max, move || call(own.as_ref(), &event).map_err(HookFailureReason::from))
}
