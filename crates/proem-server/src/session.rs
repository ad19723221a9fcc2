//! Cookies that stand for the token: a time, and a proof that whoever has the token set it.
//!
//! Nothing is kept, so that every server of one token takes the cookies of the others, and a restart ends no
//! session. The token itself is never in a cookie, and another token makes all cookies void.

use std::fmt::Write;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hmac::{Hmac, KeyInit, Mac};
use proem_core::text::clip;
use sha2::Sha256;
use subtle::ConstantTimeEq;

use crate::guard::Token;

/// What the cookie is called. Cookies do not know ports: servers of other tokens on one machine have other names.
fn name(token: &Token) -> String {
    let proof = proof(token, "proem session name");
    format!("proem_session_{}", clip(&proof, 12))
}

/// How long a session lasts.
const LIFE: Duration = Duration::from_hours(7 * 24);

/// The header that gives a browser its session.
pub(crate) fn cookie(token: &Token, is_https: bool) -> String {
    let end = now() + LIFE.as_secs();
    let (name, value, life) = (name(token), value(token, end), LIFE.as_secs());
    let secure = secure(is_https);
    format!("{name}={value}; Path=/; Max-Age={life}; HttpOnly; SameSite=Strict{secure}")
}

/// The header that takes it away.
pub(crate) fn no_cookie(token: &Token, is_https: bool) -> String {
    format!("{}=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict{}", name(token), secure(is_https))
}

/// Keeps the cookie from plain connections. Browsers drop such a cookie if it comes over one.
const fn secure(is_https: bool) -> &'static str {
    if is_https { "; Secure" } else { "" }
}

/// Tells whether the value of a `Cookie` header holds a session of this token.
pub(crate) fn is_session(token: &Token, cookies: &str) -> bool {
    let name = name(token);
    let own = |pair: &str| pair.trim().strip_prefix(&name)?.strip_prefix('=').map(str::to_owned);
    cookies.split(';').filter_map(own).any(|shown| is_valid(token, &shown, now()))
}

fn is_valid(token: &Token, shown: &str, now: u64) -> bool {
    let end = shown.split_once('.').and_then(|(end, _)| end.parse::<u64>().ok());
    end.is_some_and(|end| end > now && bool::from(value(token, end).as_bytes().ct_eq(shown.as_bytes())))
}

fn value(token: &Token, end: u64) -> String {
    format!("{end}.{}", proof(token, &format!("proem session until {end}")))
}

/// What only whoever has the token can say about a text.
fn proof(token: &Token, text: &str) -> String {
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(token.bytes()) else {
        // Keys of every length are taken.
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
        let shown = value(&own, 1000);
        assert!(is_valid(&own, &shown, 999));
        assert!(!is_valid(&own, &shown, 1000));
        assert!(!is_valid(&other, &shown, 999));
        assert!(!is_valid(&own, &shown.replacen("1000", "2000", 1), 999));
        for wrong in ["", ".", "1000", "1000.", "9999999999999999999999.00"] {
            assert!(!is_valid(&own, wrong, 999), "{wrong}");
        }
        assert!(!shown.contains("0123456789abcdef"));
        assert!(cookie(&own, true).ends_with("; SameSite=Strict; Secure"));
        let header = cookie(&own, false);
        let pair = header.split(';').next().expect("a cookie has a value");
        assert!(is_session(&own, &format!("other=1; {pair}; more=2")));
        assert!(!is_session(&own, &format!("{}=1.2", name(&own))));
        assert_ne!(name(&own), name(&other));
    }
}
