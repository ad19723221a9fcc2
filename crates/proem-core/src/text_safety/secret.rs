//! Text that looks like a secret: keys and tokens by their known shapes, and what stands beside a telling name.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

use memchr::memmem::Finder;
use memchr::{memchr, memchr_iter, memchr2_iter};

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

const PRIVATE_KEY: &str = "-----BEGIN ";
const ADDRESS: &str = "://";
const SITE: &str = ".com/";
/// What stands before the site and behind it in the address of a webhook.
const HOOKS: [(&str, &str); 3] =
    [("hooks.slack", "services/"), ("discord", "api/webhooks/"), ("discordapp", "api/webhooks/")];
const BEARER: &str = "Bearer ";
const IS: &str = " is ";

/// What the last word of a name says, or its last two, when its value is a secret.
const TELLING: [&str; 9] =
    ["password", "passwd", "pwd", "passphrase", "secret", "token", "apikey", "credential", "credentials"];
const TELLING_PAIRS: [(&str, &str); 9] = [
    ("api", "key"),
    ("access", "key"),
    ("account", "key"),
    ("private", "key"),
    ("auth", "key"),
    ("secret", "key"),
    ("signing", "key"),
    ("encryption", "key"),
    ("master", "key"),
];

/// Finds what looks like a secret, in order, without overlap.
///
/// Whoever looks through many texts keeps a [`Scanner`].
#[must_use]
pub fn scan(text: &str) -> Vec<Secret> {
    Scanner::new().scan(text)
}

/// What is looked for, made ready once: for a short text that takes longer than looking.
#[derive(Debug)]
pub struct Scanner {
    private_key: Finder<'static>,
    address: Finder<'static>,
    site: Finder<'static>,
    bot: Finder<'static>,
    bearer: Finder<'static>,
    is: Finder<'static>,
}

impl Default for Scanner {
    fn default() -> Self {
        Self::new()
    }
}

impl Scanner {
    /// Makes everything ready.
    #[must_use]
    pub fn new() -> Self {
        Self {
            private_key: Finder::new(PRIVATE_KEY),
            address: Finder::new(ADDRESS),
            site: Finder::new(SITE),
            bot: Finder::new(":AA"),
            bearer: Finder::new(BEARER),
            is: Finder::new(IS),
        }
    }

    /// Finds what looks like a secret, in order, without overlap: what overlaps is one.
    #[must_use]
    pub fn scan(&self, text: &str) -> Vec<Secret> {
        let mut found = Vec::new();
        if !has_long_run(text) {
            return found;
        }
        let bytes = text.as_bytes();
        for run in long_runs(bytes) {
            shaped(text, &run, &mut found);
            web_token(text, &run, &mut found);
        }
        hooks(self, text, &mut found);
        // Each of the others has a sign or a space in it, which most names and paths have not.
        if memchr(b':', bytes).is_some() {
            addresses(self, text, &mut found);
            bots(self, text, &mut found);
        }
        telling(text, memchr2_iter(b':', b'=', bytes).map(|at| at..at + 1), &mut found);
        if memchr(b' ', bytes).is_some() {
            private_keys(self, text, &mut found);
            bearers(self, text, &mut found);
            telling(text, self.is.find_iter(bytes).map(|at| at..at + IS.len()), &mut found);
        }
        found.sort_by_key(|secret| (secret.bytes.start, usize::MAX - secret.bytes.end));
        let mut apart: Vec<Secret> = Vec::with_capacity(found.len());
        for secret in found {
            match apart.last_mut() {
                // The end of the one is a secret as much as the beginning of the other.
                Some(last) if secret.bytes.start < last.bytes.end => {
                    last.bytes.end = last.bytes.end.max(secret.bytes.end);
                }
                _ => apart.push(secret),
            }
        }
        apart
    }

    /// The text with every secret masked; borrowed if there is none.
    #[must_use]
    pub fn without_secrets<'t>(&self, text: &'t str) -> Cow<'t, str> {
        /// More than anybody has seen: what masks leave is too short for a secret.
        const TIMES_MAX: usize = 8;
        let mut shown = Cow::Borrowed(text);
        for _ in 0..TIMES_MAX {
            // What stood around a secret that is masked now may look like one itself without it.
            match self.masked_once(&shown) {
                Some(masked) => shown = Cow::Owned(masked),
                None => break,
            }
        }
        shown
    }

    /// `None` when there is nothing to mask.
    fn masked_once(&self, text: &str) -> Option<String> {
        let (mut shown, mut end) = (String::new(), 0);
        for secret in self.scan(text) {
            shown.push_str(slice(text, end, secret.bytes.start));
            shown.push_str(&masked(slice(text, secret.bytes.start, secret.bytes.end)));
            end = secret.bytes.end;
        }
        (end > 0).then(|| shown + slice(text, end, text.len()))
    }
}

/// Tells whether anything in a text can be a secret: the shortest one is a password in an address, and has no white space
/// from the sign of the scheme to that behind the password.
fn has_long_run(text: &str) -> bool {
    const BYTES_MIN: usize = 11;
    runs(text.as_bytes(), BYTES_MIN, |byte| !byte.is_ascii_whitespace()).next().is_some()
}

/// A secret as it may be shown: how it begins, and how long it is.
///
/// ```
/// assert_eq!(proem_core::text_safety::secret::masked("ghp_0123456789abcdef"), "ghp_… (20 characters)");
/// assert_eq!(proem_core::text_safety::secret::masked("hunter2!"), "…");
/// ```
#[must_use]
pub fn masked(secret: &str) -> String {
    const SHORT: usize = 16;
    if secret.chars().count() < SHORT {
        // Four characters of so few would be too many.
        return "…".into();
    }
    let shown: String = secret.chars().take(4).take_while(|character| !character.is_control()).collect();
    alloc::format!("{shown}… ({} characters)", secret.chars().count())
}

fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

/// Fewest bytes of a token that is known by how it begins.
const TOKEN_BYTES_MIN: usize = {
    let (mut least, mut index) = (usize::MAX, 0);
    while index < SHAPES.len() {
        let bytes = SHAPES[index].begins.len() + SHAPES[index].least;
        least = if bytes < least { bytes } else { least };
        index += 1;
    }
    least
};

/// The runs of bytes that can be such a token: text has few of them.
fn long_runs(bytes: &[u8]) -> impl Iterator<Item = Range<usize>> {
    runs(bytes, TOKEN_BYTES_MIN, is_run_byte)
}

/// The runs of at least `least` bytes that `is_of_run` takes. Each window is looked at from its end: most of them are passed
/// over whole because of one of their last bytes.
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

const fn is_run_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.')
}

/// How many beginnings of tokens with dots are tried in one run. Each of them takes all of the rest.
const DOTTED_MAX: usize = 32;

/// Tokens of known shapes in a run. A beginning stands at that of the run, or behind a dot: anywhere else it would be in the
/// middle of a token.
fn shaped(text: &str, run: &Range<usize>, found: &mut Vec<Secret>) {
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

/// The block of a private key, up to the line that ends it; also where line breaks are spelt out.
fn private_keys(scanner: &Scanner, text: &str, found: &mut Vec<Secret>) {
    const SAYS: &str = "PRIVATE KEY-----";
    const NAME_BYTES_MAX: usize = 40;
    for start in scanner.private_key.find_iter(text.as_bytes()) {
        let head = slice(text, start, text.floor_char_boundary(start + PRIVATE_KEY.len() + NAME_BYTES_MAX));
        let Some(said) =
            head.find(SAYS).filter(|said| !head.get(..*said).is_none_or(|name| name.contains('\n')))
        else {
            continue;
        };
        // A mention of the line alone is no key.
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

/// The beginning of a text: what is looked for must not be looked for to the very end, again and again.
fn window(text: &str) -> &str {
    const BYTES_MAX: usize = 16 << 10;
    slice(text, 0, text.floor_char_boundary(BYTES_MAX))
}

const fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=')
}

/// The signature of the token that every introduction shows.
const EXAMPLE_SIGNATURE: &str = "SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c";

/// Three parts in base64, the first two of which begin as JSON does: all of a run.
fn web_token(text: &str, run: &Range<usize>, found: &mut Vec<Secret>) {
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

/// A password in an address: `scheme://user:password@host`.
fn addresses(scanner: &Scanner, text: &str, found: &mut Vec<Secret>) {
    for at in scanner.address.find_iter(text.as_bytes()) {
        let start = at + ADDRESS.len();
        let rest = window(slice(text, start, text.len()));
        let is_end = |character: char| character.is_whitespace() || "/?#\"'`<>)".contains(character);
        let authority = slice(rest, 0, rest.find(is_end).unwrap_or(rest.len()));
        let Some((login, _)) = authority.rsplit_once('@') else { continue };
        let Some((user, password)) = login.split_once(':') else { continue };
        // A word, or the user's own name, is what examples and local databases have.
        let is_strange = password.contains(|character: char| !character.is_alphabetic()) && password != user;
        if password.len() >= 6 && is_strange && !is_placeholder(password) {
            let first = start + user.len() + 1;
            found.push(Secret { bytes: first..first + password.len(), what: "a password in an address" });
        }
    }
}

/// Addresses that whoever knows them may post to.
fn hooks(scanner: &Scanner, text: &str, found: &mut Vec<Secret>) {
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

/// What names a bot, and lets in whoever knows it.
fn bots(scanner: &Scanner, text: &str, found: &mut Vec<Secret>) {
    for colon in scanner.bot.find_iter(text.as_bytes()) {
        let digits = text.as_bytes()[..colon].iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
        let rest = slice(text, colon + 1, text.len()).bytes().take_while(|byte| is_token_byte(*byte)).count();
        if (8..=11).contains(&digits) && (30..=45).contains(&rest) {
            found.push(Secret { bytes: colon - digits..colon + 1 + rest, what: "a Telegram token" });
        }
    }
}

/// What stands behind `Bearer` in a header.
fn bearers(scanner: &Scanner, text: &str, found: &mut Vec<Secret>) {
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

/// A value that looks random behind a name that says what it is; `signs` are what may stand between the two.
fn telling(text: &str, signs: impl Iterator<Item = Range<usize>>, found: &mut Vec<Secret>) {
    /// Nobody has a longer one, and a text can be one value behind many signs.
    const VALUE_BYTES_MAX: usize = 8 << 10;
    let mut end = 0;
    for sign in signs {
        if !is_telling(name_before(slice(text, 0, sign.start))) {
            continue;
        }
        let value = slice(text, sign.end, text.len()).trim_start_matches([' ', '\t', '"', '\'', '`']);
        let start = text.len() - value.len();
        let is_end = |character: char| character.is_whitespace() || "\"'`,;<>|".contains(character);
        // What begins inside the last value ends where that does.
        if start >= end {
            end = start + value.find(is_end).unwrap_or(value.len());
        }
        if end - start > VALUE_BYTES_MAX {
            continue;
        }
        let value = slice(text, start, end).trim_end_matches(['.', ')', '*', '!', '?']);
        if is_secret_value(value) {
            found.push(Secret { bytes: start..start + value.len(), what: "a value beside a telling name" });
        }
    }
}

/// Tells whether nobody would write a value like this by hand: a key, or a good password.
fn is_secret_value(value: &str) -> bool {
    const CODE: &str = "(){}[]$\\";
    if !value.is_ascii()
        || value.contains(|character: char| CODE.contains(character))
        || is_placeholder(value)
    {
        return false;
    }
    let is_plain = |byte: u8| is_token_byte(byte) || is_base64(byte) || byte == b'.';
    if value.bytes().all(is_plain) {
        return value.len() >= 16 && is_random(value) && !is_path_or_address(value) && has_entropy(value);
    }
    let kinds: [fn(u8) -> bool; 4] = [
        |byte| byte.is_ascii_lowercase(),
        |byte| byte.is_ascii_uppercase(),
        |byte| byte.is_ascii_digit(),
        |byte| byte.is_ascii_punctuation(),
    ];
    let count = kinds.iter().filter(|kind| value.bytes().any(kind)).count();
    value.len() >= 12 && count == 4 && !value.contains("://") && !is_wordy(value)
}

/// Tells whether a value has the form of a UUID, which names things.
fn is_uuid(value: &str) -> bool {
    let is_group = |part: &str| part.bytes().all(|byte| byte.is_ascii_hexdigit());
    let lengths: Vec<usize> = value.split('-').map(str::len).collect();
    lengths == [8, 4, 4, 4, 12] && value.split('-').all(is_group)
}

/// Paths, versions and the addresses of accounts on a chain are public.
fn is_path_or_address(value: &str) -> bool {
    let is_account = value.len() == 42 && value.starts_with("0x");
    is_account || is_uuid(value) || value.starts_with(['/', '.']) || value.contains("./")
}

/// The name before a sign of assignment, quotes and marks left out.
fn name_before(before: &str) -> &str {
    let before = before.trim_end_matches([' ', '\t', '"', '\'', '`', '*']);
    let is_of_name = |byte: &u8| is_token_byte(*byte);
    let length = before.bytes().rev().take_while(is_of_name).count();
    let word = slice(before, before.len() - length, before.len());
    // `api key` is a name of two words.
    let first = slice(before, 0, before.len() - length).strip_suffix(' ').unwrap_or_default();
    let pair = first.bytes().rev().take_while(u8::is_ascii_alphabetic).count();
    let is_pair = word.eq_ignore_ascii_case("key") && pair > 0;
    if is_pair { slice(before, before.len() - length - 1 - pair, before.len()) } else { word }
}

/// What makes a token one that anybody may see.
const PUBLIC: [&str; 14] = [
    "public",
    "next",
    "page",
    "client",
    "lock",
    "idempotency",
    "continuation",
    "pagination",
    "sync",
    "cancellation",
    "request",
    "resume",
    "change",
    "design",
];

fn is_telling(name: &str) -> bool {
    const NAME_BYTES_MAX: usize = 64;
    if name.is_empty() || name.len() > NAME_BYTES_MAX {
        return false;
    }
    let words = words_of(name);
    let mut last = words.iter().rev().map(String::as_str);
    match (last.next(), last.next()) {
        (Some("token"), Some(before))
            if PUBLIC.contains(&before) || words.iter().any(|word| word == "public") =>
        {
            false
        }
        (Some("pass"), Some(_)) => true,
        (Some(word), _) if TELLING.contains(&word) => true,
        (Some(word), Some(before)) => TELLING_PAIRS.contains(&(before, word)),
        _ => false,
    }
}

/// The words of a name, in lower case: parted by signs, or by a capital letter behind a small one.
fn words_of(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut before = ' ';
    for character in name.chars() {
        let is_sign = !character.is_ascii_alphanumeric();
        let begins = !before.is_ascii_alphanumeric()
            || (before.is_ascii_lowercase() && character.is_ascii_uppercase());
        if !is_sign {
            if begins || words.is_empty() {
                words.push(String::new());
            }
            if let Some(word) = words.last_mut() {
                word.push(character.to_ascii_lowercase());
            }
        }
        before = character;
    }
    words
}

/// Tells whether most of a value is words: small letters in a row, as in names of things.
fn is_wordy(value: &str) -> bool {
    let mut in_words = 0;
    let mut run = 0;
    let mut end = |run: usize| in_words += if run >= 4 { run } else { 0 };
    for byte in value.bytes() {
        if byte.is_ascii_lowercase() {
            run += 1;
        } else {
            end(run);
            run = usize::from(byte.is_ascii_uppercase());
        }
    }
    end(run);
    in_words * 2 >= value.len()
}

/// A token behind a known beginning: it need not have a digit.
fn is_token(value: &str) -> bool {
    let has = |test: fn(&u8) -> bool| value.bytes().any(|byte| test(&byte));
    let is_mixed = has(u8::is_ascii_digit) || (has(u8::is_ascii_lowercase) && has(u8::is_ascii_uppercase));
    is_mixed && different(value) >= 8 && !is_placeholder(value) && !is_wordy(value)
}

fn different(value: &str) -> usize {
    let mut kinds: Vec<u8> = value.bytes().collect();
    kinds.sort_unstable();
    kinds.dedup();
    kinds.len()
}

/// Neither a placeholder nor words: letters and digits, many different ones.
fn is_random(value: &str) -> bool {
    let has = |test: fn(&u8) -> bool| value.bytes().any(|byte| test(&byte));
    has(u8::is_ascii_digit) && has(u8::is_ascii_alphabetic) && is_token(value)
}

fn is_placeholder(value: &str) -> bool {
    const WORDS: [&str; 9] =
        ["example", "your", "xxxx", "placeholder", "changeme", "redacted", "dummy", "1234567890", "abcdef"];
    let lower = value.to_lowercase();
    let is_variable =
        value.starts_with(['$', '{', '<', '%', '*']) || value.contains("...") || value.contains('…');
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

#[cfg(test)]
mod tests {
    use super::*;

    fn without_secrets(text: &str) -> String {
        Scanner::new().without_secrets(text).into_owned()
    }

    fn found(text: &str) -> Vec<&'static str> {
        scan(text).into_iter().map(|secret| secret.what).collect()
    }

    /// Put together here, so that no scanner takes this file for a leak.
    fn token(begins: &str, length: usize) -> String {
        const LETTERS: &str = "k7Qw2ZpR9sT4vB6nM1xC8dF3gH5jL0yU";
        begins.chars().chain(LETTERS.chars().cycle()).take(begins.len() + length).collect()
    }

    /// Row C9.
    #[test]
    fn of_two_secrets_that_overlap_nothing_is_left() {
        let says = " RSA PRIVATE KEY-----\n";
        let key = ["-----BEGIN", says, &"MIIEpAIBAAKCAQEA".repeat(3), "\n-----END", says].concat();
        for between in [" ", ""] {
            let text = ["password=", &token("x", 24), between, &key, "rest"].concat();
            let masked = without_secrets(&text);
            assert!(!masked.contains("MIIEpAIB") && !masked.contains("END RSA"), "{masked}");
            assert!(masked.trim_end().ends_with("rest"), "{masked}");
            assert_eq!(without_secrets(&masked), masked);
        }
    }

    /// Not random enough as a whole, and more so without what is masked in it.
    #[test]
    fn what_is_left_around_a_masked_secret_is_looked_at_again() {
        let key = ["..AKIA", &"B".repeat(10), "2h1j0k9l", &"B".repeat(7), "Q4f"].concat();
        let header = ["Bearer 8ch", &"M".repeat(14), "aracf7terd6postgres", &key].concat();
        let masked = without_secrets(&header);
        assert!(!masked.contains("aracf7terd6"), "{masked}");
        assert_eq!(without_secrets(&masked), masked);
    }

    #[test]
    fn runs_are_found_wherever_they_begin() {
        for skipped in 0..200 {
            for length in 0..60 {
                let text = [" ".repeat(skipped), "a-_.Z9".repeat(10)[..length].into(), "é x".into()].concat();
                let expected = (length >= TOKEN_BYTES_MIN).then_some(skipped..skipped + length);
                assert!(long_runs(text.as_bytes()).eq(expected), "{skipped} {length}");
            }
        }
        let two = ["b".repeat(20), "c".repeat(99)].join(" ");
        assert!(long_runs(two.as_bytes()).eq([0..20, 21..120]));
        let is_of_run = |shape: &Shape| shape.begins.bytes().all(is_run_byte);
        assert!(SHAPES.iter().all(is_of_run), "a token lies in one run");
    }

    /// Row C9.
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
    fn webhooks_and_bots_are_found_also_without_a_space_or_a_scheme() {
        let value = [token("", 18), token("", 40)].join("/");
        for site in ["hooks.slack.com/services/", "discord.com/api/webhooks/", "discordapp.com/api/webhooks/"]
        {
            for before in ["", "https://", "see ", "x."] {
                let text = [before, site, &value].concat();
                let bytes = text.len() - value.len()..text.len();
                assert_eq!(scan(&text), [Secret { bytes, what: "the address of a webhook" }], "{text}");
            }
            assert_eq!(found(&["my", site, &value].concat()).len(), 1, "{site}");
        }
        for other in ["discord.com/api/", "example.com/api/webhooks/", "discord.org/api/webhooks/"] {
            assert_eq!(found(&[other, &value].concat()), [] as [&str; 0], "{other}");
        }
        let bot = ["1234567890", ":AA", &token("", 33)].concat();
        for (before, behind) in [("", ""), ("bot", "/getMe"), ("use ", " here")] {
            assert_eq!(found(&[before, &bot, behind].concat()), ["a Telegram token"], "{before}");
        }
        // Of two names for the same bytes, the one that says more.
        assert_eq!(found(&["token=", &bot].concat()), ["a Telegram token"]);
        assert_eq!(found(&["token=", &token("ghp_", 36)].concat()), ["a GitHub token"]);
    }

    /// A long text that is one token or one value behind each of its signs: were each looked at whole, this would take
    /// minutes.
    #[test]
    fn a_text_that_begins_again_and_again_is_looked_through_once() {
        for part in
            ["SG.", "ya29.", "token=", "token:", "secret=a1B2", "sk-", "eyJ.", "://", "Bearer ", ":AA"]
        {
            let text = part.repeat((1 << 18) / part.len());
            assert!(scan(&text).len() < 10, "{part}");
        }
    }

    /// Row C9, the control.
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

    /// Row C9.
    #[test]
    fn what_is_shown_has_no_secret() {
        let token = token("ghp_", 36);
        let shown = without_secrets(&alloc::format!("key {token} end"));
        assert_eq!(shown, "key ghp_… (40 characters) end");
        assert_eq!(entropy("aaaa"), 0);
        assert!((399..=401).contains(&entropy("0123456789abcdef")));
    }
}
