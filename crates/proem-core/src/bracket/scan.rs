//! Finds the tags of a bracket template in order.
//!
//! [`plain`] parses tags of the usual form in one pass; this module handles the rest. The time is linear in the
//! source, also for hostile input: a `[` that does not open a tag costs only the bytes up to the next `[`. The
//! properties of a `]` (the end of its trimmed content, a preceding line break) are computed once per `]`, even if
//! many `[` share it.

use core::ops::Range;

use super::plain;
use crate::text::{is_javascript_space, is_line_break, slice};

/// A tag and the bytes it occupies, brackets included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FoundTag<'s> {
    pub(super) bytes: Range<usize>,
    pub(super) tag: Tag<'s>,
}

/// The meaning of a tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tag<'s> {
    If { key: Key<'s>, negated: bool },
    Else,
    EndIf,
    Variable { key: Key<'s> },
}

/// A key as bytes; UTF-8 is validated only for new keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Key<'s>(&'s [u8]);

impl<'s> Key<'s> {
    pub(super) const fn new(text: &'s str) -> Self {
        Self(text.as_bytes())
    }

    /// Returns the part of `inside` from `start` to `end`; all of its bytes must be ASCII.
    #[inline]
    pub(super) fn ascii(inside: &'s [u8], start: usize, end: usize) -> Option<Self> {
        inside.get(start..end).map(Self)
    }

    pub(super) const fn bytes(self) -> &'s [u8] {
        self.0
    }

    pub(super) fn text(self) -> &'s str {
        str::from_utf8(self.0).expect("a key is cut out of a text at ASCII characters")
    }
}

/// Receives tags, one callback per kind, so that the kind is dispatched once.
pub(super) trait TagSink<'s> {
    fn take(&mut self, bytes: Range<usize>, tag: Tag<'s>);
}

impl<'s> TagSink<'s> for Option<FoundTag<'s>> {
    fn take(&mut self, bytes: Range<usize>, tag: Tag<'s>) {
        *self = Some(FoundTag { bytes, tag });
    }
}

/// Iterates over the tags of a source.
pub(super) struct Scanner<'s> {
    source: &'s str,
    position: usize,
    close: Option<Close>,
}

/// The `]` that belongs to the next `[`.
#[derive(Clone, Copy)]
struct Close {
    at: usize,
    inside_end: Option<usize>,
    last_break: Option<LastBreak>,
}

#[derive(Clone, Copy)]
enum LastBreak {
    None,
    At(usize),
}

impl<'s> Scanner<'s> {
    pub(super) const fn new(source: &'s str) -> Self {
        Self { source, position: 0, close: None }
    }

    #[inline]
    fn open_from(&self, position: usize) -> Option<usize> {
        let bytes = self.bytes_from(position)?;
        let near = bytes.first_chunk().and_then(first_open);
        Some(position + near.or_else(|| memchr::memchr(b'[', bytes))?)
    }

    /// Emits the next tag; `None` if there is none.
    #[expect(clippy::inline_always, reason = "a tag passed on in memory is read before it is written")]
    #[inline(always)]
    pub(super) fn give(&mut self, to: &mut impl TagSink<'s>) -> Option<()> {
        let open = self.open_from(self.position)?;
        self.position = match plain::give(self.source, open, to) {
            Some(end) => end,
            None => self.give_any_form(open, to)?,
        };
        Some(())
    }

    /// Emits the first tag that opens at or after `open`, without the fast path, and returns its end.
    #[cold]
    fn give_any_form(&mut self, mut open: usize, to: &mut impl TagSink<'s>) -> Option<usize> {
        loop {
            let close = self.close_behind(open)?;
            if let Some(tag) = self.classify(open + 1, close) {
                to.take(open..close + 1, tag);
                return Some(close + 1);
            }
            open = self.open_from(open + 1)?;
        }
    }

    /// Finds the first `]` after `open`; `None` means that no further tag can follow.
    fn close_behind(&mut self, open: usize) -> Option<usize> {
        if let Some(close) = self.close.filter(|close| close.at > open) {
            return Some(close.at);
        }
        let at = open + memchr::memchr(b']', self.bytes_from(open)?)?;
        self.close = Some(Close { at, inside_end: None, last_break: None });
        Some(at)
    }

    fn bytes_from(&self, start: usize) -> Option<&'s [u8]> {
        self.source.as_bytes().get(start..)
    }

    fn byte(&self, at: usize) -> Option<u8> {
        self.source.as_bytes().get(at).copied()
    }

    /// Parses the content that starts at `start`; `None` means that its `[` is literal.
    fn classify(&mut self, start: usize, close: usize) -> Option<Tag<'s>> {
        let start = self.skip_space(start, close);
        let word_end = self.skip_word(start);
        if self.byte(word_end) == Some(b':') && word_end > start {
            return self.key(start, word_end).map(|key| Tag::Variable { key: Key::new(key) });
        }
        match slice(self.source, start, word_end) {
            "else" if self.inside_end(word_end) == word_end => Some(Tag::Else),
            "endif" if self.inside_end(word_end) == word_end => Some(Tag::EndIf),
            "if" => self.condition(word_end, close),
            _ => None,
        }
    }

    fn condition(&mut self, if_end: usize, close: usize) -> Option<Tag<'s>> {
        let mut start = self.skip_space(if_end, close);
        if start == if_end {
            return None;
        }
        let negated = self.byte(start) == Some(b'!');
        start += usize::from(negated);
        let word_end = self.skip_word(start);
        if word_end == start || self.byte(word_end) != Some(b':') {
            return None;
        }
        self.key(start, word_end).map(|key| Tag::If { key: Key::new(key), negated })
    }

    /// Parses `word:rest` up to the trimmed end. A rest with a line break is not a key.
    fn key(&mut self, start: usize, colon: usize) -> Option<&'s str> {
        let rest = colon + 1;
        let end = self.inside_end(rest);
        if self.has_break(rest, end) { None } else { Some(slice(self.source, start, end)) }
    }

    fn skip_space(&self, start: usize, close: usize) -> usize {
        match self.byte(start) {
            // The usual case needs no decoding.
            Some(b'!'..=b'~') => start,
            _ => slice(self.source, start, close)
                .char_indices()
                .find(|(_, character)| !is_javascript_space(*character))
                .map_or(close, |(offset, _)| start + offset),
        }
    }

    fn skip_word(&self, start: usize) -> usize {
        let bytes = self.bytes_from(start).unwrap_or_default();
        let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        start + bytes.iter().position(|byte| !is_word(byte)).unwrap_or(bytes.len())
    }

    /// Returns the end of the trimmed content. `floor` is a position that trimming cannot reach.
    fn inside_end(&mut self, floor: usize) -> usize {
        let source = self.source;
        let Some(close) = &mut self.close else { return floor };
        // The usual case needs no decoding.
        if let Some(b'!'..=b'~') = source.as_bytes().get(close.at - 1) {
            return close.at;
        }
        *close.inside_end.get_or_insert_with(|| {
            floor + slice(source, floor, close.at).trim_end_matches(is_javascript_space).len()
        })
    }

    /// Tells whether `rest..end` contains a line break.
    ///
    /// The first `[` of a `]` is the leftmost one, so its result holds for all others.
    fn has_break(&mut self, rest: usize, end: usize) -> bool {
        let source = self.source;
        let Some(close) = &mut self.close else { return false };
        let last_break = *close.last_break.get_or_insert_with(|| last_break(source, rest, end));
        matches!(last_break, LastBreak::At(at) if at >= rest)
    }
}

/// Bytes that are compared one by one before a search, which has a higher setup cost.
const NEAR: usize = 16;

/// Returns the first `[` in the next few bytes: tags often follow each other closely.
#[inline]
fn first_open(near: &[u8; NEAR]) -> Option<usize> {
    let (words, _) = near.as_chunks();
    let mut found = words.iter().zip(0..).filter_map(|(word, index)| Some(8 * index + open_of(*word)?));
    found.next()
}

/// Returns the first `[` in eight bytes.
#[inline]
const fn open_of(word: [u8; 8]) -> Option<usize> {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    // A byte is zero where it equals `[`. The subtraction sets the highest bit of the first zero byte and of none
    // before it.
    let others = u64::from_le_bytes(word) ^ u64::from_le_bytes([b'['; 8]);
    let zeros = others.wrapping_sub(ONES) & !others & (ONES << 7);
    if zeros == 0 { None } else { Some(zeros.trailing_zeros() as usize / 8) }
}

fn last_break(source: &str, start: usize, end: usize) -> LastBreak {
    let text = slice(source, start, end);
    // Keys are mostly short and plain: every character that breaks a line starts with one of these bytes.
    if !text.bytes().any(|byte| matches!(byte, b'\n' | b'\r' | 0xE2)) {
        return LastBreak::None;
    }
    text.rfind(is_line_break).map_or(LastBreak::None, |at| LastBreak::At(start + at))
}

impl<'s> Iterator for Scanner<'s> {
    type Item = FoundTag<'s>;

    fn next(&mut self) -> Option<FoundTag<'s>> {
        let mut found = None;
        self.give(&mut found)?;
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    fn tags(source: &str) -> Vec<Tag<'_>> {
        Scanner::new(source).map(|found| found.tag).collect()
    }

    fn variable(key: &str) -> Tag<'_> {
        Tag::Variable { key: Key::new(key) }
    }

    #[test]
    fn each_form_is_recognised_exactly() {
        let condition = |key, negated| Tag::If { key: Key::new(key), negated };
        for (source, expected) in [
            ("[a:b]", Vec::from([variable("a:b")])),
            ("[ a:b ]", Vec::from([variable("a:b")])),
            ("[a:]", Vec::from([variable("a:")])),
            ("[a: b c ]", Vec::from([variable("a: b c")])),
            ("[a:b:c]", Vec::from([variable("a:b:c")])),
            ("[\u{FEFF}\u{A0}a:b\u{2028}]", Vec::from([variable("a:b")])),
            ("[\u{85}a:b]", Vec::new()),
            ("[:b]", Vec::new()),
            ("[é:b]", Vec::new()),
            ("[a-b:c]", Vec::new()),
            ("[if:x]", Vec::from([variable("if:x")])),
            ("[else:x]", Vec::from([variable("else:x")])),
            ("[else]", Vec::from([Tag::Else])),
            ("[ endif\n]", Vec::from([Tag::EndIf])),
            ("[Else]", Vec::new()),
            ("[endif x]", Vec::new()),
            ("[if a:b]", Vec::from([condition("a:b", false)])),
            ("[if\n\u{3000}!a:b]", Vec::from([condition("a:b", true)])),
            ("[if a:]", Vec::from([condition("a:", false)])),
            ("[if ! a:b]", Vec::new()),
            ("[if !!a:b]", Vec::new()),
            ("[if foo]", Vec::new()),
            ("[if ]", Vec::new()),
            ("[if]", Vec::new()),
            ("[else if a:b]", Vec::new()),
            ("[IF a:b]", Vec::new()),
            ("[a:b\nc]", Vec::new()),
            ("[a:b\u{2029}c]", Vec::new()),
            ("[a:b\u{B}c]", Vec::from([variable("a:b\u{B}c")])),
            ("[[a:b]]", Vec::from([variable("a:b")])),
            ("[x [a:b] y]", Vec::from([variable("a:b")])),
            ("[a:[a:b]]", Vec::from([variable("a:[a:b")])),
            ("[a:\n[a:b]", Vec::from([variable("a:b")])),
            ("no [tag here", Vec::new()),
        ] {
            assert_eq!(tags(source), expected, "{source:?}");
        }
    }
}
