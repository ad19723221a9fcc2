//! A hook in Rust, made of closures.

use std::time::Duration;

use proem::Hook;
use proem::hooks::{
    AgentStart, BeforeAgentStart, ContextEvent, HookError, Message, ResourcePaths, ResourcesDiscover,
};

type Answer<A> = Result<Option<A>, HookError>;
type Call<E, A> = Box<dyn Fn(&E) -> Answer<A> + Send + Sync>;

/// Long enough for any machine.
const PATIENT: Duration = Duration::from_mins(5);

pub(crate) struct Own {
    name: &'static str,
    time_max: Duration,
    start: Call<BeforeAgentStart, AgentStart>,
    context: Call<ContextEvent, Vec<Message>>,
    discover: Call<ResourcesDiscover, ResourcePaths>,
}

impl Own {
    pub(crate) fn new(name: &'static str) -> Self {
        Self {
            name,
            time_max: PATIENT,
            start: Box::new(|_| Ok(None)),
            context: Box::new(|_| Ok(None)),
            discover: Box::new(|_| Ok(None)),
        }
    }

    /// Makes a hook that adds its own name to the system prompt.
    pub(crate) fn mark(name: &'static str) -> Self {
        Self::new(name).starting(move |event| {
            let system_prompt = Some(format!("{}|{name}", event.system_prompt));
            Ok(Some(AgentStart { system_prompt, message: None }))
        })
    }

    /// Makes a hook that sets the system prompt to this text.
    pub(crate) fn set(name: &'static str, text: &'static str) -> Self {
        Self::new(name)
            .starting(move |_| Ok(Some(AgentStart { system_prompt: Some(text.to_owned()), message: None })))
    }

    pub(crate) fn starting(
        mut self,
        call: impl Fn(&BeforeAgentStart) -> Answer<AgentStart> + Send + Sync + 'static,
    ) -> Self {
        self.start = Box::new(call);
        self
    }

    pub(crate) fn rewriting(
        mut self,
        call: impl Fn(&ContextEvent) -> Answer<Vec<Message>> + Send + Sync + 'static,
    ) -> Self {
        self.context = Box::new(call);
        self
    }

    pub(crate) fn discovering(
        mut self,
        call: impl Fn(&ResourcesDiscover) -> Answer<ResourcePaths> + Send + Sync + 'static,
    ) -> Self {
        self.discover = Box::new(call);
        self
    }

    pub(crate) fn within(mut self, time_max: Duration) -> Self {
        self.time_max = time_max;
        self
    }
}

impl Hook for Own {
    fn name(&self) -> &str {
        self.name
    }

    fn time_max(&self) -> Duration {
        self.time_max
    }

    fn resources_discover(&self, event: &ResourcesDiscover) -> Answer<ResourcePaths> {
        (self.discover)(event)
    }

    fn before_agent_start(&self, event: &BeforeAgentStart) -> Answer<AgentStart> {
        (self.start)(event)
    }

    fn context(&self, event: &ContextEvent) -> Answer<Vec<Message>> {
        (self.context)(event)
    }
}
