//! Parses tags of the usual form: short, ASCII, nothing to trim.
//!
//! This is only an optimisation: the scanner handles everything that it does not recognise, and property tests
//! compare both with a renderer that implements the grammar directly. It examines a bounded number of bytes, so
//! hostile input cannot make it slow.

use super::scan::{Key, Tag, TagSink};

const INSIDE_BYTES_MAX: usize = 64;

/// Emits the tag that opens at `open` if it has the usual form, and returns its end.
#[expect(clippy::inline_always, reason = "a tag passed on in memory is read before it is written")]
#[inline(always)]
pub(super) fn give<'s>(source: &'s str, open: usize, to: &mut impl TagSink<'s>) -> Option<usize> {
    let inside = source.as_bytes().get(open + 1..)?;
    match inside {
        [b'i', b'f', b' ', after @ ..] => {
            let negated = after.first() == Some(&b'!');
            let start = "if ".len() + usize::from(negated);
            let end = key_end(inside, start)?;
            let key = Key::ascii(inside, start, end)?;
            Some(taken(to, open, end, Tag::If { key, negated }))
        }
        [b'e', b'l', b's', b'e', b']', ..] => Some(taken(to, open, 4, Tag::Else)),
        [b'e', b'n', b'd', b'i', b'f', b']', ..] => Some(taken(to, open, 5, Tag::EndIf)),
        _ => {
            let end = key_end(inside, 0)?;
            let key = Key::ascii(inside, 0, end)?;
            Some(taken(to, open, end, Tag::Variable { key }))
        }
    }
}

#[expect(clippy::inline_always, reason = "a tag passed on in memory is read before it is written")]
#[inline(always)]
fn taken<'s>(to: &mut impl TagSink<'s>, open: usize, inside_bytes: usize, tag: Tag<'s>) -> usize {
    let end = open + inside_bytes + 2;
    to.take(open..end, tag);
    end
}

/// The classes of each byte; a table is faster than comparisons.
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

/// Returns the end of the key that starts at `start`: a `]` after a visible character.
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
