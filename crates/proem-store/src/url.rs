//! The URL of a PostgreSQL database, parsed as libpq does. No message of this module repeats a value of the URL.

use proem_core::did_you_mean::nearest;

use crate::Explanation;

/// The parts of a URL, decoded.
#[derive(Default)]
pub(crate) struct Url {
    pub(crate) user: Option<String>,
    pub(crate) password: Option<String>,
    /// Hosts, separated by commas.
    pub(crate) host: Option<String>,
    /// Ports, separated by commas; as many as hosts, or one.
    pub(crate) port: Option<String>,
    pub(crate) database: Option<String>,
    /// Options, each with its value, in the order in which they are written.
    options: Vec<(&'static str, String)>,
}

/// A problem of a URL, and its fix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) why: Explanation,
    pub(crate) hint: String,
}

impl Fault {
    pub(crate) fn new(why: impl Into<Explanation>, hint: impl Into<String>) -> Self {
        Self { why: why.into(), hint: hint.into() }
    }
}

/// The options of a URL, each with the environment variable that also sets it.
pub(crate) const OPTIONS: [(&str, &str); 17] = [
    ("host", "PGHOST"),
    ("hostaddr", "PGHOSTADDR"),
    ("port", "PGPORT"),
    ("dbname", "PGDATABASE"),
    ("user", "PGUSER"),
    ("password", "PGPASSWORD"),
    ("passfile", "PGPASSFILE"),
    ("sslmode", "PGSSLMODE"),
    ("sslrootcert", "PGSSLROOTCERT"),
    ("application_name", "PGAPPNAME"),
    ("connect_timeout", "PGCONNECT_TIMEOUT"),
    ("options", "PGOPTIONS"),
    ("channel_binding", "PGCHANNELBINDING"),
    ("target_session_attrs", "PGTARGETSESSIONATTRS"),
    ("keepalives", ""),
    ("keepalives_idle", ""),
    ("keepalives_interval", ""),
];

/// Options of libpq that are not supported, each with the fix. They are refused instead of being ignored.
const UNSUPPORTED: [(&str, &str); 12] = [
    ("sslcert", "client certificates are not supported; use a password"),
    ("sslkey", "client certificates are not supported; use a password"),
    ("sslpassword", "client certificates are not supported; use a password"),
    ("sslcrl", "lists of revoked certificates are not supported; remove the option"),
    ("sslcrldir", "lists of revoked certificates are not supported; remove the option"),
    ("sslnegotiation", "only the negotiation of PostgreSQL is supported; remove the option"),
    ("gssencmode", "Kerberos is not supported; use `sslmode` for encryption"),
    ("krbsrvname", "Kerberos is not supported; use a password"),
    ("service", "service files are not supported; write host and database into the URL"),
    ("client_encoding", "the encoding is always UTF-8; remove the option"),
    ("load_balance_hosts", "hosts are tried in their order; remove the option"),
    ("requirepeer", "it is not supported; remove the option"),
];

const ENCODE: &str = "in user names and passwords write `@` as %40, `/` as %2F, `?` as %3F, `#` as %23 and `%` as \
                      %25, or set PGPASSWORD instead";

impl Url {
    /// Parses the part of a URL after `postgres://`.
    pub(crate) fn parse(rest: &str) -> Result<Self, Fault> {
        let (authority, tail) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        if tail.contains('@') {
            // A slash in a password ends the authority early, and the rest of the password would be taken for a path.
            return Err(Fault::new("an `@` follows the first `/` or `?` of the URL", ENCODE));
        }
        let mut url = Self::default();
        let hosts = match authority.rsplit_once('@') {
            Some((credentials, hosts)) => {
                let (user, password) = match credentials.split_once(':') {
                    Some((user, password)) => (user, Some(password)),
                    None => (credentials, None),
                };
                url.user = Some(decoded(user)?).filter(|user| !user.is_empty());
                url.password = password.map(decoded).transpose()?;
                hosts
            }
            None => authority,
        };
        url.read_hosts(hosts)?;
        let (path, query) = tail.split_once('?').unwrap_or((tail, ""));
        let database = path.strip_prefix('/').filter(|name| !name.is_empty());
        url.database = database.map(decoded).transpose()?;
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            url.read_option(pair)?;
        }
        Ok(url)
    }

    fn read_hosts(&mut self, text: &str) -> Result<(), Fault> {
        if text.is_empty() {
            return Ok(());
        }
        let (mut hosts, mut ports) = (Vec::new(), Vec::new());
        for part in text.split(',') {
            let (host, port) = match part.strip_prefix('[').and_then(|part| part.split_once(']')) {
                Some((host, "")) => (host, ""),
                Some((host, port)) => (host, port.strip_prefix(':').ok_or_else(bad_port)?),
                None => part.rsplit_once(':').unwrap_or((part, "")),
            };
            hosts.push(decoded(host)?);
            ports.push(decoded(port)?);
        }
        self.host = Some(hosts.join(",")).filter(|hosts| !hosts.is_empty());
        if ports.iter().any(|port| !port.is_empty()) {
            read_ports(&ports.join(","))?;
            self.port = Some(ports.join(","));
        }
        Ok(())
    }

    fn read_option(&mut self, pair: &str) -> Result<(), Fault> {
        let Some((name, value)) = pair.split_once('=') else {
            return Err(Fault::new("an option of the URL has no value", "write options as `NAME=VALUE`"));
        };
        let (name, value) = (decoded(name)?, decoded(value)?);
        if let Some((known, _)) = OPTIONS.iter().find(|(known, _)| *known == name) {
            self.options.push((known, value));
            return Ok(());
        }
        if let Some((known, fix)) = UNSUPPORTED.iter().find(|(known, _)| *known == name) {
            return Err(Fault::new(format!("the option `{known}` is not supported"), *fix));
        }
        // A name that no option could have may be a part of a password.
        let is_name = name.len() <= 32 && name.bytes().all(|byte| byte == b'_' || byte.is_ascii_lowercase());
        let why =
            if is_name { format!("unknown option `{name}`") } else { "the URL has an unknown option".into() };
        let names = OPTIONS.iter().map(|(known, _)| *known);
        let hint = match nearest(&name, names.clone()).filter(|_| is_name) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => format!("use one of: {}", names.collect::<Vec<_>>().join(", ")),
        };
        Err(Fault::new(why, hint))
    }

    /// Returns the value of an option. The last one of a name counts, and overrides the same part of the URL.
    pub(crate) fn option(&self, name: &str) -> Option<&str> {
        let option = self.options.iter().rev().find(|(known, _)| *known == name).map(|(_, value)| value);
        let part = match name {
            "user" => self.user.as_ref(),
            "password" => self.password.as_ref(),
            "host" => self.host.as_ref(),
            "port" => self.port.as_ref(),
            "dbname" => self.database.as_ref(),
            _ => None,
        };
        option.or(part).map(String::as_str)
    }

    /// Returns the URL with host, port and database only.
    pub(crate) fn shown(&self) -> String {
        shown(self.option("host"), self.option("port"), self.option("dbname"))
    }
}

/// Formats an address as a URL without credentials. The folder of a socket becomes an option, as in libpq.
pub(crate) fn shown(host: Option<&str>, port: Option<&str>, database: Option<&str>) -> String {
    let database = database.map_or_else(String::new, |name| format!("/{}", encoded(name)));
    let hosts: Vec<&str> = host.unwrap_or_default().split(',').collect();
    if let Some(folder) = host.filter(|host| host.starts_with('/')) {
        let port = port.map_or_else(String::new, |port| format!("&port={}", encoded(port)));
        let database = if database.is_empty() { "/" } else { &database };
        return format!("postgres://{database}?host={}{port}", encoded(folder));
    }
    let ports: Vec<&str> = port.map(|port| port.split(',').collect()).unwrap_or_default();
    let one = |(index, host): (usize, &&str)| {
        let port =
            ports.get(index).or_else(|| ports.first().filter(|_| ports.len() == 1)).copied().unwrap_or("");
        let host = if host.contains(':') { format!("[{}]", encoded(host)) } else { encoded(host) };
        if port.is_empty() { host } else { format!("{host}:{}", encoded(port)) }
    };
    format!("postgres://{}{database}", hosts.iter().enumerate().map(one).collect::<Vec<_>>().join(","))
}

/// Parses ports that are separated by commas; an empty one is 5432.
pub(crate) fn read_ports(text: &str) -> Result<Vec<u16>, Fault> {
    let port = |port: &str| match port.trim() {
        "" => Ok(5432),
        port => port.parse().ok().filter(|port| *port > 0).ok_or_else(bad_port),
    };
    text.split(',').map(port).collect()
}

fn bad_port() -> Fault {
    Fault::new("the port is not a number between 1 and 65535", format!("write `HOST:PORT`; {ENCODE}"))
}

/// Decodes percent-encoded characters such as `%40`.
fn decoded(text: &str) -> Result<String, Fault> {
    let fault =
        || Fault::new("a `%` in the URL is not followed by two hexadecimal digits of UTF-8 text", ENCODE);
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let digit = |byte: Option<u8>| byte.and_then(|byte| char::from(byte).to_digit(16)).ok_or_else(fault);
        bytes.push(match byte {
            b'%' => {
                let (high, low) = (digit(rest.next())?, digit(rest.next())?);
                u8::try_from(high * 16 + low).map_err(|_| fault())?
            }
            other => other,
        });
    }
    let text = String::from_utf8(bytes).map_err(|_| fault())?;
    if text.contains('\0') { Err(fault()) } else { Ok(text) }
}

/// Encodes characters that have a meaning in a URL or are unsafe in a terminal.
fn encoded(text: &str) -> String {
    let one = |character: char| match character {
        'A'..='Z' | 'a'..='z' | '0'..='9' | '-' | '.' | '_' | '~' | '/' | ':' | ',' | '*' => {
            character.to_string()
        }
        other if other.is_alphanumeric() => other.to_string(),
        other => {
            let bytes = other.to_string().into_bytes();
            bytes.iter().map(|byte| format!("%{byte:02X}")).collect::<Vec<_>>().concat()
        }
    };
    text.chars().map(one).collect()
}
