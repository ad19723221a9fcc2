//! Parses front matter of the usual form: `key: value` lines, each complete and simple.
//!
//! This is only an optimisation: the YAML parser handles everything that it does not recognise, including mistakes,
//! and property tests compare both. Its rules are therefore narrower than those of YAML wherever YAML is subtle, and
//! it must never return an error of its own.

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};

use super::Value;
use crate::limit::{FRONT_MATTER_BYTES_MAX, FRONT_MATTER_NODES_MAX};
use crate::text::slice;

/// The map is a node, and so is each key and each value.
const ENTRIES_MAX: usize = (FRONT_MATTER_NODES_MAX - 1) / 2;
/// Far below the length at which the parser stops accepting a word as a key.
const KEY_BYTES_MAX: usize = 64;

/// Returns the entries of `yaml` if all of it has the usual form.
pub(super) fn parse(yaml: &str) -> Option<BTreeMap<String, Value>> {
    if yaml.len() > FRONT_MATTER_BYTES_MAX || !has_usual_characters(yaml) || !has_usual_breaks(yaml) {
        return None;
    }
    let mut entries = BTreeMap::new();
    for line in lines(yaml).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (key, value) = entry(line)?;
        if entries.len() == ENTRIES_MAX || entries.insert(key.to_string(), value).is_some() {
            return None;
        }
    }
    Some(entries)
}

/// Iterates over the lines without their line breaks, including the one after the last break, which may be empty.
fn lines(yaml: &str) -> impl Iterator<Item = &str> {
    let ends = memchr::memchr_iter(b'\n', yaml.as_bytes()).chain(core::iter::once(yaml.len()));
    let mut start = 0;
    ends.map(move |end| {
        let line = slice(yaml, core::mem::replace(&mut start, end + 1), end);
        line.strip_suffix('\r').unwrap_or(line)
    })
}

/// Tells whether the text has no character that YAML forbids, treats as a line break or skips somewhere.
///
/// Tabs and every space except U+0020 count as such characters, although the parser accepts most of them.
fn has_usual_characters(yaml: &str) -> bool {
    // Examines every byte instead of stopping at the first, so that the compiler can vectorize the loop.
    let is_usual_ascii =
        yaml.bytes().fold(true, |all, byte| all & matches!(byte, b' '..=b'~' | b'\n' | b'\r'));
    is_usual_ascii || yaml.chars().all(is_usual)
}

fn is_usual(character: char) -> bool {
    match character {
        ' '..='~' | '\n' | '\r' => true,
        '\u{FEFF}' | '\u{FFFE}' | '\u{FFFF}' => false,
        other => !other.is_control() && !other.is_whitespace(),
    }
}

/// Tells whether every CR belongs to a CRLF.
fn has_usual_breaks(yaml: &str) -> bool {
    let bytes = yaml.as_bytes();
    memchr::memchr_iter(b'\r', bytes).all(|at| bytes.get(at + 1) == Some(&b'\n'))
}

/// Parses a key, a colon, and nothing or a single space and a value.
fn entry(line: &str) -> Option<(&str, Value)> {
    let colon = memchr::memchr(b':', line.as_bytes())?;
    let (key, rest) = (slice(line, 0, colon), slice(line, colon + 1, line.len()));
    if !is_key(key) {
        return None;
    }
    let value = if rest.is_empty() { Value::Null } else { scalar(rest.strip_prefix(' ')?)? };
    Some((key, value))
}

/// Tells whether YAML can read `key` only as a key.
fn is_key(key: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    key.len() <= KEY_BYTES_MAX
        && key.bytes().next().is_some_and(is_word)
        && key.bytes().all(|byte| is_word(byte) || byte == b'-')
        && !matches!(key, "null" | "Null" | "NULL")
}

/// Parses a value that takes the rest of its line.
fn scalar(text: &str) -> Option<Value> {
    if let Some(rest) = text.strip_prefix('"') {
        return quoted(rest.strip_suffix('"')?, |inside| memchr::memchr2(b'"', b'\\', inside));
    }
    if let Some(rest) = text.strip_prefix('\'') {
        return quoted(rest.strip_suffix('\'')?, |inside| memchr::memchr(b'\'', inside));
    }
    is_plain(text.as_bytes()).then(|| Value::plain(text))
}

/// Returns the text between quotes if it contains no quote and no escape.
fn quoted(inside: &str, find_special: fn(&[u8]) -> Option<usize>) -> Option<Value> {
    find_special(inside.as_bytes()).is_none().then(|| Value::Text(inside.to_string()))
}

/// Tells whether `text` is one plain scalar to its end: no other type, no second colon, no comment.
fn is_plain(text: &[u8]) -> bool {
    let ends_scalar = |at: usize| match text.get(at) {
        Some(b':') => matches!(text.get(at + 1), None | Some(b' ')),
        _ => at == 0 || text.get(at - 1) == Some(&b' '),
    };
    text.first().is_some_and(|first| !b" -?:,[]{}#&*!|>'\"%@`".contains(first))
        && text.last() != Some(&b' ')
        && !memchr::memchr2_iter(b':', b'#', text).any(ends_scalar)
}

#[cfg(test)]
mod tests;
