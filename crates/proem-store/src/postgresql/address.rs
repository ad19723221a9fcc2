//! The address of a database: its URL, and libpq's environment variables for options that the URL leaves out.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use proem_core::limit::{POSTGRES_ANSWER_TIME_MAX, POSTGRES_CONNECT_TIME_MAX};
use tokio_postgres::Config;
use tokio_postgres::config::{ChannelBinding, Host, TargetSessionAttrs};

use super::passfile::{self, PasswordKey};
use crate::StoreError;
use crate::url::{Fault, OPTIONS, Url, read_ports, shown};

/// The folders in which servers put their sockets.
const SOCKET_FOLDERS: [&str; 3] = ["/var/run/postgresql", "/run/postgresql", "/tmp"];

/// The use of TLS, as libpq names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TlsMode {
    /// Never.
    Disable,
    /// If the server insists on it.
    Allow,
    /// If the server offers it.
    Prefer,
    /// Always; the certificate is checked only if `sslrootcert` is given.
    Require,
    /// Always, with a certificate of a trusted authority.
    VerifyCa,
    /// Always, with a certificate of a trusted authority for this host.
    VerifyFull,
}

impl TlsMode {
    const ALL: [(&str, Self); 6] = [
        ("disable", Self::Disable),
        ("allow", Self::Allow),
        ("prefer", Self::Prefer),
        ("require", Self::Require),
        ("verify-ca", Self::VerifyCa),
        ("verify-full", Self::VerifyFull),
    ];

    fn parse(text: &str) -> Result<Self, Fault> {
        let found = Self::ALL.iter().find(|(word, _)| *word == text).map(|(_, mode)| *mode);
        found.ok_or_else(|| unknown_value("sslmode", &Self::ALL.map(|(word, _)| word)))
    }
}

/// The certificates of authorities that are trusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Roots {
    /// The certificates that the system trusts.
    System,
    /// The certificates in a file.
    File(PathBuf),
}

/// The address of a database, and the options of its connections.
pub(super) struct Address {
    pub(super) config: Config,
    pub(super) mode: TlsMode,
    pub(super) roots: Option<Roots>,
    /// The address without credentials.
    pub(super) place: String,
    /// The role that connects, if it is known.
    pub(super) user: Option<String>,
    pub(super) connect_time: Duration,
}

impl Address {
    /// Parses a URL; `variable` returns the value of an environment variable.
    pub(super) fn parse(url: &str, variable: &dyn Fn(&str) -> Option<String>) -> Result<Self, StoreError> {
        let (_, rest) = url.split_once("://").unwrap_or(("", url));
        let read = Url::parse(rest).and_then(|url| Self::from_url(&url, variable));
        read.map_err(|Fault { why, hint }| StoreError::Invalid { place: crate::redacted(url), why, hint })
    }

    fn from_url(url: &Url, variable: &dyn Fn(&str) -> Option<String>) -> Result<Self, Fault> {
        let variable = |name: &str| variable(name).filter(|value| !name.is_empty() && !value.is_empty());
        let option = |name: &str| {
            let named = OPTIONS.iter().find(|(known, _)| *known == name).map_or("", |(_, variable)| variable);
            url.option(name).map(str::to_owned).or_else(|| variable(named))
        };
        let mut config = Config::new();
        let user = option("user");
        let ports = read_ports(option("port").as_deref().unwrap_or_default())?;
        let host = option("host").or_else(|| socket_folder(&ports)).unwrap_or_else(|| "localhost".into());
        read_hosts(&mut config, &host, option("hostaddr").as_deref(), &ports)?;
        let database = option("dbname").or_else(|| user.clone());
        database.as_ref().map(|name| config.dbname(name));
        user.as_ref().map(|name| config.user(name));
        let user = user.or_else(|| variable("USER")).or_else(|| variable("LOGNAME"));
        let mut password = option("password");
        if password.is_none() {
            let key = PasswordKey {
                host: host.split(',').next().unwrap_or_default(),
                port: ports.first().copied().unwrap_or(5432),
                database: database.as_deref().or(user.as_deref()).unwrap_or_default(),
                user: user.as_deref().unwrap_or_default(),
            };
            password = passfile::find(option("passfile").as_deref(), variable("HOME").as_deref(), &key)?;
        }
        password.as_ref().map(|password| config.password(password));
        config.application_name(option("application_name").unwrap_or_else(|| "proem".into()));
        option("options").as_ref().map(|options| config.options(options));
        let connect_time = connect_time(option("connect_timeout").as_deref())?;
        config.connect_timeout(connect_time).tcp_user_timeout(POSTGRES_ANSWER_TIME_MAX);
        read_keepalives(&mut config, &option)?;
        read_choices(&mut config, &option)?;
        let place = shown(Some(&host), option("port").as_deref(), database.as_deref());
        let (mode, roots) =
            encryption(&config, option("sslmode").as_deref(), option("sslrootcert").as_deref())?;
        Ok(Self { config, mode, roots, place, user, connect_time })
    }
}

/// Finds the folder of the socket of a server on this machine.
fn socket_folder(ports: &[u16]) -> Option<String> {
    let port = ports.first().copied().unwrap_or(5432);
    let has_socket = |folder: &&&str| Path::new(folder).join(format!(".s.PGSQL.{port}")).exists();
    SOCKET_FOLDERS.iter().find(has_socket).map(|folder| (*folder).to_owned())
}

fn read_hosts(config: &mut Config, host: &str, hostaddr: Option<&str>, ports: &[u16]) -> Result<(), Fault> {
    let hosts: Vec<&str> = host.split(',').map(str::trim).collect();
    for host in &hosts {
        config.host(if host.is_empty() { "localhost" } else { host });
    }
    for address in hostaddr.into_iter().flat_map(|list| list.split(',')) {
        let parsed: IpAddr = address.trim().parse().map_err(|_| {
            Fault::new("`hostaddr` is not an IP address", "write an address such as 192.0.2.1, or use `host`")
        })?;
        config.hostaddr(parsed);
    }
    let addresses = config.get_hostaddrs().len();
    if (ports.len() > 1 && ports.len() != hosts.len()) || (addresses > 0 && addresses != hosts.len()) {
        return Err(Fault::new(
            "the numbers of hosts, addresses and ports differ",
            "give one port for all hosts, or one for each",
        ));
    }
    for port in ports {
        config.port(*port);
    }
    Ok(())
}

fn connect_time(text: Option<&str>) -> Result<Duration, Fault> {
    let Some(text) = text else { return Ok(POSTGRES_CONNECT_TIME_MAX) };
    let seconds: i32 = text.trim().parse().map_err(|_| {
        Fault::new("`connect_timeout` is not a number", "write it in seconds, such as `connect_timeout=10`")
    })?;
    // In libpq 0 means to wait for ever. A server must not: its clients have timeouts of their own.
    Ok(u64::try_from(seconds)
        .ok()
        .filter(|seconds| *seconds > 0)
        .map_or(POSTGRES_CONNECT_TIME_MAX, Duration::from_secs))
}

fn read_keepalives(config: &mut Config, option: &dyn Fn(&str) -> Option<String>) -> Result<(), Fault> {
    let number = |name: &str| {
        let read = |text: String| {
            text.parse::<u32>().map_err(|_| {
                Fault::new(
                    format!("`{name}` is not a number"),
                    format!("write it in seconds, such as `{name}=10`"),
                )
            })
        };
        option(name).map(read).transpose()
    };
    if let Some(value) = number("keepalives")? {
        config.keepalives(value != 0);
    }
    let idle = number("keepalives_idle")?.filter(|seconds| *seconds > 0);
    config.keepalives_idle(
        idle.map_or(POSTGRES_ANSWER_TIME_MAX, |seconds| Duration::from_secs(seconds.into())),
    );
    if let Some(seconds) = number("keepalives_interval")?.filter(|seconds| *seconds > 0) {
        config.keepalives_interval(Duration::from_secs(seconds.into()));
    }
    Ok(())
}

fn read_choices(config: &mut Config, option: &dyn Fn(&str) -> Option<String>) -> Result<(), Fault> {
    if let Some(text) = option("channel_binding") {
        config.channel_binding(match text.as_str() {
            "disable" => ChannelBinding::Disable,
            "prefer" => ChannelBinding::Prefer,
            "require" => ChannelBinding::Require,
            _ => return Err(unknown_value("channel_binding", &["disable", "prefer", "require"])),
        });
    }
    if let Some(text) = option("target_session_attrs") {
        config.target_session_attrs(match text.as_str() {
            "any" => TargetSessionAttrs::Any,
            "read-write" => TargetSessionAttrs::ReadWrite,
            _ => return Err(unknown_value("target_session_attrs", &["any", "read-write"])),
        });
    }
    Ok(())
}

/// Returns the use of TLS and the trusted certificates.
fn encryption(
    config: &Config,
    mode: Option<&str>,
    roots: Option<&str>,
) -> Result<(TlsMode, Option<Roots>), Fault> {
    let roots = match roots {
        Some("system") => Some(Roots::System),
        Some(path) => Some(Roots::File(path.into())),
        None => None,
    };
    let mode = match mode {
        Some(mode) => TlsMode::parse(mode)?,
        // As in libpq: the certificates would otherwise not be used.
        None if roots == Some(Roots::System) => TlsMode::VerifyFull,
        // On this machine only administrators can intercept the connection, and many local servers offer no TLS.
        None if is_local(config) => TlsMode::Allow,
        None => TlsMode::Prefer,
    };
    if roots == Some(Roots::System) && mode != TlsMode::VerifyFull {
        return Err(Fault::new(
            "`sslrootcert=system` needs `sslmode=verify-full`",
            "add `sslmode=verify-full`: any site has a certificate that the system trusts, so the name must be checked",
        ));
    }
    // A connection through a socket never leaves this machine, and is not encrypted, as in libpq.
    let is_socket = |host: &Host| matches!(host, Host::Unix(_));
    if config.get_hosts().iter().all(is_socket) {
        return Ok((TlsMode::Disable, None));
    }
    Ok((mode, roots))
}

/// Tells whether the server runs on this machine.
fn is_local(config: &Config) -> bool {
    config.get_hosts().iter().all(|host| match host {
        Host::Tcp(name) => {
            name == "localhost" || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
        }
        Host::Unix(_) => true,
    })
}

/// Returns the error about an unknown value of an option. The value is not repeated.
fn unknown_value(name: &str, words: &[&str]) -> Fault {
    Fault::new(format!("unknown value of `{name}`"), format!("expected one of: {}", words.join(", ")))
}

#[cfg(test)]
mod tests;
