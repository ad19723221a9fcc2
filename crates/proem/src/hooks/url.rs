//! Handlers that are HTTP servers: the event as the JSON body of a POST, the answer as the JSON body of the response.
//!
//! An event holds the system prompt and all messages, so a hook is reached on this machine alone, unless the user allows
//! its host. Redirects are not followed and proxies of the environment are not used: both would send the event elsewhere.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

use proem_core::limit::TOKEN_FILE_BYTES_MAX;
use serde::Deserialize;
use ureq::Agent;
use ureq::http::Uri;
use ureq::tls::{Certificate, RootCerts, TlsConfig};

use super::HookFailureReason;
use super::watched::watched;
use crate::observe::file::{Cap, ReadPolicy, read_text};
use crate::observe::process::Allowance;

const TOKEN: Cap = Cap::new(TOKEN_FILE_BYTES_MAX);

/// An HTTP server that handles an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UrlHook {
    /// Its address.
    pub url: HookUrl,
    /// The file with the token that it wants.
    pub token_file: Option<PathBuf>,
    /// False if the host is another machine that the user does not allow.
    pub is_allowed: bool,
}

/// The address of a hook: an `http` or `https` URL without user name and password.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct HookUrl {
    text: String,
    is_https: bool,
    /// The name or address, without brackets, in lower case.
    host: String,
    port: u16,
}

impl TryFrom<String> for HookUrl {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let parsed: Uri = text.parse().map_err(|_| "`url` is not a URL")?;
        let is_https = match parsed.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err("`url` must begin with `http://` or `https://`"),
        };
        let authority = parsed.authority().ok_or("`url` has no host")?;
        if authority.as_str().contains('@') {
            return Err("`url` must not hold a user name or password: use `token_file`");
        }
        let port = match authority.port() {
            Some(port) => port.as_str().parse().map_err(|_| "the port in `url` is not valid")?,
            // A port that is empty or too large is none to the parser.
            None if authority.as_str().rsplit(['@', ']']).next().is_some_and(|end| end.contains(':')) => {
                return Err("the port in `url` is not valid");
            }
            None if is_https => 443,
            None => 80,
        };
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
        if host.is_empty() {
            return Err("`url` has no host");
        }
        Ok(Self { text, is_https, host, port })
    }
}

impl HookUrl {
    /// The URL as it is written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The name or address of the host.
    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    /// Tells whether the host is this machine, or one of `hosts`: a name with or without a port.
    pub(crate) fn is_allowed(&self, hosts: &[String]) -> bool {
        let with_port = [format!("{}:{}", self.host, self.port), format!("[{}]:{}", self.host, self.port)];
        let is_meant = |allowed: &String| {
            let allowed = allowed.to_ascii_lowercase();
            allowed.trim_start_matches('[').trim_end_matches(']') == self.host || with_port.contains(&allowed)
        };
        self.is_loopback() || hosts.iter().any(is_meant)
    }

    fn is_loopback(&self) -> bool {
        self.host == "localhost" || self.host.parse().is_ok_and(|address: IpAddr| address.is_loopback())
    }
}

impl UrlHook {
    /// Sends an event, and returns the body of the answer.
    pub(super) fn post(&self, event: String, allowance: Allowance) -> Result<Vec<u8>, HookFailureReason> {
        let HookUrl { is_https, host, port, .. } = &self.url;
        if !self.is_allowed {
            let whole =
                format!("{NOT_ALLOWED}: `{host}:{port}` is another machine; list it in `[hosts] allow`");
            return Err(HookFailureReason::new(NOT_ALLOWED, &whole));
        }
        if self.token_file.is_some() && !is_https && !self.url.is_loopback() {
            let why = "its token would leave this machine unencrypted: give it an `https://` address";
            return Err(HookFailureReason::plain(why));
        }
        let token = self.token()?;
        let (url, is_https) = (self.url.text.clone(), *is_https);
        watched(allowance.time, move || {
            exchange(&agent(is_https, allowance)?, &url, (token.as_deref(), event), allowance)
        })
    }

    /// Reads the token. A change of the file counts at the next call.
    fn token(&self) -> Result<Option<String>, HookFailureReason> {
        let Some(path) = &self.token_file else { return Ok(None) };
        let shown = path.display();
        // The user named this very file: a name that suggests a secret does not matter.
        let policy = ReadPolicy::user(None, std::slice::from_ref(path));
        let text = read_text(path, &policy, TOKEN)
            .map_err(|why| HookFailureReason::new(NO_TOKEN, &format!("{NO_TOKEN}: {shown}: {why}")))?;
        let token = text.trim();
        if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            let why = "it must hold one word of ASCII characters";
            return Err(HookFailureReason::new(NO_TOKEN, &format!("{NO_TOKEN}: {shown}: {why}")));
        }
        Ok(Some(token.to_owned()))
    }
}

/// The messages for clients, which must not learn addresses and paths.
const NOT_ALLOWED: &str = "its host is not allowed";
const NO_TOKEN: &str = "its token cannot be read";
const NOT_REACHED: &str = "it cannot be reached";

fn not_reached(error: &dyn std::fmt::Display) -> HookFailureReason {
    HookFailureReason::new(NOT_REACHED, &format!("{NOT_REACHED}: {error}"))
}

/// Makes a client for one call.
fn agent(is_https: bool, allowance: Allowance) -> Result<Agent, HookFailureReason> {
    let config = Agent::config_builder()
        .timeout_global(Some(allowance.time))
        .max_redirects(0)
        .max_redirects_will_error(false)
        .http_status_as_error(false)
        .proxy(None)
        .max_idle_connections(0)
        .accept("application/json")
        .user_agent(concat!("proem/", env!("CARGO_PKG_VERSION")));
    let config = if is_https { config.tls_config(tls()?) } else { config };
    Ok(Agent::new_with_config(config.build()))
}

/// Configures TLS with the certificates of the system, or those of `SSL_CERT_FILE` and `SSL_CERT_DIR`.
fn tls() -> Result<TlsConfig, HookFailureReason> {
    let found = rustls_native_certs::load_native_certs().certs;
    let certificates: Vec<Certificate<'static>> =
        found.iter().map(|certificate| Certificate::from_der(certificate).to_owned()).collect();
    if certificates.is_empty() {
        return Err(not_reached(&"the system trusts no certificates"));
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    Ok(TlsConfig::builder()
        .unversioned_rustls_crypto_provider(provider)
        .root_certs(RootCerts::new_with_certs(&certificates))
        .build())
}

fn exchange(
    agent: &Agent,
    url: &str,
    (token, event): (Option<&str>, String),
    allowance: Allowance,
) -> Result<Vec<u8>, HookFailureReason> {
    let failed = |error: ureq::Error| match error {
        ureq::Error::Timeout(_) => {
            HookFailureReason::plain(format!("it took longer than {} ms", allowance.time.as_millis()))
        }
        ureq::Error::BodyExceedsLimit(_) => {
            HookFailureReason::plain(format!("it answered more than {} bytes", allowance.output_bytes_max))
        }
        error => not_reached(&error),
    };
    let mut request = agent.post(url).content_type("application/json");
    if let Some(token) = token {
        request = request.header("authorization", format!("Bearer {token}"));
    }
    let mut response = request.send(event).map_err(failed)?;
    let status = response.status();
    if status.is_redirection() {
        return Err(HookFailureReason::plain(format!("it answered {status}: redirects are not followed")));
    }
    if !status.is_success() {
        return Err(HookFailureReason::plain(format!("it answered {status}")));
    }
    let bytes_max = u64::try_from(allowance.output_bytes_max).unwrap_or(u64::MAX);
    response.body_mut().with_config().limit(bytes_max).read_to_vec().map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Result<HookUrl, &'static str> {
        text.to_owned().try_into()
    }

    #[test]
    fn this_machine_is_allowed_and_others_by_name() {
        let allowed = ["Hooks.example.com".to_owned(), "other:8443".to_owned(), "[fe80::1]:9000".to_owned()];
        for (text, alone, listed) in [
            ("http://127.0.0.1:9000/hook", true, true),
            ("http://127.1.2.3/", true, true),
            ("https://[::1]:9000", true, true),
            ("http://LOCALHOST:9000/hook?a=b", true, true),
            ("http://localhost.example.com/", false, false),
            ("http://127.0.0.1.example.com/", false, false),
            ("http://0.0.0.0:9000", false, false),
            ("http://[::ffff:127.0.0.1]:9000", false, false),
            ("http://169.254.169.254/latest", false, false),
            ("https://hooks.example.com/a", false, true),
            ("https://hooks.example.com:444/a", false, true),
            ("https://a.hooks.example.com/", false, false),
            ("https://other:8443/", false, true),
            ("https://other:8444/", false, false),
            ("http://[fe80::1]:9000/", false, true),
        ] {
            let url = url(text).expect("it is a URL");
            assert_eq!((url.is_allowed(&[]), url.is_allowed(&allowed)), (alone, listed), "{text}");
        }
    }

    #[test]
    fn urls_that_cannot_be_used_are_refused() {
        for (text, why) in [
            ("", "`url` is not a URL"),
            ("hooks/run", "`url` is not a URL"),
            ("/hook", "`url` must begin with `http://` or `https://`"),
            ("ftp://localhost/", "`url` must begin with `http://` or `https://`"),
            ("http://a:b@localhost/", "`url` must not hold a user name or password: use `token_file`"),
            ("http://localhost:99999/", "the port in `url` is not valid"),
            ("http://localhost:/", "the port in `url` is not valid"),
        ] {
            assert_eq!(url(text), Err(why), "{text}");
        }
    }
}
