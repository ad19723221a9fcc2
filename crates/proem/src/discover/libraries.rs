//! Loads assets from the libraries: compiled in, the user's, the workspace's.

use std::path::{Path, PathBuf};

use proem_core::builtin;
use proem_core::did_you_mean::nearest;
use proem_core::fact::Absence;
use proem_core::limit::TEMPLATE_BYTES_MAX;
use proem_core::source::Source;
use proem_core::stability::Stability;

use crate::jinja::Asset;
use crate::jinja::reference::{Library, Reference};
use crate::observe::file::{Cap, ReadPolicy, read_source_text};
use crate::observe::host::Host;
use crate::observe::workspace::Workspace;
use crate::request::caller::Author;

const CAP: Cap = Cap::new(TEMPLATE_BYTES_MAX);

/// The folders that are searched for assets.
pub(crate) struct Libraries {
    user: Option<PathBuf>,
    /// Folders that extensions add, searched if the user's own library lacks an asset.
    more: Vec<PathBuf>,
    workspace: PathBuf,
    user_policy: ReadPolicy,
    workspace_policy: ReadPolicy,
}

/// The reason why an asset cannot be loaded, and the fix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MissingAsset {
    /// True if it exists and cannot be used.
    pub(crate) is_unusable: bool,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
}

impl Libraries {
    pub(crate) fn new(host: &Host, workspace: &Workspace) -> Self {
        Self {
            user: host.config_dir().map(|folder| folder.join("prompts")),
            more: Vec::new(),
            workspace: workspace.folder().join("prompts"),
            user_policy: ReadPolicy::user(host.home().as_deref(), &[]),
            workspace_policy: workspace.own_files(host),
        }
    }

    /// Adds folders after the user's own.
    pub(crate) fn with_folders(mut self, folders: &[PathBuf]) -> Self {
        self.more = folders.to_vec();
        self
    }

    fn load_more(&self, reference: &Reference) -> Option<Asset> {
        self.more
            .iter()
            .find_map(|folder| load_file(reference, folder, &self.user_policy, Stability::User).ok())
    }

    /// Loads one asset.
    pub(crate) fn load(&self, reference: &Reference) -> Result<Asset, MissingAsset> {
        match reference.library {
            Library::BuiltIn => load_builtin(reference),
            Library::User => {
                let own = match &self.user {
                    Some(folder) => load_file(reference, folder, &self.user_policy, Stability::User),
                    None => Err(not_configured(reference)),
                };
                own.or_else(|missing| match self.load_more(reference) {
                    Some(asset) if !missing.is_unusable => Ok(asset),
                    _ => Err(missing),
                })
            }
            Library::Workspace => {
                load_file(reference, &self.workspace, &self.workspace_policy, Stability::Project)
            }
        }
    }
}

fn load_file(
    reference: &Reference,
    folder: &Path,
    policy: &ReadPolicy,
    stability: Stability,
) -> Result<Asset, MissingAsset> {
    let path = folder.join(format!("{}.md", reference.path));
    let shown = path.display().to_string();
    let text = read_source_text(&path, policy, CAP).map_err(|why| match why {
        Absence::NoSuchFile => MissingAsset {
            is_unusable: false,
            message: format!("there is no asset `{reference}`"),
            hint: Some(format!("it would be the file {shown}")),
        },
        why => MissingAsset {
            is_unusable: true,
            message: format!("the asset `{reference}` ({shown}) cannot be used: {why}"),
            hint: None,
        },
    })?;
    let origin = Source::File { path: shown.into(), place: None };
    Ok(Asset { reference: Some(reference.clone()), text, origin, stability })
}

/// Returns the author of the assets in a library.
pub(crate) const fn author(library: Library) -> Author {
    match library {
        Library::BuiltIn | Library::User => Author::User,
        Library::Workspace => Author::Other,
    }
}

fn load_builtin(reference: &Reference) -> Result<Asset, MissingAsset> {
    let Some(text) = builtin::asset(&reference.path) else {
        let known = builtin::ASSETS.iter().map(|(name, _)| *name);
        let hint = match nearest(&reference.path, known.clone()) {
            Some(near) => format!("did you mean `$builtin/{near}`?"),
            None => format!("built in are: {}", known.collect::<Vec<_>>().join(", ")),
        };
        return Err(MissingAsset {
            is_unusable: false,
            message: format!("there is no asset `{reference}`"),
            hint: Some(hint),
        });
    };
    let origin = Source::BuiltIn { name: reference.path.as_str().into(), place: None };
    Ok(Asset {
        reference: Some(reference.clone()),
        text: text.to_owned(),
        origin,
        stability: Stability::Release,
    })
}

fn not_configured(reference: &Reference) -> MissingAsset {
    MissingAsset {
        is_unusable: false,
        message: format!("the library of `{reference}` is not configured"),
        hint: Some("this host has no configuration directory; use `$workspace/…` or `$builtin/…`".into()),
    }
}
