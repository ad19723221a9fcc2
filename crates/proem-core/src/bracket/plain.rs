//! Reads tags of the usual form: short, ASCII, nothing to trim.
//!
//! An optimisation and nothing else: whatever it does not recognise, the scanner reads the long way,
//! and the properties compare both with a renderer that knows only the grammar. It looks at a bounded
//! number of bytes, so hostile input cannot make it slow.

use super::scan::{Found, Tag};
use crate::text::slice;

const INSIDE_BYTES_MAX: usize = 64;

/// The tag that opens at `open`, if it has the usual form.
#[inline]
pub(super) fn tag(source: &str, open: usize) -> Option<Found<'_>> {
    let inside = source.as_bytes().get(open + 1..)?;
    let word = word_bytes(inside);
    match inside.get(word)? {
        b':' if word > 0 => {
            let end = key_end(inside, word)?;
            let key = slice(source, open + 1, open + 1 + end);
            Some(found(open, end, Tag::Variable { key }))
        }
        b']' => match inside.get(..word)? {
            b"else" => Some(found(open, word, Tag::Else)),
            b"endif" => Some(found(open, word, Tag::EndIf)),
            _ => None,
        },
        b' ' if inside.get(..word)? == b"if" => condition(source, open, inside),
        _ => None,
    }
}

/// `if`, one space, perhaps `!`, and a key.
#[inline]
fn condition<'s>(source: &'s str, open: usize, inside: &[u8]) -> Option<Found<'s>> {
    const IF_AND_SPACE: usize = 3;
    let negated = inside.get(IF_AND_SPACE) == Some(&b'!');
    let start = IF_AND_SPACE + usize::from(negated);
    let word = word_bytes(inside.get(start..)?);
    if word == 0 || inside.get(start + word) != Some(&b':') {
        return None;
    }
    let end = key_end(inside, start + word)?;
    let key = slice(source, open + 1 + start, open + 1 + end);
    Some(found(open, end, Tag::If { key, negated }))
}

const fn found(open: usize, inside_bytes: usize, tag: Tag<'_>) -> Found<'_> {
    Found { bytes: open..open + inside_bytes + 2, tag }
}

/// What each byte may be part of: a table is quicker than comparing.
const WORD: u8 = 1;
const KEY: u8 = 2;
const CLASSES: [u8; 256] = classes();

const fn classes() -> [u8; 256] {
    let mut classes = [0; 256];
    let mut byte: u8 = 0;
    while byte < 128 {
        if byte.is_ascii_alphanumeric() || byte == b'_' {
            classes[byte as usize] |= WORD;
        }
        if matches!(byte, b' '..=b'~') && byte != b']' {
            classes[byte as usize] |= KEY;
        }
        byte += 1;
    }
    classes
}

#[inline]
fn count(bytes: &[u8], class: u8) -> usize {
    let mut count = 0;
    for byte in bytes.iter().take(INSIDE_BYTES_MAX) {
        if CLASSES[usize::from(*byte)] & class == 0 {
            break;
        }
        count += 1;
    }
    count
}

#[inline]
fn word_bytes(bytes: &[u8]) -> usize {
    count(bytes, WORD)
}

/// Where the key with this colon ends: at a `]` that follows a visible character.
#[inline]
fn key_end(inside: &[u8], colon: usize) -> Option<usize> {
    let end = colon + count(inside.get(colon..)?, KEY);
    let is_plain = inside.get(end) == Some(&b']') && inside.get(end - 1) != Some(&b' ');
    is_plain.then_some(end)
}
