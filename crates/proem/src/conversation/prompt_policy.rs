//! What a profile says about the life of its prompts, and the words of a compaction.

use proem_core::profile::{Compaction, Part, Reason};
use proem_core::source::Source;

use crate::discover::catalog::{Catalog, RequestPack};
use crate::discover::libraries::Libraries;
use crate::error::Error;
use crate::jinja::{Asset, Context};
use crate::request::Request;
use crate::request::caller::Author;
use crate::request::caller::Caller;
use crate::sections;
use crate::sections::jinja_job::{self, Job};
use crate::sections::resolver::Resolver;
use crate::settings::world::World;

/// The key of the catalog that holds what a model is told when it summarises a conversation.
const COMPACTION: &str = "compaction";

/// What a profile says about the life of its prompts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// The profile.
    pub profile: String,
    /// The reasons for which a prompt is built anew.
    pub rebuild: Vec<Reason>,
    /// How the summarising call of a compaction is made.
    pub compaction: Compaction,
    /// Whether something is made anew each turn.
    pub has_turn: bool,
    /// The working directory, as it was opened.
    pub cwd: String,
}

impl Policy {
    /// The policy of the profile that a request names.
    pub fn of(request: &Request, caller: Caller) -> Result<Self, Error> {
        let World { resolved, workspace, .. } = World::read(request, caller)?;
        let profile = resolved.profile;
        Ok(Self {
            has_turn: profile.sections.iter().any(|section| section.part != Part::Prefix),
            profile: profile.name.clone(),
            rebuild: profile.rebuild.clone(),
            compaction: profile.compaction,
            cwd: workspace.cwd().to_owned(),
        })
    }
}

/// What a model is told when it summarises a conversation. Packs may say it in other words.
pub fn compaction_instructions(request: &Request, caller: Caller) -> Result<String, Error> {
    let World { host, workspace, config, resolved } = World::read(request, caller)?;
    let author = if caller.is_remote() { Author::Other } else { Author::User };
    let mut resolver = Resolver::new(request, &host, &workspace, &config).with_profile(&resolved.profile);
    let policy = resolver.read_policy(author);
    let packs: Vec<RequestPack> =
        request.packs.iter().flatten().map(|path| RequestPack::Given(path.into(), policy.clone())).collect();
    let catalog = Catalog::load(&host, &workspace, &packs, request.project != Some(false))?;
    let entry = catalog.entry(COMPACTION).ok_or_else(|| Error::NoWording {
        key: COMPACTION.to_owned(),
        known: catalog.entries().map(|(key, _)| key.to_owned()).collect(),
        section: COMPACTION.to_owned(),
    })?;
    let origin = match &entry.path {
        Some(path) => Source::Pack { path: path.as_str().into(), key: COMPACTION.into(), place: None },
        None => Source::BuiltIn { name: format!("catalog/{COMPACTION}").into(), place: None },
    };
    let asset = Asset { reference: None, text: entry.text.clone(), origin, stability: entry.stability };
    let libraries = Libraries::new(&host, &workspace);
    let options = sections::jinja_options(&resolved.profile);
    let job = Job {
        name: entry.name(COMPACTION),
        asset,
        author: entry.author,
        context: Context::default(),
        options: &options,
        libraries: &libraries,
        treatment: None,
    };
    let (rendered, _) = jinja_job::render(&job, &mut resolver)?;
    Ok(rendered.text().trim_matches('\n').to_owned())
}
