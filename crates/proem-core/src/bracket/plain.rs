//! Reads tags of the usual form: short, ASCII, nothing to trim.
//!
//! An optimisation and nothing else: whatever it does not recognise, the scanner reads the long way,
//! and the properties compare both with a renderer that knows only the grammar. It looks at a bounded
//! number of bytes, so hostile input cannot make it slow.

use super::scan::{Found, Tag};
use crate::text::slice;

const INSIDE_BYTES_MAX: usize = 64;

/// The tag that opens at `open`, if it has the usual form.
#[expect(clippy::inline_always, reason = "a tag passed on in memory is read before it is written")]
#[inline(always)]
pub(super) fn tag(source: &str, open: usize) -> Option<Found<'_>> {
    let inside = source.as_bytes().get(open + 1..)?;
    match inside {
        [b'i', b'f', b' ', b'!', ..] => condition(source, open, inside, true),
        [b'i', b'f', b' ', ..] => condition(source, open, inside, false),
        [b'e', b'l', b's', b'e', b']', ..] => Some(found(open, 4, Tag::Else)),
        [b'e', b'n', b'd', b'i', b'f', b']', ..] => Some(found(open, 5, Tag::EndIf)),
        _ => {
            let end = key_end(inside, 0)?;
            Some(found(open, end, Tag::Variable { key: slice(source, open + 1, open + 1 + end) }))
        }
    }
}

/// `if`, one space, perhaps `!`, and a key.
#[expect(clippy::inline_always, reason = "a tag passed on in memory is read before it is written")]
#[inline(always)]
fn condition<'s>(source: &'s str, open: usize, inside: &[u8], negated: bool) -> Option<Found<'s>> {
    let start = "if ".len() + usize::from(negated);
    let end = key_end(inside, start)?;
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

/// Where the key that starts at `start` ends: at a `]` that follows a visible character.
#[inline]
fn key_end(inside: &[u8], start: usize) -> Option<usize> {
    let colon = start + count(inside.get(start..)?, WORD);
    if colon == start || inside.get(colon) != Some(&b':') {
        return None;
    }
    let end = colon + count(inside.get(colon..)?, KEY);
    let is_plain = inside.get(end) == Some(&b']') && inside.get(end - 1) != Some(&b' ');
    is_plain.then_some(end)
}

#[inline]
fn count(bytes: &[u8], class: u8) -> usize {
    let bytes = bytes.get(..INSIDE_BYTES_MAX).unwrap_or(bytes);
    bytes.iter().position(|byte| CLASSES[usize::from(*byte)] & class == 0).unwrap_or(bytes.len())
}
