//! Text that looks like a secret: keys and tokens by their known shapes, and what stands beside a telling name.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::ops::Range;

use memchr::{memchr_iter, memmem};

use crate::text::slice;

/// Something that looks like a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Secret {
    /// Its bytes.
    pub bytes: Range<usize>,
    /// What it looks like.
    pub what: &'static str,
}

/// A token that is known by how it begins.
struct Shape {
    begins: &'static str,
    what: &'static str,
    /// Fewest characters behind the beginning.
    least: usize,
}

const fn shape(begins: &'static str, what: &'static str, least: usize) -> Shape {
    Shape { begins, what, least }
}

/// Longer beginnings first, where one is the beginning of another.
const SHAPES: [Shape; 34] = [
    shape("sk-ant-", "an Anthropic key", 20),
    shape("sk-proj-", "an OpenAI key", 20),
    shape("sk-svcacct-", "an OpenAI key", 20),
    shape("sk-or-v1-", "an OpenRouter key", 20),
    shape("sk_live_", "a Stripe key", 16),
    shape("rk_live_", "a Stripe key", 16),
    shape("sk-", "an API key", 32),
    shape("ghp_", "a GitHub token", 30),
    shape("gho_", "a GitHub token", 30),
    shape("ghu_", "a GitHub token", 30),
    shape("ghs_", "a GitHub token", 30),
    shape("ghr_", "a GitHub token", 30),
    shape("github_pat_", "a GitHub token", 30),
    shape("glpat-", "a GitLab token", 16),
    shape("AKIA", "an AWS access key", 16),
    shape("ASIA", "an AWS access key", 16),
    shape("AIza", "a Google API key", 35),
    shape("ya29.", "a Google access token", 30),
    shape("xoxb-", "a Slack token", 20),
    shape("xoxp-", "a Slack token", 20),
    shape("xoxa-", "a Slack token", 20),
    shape("xoxr-", "a Slack token", 20),
    shape("xapp-", "a Slack token", 20),
    shape("npm_", "an npm token", 36),
    shape("pypi-", "a PyPI token", 40),
    shape("hf_", "a Hugging Face token", 30),
    shape("dop_v1_", "a DigitalOcean token", 40),
    shape("shpat_", "a Shopify token", 30),
    shape("SG.", "a SendGrid key", 40),
    shape("AGE-SECRET-KEY-1", "an age key", 40),
    shape("lin_api_", "a Linear key", 30),
    shape("gsk_", "a Groq key", 40),
    shape("xai-", "an xAI key", 40),
    shape("tskey-", "a Tailscale key", 20),
];

/// Words that a name has whose value is a secret.
const TELLING: [&str; 12] = [
    "password",
    "passwd",
    "secret",
    "token",
    "api_key",
    "apikey",
    "api-key",
    "access_key",
    "accesskey",
    "private_key",
    "credential",
    "auth_key",
];

/// Finds what looks like a secret, in order, without overlap.
#[must_use]
pub fn scan(text: &str) -> Vec<Secret> {
    let mut found = Vec::new();
    for shape in &SHAPES {
        shaped(text, shape, &mut found);
    }
    private_keys(text, &mut found);
    web_tokens(text, &mut found);
    addresses(text, &mut found);
    telling(text, &mut found);
    found.sort_by_key(|secret| (secret.bytes.start, usize::MAX - secret.bytes.end));
    let mut end = 0;
    found.retain(|secret| {
        let is_apart = secret.bytes.start >= end;
        end = end.max(secret.bytes.end);
        is_apart
    });
    found
}

/// A secret as it may be shown: how it begins, and how long it is.
///
/// ```
/// assert_eq!(proem_core::secret::masked("ghp_0123456789abcdef"), "ghp_… (20 characters)");
/// ```
#[must_use]
pub fn masked(secret: &str) -> String {
    let shown: String = secret.chars().take(4).take_while(|character| !character.is_control()).collect();
    alloc::format!("{shown}… ({} characters)", secret.chars().count())
}

fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

fn shaped(text: &str, shape: &Shape, found: &mut Vec<Secret>) {
    let bytes = text.as_bytes();
    for start in memmem::find_iter(bytes, shape.begins) {
        if start > 0 && is_token_byte(bytes[start - 1]) {
            continue;
        }
        let behind = start + shape.begins.len();
        let is_dotted = shape.begins.ends_with('.');
        let of_it = |byte: &&u8| is_token_byte(**byte) || (is_dotted && **byte == b'.');
        let end = behind + bytes[behind..].iter().take_while(of_it).count();
        if end - behind >= shape.least && is_random(slice(text, behind, end)) {
            found.push(Secret { bytes: start..end, what: shape.what });
        }
    }
}

/// The block of a private key, up to the line that ends it.
fn private_keys(text: &str, found: &mut Vec<Secret>) {
    const BEGINS: &str = "-----BEGIN ";
    const NAME_BYTES_MAX: usize = 40;
    for start in memmem::find_iter(text.as_bytes(), BEGINS) {
        let line = slice(text, start, text.len()).lines().next().unwrap_or_default();
        let is_private = line.contains("PRIVATE KEY") && line.len() <= BEGINS.len() + NAME_BYTES_MAX;
        // A mention of the line alone is no key.
        let rest = slice(text, start + line.len(), text.len());
        let body = rest.trim_start().as_bytes();
        let has_body = body.iter().take(64).take_while(|byte| is_base64(**byte)).count() >= 24;
        if is_private && has_body {
            let end = rest.find("-----END ").and_then(|at| {
                let last = slice(rest, at, rest.len()).lines().next()?;
                Some(at + last.len())
            });
            let end = start + line.len() + end.unwrap_or(0);
            found.push(Secret { bytes: start..end, what: "a private key" });
        }
    }
}

const fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=')
}

/// Three parts in base64, the first two of which begin as JSON does.
fn web_tokens(text: &str, found: &mut Vec<Secret>) {
    let bytes = text.as_bytes();
    for start in memmem::find_iter(bytes, "eyJ") {
        if start > 0 && (is_token_byte(bytes[start - 1]) || bytes[start - 1] == b'.') {
            continue;
        }
        let of_it = |byte: &&u8| is_token_byte(**byte) || **byte == b'.';
        let end = start + bytes[start..].iter().take_while(of_it).count();
        let token = slice(text, start, end);
        let parts: Vec<&str> = token.split('.').collect();
        if let [head, body, sign] = parts.as_slice()
            && body.starts_with("eyJ")
            && head.len().min(body.len()).min(sign.len()) >= 16
        {
            found.push(Secret { bytes: start..end, what: "a JSON web token" });
        }
    }
}

/// A password in an address: `scheme://user:password@host`.
fn addresses(text: &str, found: &mut Vec<Secret>) {
    const SIGN: &str = "://";
    for at in memmem::find_iter(text.as_bytes(), SIGN) {
        let start = at + SIGN.len();
        let rest = slice(text, start, text.len());
        let is_end = |character: char| character.is_whitespace() || "/?#\"'`<>)".contains(character);
        let authority = slice(rest, 0, rest.find(is_end).unwrap_or(rest.len()));
        let Some((login, _)) = authority.rsplit_once('@') else { continue };
        let Some((user, password)) = login.split_once(':') else { continue };
        let is_named =
            matches!(password.to_lowercase().as_str(), "password" | "pass" | "pw" | "secret" | "pwd");
        if password.len() >= 6 && !is_named && !is_placeholder(password) {
            let first = start + user.len() + 1;
            found.push(Secret { bytes: first..first + password.len(), what: "a password in an address" });
        }
    }
}

/// A value that looks random behind a name that says what it is.
fn telling(text: &str, found: &mut Vec<Secret>) {
    for at in memchr_iter(b'=', text.as_bytes()).chain(memchr_iter(b':', text.as_bytes())) {
        if !is_telling(name_before(slice(text, 0, at))) {
            continue;
        }
        let rest = slice(text, at + 1, text.len());
        let value = rest.trim_start_matches([' ', '\t', '"', '\'', '`']);
        let length =
            value.bytes().take_while(|byte| is_token_byte(*byte) || is_base64(*byte) || *byte == b'.');
        let length = length.count();
        let start = text.len() - value.len();
        let value = slice(value, 0, length);
        if length >= 16 && is_random(value) && has_entropy(value) {
            found.push(Secret { bytes: start..start + length, what: "a value beside a telling name" });
        }
    }
}

/// The name before a sign of assignment, quotes and marks left out.
fn name_before(before: &str) -> &str {
    let before = before.trim_end_matches([' ', '\t', '"', '\'', '`', '*']);
    let is_of_name = |byte: &u8| is_token_byte(*byte);
    let length = before.bytes().rev().take_while(is_of_name).count();
    slice(before, before.len() - length, before.len())
}

fn is_telling(name: &str) -> bool {
    const NAME_BYTES_MAX: usize = 64;
    if name.is_empty() || name.len() > NAME_BYTES_MAX {
        return false;
    }
    let name = name.to_ascii_lowercase();
    TELLING.iter().any(|word| name.contains(word))
}

/// Neither a placeholder nor a word: letters and digits, many different ones.
fn is_random(value: &str) -> bool {
    let has = |test: fn(&u8) -> bool| value.bytes().any(|byte| test(&byte));
    let mut kinds: Vec<u8> = value.bytes().collect();
    kinds.sort_unstable();
    kinds.dedup();
    has(u8::is_ascii_digit) && has(u8::is_ascii_alphabetic) && kinds.len() >= 8 && !is_placeholder(value)
}

fn is_placeholder(value: &str) -> bool {
    const WORDS: [&str; 9] =
        ["example", "your", "xxxx", "placeholder", "changeme", "redacted", "dummy", "1234567890", "abcdef"];
    let lower = value.to_lowercase();
    let is_variable = value.starts_with(['$', '{', '<', '%', '*']) || value.contains("...");
    is_variable || WORDS.iter().any(|word| lower.contains(word))
}

/// At least three and a half bits a character, or three for numbers in hexadecimal.
fn has_entropy(value: &str) -> bool {
    let is_hex = value.bytes().all(|byte| byte.is_ascii_hexdigit());
    // In hundredths of bits: the core has no logarithm.
    let least = if is_hex { 300 } else { 350 };
    entropy(value) >= least
}

/// Bits a character by how often each one occurs, in hundredths.
fn entropy(value: &str) -> usize {
    let mut counts = [0_usize; 256];
    value.bytes().for_each(|byte| counts[usize::from(byte)] += 1);
    let total = value.len().max(1);
    let bits: usize =
        counts.iter().filter(|count| **count > 0).map(|count| count * log2(total, *count)).sum();
    bits / total
}

/// The logarithm of `total / part` to base two, in hundredths.
fn log2(total: usize, part: usize) -> usize {
    // A fixed point with 24 bits behind the point, halved until it is below two.
    let mut rest = ((total as u128) << 24) / part as u128;
    let mut whole = 0;
    while rest >= 2 << 24 {
        rest >>= 1;
        whole += 1;
    }
    let mut fraction = 0;
    for bit in (0..8).rev() {
        rest = (rest * rest) >> 24;
        if rest >= 2 << 24 {
            rest >>= 1;
            fraction += 1 << bit;
        }
    }
    whole * 100 + fraction * 100 / 256
}

/// Secrets of a text replaced by what may be shown of them.
#[must_use]
pub fn without_secrets(text: &str) -> String {
    let (mut shown, mut end) = (String::new(), 0);
    for secret in scan(text) {
        shown.push_str(slice(text, end, secret.bytes.start));
        shown.push_str(&masked(slice(text, secret.bytes.start, secret.bytes.end)));
        end = secret.bytes.end;
    }
    if end == 0 { text.to_string() } else { shown + slice(text, end, text.len()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<&'static str> {
        scan(text).into_iter().map(|secret| secret.what).collect()
    }

    /// Put together here, so that no scanner takes this file for a leak.
    fn token(begins: &str, length: usize) -> String {
        const LETTERS: &str = "k7Qw2ZpR9sT4vB6nM1xC8dF3gH5jL0yU";
        begins.chars().chain(LETTERS.chars().cycle()).take(begins.len() + length).collect()
    }

    #[test]
    fn known_shapes_are_found() {
        for shape in &SHAPES {
            let text = alloc::format!("use {} here", token(shape.begins, shape.least));
            assert_eq!(found(&text), [shape.what], "{text}");
            let short = alloc::format!("use {} here", token(shape.begins, shape.least - 8));
            assert_eq!(found(&short), [] as [&str; 0], "{short}");
        }
    }

    #[test]
    fn blocks_addresses_and_telling_names_are_found() {
        let body = token("", 64);
        let key =
            ["-----BEGIN RSA PRIVATE", " KEY-----\n", &body, "\n-----END RSA PRIVATE KEY-----"].concat();
        assert_eq!(found(&key), ["a private key"]);
        assert_eq!(scan(&key)[0].bytes, 0..key.len());
        let part = token("eyJ", 30);
        assert_eq!(found(&[part.as_str(), &part, &part].join(".")), ["a JSON web token"]);
        assert_eq!(found("postgres://me:s3cr7t-pw@db/x"), ["a password in an address"]);
        let value = token("", 24);
        for name in ["DB_PASSWORD=", "\"api_key\": \"", "**Token**: `", "client_secret = '"] {
            assert_eq!(found(&alloc::format!("{name}{value}")), ["a value beside a telling name"], "{name}");
        }
    }

    #[test]
    fn words_placeholders_and_mentions_are_not() {
        for text in [
            "Set `ANTHROPIC_API_KEY=sk-ant-...` first",
            "token: see the documentation of the service",
            "api_key = \"YOUR-KEY-0123456789-HERE\"",
            "AKIAIOSFODNN7EXAMPLE",
            "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
            "begins with -----BEGIN PRIVATE KEY----- and so on",
            "postgres://user:password@localhost/app",
            "redis://user:$PASSWORD@host",
            "secret: keep-this-long-sentence-with-hyphens-to-yourself",
            "token_count: 00000000000000000000",
        ] {
            assert_eq!(found(text), [] as [&str; 0], "{text}");
        }
    }

    #[test]
    fn what_is_shown_has_no_secret() {
        let token = token("ghp_", 36);
        let shown = without_secrets(&alloc::format!("key {token} end"));
        assert_eq!(shown, "key ghp_… (40 characters) end");
        assert_eq!(entropy("aaaa"), 0);
        assert!((399..=401).contains(&entropy("0123456789abcdef")));
    }
}
