//! The machine: each value comes from the request if it has one, else it is observed on first use.

use std::cell::OnceCell;
use std::env::VarError;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use proem_core::fact::Absence;
use proem_core::limit::SETTINGS_BYTES_MAX;

use crate::error::Error;
use crate::observe::date_words::local_date;
use crate::observe::file::{Cap, ReadPolicy, canonical, read_text};
use crate::request::caller::{Caller, Workspaces};
use crate::request::{HostPins, Pin, Request};

/// The machine as one build sees it. The clock is read at most once.
#[derive(Debug)]
pub struct Host {
    caller: Caller,
    pins: HostPins,
    pinned_now: Pin<Timestamp>,
    read_now: OnceCell<Timestamp>,
    /// True if the request brings its own workspace.
    is_of_bundle: bool,
}

impl Host {
    /// Creates the host of a request. Values that decide which configuration applies, and so what may be read and run,
    /// are refused from remote clients.
    pub(crate) fn observe(request: &Request, caller: Caller) -> Result<Self, Error> {
        let HostPins { home, config_dir, env, .. } = &request.host;
        let pinned = [
            ("home", *home != Pin::Observe),
            ("config_dir", *config_dir != Pin::Observe),
            ("env", *env != Pin::Observe),
        ];
        match pinned.iter().find(|(_, is_pinned)| *is_pinned && caller.is_remote()) {
            Some((field, _)) => Err(Error::request_with_hint(
                format!("`host.{field}` cannot be set by a remote client"),
                "leave it out: it decides what may be read and run",
            )),
            None if request.workspace.is_some() => Self::of_bundle(&request.host),
            None => Ok(Self { caller, ..Self::new(&request.host)? }),
        }
    }

    /// Creates the host of a request that brings its own workspace: it has no value of this machine but the clock and the
    /// place of the settings.
    fn of_bundle(pins: &HostPins) -> Result<Self, Error> {
        let own = Self::new(pins)?;
        let config_dir = own.config_dir().and_then(|folder| folder.to_str().map(str::to_owned));
        let absent = |pin: &Pin<String>| if pin.is_observed() { Pin::None } else { pin.clone() };
        let pins = HostPins {
            now: pins.now.clone(),
            timezone: absent(&pins.timezone),
            home: absent(&pins.home),
            config_dir: config_dir.map_or(Pin::None, Pin::Given),
            os: absent(&pins.os),
            os_name: absent(&pins.os_name),
            os_version: absent(&pins.os_version),
            hostname: absent(&pins.hostname),
            shell: absent(&pins.shell),
            env: pins.env.clone(),
        };
        let caller = Caller::Remote(Workspaces::of_bundle());
        Ok(Self { caller, is_of_bundle: true, ..Self::new(&pins)? })
    }

    /// Creates the host with the values that a request pins; observes nothing yet.
    pub fn new(pins: &HostPins) -> Result<Self, Error> {
        let pinned_now = match &pins.now {
            Pin::Observe => Pin::Observe,
            Pin::None => Pin::None,
            Pin::Given(text) => Pin::Given(parse_time(text)?),
        };
        if let Pin::Given(zone) = &pins.timezone
            && local_date(Timestamp::UNIX_EPOCH, zone).is_none()
        {
            return Err(Error::request_with_hint(
                format!("`host.timezone` is `{zone}`, and there is no such time zone"),
                "write an IANA name, for example `America/Chicago`, or `null` for none",
            ));
        }
        let has_no_home = matches!(&pins.home, Pin::Given(home) if home.is_empty());
        for (field, pin) in [("home", &pins.home), ("config_dir", &pins.config_dir)] {
            if let Pin::Given(path) = pin
                && !path.starts_with('/')
                && !(has_no_home && field == "home")
            {
                let message = format!("`host.{field}` is `{path}`, which is not an absolute path");
                return Err(Error::request_with_hint(message, "write the whole path, from `/` on"));
            }
        }
        let mut pins = pins.clone();
        if has_no_home {
            pins.home = Pin::None;
        }
        Ok(Self { caller: Caller::User, pins, pinned_now, read_now: OnceCell::new(), is_of_bundle: false })
    }

    /// Tells whether a text in the working directory may read the git repository around it. For a remote client the
    /// repository must lie in a workspace. A repository that holds the user's home is used for settings and does not
    /// count as a project.
    pub(crate) fn reaches(&self, repository: &Path) -> bool {
        let Ok(real) = canonical(repository) else { return false };
        match self.caller {
            Caller::Remote(workspaces) => workspaces.contain(&real),
            Caller::User => {
                let home = self.home().map(|home| canonical(&home).unwrap_or(home));
                home.is_none_or(|home| !home.starts_with(&real))
            }
        }
    }

    /// Returns the side of a connection that the request came from.
    pub(crate) const fn caller(&self) -> Caller {
        self.caller
    }

    /// Returns the moment of this build.
    pub(crate) fn now(&self) -> Result<Timestamp, Absence> {
        match self.pinned_now {
            Pin::Given(now) => Ok(now),
            Pin::None => Err(Absence::NotOnThisHost("clock")),
            Pin::Observe => Ok(*self.read_now.get_or_init(Timestamp::now)),
        }
    }

    pub(crate) fn os(&self) -> Result<String, Absence> {
        said_or(&self.pins.os, "platform word", || Some(platform_word(std::env::consts::OS).to_owned()))
    }

    pub(crate) fn os_name(&self) -> Result<String, Absence> {
        said_or(&self.pins.os_name, "system name", pretty_name)
    }

    pub(crate) fn os_version(&self) -> Result<String, Absence> {
        said_or(&self.pins.os_version, "kernel release", || {
            rustix::system::uname().release().to_str().ok().map(str::to_owned)
        })
    }

    pub(crate) fn hostname(&self) -> Result<String, Absence> {
        said_or(&self.pins.hostname, "hostname", || {
            rustix::system::uname().nodename().to_str().ok().map(str::to_owned)
        })
    }

    pub(crate) fn shell(&self) -> Result<String, Absence> {
        said_or(&self.pins.shell, "shell", || self.env("SHELL").ok())
    }

    pub(crate) fn timezone(&self) -> Result<String, Absence> {
        said_or(&self.pins.timezone, "named time zone", || {
            let set = self.env("TZ").ok().map(|zone| zone.trim_start_matches(':').to_owned());
            match set.filter(|zone| !zone.is_empty()) {
                Some(zone) if zone.starts_with('/') => zone_name(&zone),
                Some(zone) => Some(zone),
                None => zone_of_the_machine(),
            }
        })
    }

    /// Returns the home directory. A relative path is ignored, since it would depend on the current directory.
    #[must_use]
    pub fn home(&self) -> Option<PathBuf> {
        said_or(&self.pins.home, "home", || self.env("HOME").ok().filter(|home| home.starts_with('/')))
            .ok()
            .map(Into::into)
    }

    /// proem's configuration directory: `PROEM_CONFIG_DIR`, else `proem` under XDG's config home.
    #[must_use]
    pub fn config_dir(&self) -> Option<PathBuf> {
        let observe = || {
            let set = |name| self.env(name).ok().filter(|path| path.starts_with('/'));
            let below = |base: PathBuf| base.join("proem").to_str().map(str::to_owned);
            set("PROEM_CONFIG_DIR")
                .or_else(|| set("XDG_CONFIG_HOME").and_then(|base| below(base.into())))
                .or_else(|| below(self.home()?.join(".config")))
        };
        said_or(&self.pins.config_dir, "configuration directory", observe).ok().map(Into::into)
    }

    /// An environment variable, from the request's environment if it pins one.
    pub(crate) fn env(&self, name: &str) -> Result<String, Absence> {
        match &self.pins.env {
            Pin::None => Err(Absence::EnvNotSet),
            Pin::Given(values) => values.get(name).cloned().ok_or(Absence::EnvNotSet),
            // Of this machine only the settings count.
            Pin::Observe if self.is_of_bundle && name != "PROEM_PROFILE" => Err(Absence::EnvNotSet),
            Pin::Observe if name.is_empty() || name.contains(['=', '\0']) => Err(Absence::EnvNotSet),
            Pin::Observe => std::env::var(name).map_err(|error| match error {
                VarError::NotPresent => Absence::EnvNotSet,
                VarError::NotUnicode(_) => Absence::EnvNotUtf8,
            }),
        }
    }
}

fn said_or(
    pin: &Pin<String>,
    what: &'static str,
    observe: impl FnOnce() -> Option<String>,
) -> Result<String, Absence> {
    pin.pinned().map_or_else(observe, Option::<&String>::cloned).ok_or(Absence::NotOnThisHost(what))
}

fn parse_time(text: &str) -> Result<Timestamp, Error> {
    text.parse().map_err(|error: jiff::Error| {
        Error::request_with_hint(
            format!("`{text}` is not a point in time"),
            "write it in RFC 3339, for example `2026-03-07T14:55:05Z`",
        )
        .caused_by(error)
    })
}

/// Returns the word that Node's `process.platform` has for a system.
fn platform_word(rust_word: &str) -> &str {
    match rust_word {
        "macos" => "darwin",
        "windows" => "win32",
        other => other,
    }
}

/// Returns the zone that `/etc/localtime` points to. Without one the C library uses UTC.
fn zone_of_the_machine() -> Option<String> {
    match std::fs::read_link("/etc/localtime") {
        Ok(target) => zone_name(target.to_str()?),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Some("UTC".into()),
        // The file is a copy of the zone's rules: its name is lost, unless the system wrote it down.
        Err(_) => system_text("/etc/timezone").map(|name| name.trim().to_owned()),
    }
}

/// The name of a zone from the path of its file.
fn zone_name(path: &str) -> Option<String> {
    path.split_once("zoneinfo/").map(|(_, name)| name.to_owned())
}

/// The text of a small file of the system.
fn system_text(path: &str) -> Option<String> {
    let cap = Cap::new(SETTINGS_BYTES_MAX);
    read_text(Path::new(path), &ReadPolicy::user(None, &[]), cap).ok()
}

fn pretty_name() -> Option<String> {
    let text = ["/etc/os-release", "/usr/lib/os-release"].into_iter().find_map(system_text)?;
    let value = text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?.trim();
    let unquoted = value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(value);
    Some(unquoted.replace("\\\"", "\"").replace("\\\\", "\\"))
}
