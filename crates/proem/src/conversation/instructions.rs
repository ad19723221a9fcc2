//! The instructions with which a model summarises a conversation.

use proem_core::source::Source;

use crate::discover::catalog::{Catalog, RequestPack};
use crate::discover::libraries::Libraries;
use crate::error::Error;
use crate::jinja::{Asset, Context};
use crate::request::Request;
use crate::request::caller::Author;
use crate::sections;
use crate::sections::jinja_job::{self, Job};
use crate::sections::resolver::Resolver;
use crate::settings::world::World;

/// The catalog key of the instructions with which a model summarises a conversation.
const COMPACTION: &str = "compaction";

/// Returns the instructions with which a model summarises a conversation. Packs may replace them.
pub(super) fn compaction_instructions(world: &World, request: &Request) -> Result<String, Error> {
    let World { host, workspace, config, resolved, .. } = world;
    let author = if host.caller().is_remote() { Author::Other } else { Author::User };
    let mut resolver = Resolver::new(request, host, workspace, config).with_profile(&resolved.profile);
    let policy = resolver.read_policy(author);
    let packs: Vec<RequestPack> =
        request.packs.iter().flatten().map(|path| RequestPack::Given(path.into(), policy.clone())).collect();
    let catalog = Catalog::load(host, workspace, &packs, request.project != Some(false))?;
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
    let libraries = Libraries::new(host, workspace);
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
