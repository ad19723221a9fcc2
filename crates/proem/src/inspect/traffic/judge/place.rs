//! The place of a change: the first different byte of two texts, and excerpts without secrets.

use proem_core::text::{Places, clip};
use proem_core::text_safety::secret::{Scanner, masked};

/// Bytes of an excerpt.
const EXCERPT_BYTES: usize = 120;

/// Bytes of an excerpt that stand before the change.
const LEAD_BYTES: usize = 40;

/// Bytes around an excerpt that are searched for secrets.
const SEARCHED_BYTES: usize = 4_096;

/// The place where two texts begin to differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TextChange {
    pub(super) byte: usize,
    pub(super) line: usize,
    pub(super) column: usize,
    pub(super) before: String,
    pub(super) after: String,
}

/// Finds the first different byte; `None` for equal texts.
pub(super) fn first_change(before: &str, after: &str) -> Option<TextChange> {
    if before == after {
        return None;
    }
    let byte = before.bytes().zip(after.bytes()).take_while(|(old, new)| old == new).count();
    let place = Places::new(if after.len() > byte { after } else { before }).at(byte);
    Some(TextChange {
        byte,
        line: place.line,
        column: place.column,
        before: excerpt(before, byte),
        after: excerpt(after, byte),
    })
}

/// Returns the text around a byte, secrets masked.
pub(super) fn excerpt(text: &str, byte: usize) -> String {
    let start = text.floor_char_boundary(byte.saturating_sub(LEAD_BYTES).min(text.len()));
    let end = text.floor_char_boundary((start + EXCERPT_BYTES).min(text.len()));
    // A secret may begin before the excerpt or end after it.
    let from = text.floor_char_boundary(start.saturating_sub(SEARCHED_BYTES));
    let to = text.floor_char_boundary((end + SEARCHED_BYTES).min(text.len()));
    let searched = text.get(from..to).unwrap_or_default();
    let (start, end) = (start - from, end - from);
    let (mut shown, mut at) = (String::new(), start);
    for secret in Scanner::new().scan(searched) {
        let range = secret.bytes;
        if range.end <= at || range.start >= end {
            continue;
        }
        shown.push_str(searched.get(at..range.start.max(at)).unwrap_or_default());
        shown.push_str(&masked(searched.get(range.clone()).unwrap_or_default()));
        at = range.end;
    }
    shown.push_str(searched.get(at.min(end)..end).unwrap_or_default());
    clip(&shown, EXCERPT_BYTES).to_owned()
}

/// Returns the line of a text that holds a byte.
pub(super) fn line_at(text: &str, byte: usize) -> &str {
    let at = text.floor_char_boundary(byte.min(text.len()));
    let (head, tail) = (text.get(..at).unwrap_or_default(), text.get(at..).unwrap_or_default());
    let start = head.rfind('\n').map_or(0, |found| found + 1);
    let end = at + tail.find('\n').unwrap_or(tail.len());
    text.get(start..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_never_shows_in_an_excerpt() {
        let key = format!("sk-ant-api03-{}", "aB3dE5gH7jK9".repeat(8));
        for lead in 0..200 {
            let before = format!("{}token = {key} end", "x".repeat(lead));
            let after = format!("{}token = {} end", "x".repeat(lead), key.replace("gH7", "zZ1"));
            let change = first_change(&before, &after).expect("they differ");
            for shown in [&change.before, &change.after] {
                assert!(!shown.contains("dE5gH7jK9aB3"), "{shown}");
                assert!(!shown.contains("K9aB3dE5"), "{shown}");
                assert!(shown.len() <= EXCERPT_BYTES);
            }
        }
    }

    #[test]
    fn the_place_counts_characters_from_one() {
        let change = first_change("a\nnaïve x", "a\nnaïve y").expect("they differ");
        assert_eq!((change.byte, change.line, change.column), (9, 2, 7));
        assert_eq!(first_change("a", "a"), None);
        assert_eq!(line_at("one\ntwo\nthree", 5), "two");
    }
}
