//! Checks of every request before routing: its `Host`, and the token if there is one.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

use subtle::ConstantTimeEq;

use crate::head::RequestHead;

/// The header with the gateway's own token, which is not passed on.
pub(crate) const TOKEN_HEADER: &str = "x-proem-token";

/// The token that requests must send. It is never printed.
#[derive(Clone)]
pub struct GatewayToken(String);

impl GatewayToken {
    /// Minimum length of a token, in bytes.
    pub const BYTES_MIN: usize = 16;

    /// Creates a token; `None` if it is too short to be random, or cannot be a segment of a path.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~');
        let is_good = text.len() >= Self::BYTES_MIN && text.bytes().all(is_plain);
        is_good.then(|| Self(text.to_owned()))
    }

    /// Compares in constant time.
    fn is(&self, sent: &[u8]) -> bool {
        self.0.as_bytes().ct_eq(sent).into()
    }
}

impl fmt::Debug for GatewayToken {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("GatewayToken(…)")
    }
}

/// Tells if a request was sent to a host name of this gateway. With DNS rebinding, a foreign page reaches it by a name of
/// its own.
pub(crate) fn is_own_host(head: &RequestHead, hosts: &[String]) -> bool {
    let Some(host) = head.head.text("host") else { return false };
    // A target in absolute form has precedence over `Host`: both must be equal.
    if absolute(&head.target).is_some_and(|(authority, _)| !authority.eq_ignore_ascii_case(host)) {
        return false;
    }
    let Some(name) = without_port(host) else { return false };
    let is_address = match name.strip_prefix('[').and_then(|name| name.strip_suffix(']')) {
        Some(name) => name.parse::<Ipv6Addr>().is_ok(),
        None => name.parse::<Ipv4Addr>().is_ok(),
    };
    is_address
        || name.eq_ignore_ascii_case("localhost")
        || hosts.iter().any(|own| own.eq_ignore_ascii_case(name))
}

/// Splits a target in absolute form into its authority and the rest.
pub(crate) fn absolute(target: &str) -> Option<(&str, &str)> {
    let rest = target.strip_prefix("http://").or_else(|| target.strip_prefix("https://"))?;
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    Some(rest.split_at(end))
}

/// Returns the path after the token; `None` if the token is missing or wrong. The token comes in a header, or as the first
/// segment of the path.
pub(crate) fn without_token<'p>(
    token: Option<&GatewayToken>,
    head: &RequestHead,
    path: &'p str,
) -> Option<&'p str> {
    let Some(token) = token else { return Some(path) };
    let mut sent = head.head.values(TOKEN_HEADER);
    if let (Some(sent), None) = (sent.next(), sent.next()) {
        return token.is(sent).then_some(path);
    }
    let rest = path.strip_prefix('/')?;
    let (segment, _) = rest.split_once('/')?;
    token.is(segment.as_bytes()).then(|| rest.split_at(segment.len()).1)
}

/// Returns the name in a `Host` header, or `None` if the header is invalid.
fn without_port(host: &str) -> Option<&str> {
    if host.starts_with('[') {
        let (name, port) = host.split_at(host.find(']')? + 1);
        return (port.is_empty() || is_port(port.strip_prefix(':')?)).then_some(name);
    }
    let (name, port) = host.split_once(':').map_or((host, None), |(name, port)| (name, Some(port)));
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    let is_name = !name.is_empty() && name.bytes().all(is_plain);
    (is_name && port.is_none_or(is_port)).then_some(name)
}

fn is_port(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit()) && text.parse::<u16>().is_ok()
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;

    use super::*;

    fn request(target: &str, lines: &str) -> RequestHead {
        let text = format!("GET {target} HTTP/1.1\r\n{lines}\r\n");
        RequestHead::take(&mut BytesMut::from(text.as_str())).expect("it is HTTP").expect("it is complete")
    }

    /// Row H4.
    #[test]
    fn only_own_hosts_are_served() {
        let own = ["proem.example".to_owned()];
        for host in
            ["localhost", "LOCALHOST:7718", "127.0.0.1:7718", "[::1]:7718", "10.0.0.1", "proem.example:1"]
        {
            assert!(is_own_host(&request("/", &format!("Host: {host}\r\n")), &own), "{host}");
        }
        for lines in [
            "",
            "Host: \r\n",
            "Host: evil.example\r\n",
            "Host: localhost.\r\n",
            "Host: 2130706433\r\n",
            "Host: localhost:x\r\n",
            "Host: me@localhost\r\n",
            "Host: localhost\r\nHost: localhost\r\n",
            "Host: localhost\r\nhost: evil.example\r\n",
        ] {
            assert!(!is_own_host(&request("/", lines), &own), "{lines:?}");
        }
        assert!(is_own_host(&request("http://localhost:1/x", "Host: localhost:1\r\n"), &own));
        assert!(!is_own_host(&request("http://evil.example/x", "Host: localhost\r\n"), &own));
    }

    #[test]
    fn the_token_is_a_header_or_a_segment() {
        let token = GatewayToken::new("0123456789abcdef").expect("it is long");
        let path = |path: &'static str, lines: &str| without_token(Some(&token), &request(path, lines), path);
        assert_eq!(path("/anthropic/v1", "x-proem-token: 0123456789abcdef\r\n"), Some("/anthropic/v1"));
        assert_eq!(path("/0123456789abcdef/anthropic/v1", ""), Some("/anthropic/v1"));
        assert_eq!(path("/anthropic/v1", ""), None);
        assert_eq!(path("/0123456789abcdee/anthropic/v1", ""), None);
        assert_eq!(path("/0123456789abcdef/anthropic/v1", "x-proem-token: wrong\r\n"), None);
        assert_eq!(path("/0123456789abcdef", ""), None);
        assert!(GatewayToken::new("short").is_none() && GatewayToken::new("0123456789abcde/").is_none());
        assert_eq!(format!("{token:?}"), "GatewayToken(…)");
    }
}
