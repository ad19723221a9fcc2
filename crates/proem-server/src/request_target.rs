//! The host and scheme to which a client sent its request.
//!
//! Behind a proxy the request itself contains neither. They come from `--public-url`, or from the headers
//! `X-Forwarded-Host` and `X-Forwarded-Proto`, which are used only on connections of a trusted proxy: any client can send
//! them.

use std::net::IpAddr;

use axum::http::header::{HOST, ORIGIN};
use axum::http::{Extensions, HeaderMap, HeaderName, HeaderValue};

use crate::app::Options;

const FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// The URL at which a proxy serves this server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicUrl {
    is_https: bool,
    /// The host name, with the port unless that is the default of the scheme.
    host: String,
}

impl PublicUrl {
    /// Parses a URL such as `https://prompts.example.com:8443`.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        let (scheme, rest) = text.split_once("://").ok_or("write it like https://prompts.example.com")?;
        let is_https = match scheme.to_ascii_lowercase().as_str() {
            "https" => true,
            "http" => false,
            _ => return Err("it must begin with https:// or http://"),
        };
        let host = rest.strip_suffix('/').unwrap_or(rest);
        if host.contains('@') {
            return Err("it must not have a user name or password");
        }
        if host.contains(['/', '?', '#']) {
            return Err("it must not have a path: the server answers at the root of its name");
        }
        if crate::guard::without_port(host).is_none() {
            return Err("its host name or port is invalid");
        }
        let default_port = if is_https { ":443" } else { ":80" };
        let host = host.strip_suffix(default_port).unwrap_or(host).to_ascii_lowercase();
        Ok(Self { is_https, host })
    }

    /// Returns the host name without the port.
    pub(crate) fn name(&self) -> &str {
        crate::guard::without_port(&self.host).unwrap_or(&self.host)
    }

    fn origin(&self) -> String {
        format!("{}://{}", if self.is_https { "https" } else { "http" }, self.host)
    }
}

/// The address of the client or proxy on the other end of a connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer(pub(crate) IpAddr);

/// The host and scheme to which a client sent its request.
pub(crate) struct RequestTarget<'r> {
    /// The `Host` of the request.
    host: &'r str,
    /// The host that a trusted proxy forwarded.
    pub(crate) forwarded: Option<&'r HeaderValue>,
    /// The scheme that a trusted proxy forwarded.
    is_forwarded_https: Option<bool>,
    public: Option<&'r PublicUrl>,
    origin: Option<&'r HeaderValue>,
}

impl<'r> RequestTarget<'r> {
    pub(crate) fn new(options: &'r Options, extensions: &Extensions, headers: &'r HeaderMap) -> Self {
        let peer = extensions.get::<Peer>().map(|Peer(address)| address.to_canonical());
        let proxies = &options.connections.proxies;
        let is_trusted = peer.is_some_and(|peer| proxies.iter().any(|proxy| proxy.to_canonical() == peer));
        // The proxy's own header is the last one: headers of the client come before it.
        let forwarded = |name: HeaderName| headers.get_all(name).iter().next_back().filter(|_| is_trusted);
        let is_https = |value: &HeaderValue| {
            let last = value.to_str().ok().and_then(|text| text.rsplit(',').next());
            last.is_some_and(|scheme| scheme.trim().eq_ignore_ascii_case("https"))
        };
        Self {
            host: headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default(),
            forwarded: forwarded(FORWARDED_HOST),
            is_forwarded_https: forwarded(FORWARDED_PROTO).map(is_https),
            public: options.public_url.as_ref(),
            origin: headers.get(ORIGIN),
        }
    }

    /// Tells whether an origin is that of this server.
    pub(crate) fn is_own_origin(&self, origin: &HeaderValue) -> bool {
        let Ok(origin) = origin.to_str() else { return false };
        if self.public.is_some_and(|public| public.origin() == origin) {
            return true;
        }
        let forwarded = self.forwarded.and_then(|host| host.to_str().ok());
        let is_host = |rest: &str| rest == forwarded.unwrap_or(self.host);
        // A page that came without TLS is not the page of a server that uses TLS.
        let may_be_plain = self.is_forwarded_https != Some(true);
        origin.strip_prefix("https://").is_some_and(is_host)
            || (may_be_plain && origin.strip_prefix("http://").is_some_and(is_host))
    }

    /// Tells whether the client uses TLS, so that cookies can be `Secure`.
    pub(crate) fn is_https(&self) -> bool {
        if let Some(is_https) = self.is_forwarded_https {
            return is_https;
        }
        let Some(public) = self.public.filter(|public| public.is_https) else { return false };
        let name = crate::guard::without_port(self.host).unwrap_or_default();
        let is_of_public = |origin: &HeaderValue| origin.as_bytes() == public.origin().as_bytes();
        name.eq_ignore_ascii_case(public.name()) || self.origin.is_some_and(is_of_public)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connections::ConnectionLimits;

    #[test]
    fn a_public_url_has_a_scheme_and_a_host() {
        for (text, origin) in [
            ("https://prompts.example.com", "https://prompts.example.com"),
            ("HTTPS://Prompts.Example.com:443/", "https://prompts.example.com"),
            ("http://localhost:80", "http://localhost"),
            ("https://[::1]:8443", "https://[::1]:8443"),
        ] {
            assert_eq!(PublicUrl::parse(text).map(|url| url.origin()), Ok(origin.to_owned()), "{text}");
        }
        for text in
            ["prompts.example.com", "ftp://a", "https://", "https://a/b", "https://u:p@a", "https://a:x"]
        {
            assert!(PublicUrl::parse(text).is_err(), "{text}");
        }
    }

    /// Tells whether the `Origin` header is the server's own, and whether the client uses TLS.
    fn seen(peer: &str, headers: &[(&'static str, &'static str)], public: Option<&str>) -> (bool, bool) {
        let options = Options {
            connections: ConnectionLimits {
                proxies: vec!["192.0.2.1".parse().expect("an address")],
                ..ConnectionLimits::default()
            },
            public_url: public.map(|url| PublicUrl::parse(url).expect("a URL")),
            ..Options::default()
        };
        let mut extensions = Extensions::new();
        extensions.insert(Peer(peer.parse().expect("an address")));
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, HeaderValue::from_static(value));
        }
        let target = RequestTarget::new(&options, &extensions, &map);
        (map.get(ORIGIN).is_some_and(|origin| target.is_own_origin(origin)), target.is_https())
    }

    #[test]
    fn forwarded_headers_count_from_a_trusted_proxy_alone() {
        let page = ("origin", "https://p.example:8443");
        let (host, proto) = (("x-forwarded-host", "p.example:8443"), ("x-forwarded-proto", "https"));
        let own = ("host", "p.example");
        assert_eq!(seen("192.0.2.1", &[own, page, host, proto], None), (true, true));
        assert_eq!(seen("::ffff:192.0.2.1", &[own, page, host, proto], None), (true, true));
        assert_eq!(seen("192.0.2.2", &[own, page, host, proto], None), (false, false));
        assert_eq!(seen("127.0.0.1", &[own, page, host, proto], None), (false, false));
        assert_eq!(seen("192.0.2.1", &[own, page], None), (false, false));
        // Values of the client come first.
        assert!(!seen("192.0.2.1", &[own, page, ("x-forwarded-proto", "https, http"), host], None).1);
        let twice =
            [own, ("origin", "https://evil.example"), ("x-forwarded-host", "evil.example"), host, proto];
        assert_eq!(seen("192.0.2.1", &twice, None), (false, true));
        // A page without TLS is not the page with TLS.
        assert!(!seen("192.0.2.1", &[own, ("origin", "http://p.example:8443"), host, proto], None).0);
        assert_eq!(seen("192.0.2.2", &[own, page], Some("https://p.example:8443")), (true, true));
        assert!(
            !seen("192.0.2.2", &[own, ("origin", "https://evil.example")], Some("https://p.example:8443")).0
        );
        assert_eq!(seen("127.0.0.1", &[("host", "127.0.0.1:1")], Some("https://p.example")), (false, false));
    }
}
