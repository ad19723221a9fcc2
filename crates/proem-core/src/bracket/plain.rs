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

#[inline]
fn word_bytes(bytes: &[u8]) -> usize {
    let is_word = |byte: &&u8| byte.is_ascii_alphanumeric() || **byte == b'_';
    bytes.iter().take(INSIDE_BYTES_MAX).take_while(is_word).count()
}

/// Where the key with this colon ends: at a `]` that follows a visible character.
#[inline]
fn key_end(inside: &[u8], colon: usize) -> Option<usize> {
    let rest = inside.get(colon..)?.iter().take(INSIDE_BYTES_MAX);
    let length = rest.take_while(|byte| matches!(byte, b' '..=b'~') && **byte != b']').count();
    let end = colon + length;
    let is_plain = inside.get(end) == Some(&b']') && inside.get(end - 1) != Some(&b' ');
    is_plain.then_some(end)
}
