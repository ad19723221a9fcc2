//! Routes: the first segment of a path names the provider, and the rest goes there.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::Deserialize;

use crate::head::Head;

const BUILT_IN: &str = include_str!("../builtin/providers.toml");

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Providers {
    as_of: String,
    #[serde(rename = "provider")]
    providers: Vec<ProviderRow>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ProviderRow {
    route: String,
    url: String,
    #[serde(default)]
    unless: Vec<UnlessRow>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct UnlessRow {
    header: String,
    url: String,
    #[serde(default)]
    strip: String,
}

/// A place to which requests go: scheme, host, port, and what stands before the path.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Upstream {
    pub(crate) is_tls: bool,
    /// The name or address, without brackets.
    pub(crate) name: String,
    pub(crate) port: u16,
    /// The value of `Host`.
    pub(crate) host: String,
    prefix: String,
}

/// The URL of an upstream is invalid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadUpstream(&'static str);

impl BadUpstream {
    /// Returns the reason.
    #[must_use]
    pub const fn reason(&self) -> &'static str {
        self.0
    }
}

impl fmt::Display for BadUpstream {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.0)
    }
}

impl std::error::Error for BadUpstream {}

impl Upstream {
    /// Parses a URL such as `https://api.example.com/base`.
    pub fn parse(url: &str) -> Result<Arc<Self>, BadUpstream> {
        let wrong = |why| Err(BadUpstream(why));
        let (scheme, rest) =
            url.split_once("://").ok_or(BadUpstream("write it like https://api.example.com"))?;
        let is_tls = match scheme.to_ascii_lowercase().as_str() {
            "https" => true,
            "http" => false,
            _ => return wrong("it must begin with https:// or http://"),
        };
        if rest.contains(['?', '#']) || !rest.bytes().all(|byte| byte.is_ascii_graphic()) {
            return wrong("it must have no query, no fragment and no spaces");
        }
        let (host, prefix) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        if host.contains('@') {
            return wrong("it must not hold a user name or password");
        }
        let default_port = if is_tls { 443 } else { 80 };
        let (name, port) = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((name, "")) => (name, None),
            Some((name, port)) => (name, port.strip_prefix(':').or(Some(""))),
            None => host.split_once(':').map_or((host, None), |(name, port)| (name, Some(port))),
        };
        let port = port.map_or(Ok(default_port), str::parse);
        let Ok(port) = port else { return wrong("its port is invalid") };
        if name.is_empty() {
            return wrong("it has no host name");
        }
        let (host, prefix) = (host.to_ascii_lowercase(), prefix.trim_end_matches('/').to_owned());
        Ok(Arc::new(Self { is_tls, name: name.to_ascii_lowercase(), port, host, prefix }))
    }

    /// Returns the URL.
    #[must_use]
    pub fn url(&self) -> String {
        format!("{}://{}{}", if self.is_tls { "https" } else { "http" }, self.host, self.prefix)
    }
}

#[derive(Debug, Clone)]
struct Unless {
    header: String,
    upstream: Arc<Upstream>,
    strip: String,
}

#[derive(Debug, Clone)]
struct Route {
    upstream: Arc<Upstream>,
    unless: Vec<Unless>,
}

/// The routes of a gateway.
#[derive(Debug, Clone, Default)]
pub struct Routes {
    named: BTreeMap<String, Route>,
    custom: BTreeMap<String, Route>,
}

/// The place to which one request goes.
#[derive(Debug, Clone)]
pub(crate) struct Destination {
    /// The route: `anthropic`, or `custom/NAME`.
    pub(crate) route: String,
    pub(crate) upstream: Arc<Upstream>,
    /// The target of the request there.
    pub(crate) target: String,
}

impl Routes {
    /// Returns the routes to the built-in providers.
    #[must_use]
    pub fn built_in() -> Self {
        let rows = toml::from_str::<Providers>(BUILT_IN).map_or_else(|_| Vec::new(), |data| data.providers);
        let row = |row: ProviderRow| {
            let unless = row.unless.into_iter().filter_map(|unless| {
                let upstream = Upstream::parse(&unless.url).ok()?;
                Some(Unless { header: unless.header, upstream, strip: unless.strip })
            });
            let upstream = Upstream::parse(&row.url).ok()?;
            Some((row.route, Route { upstream, unless: unless.collect() }))
        };
        Self { named: rows.into_iter().filter_map(row).collect(), custom: BTreeMap::new() }
    }

    /// Returns the day of the built-in URLs.
    #[must_use]
    pub fn as_of() -> String {
        toml::from_str::<Providers>(BUILT_IN).map(|data| data.as_of).unwrap_or_default()
    }

    /// Sets the upstream of a route: of a built-in one with this name, and always of `/custom/NAME/`.
    pub fn set(&mut self, name: &str, upstream: Arc<Upstream>) {
        let route = Route { upstream, unless: Vec::new() };
        if let Some(known) = self.named.get_mut(name) {
            known.clone_from(&route);
        }
        self.custom.insert(name.to_owned(), route);
    }

    /// Returns the routes with their URLs.
    #[must_use]
    pub fn list(&self) -> Vec<(String, String)> {
        let named = self.named.iter().map(|(name, route)| (format!("/{name}/"), route.upstream.url()));
        let custom =
            self.custom.iter().map(|(name, route)| (format!("/custom/{name}/"), route.upstream.url()));
        named.chain(custom).collect()
    }

    /// Returns the built-in names.
    #[must_use]
    pub fn names(&self) -> Vec<&str> {
        self.named.keys().map(String::as_str).collect()
    }

    /// Finds the destination of a request.
    pub(crate) fn find(&self, path: &str, head: &Head) -> Option<Destination> {
        let rest = path.strip_prefix('/')?;
        let (name, after) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        let (route, name, after) = if name == "custom" {
            let rest = after.strip_prefix('/')?;
            let (name, after) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
            (self.custom.get(name)?, format!("custom/{name}"), after)
        } else {
            (self.named.get(name)?, name.to_owned(), after)
        };
        let other = route.unless.iter().find(|unless| head.values(&unless.header).next().is_some());
        let (upstream, after) = match other {
            Some(unless) => (&unless.upstream, without_prefix(after, &unless.strip)),
            None => (&route.upstream, after),
        };
        let slash =
            if after.starts_with('/') || !upstream.prefix.is_empty() && after.is_empty() { "" } else { "/" };
        let target = format!("{}{slash}{after}", upstream.prefix);
        Some(Destination { route: name, upstream: Arc::clone(upstream), target })
    }
}

/// Removes the first segments of a path, if it has them.
fn without_prefix<'p>(path: &'p str, prefix: &str) -> &'p str {
    path.strip_prefix(prefix).filter(|rest| rest.is_empty() || rest.starts_with(['/', '?'])).unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;

    use super::*;
    use crate::head::RequestHead;

    #[test]
    fn the_built_in_providers_are_read() {
        let data: Providers = toml::from_str(BUILT_IN).expect("it is valid");
        let routes = Routes::built_in();
        assert_eq!(routes.named.len(), data.providers.len());
        assert_eq!(routes.names(), ["anthropic", "deepseek", "gemini", "openai", "openrouter"]);
    }

    #[test]
    fn upstreams_are_urls() {
        let upstream = Upstream::parse("HTTP://Localhost:8080/base/").expect("a URL");
        assert_eq!((upstream.name.as_str(), upstream.port, upstream.is_tls), ("localhost", 8080, false));
        assert_eq!(upstream.url(), "http://localhost:8080/base");
        let upstream = Upstream::parse("https://[::1]:8443").expect("a URL");
        assert_eq!(
            (upstream.name.as_str(), upstream.port, upstream.host.as_str()),
            ("::1", 8443, "[::1]:8443")
        );
        for url in [
            "api.example.com",
            "ftp://a",
            "https://",
            "https://a:x",
            "https://u:p@a",
            "https://a/?q",
            "https://a b",
        ] {
            assert!(Upstream::parse(url).is_err(), "{url}");
        }
    }

    #[test]
    fn the_rest_of_a_path_is_kept() {
        let mut routes = Routes::built_in();
        routes.set("mine", Upstream::parse("http://127.0.0.1:9/base").expect("a URL"));
        routes.set("gemini", Upstream::parse("http://127.0.0.1:8").expect("a URL"));
        let to = |path: &str, lines: &str| {
            let text = format!("GET / HTTP/1.1\r\n{lines}\r\n");
            let head =
                RequestHead::take(&mut BytesMut::from(text.as_str())).expect("HTTP").expect("complete");
            routes.find(path, &head.head).map(|found| format!("{} {}", found.upstream.host, found.target))
        };
        for (path, expected) in [
            ("/anthropic/v1/messages?beta=true", "api.anthropic.com /v1/messages?beta=true"),
            ("/anthropic/", "api.anthropic.com /"),
            ("/anthropic", "api.anthropic.com /"),
            ("/anthropic?a=/b", "api.anthropic.com /?a=/b"),
            ("/anthropic//x/%2e%2e/../y%20z", "api.anthropic.com //x/%2e%2e/../y%20z"),
            ("/custom/mine/v1//x", "127.0.0.1:9 /base/v1//x"),
            ("/custom/mine", "127.0.0.1:9 /base"),
            ("/custom/gemini/x", "127.0.0.1:8 /x"),
            ("/gemini/x", "127.0.0.1:8 /x"),
            ("/openrouter/api/v1/models", "openrouter.ai /api/v1/models"),
        ] {
            assert_eq!(to(path, "").as_deref(), Some(expected), "{path}");
        }
        let login = "ChatGPT-Account-Id: a\r\n";
        assert_eq!(
            to("/openai/v1/responses", login).as_deref(),
            Some("chatgpt.com /backend-api/codex/responses")
        );
        assert_eq!(to("/openai/v1/responses", "").as_deref(), Some("api.openai.com /v1/responses"));
        for path in
            ["/", "/mine/x", "/custom", "/custom/", "/custom/other/x", "/Anthropic/x", "*", "/%61nthropic/x"]
        {
            assert_eq!(to(path, ""), None, "{path}");
        }
    }
}
