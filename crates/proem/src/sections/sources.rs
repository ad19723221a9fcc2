//! The sources of a build besides files: tools, libraries, the catalog, and resources from hooks.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use proem_core::note::{Code, Note, Severity};

use crate::discover::catalog::{Catalog, RequestPack};
use crate::discover::libraries::Libraries;
use crate::error::Error;
use crate::hooks::{self, Hook, HookFailure, Resources, ResourcesDiscover};
use crate::observe::file::{canonical, shown};
use crate::observe::workspace::Workspace;
use crate::request::Request;
use crate::request::caller::{Author, Caller};
use crate::sections::Parts;
use crate::sections::build_state::BuildState;
use crate::sections::resolver::Resolver;
use crate::sections::tools::Tools;
use crate::sections::{base_text, unused_fields};
use crate::settings::profiles::ResolvedProfile;
use crate::settings::world::World;

/// The sources of one build.
pub(crate) struct Sources {
    /// The workspace as the profile names its folder.
    pub(crate) workspace: Workspace,
    pub(crate) tools: Tools,
    pub(crate) resources: Resources,
    pub(crate) libraries: Libraries,
    pub(crate) catalog: Catalog,
    /// Notes about the profile, the hooks and the tools.
    pub(crate) notes: Vec<Note>,
}

impl Sources {
    /// Loads the sources of a request. Hooks run only if `state` has no result of theirs.
    pub(crate) fn load(
        world: &World,
        request: &Request,
        caller: Caller,
        hooks: (&[Arc<dyn Hook>], &mut BuildState),
        parts: Parts,
    ) -> Result<Self, Error> {
        let (hooks, state) = hooks;
        let ResolvedProfile { profile, notes, .. } = &world.resolved;
        let workspace = world.workspace.seen_by(profile);
        base_text::refuse_two(request)?;
        let tools = Tools::new(request, profile)?;
        let is_run_now = state.resources.is_none();
        let (mut resources, failures) = resources(state, hooks, world, &workspace);
        let (added, refused) = added(state, world, &workspace, request);
        resources.extend(added);
        if is_run_now {
            let reader = if state.withholds_hook_output { Caller::REMOTE } else { caller };
            state.hook_notes = failures.iter().map(|failure| failure.note(reader)).collect();
        }
        // They belong to the prompt that was built without the hooks that failed.
        let hook_notes = state.hook_notes.iter().filter(|_| parts == Parts::All).cloned();
        let notes = notes.iter().cloned().chain(hook_notes).chain(tools.notes.iter().cloned());
        let notes = notes.chain(refused.iter().map(|path| not_added(path))).collect();
        let libraries = Libraries::new(&world.host, &workspace).with_folders(&resources.assets);
        let catalog = catalog(world, &workspace, request, caller, &resources)?;
        Ok(Self { workspace, tools, resources, libraries, catalog, notes })
    }
}

/// Returns the resources that were added to the conversation, and the paths of those that are out of the caller's reach: a
/// remote client may name those of its workspace only, where hooks of the user may name any.
fn added(
    state: &BuildState,
    world: &World,
    workspace: &Workspace,
    request: &Request,
) -> (Resources, Vec<PathBuf>) {
    let World { host, config, .. } = world;
    let mut added = Resources::default();
    added.add(&state.added, Path::new(workspace.cwd()), host.home().as_deref());
    if !host.caller().is_remote() {
        return (added, Vec::new());
    }
    let policy = Resolver::new(request, host, workspace, config).read_policy(Author::Other);
    let is_near = |path: &PathBuf| {
        policy.check_as_written(path).is_ok() && canonical(path).map_or(true, |real| policy.allows(&real))
    };
    let Resources { skills, packs, assets } = &mut added;
    let mut lists = [skills, packs, assets];
    let mut refused = Vec::new();
    for list in &mut lists {
        refused.extend(list.extract_if(.., |path| !is_near(path)));
    }
    (added, refused)
}

/// Notes an added path that a remote client may not name, whether or not something is there.
fn not_added(path: &Path) -> Note {
    let message = format!("the added path {} is not used: it is outside of the workspace", shown(path));
    Note::new(Code::RootNotAllowed, Severity::Warning, message)
        .with_hint("add paths below the working directory or its git repository")
}

/// Loads the catalog where a section takes its wording from it.
fn catalog(
    world: &World,
    workspace: &Workspace,
    request: &Request,
    caller: Caller,
    resources: &Resources,
) -> Result<Catalog, Error> {
    let World { host, config, resolved, .. } = world;
    if !resolved.profile.sections.iter().any(unused_fields::is_catalogued) {
        return Ok(Catalog::default());
    }
    let author = if caller.is_remote() { Author::Other } else { Author::User };
    let policy = Resolver::new(request, host, workspace, config).read_policy(author);
    let own = request.packs.iter().flatten().map(|path| RequestPack::Given(path.into(), policy.clone()));
    let packs: Vec<RequestPack> =
        own.chain(resources.packs.iter().cloned().map(RequestPack::OfHook)).collect();
    Catalog::load(host, workspace, &packs, request.project != Some(false))
}

/// Returns the resources from hooks: the stored result, or that of running them now.
pub(crate) fn resources(
    state: &mut BuildState,
    hooks: &[Arc<dyn Hook>],
    world: &World,
    workspace: &Workspace,
) -> (Resources, Vec<HookFailure>) {
    if let Some(resources) = &state.resources {
        return (resources.clone(), state.hook_failures.clone());
    }
    let handlers = hooks::handlers(hooks, &world.config.hooks.value);
    let event = ResourcesDiscover { cwd: workspace.cwd().to_owned(), reason: state.reason };
    let (resources, failures) = hooks::discover(&handlers, &event, world.host.home().as_deref());
    state.resources = Some(resources.clone());
    state.hook_failures.clone_from(&failures);
    (resources, failures)
}
