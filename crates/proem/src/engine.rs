//! The whole pipeline on one screen: parse → discover → resolve → render → assemble → freeze.

use std::sync::Arc;

use proem_core::bracket::outline::Outline;
use proem_core::carrier::Carrier;
use proem_core::frozen::{Body, Frozen, Suffix, freeze};
use proem_core::note::Note;

use crate::base::{self, Sources};
use crate::caller::Caller;
use crate::catalog::{Catalog, RequestPack};
use crate::config::Config;
use crate::deadline::{self, Stopped};
use crate::discover::{Discovered, Places};
use crate::error::Error;
use crate::file::with_fixed_roots;
use crate::fingerprint::Fingerprint;
use crate::hooks::{self, DiscoverReason, Hook, HookFailure, Resources, ResourcesDiscover};
use crate::host::Host;
use crate::libraries::Libraries;
use crate::profiles::Found;
use crate::request::Request;
use crate::resolve::{Author, Resolver};
use crate::sections::{self, Builder};
use crate::setup::Setup;
use crate::signature::Signature;
use crate::tools::Tools;
use crate::treatment::Treatment;
use crate::unused;
use crate::workspace::Workspace;

/// A finished prompt: what is frozen, and what belongs to this turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Build {
    /// What stays for the life of the epoch.
    pub frozen: Frozen,
    /// What belongs to this turn alone.
    pub suffix: Suffix,
    /// Both together: what the model reads.
    pub whole: Body,
    /// What a provider's cache is keyed by.
    pub fingerprint: Fingerprint,
    /// Whether a running session may be used for this prompt.
    pub signature: Signature,
}

impl Build {
    /// The system prompt; `None` when there is nothing to send.
    #[must_use]
    pub fn system(&self) -> Option<&str> {
        self.text(Carrier::System)
    }

    /// The same prompt with another text behind the boundary, as it will be in the next turn.
    pub(crate) fn with_other_suffix(&self) -> Self {
        let suffix = self.suffix.changed();
        let whole = suffix.behind(&self.frozen);
        Self { suffix, whole, ..self.clone() }
    }

    /// The text of a carrier; `None` when nothing rides on it.
    #[must_use]
    pub fn text(&self, carrier: Carrier) -> Option<&str> {
        self.whole.text(carrier)
    }
}

/// What was found on the way to a prompt. A rebuild that is no reload starts from it, so that no file is
/// read again.
#[derive(Debug, Clone, Default)]
pub(crate) struct Memory {
    pub(crate) discovered: Discovered,
    /// What hooks bring; they are asked when there is nothing here.
    pub(crate) resources: Option<Resources>,
    /// Hooks that failed then.
    pub(crate) hook_failures: Vec<HookFailure>,
    /// Whether notes leave out what a failed hook wrote, whoever the caller is.
    pub(crate) withholds_hook_output: bool,
    /// Why they are asked.
    pub(crate) reason: DiscoverReason,
    /// The structure of the request's template, where somebody wants to know it.
    pub(crate) outline: Option<Outline>,
    /// What could be better in bracket templates, where somebody wants to know it.
    pub(crate) lints: Option<Vec<Note>>,
}

/// Builds the prompt that `request` asks for.
///
/// A failed build is an error, never a substitute prompt.
pub fn build(request: &Request, caller: Caller) -> Result<Build, Error> {
    build_with(request, caller, &[], &mut Memory::default())
}

/// Builds a prompt from what `memory` holds; what it lacks is looked for and kept there.
pub(crate) fn build_with(
    request: &Request,
    caller: Caller,
    hooks: &[Arc<dyn Hook>],
    memory: &mut Memory,
) -> Result<Build, Error> {
    build_parts(request, caller, hooks, memory, Parts::All)
}

/// Which sections are built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Parts {
    All,
    /// Those of one turn alone.
    Turn,
}

/// Builds all of a prompt, or what a later turn needs of it.
pub(crate) fn build_parts(
    request: &Request,
    caller: Caller,
    hooks: &[Arc<dyn Hook>],
    memory: &mut Memory,
    parts: Parts,
) -> Result<Build, Error> {
    let built = deadline::build(|| with_fixed_roots(|| build_here(request, caller, hooks, memory, parts)));
    built.unwrap_or_else(|(why, built)| match (why, built) {
        // That names the template and the line.
        (Stopped::Work | Stopped::Cpu, Err(error @ Error::Template(_))) => Err(error),
        _ => Err(Error::Stopped { why }),
    })
}

fn build_here(
    request: &Request,
    caller: Caller,
    hooks: &[Arc<dyn Hook>],
    memory: &mut Memory,
    parts: Parts,
) -> Result<Build, Error> {
    let Setup { host, workspace, config, found } = Setup::of(request, caller)?;
    let Found { profile, is_of_workspace, notes } = found;
    let workspace = workspace.seen_by(&profile);

    base::refuse_two(request)?;
    let tools = Tools::of(request, &profile)?;
    let (resources, failures) = resources(memory, hooks, &config, &host, &workspace);
    let failures = failures.iter().filter(|_| parts == Parts::All);
    let reader = if memory.withholds_hook_output { Caller::REMOTE } else { caller };
    let hook_notes: Vec<Note> = failures.map(|failure| failure.note(reader)).collect();
    let libraries = Libraries::new(&host, &workspace).with_folders(&resources.assets);
    let catalog = if profile.sections.iter().any(unused::is_catalogued) {
        let author = if caller.is_remote() { Author::Other } else { Author::User };
        let policy = Resolver::new(request, &host, &workspace, &config).read_policy(author);
        let own = request.packs.iter().flatten().map(|path| RequestPack::Given(path.into(), policy.clone()));
        let packs: Vec<RequestPack> =
            own.chain(resources.packs.iter().cloned().map(RequestPack::OfHook)).collect();
        Catalog::load(&host, &workspace, &packs, request.project != Some(false))?
    } else {
        Catalog::default()
    };
    let builder = Builder {
        sources: Sources { request, config: &config, libraries: &libraries, profile: &profile },
        caller,
        catalog: &catalog,
        workspace: &workspace,
        host: &host,
        is_of_workspace,
        resolver: Resolver::new(request, &host, &workspace, &config).with_profile(&profile),
        options: sections::jinja_options(&profile),
        treatment: Treatment::of(&profile, &config),
        places: Places::new(&host, &workspace),
        skill_paths: &resources.skills,
        discovered: &mut memory.discovered,
        outline: memory.outline.as_mut(),
        lints: memory.lints.as_mut(),
        notes: notes.into_iter().chain(hook_notes).chain(tools.notes.iter().cloned()).collect(),
        considered: Vec::new(),
        tools,
        parts,
    };
    let mut draft = builder.draft()?;
    draft.notes.splice(0..0, config.notes.iter().cloned());
    once(&mut draft.notes, &crate::discover::out_of_reach());
    draft.notes.extend(unused::fields(request, &profile));
    draft.notes.extend(unused::template(&config, &profile));
    let (frozen, suffix) = freeze(draft);
    let whole = suffix.behind(&frozen);
    let fingerprint = Fingerprint::new(frozen.digest(), request.tools.as_deref().unwrap_or_default());
    let signature = Signature::of(request, &frozen, workspace.cwd());
    Ok(Build { frozen, suffix, whole, fingerprint, signature })
}

/// Keeps the first of several equal notes, which sections add each for itself.
fn once(notes: &mut Vec<Note>, repeated: &Note) {
    let mut is_known = false;
    notes.retain(|note| note != repeated || !std::mem::replace(&mut is_known, true));
}

/// What hooks bring: remembered, or asked of them now.
pub(crate) fn resources(
    memory: &mut Memory,
    hooks: &[Arc<dyn Hook>],
    config: &Config,
    host: &Host,
    workspace: &Workspace,
) -> (Resources, Vec<HookFailure>) {
    if let Some(resources) = &memory.resources {
        return (resources.clone(), memory.hook_failures.clone());
    }
    let handlers = hooks::handlers(hooks, &config.hooks.value);
    let event = ResourcesDiscover { cwd: workspace.cwd().to_owned(), reason: memory.reason };
    let (resources, failures) = hooks::discover(&handlers, &event, host.home().as_deref());
    memory.resources = Some(resources.clone());
    memory.hook_failures.clone_from(&failures);
    (resources, failures)
}
