//! Wording of the catalog outside of prompts: the instructions of a compaction, and messages of neutral roles.

pub(super) mod messages;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use proem_core::note::Note;
use proem_core::source::Source;
use proem_core::stability::Stability;

use crate::discover::catalog::{Catalog, RequestPack};
use crate::discover::libraries::Libraries;
use crate::error::Error;
use crate::hooks::{ResourcePaths, Resources};
use crate::jinja::{Asset, Binding, Context};
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
    Wording::load(world, request, &[])?.text(COMPACTION, &[])
}

/// The catalog of a conversation, with everything that its templates need.
pub(super) struct Wording<'w> {
    world: &'w World,
    request: &'w Request,
    catalog: Catalog,
    libraries: Libraries,
}

impl<'w> Wording<'w> {
    /// Loads the catalog: the layers of a build, the packs of the request, then those of hooks.
    pub(super) fn load(world: &'w World, request: &'w Request, of_hooks: &[PathBuf]) -> Result<Self, Error> {
        let World { host, workspace, config, .. } = world;
        let author = if host.caller().is_remote() { Author::Other } else { Author::User };
        let policy = Resolver::new(request, host, workspace, config).read_policy(author);
        let own = request.packs.iter().flatten();
        let packs: Vec<RequestPack> = own
            .map(|path| RequestPack::Given(path.into(), policy.clone()))
            .chain(of_hooks.iter().cloned().map(RequestPack::OfHook))
            .collect();
        let catalog = Catalog::load(host, workspace, &packs, request.project != Some(false))?;
        Ok(Self { world, request, catalog, libraries: Libraries::new(host, workspace) })
    }

    /// Renders the wording of a key. Values are inserted as they are and never scanned as templates.
    pub(super) fn text(&self, key: &str, values: &[(&str, &str)]) -> Result<String, Error> {
        let World { host, workspace, config, resolved, .. } = self.world;
        let mut resolver =
            Resolver::new(self.request, host, workspace, config).with_profile(&resolved.profile);
        let entry = self.catalog.entry(key).ok_or_else(|| Error::NoWording {
            key: key.to_owned(),
            known: self.catalog.entries().map(|(key, _)| key.to_owned()).collect(),
            section: key.to_owned(),
        })?;
        let origin = match &entry.path {
            Some(path) => Source::Pack { path: path.as_str().into(), key: key.into(), place: None },
            None => Source::BuiltIn { name: format!("catalog/{key}").into(), place: None },
        };
        let asset = Asset { reference: None, text: entry.text.clone(), origin, stability: entry.stability };
        let options = sections::jinja_options(&resolved.profile);
        let job = Job {
            name: entry.name(key),
            asset,
            author: entry.author,
            context: Context { bindings: bindings(values), ..Context::default() },
            options: &options,
            libraries: &self.libraries,
            treatment: None,
        };
        let (rendered, _) = jinja_job::render(&job, &mut resolver)?;
        Ok(rendered.text().trim_matches('\n').to_owned())
    }

    fn notes(&self) -> &[Note] {
        self.catalog.notes()
    }
}

fn bindings(values: &[(&str, &str)]) -> BTreeMap<String, Binding> {
    let source = || Source::Request { field: "messages".into(), place: None };
    let binding =
        |text: &str| Binding::Text { text: text.to_owned(), source: source(), stability: Stability::Turn };
    values.iter().map(|(name, text)| ((*name).to_owned(), binding(text))).collect()
}

/// Returns the packs that hooks brought to an epoch, and those that were added to the conversation.
pub(super) fn packs_of_hooks(found: Option<Resources>, added: &ResourcePaths, world: &World) -> Vec<PathBuf> {
    let mut resources = found.unwrap_or_default();
    resources.add(added, Path::new(world.workspace.cwd()), world.host.home().as_deref());
    resources.packs
}
