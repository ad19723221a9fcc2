//! Assets: the texts that Jinja templates are made of, with their origin.

use std::collections::BTreeMap;
use std::sync::Arc;

use proem_core::source::Source;
use proem_core::stability::Stability;

use crate::jinja::reference::Reference;
use crate::jinja::syntax::Outline;

/// One template text.
#[derive(Debug, Clone)]
pub(crate) struct Asset {
    /// The reference, if the asset lies in a library; includes may then be relative to it.
    pub(crate) reference: Option<Reference>,
    pub(crate) text: String,
    pub(crate) origin: Source,
    pub(crate) stability: Stability,
}

/// The assets that a build has loaded so far, by name. A failed search is kept with its reason.
#[derive(Debug, Clone, Default)]
pub(crate) struct Assets {
    by_name: BTreeMap<String, Result<Asset, String>>,
    /// The outlines of the assets that were checked.
    outlines: BTreeMap<String, Arc<Outline>>,
}

impl Assets {
    pub(crate) fn insert(&mut self, name: String, asset: Result<Asset, String>) {
        self.outlines.remove(&name);
        self.by_name.insert(name, asset);
    }

    /// Adds an asset that was checked.
    pub(crate) fn insert_checked(&mut self, name: &str, asset: Asset, outline: Arc<Outline>) {
        self.by_name.insert(name.to_owned(), Ok(asset));
        self.outlines.insert(name.to_owned(), outline);
    }

    /// Returns the outline of an asset, if it was checked.
    pub(super) fn outline(&self, name: &str) -> Option<&Arc<Outline>> {
        self.outlines.get(name)
    }

    pub(crate) fn find(&self, name: &str) -> Option<Result<&Asset, &str>> {
        self.by_name.get(name).map(|found| found.as_ref().map_err(String::as_str))
    }

    /// The assets that exist, by name.
    pub(crate) fn present(&self) -> impl Iterator<Item = (&str, &Asset)> {
        self.by_name.iter().filter_map(|(name, asset)| Some((name.as_str(), asset.as_ref().ok()?)))
    }
}
