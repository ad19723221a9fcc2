//! An engine: the pipeline with the hooks that take part in it.

use std::sync::Arc;

use proem_core::frozen::Suffix;
use proem_core::note::{Note, Severity};

use super::{build_parts, build_with};
use crate::build::Build;
use crate::error::Error;
use crate::hooks::{Hook, HookFailure, Resources};
use crate::request::Request;
use crate::request::caller::Caller;
use crate::sections::Parts;
use crate::sections::build_state::BuildState;

/// A callback for hooks that failed.
type OnFailure = Arc<dyn Fn(&HookFailure) + Send + Sync>;

/// Builds prompts, with the hooks that take part in it.
#[derive(Clone, Default)]
pub struct Engine {
    pub(crate) hooks: Vec<Arc<dyn Hook>>,
    on_failure: Option<OnFailure>,
    withholds_hook_output: bool,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<&str> = self.hooks.iter().map(|hook| hook.name()).collect();
        formatter.debug_struct("Engine").field("hooks", &names).finish_non_exhaustive()
    }
}

impl Engine {
    /// An engine without hooks of its own; those of the user's configuration always take part.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Registers a hook after those that are registered.
    #[must_use]
    pub fn with_hook(mut self, hook: impl Hook + 'static) -> Self {
        self.hooks.push(Arc::new(hook));
        self
    }

    /// Calls `tell` for each hook that fails while a prompt is built. The notes of a prompt for a remote client do
    /// not contain the hook's output; a server logs it.
    #[must_use]
    pub fn on_hook_failure(mut self, tell: impl Fn(&HookFailure) + Send + Sync + 'static) -> Self {
        self.on_failure = Some(Arc::new(tell));
        self
    }

    /// Leaves the output of a failed hook out of the notes of every prompt, including those for the local user.
    ///
    /// For prompts that a store keeps: other clients of the store read their notes. The details still reach
    /// [`on_hook_failure`](Self::on_hook_failure).
    #[must_use]
    pub fn without_hook_output(mut self) -> Self {
        self.withholds_hook_output = true;
        self
    }

    /// Builds a prompt.
    pub fn build(&self, request: &Request, caller: Caller) -> Result<Build, Error> {
        self.build_with(request, caller, &mut BuildState::default())
    }

    /// Builds a prompt from the stored state, and reports the hooks that failed now.
    pub(crate) fn build_with(
        &self,
        request: &Request,
        caller: Caller,
        memory: &mut BuildState,
    ) -> Result<Build, Error> {
        let is_asked_now = memory.resources.is_none();
        memory.withholds_hook_output = self.withholds_hook_output;
        let built = build_with(request, caller, &self.hooks, memory);
        if let Some(tell) = self.on_failure.as_ref().filter(|_| is_asked_now) {
            memory.hook_failures.iter().for_each(|failure| tell(failure));
        }
        built
    }

    /// Observes the facts of one turn and nothing else: no frozen file is read again.
    pub fn observe(&self, request: &Request, caller: Caller) -> Result<TurnFacts, Error> {
        // Resources from hooks belong to the frozen part: the hooks ran for that.
        let mut memory = BuildState { resources: Some(Resources::default()), ..BuildState::default() };
        let build = build_parts(request, caller, &self.hooks, &mut memory, Parts::Turn)?;
        let (frozen, suffix) = build.into_parts();
        let notes = frozen.notes().iter().filter(|note| note.severity > Severity::Info);
        Ok(TurnFacts { notes: notes.cloned().collect(), suffix })
    }
}

/// The part of a prompt that belongs to one turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnFacts {
    /// The text after the frozen prompt.
    pub suffix: Suffix,
    /// Notes for the reader.
    pub notes: Vec<Note>,
}
