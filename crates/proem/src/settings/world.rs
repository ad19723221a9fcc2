//! The world of one operation: host, workspace, settings and profile, read once and passed along.

use crate::error::{Error, ErrorCause, reason};
use crate::observe::file::{ViewGuard, VirtualTree};
use crate::observe::host::Host;
use crate::observe::workspace::Workspace;
use crate::request::Request;
use crate::request::bundle::ROOT;
use crate::request::caller::Caller;
use crate::settings::config::Config;
use crate::settings::profiles::{Profiles, ResolvedProfile};

/// Returns the profile of a request that names none.
pub fn default_profile(request: &Request, caller: Caller) -> Result<String, Error> {
    let Place { host, workspace, view: _in_force } = Place::read(request, caller)?;
    Ok(Config::load(&host, &workspace)?.profile.value)
}

/// The host and the workspace of a request. If the request brings its own workspace, reads of this thread see that one for
/// as long as this exists.
pub(crate) struct Place {
    pub(crate) host: Host,
    pub(crate) workspace: Workspace,
    pub(crate) view: ViewGuard,
}

impl Place {
    /// Reads the place of a request.
    pub(crate) fn read(request: &Request, caller: Caller) -> Result<Self, Error> {
        request.check_place()?;
        let host = Host::observe(request, caller)?;
        let view = ViewGuard::new(tree(request, &host)?);
        let workspace = Workspace::find(&host, request.place().as_deref())?;
        Ok(Self { host, workspace, view })
    }
}

/// Lays out the workspace that a request brings.
fn tree(request: &Request, host: &Host) -> Result<Option<VirtualTree>, Error> {
    let Some(workspace) = &request.workspace else { return Ok(None) };
    let Some(bundle) = workspace.bundle() else {
        return Err(Error::request_with_hint(
            format!("there is no workspace {}", workspace.digest()),
            "only a store has workspaces that were sent before: send the files, or name the store",
        ));
    };
    let settings = host.config_dir();
    if settings.as_ref().is_some_and(|folder| folder.starts_with(ROOT)) {
        return Err(Error::request_with_hint(
            format!(
                "the configuration directory of this proem lies below {ROOT}, where a workspace would hide it"
            ),
            "set PROEM_CONFIG_DIR to another directory",
        ));
    }
    let laid = VirtualTree::new(bundle, &workspace.path(), settings);
    laid.map(Some).map_err(|error| Error::Cwd {
        path: workspace.path(),
        why: format!("its files cannot be written into a temporary folder: {}", reason(&error)),
        cause: ErrorCause::new(error),
    })
}

/// The surroundings of a request.
pub(crate) struct World {
    pub(crate) host: Host,
    pub(crate) workspace: Workspace,
    pub(crate) config: Config,
    /// The profile that the request names, else the configuration's.
    pub(crate) resolved: ResolvedProfile,
    /// Dropped last: reads see the workspace of the request until then.
    #[expect(dead_code, reason = "it is in force as long as it exists")]
    view: ViewGuard,
}

impl World {
    /// Reads the surroundings of a request.
    pub(crate) fn read(request: &Request, caller: Caller) -> Result<Self, Error> {
        let Place { host, workspace, view } = Place::read(request, caller)?;
        let config = Config::load(&host, &workspace)?;
        let name = request.profile.as_deref().unwrap_or(&config.profile.value);
        let resolved = Profiles::new(&host, &workspace).find(name)?;
        Ok(Self { host, workspace, config, resolved, view })
    }
}
