//! Escapes text from outside for notes, errors and terminals.
//!
//! Invisible characters and characters that reorder text are replaced with escapes. This text never enters a prompt:
//! the profile's policy decides about prompts, see [`hygiene`].

use alloc::borrow::Cow;
use alloc::string::{String, ToString};

use crate::text_safety::hygiene;

/// Escapes invisible characters as `\u{202e}`; keeps line breaks and tabs.
///
/// ```
/// use proem_core::text_safety::escape::escape;
///
/// assert_eq!(escape("a/\u{202E}dm.b 👩‍🚀"), "a/\\u{202e}dm.b 👩‍🚀");
/// ```
#[must_use]
pub fn escape(text: &str) -> Cow<'_, str> {
    escape_with(text, |character| character.escape_unicode().to_string())
}

/// Escapes line breaks and tabs too, for text that must stay on one line, such as a path.
#[must_use]
pub fn escape_line(text: &str) -> Cow<'_, str> {
    const BREAKS: [char; 3] = ['\t', '\n', '\r'];
    if is_printable(text) {
        return Cow::Borrowed(text);
    }
    let whole = escape(text);
    if !whole.contains(BREAKS) {
        return whole;
    }
    let spell = |character: char| match character {
        '\t' | '\n' | '\r' => character.escape_unicode().to_string(),
        other => other.to_string(),
    };
    Cow::Owned(whole.chars().map(spell).collect())
}

/// Tells whether a text is visible ASCII, as most are. Examines all bytes, which is faster than stopping early.
fn is_printable(text: &str) -> bool {
    text.bytes().fold(true, |is_so_far, byte| is_so_far & matches!(byte, b' '..=b'~'))
}

/// Replaces every character that is invisible or acts on a terminal with the result of `spell`.
///
/// Keeps characters that scripts and emoji need, like [`hygiene::scan`], and line breaks and tabs.
pub fn escape_with(text: &str, spell: impl Fn(char) -> String) -> Cow<'_, str> {
    let is_plain = |byte: u8| matches!(byte, b' '..=b'~' | b'\n' | b'\t');
    if text.bytes().all(is_plain) {
        return Cow::Borrowed(text);
    }
    let odd = hygiene::scan(text);
    if odd.is_empty() && !text.contains(is_unseen) {
        return Cow::Borrowed(text);
    }
    let mut odd = odd.iter().map(|oddity| &oddity.bytes).peekable();
    let mut whole = String::with_capacity(text.len());
    for (at, character) in text.char_indices() {
        while odd.next_if(|bytes| bytes.end <= at).is_some() {}
        if is_unseen(character) || odd.peek().is_some_and(|bytes| bytes.contains(&at)) {
            whole.push_str(&spell(character));
        } else {
            whole.push(character);
        }
    }
    Cow::Owned(whole)
}

/// Tells whether a character is kept in prompts by [`hygiene`], because some text needs it, and is not needed in a
/// name or a message: line separators, fillers, blanks, and all other characters that Unicode defines as
/// default-ignorable.
const fn is_unseen(character: char) -> bool {
    matches!(
        character,
        '\u{2028}'
            | '\u{2029}'
            | '\u{2065}'
            | '\u{2800}'
            | '\u{FFA0}'
            | '\u{FFF0}'..='\u{FFF8}'
            | '\u{13430}'..='\u{1343F}'
            | '\u{1BCA0}'..='\u{1BCA3}'
            | '\u{E0080}'..='\u{E00FF}'
            | '\u{E01F0}'..='\u{E0FFF}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_hidden_is_spelt_and_everything_else_stays() {
        for (text, expected) in [
            ("plain.md", "plain.md"),
            ("ünï/日本語/😀.md", "ünï/日本語/😀.md"),
            ("👨‍👩‍👧‍👦 🏴󠁧󠁢󠁥󠁮󠁧󠁿 ❤️ می‌خواهم", "👨‍👩‍👧‍👦 🏴󠁧󠁢󠁥󠁮󠁧󠁿 ❤️ می‌خواهم"),
            ("a\u{202E}b", "a\\u{202e}b"),
            ("a\u{200B}\u{E0041}b", "a\\u{200b}\\u{e0041}b"),
            ("a\u{FE00}", "a\\u{fe00}"),
            ("a\u{1B}[2J\u{9B}\u{7F}", "a\\u{1b}[2J\\u{9b}\\u{7f}"),
            ("a\u{2028}b\u{2800}c\u{FFA0}", "a\\u{2028}b\\u{2800}c\\u{ffa0}"),
            ("a\tb\nc", "a\tb\nc"),
            ("a\rb", "a\\u{d}b"),
        ] {
            assert_eq!(escape(text), expected, "{text:?}");
        }
        assert_eq!(escape_line("a\tb\nc\r\nd\u{202E}"), "a\\u{9}b\\u{a}c\\u{d}\\u{a}d\\u{202e}");
    }

    /// Checks every scalar value: characters that stay are visible, and a second pass changes nothing.
    #[test]
    fn every_character_is_shown_or_spelt() {
        for character in '\0'..=char::MAX {
            let text = alloc::format!("x{character}y");
            let once = escape_line(&text);
            let is_spelt = once != text;
            let code = u32::from(character);
            let is_ignorable = matches!(code,
                0xAD | 0x34F | 0x61C | 0x115F..=0x1160 | 0x17B4..=0x17B5 | 0x180B..=0x180F | 0x200B..=0x200F
                | 0x202A..=0x202E | 0x2060..=0x206F | 0x3164 | 0xFE00..=0xFE0F | 0xFEFF | 0xFFA0
                | 0xFFF0..=0xFFF8 | 0x1BCA0..=0x1BCA3 | 0x1D173..=0x1D17A | 0xE0000..=0xE0FFF);
            assert!(is_spelt || !(character.is_control() || is_ignorable), "U+{code:04X}");
            assert_eq!(escape_line(&once), once, "U+{code:04X}");
            assert_eq!(
                is_spelt,
                once.is_ascii() && !text.is_ascii() || character.is_control(),
                "U+{code:04X}"
            );
        }
    }
}
