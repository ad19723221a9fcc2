//! The catalog: wording by key, in layers that replace each other.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use proem_core::builtin;
use proem_core::did_you_mean::nearest;
use proem_core::fact::Absence;
use proem_core::limit::SETTINGS_BYTES_MAX;
use proem_core::note::{Code, Note, Severity};
use proem_core::source::Source;
use proem_core::stability::Stability;
use serde::Deserialize;

use crate::error::Error;
use crate::error::FileRole;
use crate::observe::file::{Cap, ReadPolicy, read_source_text};
use crate::observe::host::Host;
use crate::observe::workspace::Workspace;
use crate::request::caller::Author;
use crate::settings::toml_file::parse_toml;

/// The file of a layer, in the user's and in the workspace's folder.
const FILE_NAME: &str = "prompts.toml";

const CAP: Cap = Cap::new(SETTINGS_BYTES_MAX);

/// The wording of one build.
#[derive(Debug, Clone, Default)]
pub struct Catalog {
    entries: BTreeMap<String, Entry>,
    built_in: BTreeSet<String>,
    all: Vec<(String, Entry)>,
    notes: Vec<Note>,
}

/// The wording of one key, and its layer.
#[derive(Debug, Clone)]
pub struct Entry {
    /// The template.
    pub text: String,
    /// The pack's file, or `built-in`.
    pub layer: String,
    pub(crate) path: Option<String>,
    pub(crate) stability: Stability,
    pub(crate) author: Author,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Pack {
    #[serde(default)]
    prompt: BTreeMap<String, String>,
}

/// A pack besides those in the usual places.
#[derive(Debug, Clone)]
pub enum RequestPack {
    /// A pack that the request names, with the policy for its caller.
    #[expect(private_interfaces, reason = "only a build makes one")]
    Given(PathBuf, ReadPolicy),
    /// A pack that a hook names.
    OfHook(PathBuf),
}

/// The effect of a missing pack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Need {
    /// None: it is optional.
    None,
    /// A note.
    Noted,
    /// An error.
    Required,
}

/// The origin of a layer.
struct Layer {
    path: PathBuf,
    need: Need,
    stability: Stability,
    author: Author,
    policy: ReadPolicy,
}

impl Catalog {
    /// Combines all layers: built-in, the user's, the workspace's, then the request's packs.
    ///
    /// Without the project the workspace's layer is left out.
    pub fn load(
        host: &Host,
        workspace: &Workspace,
        packs: &[RequestPack],
        has_project: bool,
    ) -> Result<Self, Error> {
        let mut catalog = Self::default();
        let built_in = parse(builtin::CATALOG, "built-in")?;
        for (key, text) in built_in.prompt {
            catalog.built_in.insert(key.clone());
            let (layer, path) = ("built-in".to_owned(), None);
            catalog
                .take(key, Entry { text, layer, path, stability: Stability::Release, author: Author::User });
        }
        let user_policy = ReadPolicy::user(host.home().as_deref(), &[]);
        let mut layers: Vec<Layer> = Vec::new();
        layers.extend(host.config_dir().map(|folder| Layer {
            path: folder.join(FILE_NAME),
            need: Need::None,
            stability: Stability::User,
            author: Author::User,
            policy: user_policy.clone(),
        }));
        layers.extend(has_project.then(|| Layer {
            path: workspace.folder().join(FILE_NAME),
            need: Need::None,
            stability: Stability::Project,
            author: Author::Other,
            policy: workspace.own_files(host),
        }));
        layers.extend(packs.iter().map(|pack| {
            let (path, policy, need) = match pack {
                RequestPack::Given(path, policy) => (path, policy, Need::Required),
                RequestPack::OfHook(path) => (path, &user_policy, Need::Noted),
            };
            let (path, policy) = (workspace.path().join(path), policy.clone());
            Layer { path, need, stability: Stability::Session, author: Author::User, policy }
        }));
        for layer in &layers {
            match catalog.lay(layer) {
                Err(error) if layer.need == Need::Noted => {
                    let note = Note::new(
                        Code::HookFailed,
                        Severity::Warning,
                        format!("a pack of a hook is left out: {error}"),
                    );
                    catalog.notes.push(note);
                }
                laid => laid?,
            }
        }
        Ok(catalog)
    }

    fn lay(&mut self, layer: &Layer) -> Result<(), Error> {
        let shown = layer.path.display().to_string();
        let text = match read_source_text(&layer.path, &layer.policy, CAP) {
            Ok(text) => text,
            Err(Absence::NoSuchFile) if layer.need == Need::None => return Ok(()),
            Err(why) => return Err(Error::File { role: FileRole::Pack, path: shown, why }),
        };
        for (key, text) in parse(&text, &shown)?.prompt {
            if !self.built_in.contains(&key) {
                self.notes.push(self.unknown(&key, &layer.path));
            }
            let (layer_name, path) = (shown.clone(), Some(shown.clone()));
            let entry =
                Entry { text, layer: layer_name, path, stability: layer.stability, author: layer.author };
            self.take(key, entry);
        }
        Ok(())
    }

    fn take(&mut self, key: String, entry: Entry) {
        self.all.push((key.clone(), entry.clone()));
        self.entries.insert(key, entry);
    }

    fn unknown(&self, key: &str, path: &Path) -> Note {
        let message = format!("`{key}` in {} is not a key of the catalog", path.display());
        let hint = match nearest(key, self.built_in.iter().map(String::as_str)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("the keys are: {}", self.built_in.iter().cloned().collect::<Vec<_>>().join(", ")),
        };
        Note::new(Code::UnknownKey, Severity::Warning, message)
            .with_hint(hint)
            .with_source(Source::File { path: path.display().to_string().into(), place: None })
    }

    /// The wording of a key.
    #[must_use]
    pub fn entry(&self, key: &str) -> Option<&Entry> {
        self.entries.get(key)
    }

    /// The effective wording, by key.
    pub fn entries(&self) -> impl Iterator<Item = (&str, &Entry)> {
        self.entries.iter().map(|(key, entry)| (key.as_str(), entry))
    }

    /// Returns every wording that was read, including those that another layer replaced.
    pub(crate) fn all(&self) -> &[(String, Entry)] {
        &self.all
    }

    /// Returns the notes about packs.
    #[must_use]
    pub fn notes(&self) -> &[Note] {
        &self.notes
    }
}

impl Entry {
    /// Returns the template's name in messages.
    pub(crate) fn name(&self, key: &str) -> String {
        format!("`{key}` of {}", self.layer)
    }
}

fn parse(text: &str, path: &str) -> Result<Pack, Error> {
    parse_toml(text, FileRole::Pack, path)
}
