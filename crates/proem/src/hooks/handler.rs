//! One handler, in Rust or a command, called so that it cannot break the build.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use crate::observe::deadline;

use super::command::{CommandHook, HookEvent};
use super::{
    AgentStart, BeforeAgentStart, ContextEvent, Hook, HookError, HookFailure, HookFailureReason, Message,
    ResourcePaths, ResourcesDiscover,
};

/// A registered handler.
#[derive(Clone)]
pub(crate) enum Handler {
    Rust(Arc<dyn Hook>),
    Command(CommandHook),
}

/// All handlers: the program's own first, then those of the configuration.
pub(crate) fn handlers(own: &[Arc<dyn Hook>], configured: &[CommandHook]) -> Vec<Handler> {
    let own = own.iter().cloned().map(Handler::Rust);
    own.chain(configured.iter().cloned().map(Handler::Command)).collect()
}

impl Handler {
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Rust(hook) => hook.name().to_owned(),
            Self::Command(hook) => hook.name.clone(),
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
            Self::Rust(hook) => watched(hook, event.clone(), |hook, event| hook.resources_discover(event)),
            Self::Command(hook) => hook.ask(HookEvent::ResourcesDiscover, event),
        }
    }

    pub(super) fn before_agent_start(
        &self,
        event: &BeforeAgentStart,
    ) -> Result<Option<AgentStart>, HookFailureReason> {
        match self {
            Self::Rust(hook) => watched(hook, event.clone(), |hook, event| hook.before_agent_start(event)),
            Self::Command(hook) => hook.ask(HookEvent::BeforeAgentStart, event),
        }
    }

    pub(super) fn context(&self, event: &ContextEvent) -> Result<Option<Vec<Message>>, HookFailureReason> {
        #[derive(serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Answer {
            messages: Vec<Message>,
        }
        match self {
            Self::Rust(hook) => watched(hook, event.clone(), |hook, event| hook.context(event)),
            Self::Command(hook) => {
                let answer: Option<Answer> = hook.ask(HookEvent::Context, event)?;
                Ok(answer.map(|answer| answer.messages))
            }
        }
    }
}

/// The interval at which the build's deadline is checked while a handler runs.
const LOOK_TIME: Duration = Duration::from_millis(20);

/// Calls a Rust handler on a thread of its own: a panic or a late answer is the handler's failure and not the build's.
fn watched<E, A>(
    hook: &Arc<dyn Hook>,
    event: E,
    call: impl FnOnce(&dyn Hook, &E) -> Result<A, HookError> + Send + 'static,
) -> Result<A, HookFailureReason>
where
    E: Send + 'static,
    A: Send + 'static,
{
    let (sender, receiver) = mpsc::channel();
    let (own, time_max) = (Arc::clone(hook), hook.time_max());
    let build = deadline::inherited();
    let work = move || {
        let answer = build.within(|| catch_unwind(AssertUnwindSafe(|| call(own.as_ref(), &event))));
        // A late answer is ignored.
        let answer = answer.map_or_else(
            |_| Err(HookFailureReason::plain("it panicked")),
            |answer| answer.map_err(HookFailureReason::from),
        );
        let _ = sender.send(answer);
    };
    thread::Builder::new()
        .name("hook".to_owned())
        .spawn(work)
        .map_err(|error| HookFailureReason::plain(format!("cannot start a thread for it: {error}")))?;
    let started = Instant::now();
    loop {
        let left = time_max.saturating_sub(started.elapsed());
        match receiver.recv_timeout(left.min(LOOK_TIME)) {
            Ok(answer) => return answer,
            Err(RecvTimeoutError::Timeout) if !left.is_zero() => {
                deadline::check()
                    .map_err(|why| HookFailureReason::plain(format!("the build was stopped: {why}")))?;
            }
            Err(_) => {
                return Err(HookFailureReason::plain(format!(
                    "it took longer than {} ms",
                    time_max.as_millis()
                )));
            }
        }
    }
}
