//! An engine: the pipeline with the hooks that take part in it.

use std::sync::Arc;

use super::{BuildInput, build_in, within_limits};
use crate::build::Build;
use crate::error::Error;
use crate::hooks::{Hook, HookFailure};
use crate::request::Request;
use crate::request::caller::Caller;
use crate::sections::Parts;
use crate::sections::build_state::BuildState;
use crate::settings::world::World;

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
        state: &mut BuildState,
    ) -> Result<Build, Error> {
        within_limits(|| {
            let world = World::read(request, caller)?;
            self.build_in(&world, request, state)
        })
    }

    /// Builds a prompt in a world that was read before. The caller sets the limits of the operation.
    pub(crate) fn build_in(
        &self,
        world: &World,
        request: &Request,
        state: &mut BuildState,
    ) -> Result<Build, Error> {
        let is_asked_now = state.resources.is_none();
        state.withholds_hook_output = self.withholds_hook_output;
        let built = build_in(world, BuildInput { request, hooks: &self.hooks }, state, Parts::All);
        if is_asked_now {
            self.report(&state.hook_failures);
        }
        built
    }

    /// Builds the part of a prompt for one turn, and reads nothing that is frozen.
    pub(crate) fn observe_in(
        &self,
        world: &World,
        request: &Request,
        state: &mut BuildState,
    ) -> Result<Build, Error> {
        // Resources from hooks belong to the frozen part: the hooks ran for that.
        state.resources.get_or_insert_default();
        build_in(world, BuildInput { request, hooks: &self.hooks }, state, Parts::Turn)
    }

    /// Reports hooks that failed to the callback, if there is one.
    pub(crate) fn report(&self, failures: &[HookFailure]) {
        if let Some(tell) = &self.on_failure {
            for failure in failures {
                tell(failure);
            }
        }
    }

    /// Returns the reader of notes about hooks: a remote one if the output of failed hooks is withheld.
    pub(crate) const fn reader(&self, caller: Caller) -> Caller {
        if self.withholds_hook_output { Caller::REMOTE } else { caller }
    }
}
