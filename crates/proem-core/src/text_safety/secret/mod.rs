//! Finds text that looks like a secret: keys and tokens in known formats, and values of names such as `password`.

mod formats;
mod named_values;
mod randomness;
mod shapes;
#[cfg(test)]
mod tests;

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

use memchr::memmem::Finder;
use memchr::{memchr, memchr2_iter};

use self::formats::{ADDRESS, BEARER, PRIVATE_KEY, SITE, addresses, bearers, bots, hooks, private_keys};
use self::named_values::{IS, telling};
use self::shapes::{has_long_run, long_runs, shaped, web_token};
use crate::text::slice;

/// A piece of text that looks like a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Secret {
    /// Its bytes.
    pub bytes: Range<usize>,
    /// The kind of secret, for messages.
    pub what: &'static str,
}

/// Finds text that looks like a secret, in order, without overlap.
///
/// Use a [`Scanner`] to scan many texts.
#[must_use]
pub fn scan(text: &str) -> Vec<Secret> {
    Scanner::new().scan(text)
}

/// Prepared searches: for a short text, preparing them takes longer than searching.
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
    /// Prepares the searches.
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

    /// Finds text that looks like a secret, in order; overlapping secrets are merged.
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
        // Each of the other formats contains a colon, an equals sign or a space; most names and paths do not.
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
                // Overlapping secrets are merged, because each part may be sensitive.
                Some(last) if secret.bytes.start < last.bytes.end => {
                    last.bytes.end = last.bytes.end.max(secret.bytes.end);
                }
                _ => apart.push(secret),
            }
        }
        apart
    }

    /// Returns the text with every secret masked; borrowed if there is none.
    #[must_use]
    pub fn without_secrets<'t>(&self, text: &'t str) -> Cow<'t, str> {
        /// A safety margin: masked text is too short for another secret.
        const TIMES_MAX: usize = 8;
        let mut shown = Cow::Borrowed(text);
        for _ in 0..TIMES_MAX {
            // Text around a masked secret may look like a secret itself.
            match self.masked_once(&shown) {
                Some(masked) => shown = Cow::Owned(masked),
                None => break,
            }
        }
        shown
    }

    /// Masks each secret once; `None` if there is none.
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

/// Returns the visible form of a secret: its first characters and its length.
///
/// ```
/// assert_eq!(proem_core::text_safety::secret::masked("ghp_0123456789abcdef"), "ghp_… (20 characters)");
/// assert_eq!(proem_core::text_safety::secret::masked("hunter2!"), "…");
/// ```
#[must_use]
pub fn masked(secret: &str) -> String {
    const SHORT: usize = 16;
    if secret.chars().count() < SHORT {
        // Four characters would reveal too much of a short secret.
        return "…".into();
    }
    let shown: String = secret.chars().take(4).take_while(|character| !character.is_control()).collect();
    alloc::format!("{shown}… ({} characters)", secret.chars().count())
}
