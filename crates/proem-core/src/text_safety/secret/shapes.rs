//! Tokens with a known prefix, and JSON web tokens.

use alloc::vec::Vec;
use core::ops::Range;

use memchr::memchr_iter;

use super::Secret;
use super::randomness::is_token;
use crate::text::slice;

/// A token with a known prefix.
pub(super) struct Shape {
    pub(super) begins: &'static str,
    pub(super) what: &'static str,
    /// Fewest characters after the prefix.
    pub(super) least: usize,
}

const fn shape(begins: &'static str, what: &'static str, least: usize) -> Shape {
    Shape { begins, what, least }
}

/// The known prefixes; a prefix that starts with another one comes first.
pub(super) const SHAPES: [Shape; 34] = [
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

/// Fewest bytes of a token with a known prefix.
pub(super) const TOKEN_BYTES_MIN: usize = {
    let (mut least, mut index) = (usize::MAX, 0);
    while index < SHAPES.len() {
        let bytes = SHAPES[index].begins.len() + SHAPES[index].least;
        least = if bytes < least { bytes } else { least };
        index += 1;
    }
    least
};

pub(super) fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

/// Iterates over the runs of bytes that can be such a token; most text has few of them.
pub(super) fn long_runs(bytes: &[u8]) -> impl Iterator<Item = Range<usize>> {
    runs(bytes, TOKEN_BYTES_MIN, is_run_byte)
}

/// Tells whether a text is long enough for a secret. The shortest one is a password in a URL, which has no white
/// space from the scheme to the `@`.
pub(super) fn has_long_run(text: &str) -> bool {
    const BYTES_MIN: usize = 11;
    runs(text.as_bytes(), BYTES_MIN, |byte| !byte.is_ascii_whitespace()).next().is_some()
}

/// Iterates over the runs of at least `least` bytes that satisfy `is_of_run`. Each window is examined from its end,
/// so that most windows are skipped because of one of their last bytes.
fn runs(bytes: &[u8], least: usize, is_of_run: impl Fn(u8) -> bool) -> impl Iterator<Item = Range<usize>> {
    let mut start = 0;
    core::iter::from_fn(move || {
        loop {
            let window = bytes.get(start..start + least)?;
            match window.iter().rposition(|byte| !is_of_run(*byte)) {
                Some(other) => start += other + 1,
                None => break,
            }
        }
        let rest = bytes.get(start + least..).unwrap_or_default();
        let end = start + least + rest.iter().take_while(|byte| is_of_run(**byte)).count();
        Some(core::mem::replace(&mut start, end)..end)
    })
}

pub(super) const fn is_run_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.')
}

/// Most prefixes of dotted tokens that are tried in one run, because each may scan the rest of the run.
const DOTTED_MAX: usize = 32;

/// Finds tokens with a known prefix in a run. A prefix counts only at the start of the run or after a dot; anywhere
/// else it is in the middle of a token.
pub(super) fn shaped(text: &str, run: &Range<usize>, found: &mut Vec<Secret>) {
    let bytes = text.as_bytes();
    let mut dotted = 0;
    let behind_dots = memchr_iter(b'.', &bytes[run.clone()]).map(|dot| run.start + dot + 1);
    for start in core::iter::once(run.start).chain(behind_dots) {
        let rest = &bytes[start..];
        for shape in SHAPES.iter().filter(|shape| rest.starts_with(shape.begins.as_bytes())) {
            let behind = start + shape.begins.len();
            let is_dotted = shape.begins.ends_with('.');
            dotted += usize::from(is_dotted);
            if is_dotted && dotted > DOTTED_MAX {
                continue;
            }
            let of_it = |byte: &&u8| is_token_byte(**byte) || (is_dotted && **byte == b'.');
            let end = behind + bytes[behind..].iter().take_while(of_it).count();
            if end - behind >= shape.least && is_token(slice(text, behind, end)) {
                found.push(Secret { bytes: start..end, what: shape.what });
            }
        }
    }
}

/// The signature of the example token in most introductions to JSON web tokens.
const EXAMPLE_SIGNATURE: &str = "SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c";

/// Finds a JSON web token: a whole run of three base64 parts, of which the first two start like JSON.
pub(super) fn web_token(text: &str, run: &Range<usize>, found: &mut Vec<Secret>) {
    const BEGINS: &str = "eyJ";
    let token = slice(text, run.start, run.end);
    if !token.starts_with(BEGINS) {
        return;
    }
    let parts: Vec<&str> = token.split('.').collect();
    if let [head, body, sign] = parts.as_slice()
        && body.starts_with(BEGINS)
        && head.len().min(body.len()).min(sign.len()) >= 16
        && *sign != EXAMPLE_SIGNATURE
    {
        found.push(Secret { bytes: run.clone(), what: "a JSON web token" });
    }
}
