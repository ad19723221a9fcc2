//! The pipeline: read the world once, load sources, collect and render each section, assemble, freeze.

mod hooked;

use std::sync::Arc;

use proem_core::frozen::freeze;
use proem_core::note::{Note, Severity};

use crate::build::{Build, PromptPolicy};
use crate::error::{Error, StopReason};
use crate::hooks::Hook;
use crate::observe::deadline;
use crate::observe::file::{with_fixed_roots, with_source_texts};
use crate::request::Request;
use crate::request::caller::Caller;
use crate::sections::build_state::BuildState;
use crate::sections::snapshot::Snapshot;
use crate::sections::snapshot::touched::{TouchedPaths, TouchedSources};
use crate::sections::sources::Sources;
use crate::sections::{Builder, Parts};
use crate::settings::world::World;

pub use hooked::Engine;

/// Builds the prompt for `request`.
///
/// A failed build is an error, never a substitute prompt.
pub fn build(request: &Request, caller: Caller) -> Result<Build, Error> {
    let mut state = BuildState::default();
    within_limits(|| {
        let world = World::read(request, caller)?;
        build_in(&world, BuildInput { request, hooks: &[] }, &mut state, Parts::All)
    })
}

/// The input of a build besides the world: the request, and the hooks of the program. The world has the caller.
#[derive(Clone, Copy)]
pub(crate) struct BuildInput<'i> {
    pub(crate) request: &'i Request,
    pub(crate) hooks: &'i [Arc<dyn Hook>],
}

/// Runs one operation within the limits of a build, with each root resolved once.
pub(crate) fn within_limits<T>(work: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    let done = deadline::build(|| with_fixed_roots(work));
    done.unwrap_or_else(|(why, done)| match (why, done) {
        // This error names the template and the line.
        (StopReason::Work | StopReason::Cpu, Err(error @ Error::Template(_))) => Err(error),
        _ => Err(Error::Stopped { why }),
    })
}

/// Builds all of a prompt, or the part that a later turn needs: the whole way from a request to a frozen prompt.
///
/// Sections are collected and rendered one by one, because a template names the facts that it wants only while it
/// renders. Parts that `state` has are not read again; those that it lacks are added to it.
pub(crate) fn build_in(
    world: &World,
    input: BuildInput<'_>,
    state: &mut BuildState,
    parts: Parts,
) -> Result<Build, Error> {
    let mut texts = std::mem::take(&mut state.texts);
    let built = with_source_texts(&mut texts, || pipeline(world, input, state, parts));
    state.texts = texts;
    built
}

/// Reads the sources of the sections that do not hold changes back, and returns the warnings about them.
pub(crate) fn observe_sources(
    world: &World,
    input: BuildInput<'_>,
    state: &mut BuildState,
    touched: TouchedPaths<'_>,
) -> Result<(Vec<Note>, TouchedSources), Error> {
    let mut texts = std::mem::take(&mut state.texts);
    let observed = with_source_texts(&mut texts, || {
        let BuildInput { request, hooks } = input;
        state.snapshot = Snapshot::default();
        state.resources.get_or_insert_default();
        let caller = world.host.caller();
        let parts = Parts::Announced;
        let sources = Sources::load(world, request, caller, (hooks, state), parts)?;
        let mut builder = Builder::new(world, &sources, request, caller, state);
        for recipe in world.resolved.profile.sections.iter().filter(|recipe| parts.include(recipe)) {
            let collected = builder.collect(recipe)?;
            builder.render_section(recipe, collected)?;
        }
        let touched = builder.touched(touched)?;
        let is_warning = |note: &Note| note.severity > Severity::Info;
        Ok((builder.notes.into_iter().filter(is_warning).collect(), touched))
    });
    state.texts = texts;
    observed
}

fn pipeline(
    world: &World,
    input: BuildInput<'_>,
    state: &mut BuildState,
    parts: Parts,
) -> Result<Build, Error> {
    let BuildInput { request, hooks } = input;
    state.snapshot = Snapshot::default();
    // A request that brings its own workspace reads as a remote one.
    let caller = world.host.caller();
    let sources = Sources::load(world, request, caller, (hooks, state), parts)?;
    let mut builder = Builder::new(world, &sources, request, caller, state);
    builder.check_catalog()?;
    let mut sections = Vec::new();
    for recipe in world.resolved.profile.sections.iter().filter(|recipe| parts.include(recipe)) {
        let collected = builder.collect(recipe)?;
        sections.push(builder.render_section(recipe, collected)?);
    }
    let skill_directory = builder.skill_directory.take();
    let draft = builder.assemble(sections)?;
    let (frozen, suffix) = freeze(draft);
    let policy = PromptPolicy::new(&world.resolved.profile, sources.workspace.cwd());
    let build = Build::new(frozen, suffix, request, policy);
    Ok(build.with_skill_directory(skill_directory.as_deref()))
}
