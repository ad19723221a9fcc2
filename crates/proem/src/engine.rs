//! The pipeline: read the world once, load sources, collect and render each section, assemble, freeze.

mod hooked;

use std::sync::Arc;

use proem_core::frozen::freeze;

use crate::build::Build;
use crate::error::{Error, StopReason};
use crate::hooks::Hook;
use crate::observe::deadline;
use crate::observe::file::with_fixed_roots;
use crate::request::Request;
use crate::request::caller::Caller;
use crate::sections::build_state::BuildState;
use crate::sections::sources::Sources;
use crate::sections::{Builder, Parts};
use crate::settings::world::World;

pub use hooked::{Engine, TurnFacts};

/// Builds the prompt for `request`.
///
/// A failed build is an error, never a substitute prompt.
pub fn build(request: &Request, caller: Caller) -> Result<Build, Error> {
    build_with(request, caller, &[], &mut BuildState::default())
}

/// Builds a prompt from the stored state; missing parts are discovered and added to it.
pub(crate) fn build_with(
    request: &Request,
    caller: Caller,
    hooks: &[Arc<dyn Hook>],
    state: &mut BuildState,
) -> Result<Build, Error> {
    build_parts(request, caller, hooks, state, Parts::All)
}

/// Builds all of a prompt, or the part that a later turn needs, within the limits of one build.
pub(crate) fn build_parts(
    request: &Request,
    caller: Caller,
    hooks: &[Arc<dyn Hook>],
    state: &mut BuildState,
    parts: Parts,
) -> Result<Build, Error> {
    let built = deadline::build(|| with_fixed_roots(|| pipeline(request, caller, hooks, state, parts)));
    built.unwrap_or_else(|(why, built)| match (why, built) {
        // This error names the template and the line.
        (StopReason::Work | StopReason::Cpu, Err(error @ Error::Template(_))) => Err(error),
        _ => Err(Error::Stopped { why }),
    })
}

/// The whole way from a request to a frozen prompt.
///
/// Sections are collected and rendered one by one, because a template names the facts that it wants only while it
/// renders.
fn pipeline(
    request: &Request,
    caller: Caller,
    hooks: &[Arc<dyn Hook>],
    state: &mut BuildState,
    parts: Parts,
) -> Result<Build, Error> {
    let world = World::read(request, caller)?;
    let sources = Sources::load(&world, request, caller, (hooks, state), parts)?;
    let mut builder = Builder::new(&world, &sources, request, caller, state);
    builder.check_catalog()?;
    let mut sections = Vec::new();
    for recipe in world.resolved.profile.sections.iter().filter(|recipe| parts.include(recipe)) {
        let collected = builder.collect(recipe)?;
        sections.push(builder.render_section(recipe, collected)?);
    }
    let draft = builder.assemble(sections)?;
    let (frozen, suffix) = freeze(draft);
    Ok(Build::new(frozen, suffix, request, sources.workspace.cwd()))
}
