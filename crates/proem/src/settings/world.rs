//! The world of one operation: host, workspace, settings and profile, read once and passed along.

use crate::error::Error;
use crate::observe::host::Host;
use crate::observe::workspace::Workspace;
use crate::request::Request;
use crate::request::caller::Caller;
use crate::settings::config::Config;
use crate::settings::profiles::{Profiles, ResolvedProfile};

/// Returns the profile of a request that names none.
pub fn default_profile(request: &Request, caller: Caller) -> Result<String, Error> {
    let host = Host::observe(request, caller)?;
    Ok(Config::load(&host, &Workspace::find(&host, request.cwd.as_deref())?)?.profile.value)
}

/// The surroundings of a request.
pub(crate) struct World {
    pub(crate) host: Host,
    pub(crate) workspace: Workspace,
    pub(crate) config: Config,
    /// The profile that the request names, else the configuration's.
    pub(crate) resolved: ResolvedProfile,
}

impl World {
    /// Reads the surroundings of a request.
    pub(crate) fn read(request: &Request, caller: Caller) -> Result<Self, Error> {
        let host = Host::observe(request, caller)?;
        let workspace = Workspace::find(&host, request.cwd.as_deref())?;
        let config = Config::load(&host, &workspace)?;
        let name = request.profile.as_deref().unwrap_or(&config.profile.value);
        let resolved = Profiles::new(&host, &workspace).find(name)?;
        Ok(Self { host, workspace, config, resolved })
    }
}
