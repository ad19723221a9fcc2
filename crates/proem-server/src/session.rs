//! Browser sessions: cookies with an expiry time and an HMAC of it, keyed by the token.
//!
//! The server stores no sessions. Servers with the same token therefore accept each other's cookies, and sessions survive
//! a restart. The token itself is never in a cookie, and a new token invalidates all cookies.

use std::fmt::Write;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hmac::{Hmac, KeyInit, Mac};
use proem_core::text::clip;
use sha2::Sha256;
use subtle::ConstantTimeEq;

use crate::guard::Token;

/// Returns the name of the cookie, which depends on the token: cookies ignore ports, and one machine may run several
/// servers.
fn name(token: &Token) -> String {
    let mac = mac(token, "proem session name");
    format!("proem_session_{}", clip(&mac, 12))
}

/// The lifetime of a session.
const LIFE: Duration = Duration::from_hours(7 * 24);

/// Returns the `Set-Cookie` header that begins a session.
pub(crate) fn cookie(token: &Token, is_https: bool) -> String {
    let end = now() + LIFE.as_secs();
    let (name, value, life) = (name(token), value(token, end), LIFE.as_secs());
    let secure = secure(is_https);
    format!("{name}={value}; Path=/; Max-Age={life}; HttpOnly; SameSite=Strict{secure}")
}

/// Returns the `Set-Cookie` header that ends a session.
pub(crate) fn no_cookie(token: &Token, is_https: bool) -> String {
    format!("{}=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict{}", name(token), secure(is_https))
}

/// Returns the attribute that restricts the cookie to TLS. Browsers reject such a cookie on a connection without TLS.
const fn secure(is_https: bool) -> &'static str {
    if is_https { "; Secure" } else { "" }
}

/// Tells whether the value of a `Cookie` header contains a valid session of this token.
pub(crate) fn is_session(token: &Token, cookies: &str) -> bool {
    let name = name(token);
    let own = |pair: &str| pair.trim().strip_prefix(&name)?.strip_prefix('=').map(str::to_owned);
    cookies.split(';').filter_map(own).any(|sent| is_valid(token, &sent, now()))
}

fn is_valid(token: &Token, sent: &str, now: u64) -> bool {
    let end = sent.split_once('.').and_then(|(end, _)| end.parse::<u64>().ok());
    end.is_some_and(|end| end > now && bool::from(value(token, end).as_bytes().ct_eq(sent.as_bytes())))
}

fn value(token: &Token, end: u64) -> String {
    format!("{end}.{}", mac(token, &format!("proem session until {end}")))
}

/// Returns the HMAC of a text with the token as its key, in hexadecimal.
fn mac(token: &Token, text: &str) -> String {
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(token.bytes()) else {
        // A key may have any length.
        return String::new();
    };
    mac.update(text.as_bytes());
    let mut value = String::new();
    for byte in mac.finalize().into_bytes() {
        // Writing to a string does not fail.
        let _ = write!(value, "{byte:02x}");
    }
    value
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Row H18.
    #[test]
    fn a_session_is_of_one_token_and_ends() {
        let token = |text| Token::new(text).expect("it is long enough");
        let (own, other) = (token("0123456789abcdef"), token("0123456789abcdeX"));
        let sent = value(&own, 1000);
        assert!(is_valid(&own, &sent, 999));
        assert!(!is_valid(&own, &sent, 1000));
        assert!(!is_valid(&other, &sent, 999));
        assert!(!is_valid(&own, &sent.replacen("1000", "2000", 1), 999));
        for wrong in ["", ".", "1000", "1000.", "9999999999999999999999.00"] {
            assert!(!is_valid(&own, wrong, 999), "{wrong}");
        }
        assert!(!sent.contains("0123456789abcdef"));
        assert!(cookie(&own, true).ends_with("; SameSite=Strict; Secure"));
        let header = cookie(&own, false);
        let pair = header.split(';').next().expect("a cookie has a value");
        assert!(is_session(&own, &format!("other=1; {pair}; more=2")));
        assert!(!is_session(&own, &format!("{}=1.2", name(&own))));
        assert_ne!(name(&own), name(&other));
    }
}
