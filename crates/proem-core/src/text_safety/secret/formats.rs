//! Secrets with a recognisable context: private keys, passwords in URLs, webhooks, bot tokens and bearer tokens.

use alloc::vec::Vec;

use super::randomness::{has_entropy, is_placeholder, is_random, is_token};
use super::shapes::is_token_byte;
use super::{Scanner, Secret};
use crate::text::slice;

pub(super) const PRIVATE_KEY: &str = "-----BEGIN ";
pub(super) const ADDRESS: &str = "://";
pub(super) const SITE: &str = ".com/";
/// The text before and after the site in the URL of a webhook.
const HOOKS: [(&str, &str); 3] =
    [("hooks.slack", "services/"), ("discord", "api/webhooks/"), ("discordapp", "api/webhooks/")];
pub(super) const BEARER: &str = "Bearer ";

/// Finds blocks of private keys, up to the closing line, including blocks with escaped line breaks.
pub(super) fn private_keys(scanner: &Scanner, text: &str, found: &mut Vec<Secret>) {
    const SAYS: &str = "PRIVATE KEY-----";
    const NAME_BYTES_MAX: usize = 40;
    for start in scanner.private_key.find_iter(text.as_bytes()) {
        let head = slice(text, start, text.floor_char_boundary(start + PRIVATE_KEY.len() + NAME_BYTES_MAX));
        let Some(said) =
            head.find(SAYS).filter(|said| !head.get(..*said).is_none_or(|name| name.contains('\n')))
        else {
            continue;
        };
        // The opening line alone is a mention, not a key.
        let rest = slice(text, start + said + SAYS.len(), text.len());
        let body = rest.trim_start_matches(|character: char| {
            character.is_whitespace() || "\\nr\"'>#|".contains(character)
        });
        let has_body = body.bytes().take(64).take_while(|byte| is_base64(*byte)).count() >= 24;
        if has_body {
            let end = window(rest).find("-----END ").map(|at| {
                let last = window(slice(rest, at + 9, rest.len()));
                at + 9 + last.find("-----").map_or(0, |dashes| dashes + 5)
            });
            let end = start + said + SAYS.len() + end.unwrap_or(rest.len() - body.len());
            found.push(Secret { bytes: start..end, what: "a private key" });
        }
    }
}

/// Returns a bounded prefix of a text, so that repeated searches do not scan to the end each time.
fn window(text: &str) -> &str {
    const BYTES_MAX: usize = 16 << 10;
    slice(text, 0, text.floor_char_boundary(BYTES_MAX))
}

pub(super) const fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=')
}

/// Finds passwords in URLs: `scheme://user:password@host`.
pub(super) fn addresses(scanner: &Scanner, text: &str, found: &mut Vec<Secret>) {
    for at in scanner.address.find_iter(text.as_bytes()) {
        let start = at + ADDRESS.len();
        let rest = window(slice(text, start, text.len()));
        let is_end = |character: char| character.is_whitespace() || "/?#\"'`<>)".contains(character);
        let authority = slice(rest, 0, rest.find(is_end).unwrap_or(rest.len()));
        let Some((login, _)) = authority.rsplit_once('@') else { continue };
        let Some((user, password)) = login.split_once(':') else { continue };
        // Examples and local databases use a plain word or the user's own name.
        let is_strange = password.contains(|character: char| !character.is_alphabetic()) && password != user;
        if password.len() >= 6 && is_strange && !is_placeholder(password) {
            let first = start + user.len() + 1;
            found.push(Secret { bytes: first..first + password.len(), what: "a password in an address" });
        }
    }
}

/// Finds webhook URLs, which allow anyone who knows them to post.
pub(super) fn hooks(scanner: &Scanner, text: &str, found: &mut Vec<Secret>) {
    for site in scanner.site.find_iter(text.as_bytes()) {
        let (before, rest) = (slice(text, 0, site), slice(text, site + SITE.len(), text.len()));
        for (name, way) in HOOKS {
            let Some(value) = rest.strip_prefix(way).filter(|_| before.ends_with(name)) else { continue };
            let start = text.len() - value.len();
            let length = value.bytes().take_while(|byte| is_token_byte(*byte) || *byte == b'/').count();
            let value = slice(value, 0, length);
            if value.contains('/') && length >= 30 && is_token(value) {
                found.push(Secret { bytes: start..start + length, what: "the address of a webhook" });
            }
        }
    }
}

/// Finds tokens of Telegram bots.
pub(super) fn bots(scanner: &Scanner, text: &str, found: &mut Vec<Secret>) {
    for colon in scanner.bot.find_iter(text.as_bytes()) {
        let digits = text.as_bytes()[..colon].iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
        let rest = slice(text, colon + 1, text.len()).bytes().take_while(|byte| is_token_byte(*byte)).count();
        if (8..=11).contains(&digits) && (30..=45).contains(&rest) {
            found.push(Secret { bytes: colon - digits..colon + 1 + rest, what: "a Telegram token" });
        }
    }
}

/// Finds tokens after `Bearer` in a header.
pub(super) fn bearers(scanner: &Scanner, text: &str, found: &mut Vec<Secret>) {
    for start in scanner.bearer.find_iter(text.as_bytes()) {
        let behind = start + BEARER.len();
        let rest = slice(text, behind, text.len()).bytes();
        let length =
            rest.take_while(|byte| is_token_byte(*byte) || matches!(byte, b'.' | b'+' | b'/' | b'=')).count();
        let value = slice(text, behind, behind + length);
        let is_web_token = value.starts_with("eyJ");
        if length >= 20 && !is_web_token && is_random(value) && has_entropy(value) {
            found.push(Secret { bytes: behind..behind + length, what: "a bearer token" });
        }
    }
}
