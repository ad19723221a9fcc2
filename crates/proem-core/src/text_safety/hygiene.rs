//! Finds characters that a model reads and a reader does not see: invisible, reordering and control characters.
//!
//! Scripts and emoji need some of these characters; they are kept where their neighbours give them a meaning.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

use crate::text::slice;

/// A run of characters of one kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Oddity {
    /// The bytes of the run.
    pub bytes: Range<usize>,
    /// The kind of the characters.
    pub kind: OddityKind,
    /// The number of characters.
    pub characters: usize,
    /// The hidden message, if the characters encode one.
    pub decoded: Option<String>,
}

/// The effect of a run of characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OddityKind {
    /// Tag characters: invisible ASCII.
    Tag,
    /// Direction controls, which show text in another order.
    Bidi,
    /// Characters without width or shape.
    Invisible,
    /// Several consecutive variation selectors, which can encode bytes.
    Variation,
    /// A variation selector after a character without variants, or a control of musical notation: invisible, and kept
    /// by [`neutralised`].
    Stray,
    /// A byte order mark at the start.
    ByteOrderMark,
    /// Controls of terminals and printers.
    Control,
}

impl OddityKind {
    /// Returns the name of the characters, in the plural.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Tag => "tag characters",
            Self::Bidi => "bidirectional controls",
            Self::Invisible => "invisible characters",
            Self::Variation => "variation selectors",
            Self::Stray => "invisible characters out of place",
            Self::ByteOrderMark => "byte order marks",
            Self::Control => "control characters",
        }
    }

    /// Tells whether removing the run changes nothing visible.
    #[must_use]
    pub const fn is_removable(self) -> bool {
        matches!(self, Self::Tag | Self::Invisible | Self::Variation | Self::Stray | Self::ByteOrderMark)
    }
}

/// Finds the characters of a text that a model reads and a reader does not see.
///
/// ```
/// use proem_core::text_safety::hygiene::{OddityKind, scan};
///
/// let found = scan("Be kind.\u{E0062}\u{E0061}\u{E0064}");
/// assert_eq!((found[0].kind, found[0].decoded.as_deref()), (OddityKind::Tag, Some("bad")));
/// assert!(scan("👩‍🚀 می‌خواهم 🏴󠁧󠁢󠁳󠁣󠁴󠁿").is_empty());
/// ```
#[must_use]
pub fn scan(text: &str) -> Vec<Oddity> {
    let mut found: Vec<Oddity> = Vec::new();
    let mut kept = 0;
    for (start, character) in text.char_indices().filter(|(_, character)| may_be_odd(*character)) {
        if start < kept {
            continue;
        }
        if let Some(end) = flag_end(text, start, character) {
            kept = end;
            continue;
        }
        let Some(kind) = kind_of(text, start, character) else { continue };
        let end = start + character.len_utf8();
        match found.last_mut() {
            Some(last) if last.bytes.end == start && last.kind == kind => {
                last.bytes.end = end;
                last.characters += 1;
            }
            _ => found.push(Oddity { bytes: start..end, kind, characters: 1, decoded: None }),
        }
    }
    for oddity in &mut found {
        oddity.decoded = decoded(slice(text, oddity.bytes.start, oddity.bytes.end), oddity.kind);
    }
    join_selectors(text, &mut found);
    found
}

/// Decodes selectors that are spread over a text as one message, and stores it with the first.
fn join_selectors(text: &str, found: &mut [Oddity]) {
    let strays = found.iter().filter(|oddity| oddity.kind == OddityKind::Stray);
    let spread = strays.flat_map(|oddity| slice(text, oddity.bytes.start, oddity.bytes.end).chars());
    let spread: String = spread.filter(|character| is_selector(*character)).collect();
    let said = decoded(&spread, OddityKind::Variation);
    if let Some(first) = found.iter_mut().find(|oddity| oddity.kind == OddityKind::Stray) {
        first.decoded = said;
    }
}

/// Returns the text without removable characters; `None` if it has none.
#[must_use]
pub fn without_hidden(text: &str) -> Option<String> {
    let found: Vec<Oddity> = scan(text).into_iter().filter(|oddity| oddity.kind.is_removable()).collect();
    let (mut clean, mut end) = (String::with_capacity(text.len()), 0);
    for oddity in &found {
        clean.push_str(slice(text, end, oddity.bytes.start));
        end = oddity.bytes.end;
    }
    clean.push_str(slice(text, end, text.len()));
    (!found.is_empty()).then_some(clean)
}

/// Returns the text with invisible characters removed and control characters made visible; `None` if nothing changes.
#[must_use]
pub fn neutralised(text: &str) -> Option<String> {
    let mut clean = pass(text)?;
    // A removed run may have separated two others.
    while let Some(cleaner) = pass(&clean) {
        clean = cleaner;
    }
    Some(clean)
}

fn pass(text: &str) -> Option<String> {
    let mut found = scan(text);
    found.retain(|oddity| oddity.kind != OddityKind::Stray);
    if found.is_empty() {
        return None;
    }
    let (mut clean, mut end) = (String::with_capacity(text.len()), 0);
    for oddity in found {
        clean.push_str(slice(text, end, oddity.bytes.start));
        end = oddity.bytes.end;
        if !oddity.kind.is_removable() {
            let odd = slice(text, oddity.bytes.start, oddity.bytes.end).chars();
            odd.for_each(|character| clean.push_str(&format!("<U+{:04X}>", u32::from(character))));
        }
    }
    clean.push_str(slice(text, end, text.len()));
    Some(clean)
}

/// Tells quickly whether a character may be odd; letters, digits, punctuation and nearly all scripts are not.
const fn may_be_odd(character: char) -> bool {
    match character {
        '\t' | '\n' | ' '..='~' => false,
        _ => {
            bare_kind(character).is_some()
                || is_selector(character)
                || is_musical(character)
                || character == FLAG
        }
    }
}

const FLAG: char = '\u{1F3F4}';

/// Returns the kind of a character without regard to its neighbours.
const fn bare_kind(character: char) -> Option<OddityKind> {
    Some(match character {
        '\u{E0000}'..='\u{E007F}' => OddityKind::Tag,
        '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}' | '\u{200E}' | '\u{200F}' | '\u{61C}' => {
            OddityKind::Bidi
        }
        '\u{200B}'..='\u{200D}'
        | '\u{2060}'..='\u{2064}'
        | '\u{206A}'..='\u{206F}'
        | '\u{FEFF}'
        | '\u{AD}'
        | '\u{34F}'
        | '\u{115F}'
        | '\u{1160}'
        | '\u{17B4}'
        | '\u{17B5}'
        | '\u{180B}'..='\u{180F}'
        | '\u{FFF9}'..='\u{FFFB}'
        | '\u{3164}' => OddityKind::Invisible,
        '\t' | '\n' => return None,
        '\0'..='\u{1F}' | '\u{7F}'..='\u{9F}' => OddityKind::Control,
        _ => return None,
    })
}

const fn is_selector(character: char) -> bool {
    matches!(character, '\u{FE00}'..='\u{FE0F}' | '\u{E0100}'..='\u{E01EF}')
}

/// Tells whether a character starts or ends a beam or slur in musical notation.
const fn is_musical(character: char) -> bool {
    matches!(character, '\u{1D173}'..='\u{1D17A}')
}

fn kind_of(text: &str, start: usize, character: char) -> Option<OddityKind> {
    let (before, behind) = (slice(text, 0, start), slice(text, start + character.len_utf8(), text.len()));
    if is_selector(character) {
        // ASCII letters and white space have no variants.
        let has_no_variant = |base: char| base.is_ascii_alphabetic() || base.is_whitespace();
        let is_bare = before.chars().next_back().is_none_or(has_no_variant);
        // The first selector after a picture belongs to it.
        let is_of_picture = character == '\u{FE0F}' && before.ends_with(is_picture);
        let is_run = before.ends_with(is_selector) || (behind.starts_with(is_selector) && !is_of_picture);
        return if is_run { Some(OddityKind::Variation) } else { is_bare.then_some(OddityKind::Stray) };
    }
    if is_musical(character) {
        return Some(OddityKind::Stray);
    }
    match character {
        '\u{FEFF}' if start == 0 => Some(OddityKind::ByteOrderMark),
        // A CRLF line break.
        '\r' if behind.starts_with('\n') => None,
        '\u{200C}' | '\u{200D}' if joins_letters(before, behind) => None,
        '\u{200D}' if joins_pictures(before, behind) => None,
        _ => bare_kind(character),
    }
}

/// Tells whether a single joiner is next to a letter of a script that needs it.
fn joins_letters(before: &str, behind: &str) -> bool {
    let is_joiner = |character: char| matches!(character, '\u{200B}'..='\u{200D}');
    let is_alone = !before.ends_with(is_joiner) && !behind.starts_with(is_joiner);
    is_alone && (before.ends_with(is_joined) || behind.starts_with(is_joined))
}

/// Tells whether a letter belongs to a script with contextual shapes.
const fn is_joined(character: char) -> bool {
    matches!(
        character,
        '\u{620}'..='\u{6FF}'
            | '\u{710}'..='\u{74F}'
            | '\u{750}'..='\u{77F}'
            | '\u{7CA}'..='\u{7FA}'
            | '\u{840}'..='\u{85B}'
            | '\u{860}'..='\u{86A}'
            | '\u{8A0}'..='\u{8FF}'
            | '\u{900}'..='\u{DFF}'
            | '\u{F40}'..='\u{FBC}'
            | '\u{1000}'..='\u{109F}'
            | '\u{1780}'..='\u{17B3}'
            | '\u{17B6}'..='\u{17D3}'
            | '\u{1820}'..='\u{18AA}'
            | '\u{A840}'..='\u{A873}'
            | '\u{A8E0}'..='\u{A8FF}'
            | '\u{FB50}'..='\u{FDFF}'
            | '\u{FE70}'..='\u{FEFC}'
            | '\u{10D00}'..='\u{10D27}'
            | '\u{11000}'..='\u{1107F}'
            | '\u{11080}'..='\u{110C1}'
            | '\u{1E900}'..='\u{1E943}'
    )
}

/// Tells whether a joiner combines two pictures into one.
fn joins_pictures(before: &str, behind: &str) -> bool {
    let base = before.strip_suffix('\u{FE0F}').unwrap_or(before);
    base.ends_with(is_picture) && behind.starts_with(is_picture)
}

/// Tells whether a character can be an emoji.
const fn is_picture(character: char) -> bool {
    matches!(
        character,
        '©' | '®'
            | '‼' | '⁉' | '™' | 'ℹ'
            | '\u{2194}'..='\u{21AA}'
            | '\u{231A}'..='\u{23FF}'
            | 'Ⓜ'
            | '\u{25AA}'..='\u{25FE}'
            | '\u{2600}'..='\u{27BF}'
            | '\u{2934}'..='\u{2935}'
            | '\u{2B05}'..='\u{2B55}'
            | '〰' | '〽' | '㊗' | '㊙'
            | '\u{1F000}'..='\u{1FAFF}'
            | '\u{1FC00}'..='\u{1FFFD}'
    )
}

/// Returns the end of a flag that is written with tag characters: a region, a subdivision and the end tag.
fn flag_end(text: &str, start: usize, character: char) -> Option<usize> {
    const LETTERS: core::ops::RangeInclusive<usize> = 3..=6;
    if character != FLAG {
        return None;
    }
    let rest = slice(text, start + character.len_utf8(), text.len());
    let is_letter =
        |character: &char| matches!(character, '\u{E0061}'..='\u{E007A}' | '\u{E0030}'..='\u{E0039}');
    let letters = rest.chars().take(LETTERS.end() + 1).take_while(is_letter).count();
    let ends = rest.chars().nth(letters) == Some('\u{E007F}');
    (ends && LETTERS.contains(&letters)).then(|| start + FLAG.len_utf8() + (letters + 1) * 4)
}

/// Decodes a run: tag characters are ASCII, selectors are bytes.
fn decoded(run: &str, kind: OddityKind) -> Option<String> {
    let said: String = match kind {
        OddityKind::Tag => run.chars().filter_map(|tag| char::from_u32(u32::from(tag) - 0xE0000)).collect(),
        OddityKind::Variation => String::from_utf8(run.chars().map(byte_of).collect()).ok()?,
        OddityKind::Bidi
        | OddityKind::Invisible
        | OddityKind::Stray
        | OddityKind::ByteOrderMark
        | OddityKind::Control => return None,
    };
    let shown: String = said.chars().filter(|character| !character.is_control()).collect();
    (!shown.is_empty()).then_some(shown)
}

fn byte_of(selector: char) -> u8 {
    let code = u32::from(selector);
    let number = if code >= 0xE0100 { code - 0xE0100 + 16 } else { code - 0xFE00 };
    u8::try_from(number).unwrap_or(u8::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<OddityKind> {
        scan(text).into_iter().map(|oddity| oddity.kind).collect()
    }

    #[test]
    fn what_scripts_and_emoji_need_is_left_alone() {
        for text in ["👨‍👩‍👧‍👦", "❤️‍🔥", "🏳️‍🌈", "👩🏽‍🚀", "1️⃣", "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "می‌خواهم", "क्‍ष", "ශ්‍රී", "a\r\nb\tc", "葛󠄀"]
        {
            assert_eq!(kinds(text), [], "{text}");
        }
    }

    /// Row C4.
    #[test]
    fn hidden_text_is_found_and_read() {
        assert_eq!(kinds("\u{FEFF}a\u{FEFF}"), [OddityKind::ByteOrderMark, OddityKind::Invisible]);
        assert_eq!(kinds("a\u{200B}\u{200D}b"), [OddityKind::Invisible]);
        assert_eq!(
            kinds("a\u{202E}b\u{1B}c\rd"),
            [OddityKind::Bidi, OddityKind::Control, OddityKind::Control]
        );
        assert_eq!(kinds("🏴\u{E0069}\u{E0067}\u{E006E}"), [OddityKind::Tag], "a flag that does not end");
        let bytes: String =
            "hi".bytes().filter_map(|byte| char::from_u32(0xE0100 + u32::from(byte) - 16)).collect();
        let found = scan(&format!("😀{bytes}"));
        assert_eq!((found[0].kind, found[0].decoded.as_deref()), (OddityKind::Variation, Some("hi")));
        let spread: String =
            "ab".chars().zip(bytes.chars()).flat_map(|(letter, bit)| [letter, bit]).collect();
        assert_eq!(scan(&spread)[0].decoded.as_deref(), Some("hi"));
    }

    #[test]
    fn neutralised_text_is_clean_and_stays_so() {
        assert_eq!(neutralised("plain — text"), None);
        assert_eq!(neutralised("\u{FEFF}a\u{202E}b\u{200B}c\u{7}"), Some("a<U+202E>bc<U+0007>".into()));
        let apart = "❤\u{FE0F}\u{200B}\u{FE0F}";
        assert_eq!(neutralised(apart), Some("❤\u{FE0F}".into()));
    }

    #[test]
    fn every_character_alone_is_clean_or_becomes_so() {
        for character in '\0'..=char::MAX {
            let text = format!("x{character}y");
            let clean = neutralised(&text);
            assert_eq!(clean.is_some(), bare_kind(character).is_some(), "{character:?}");
            assert_eq!(clean.as_deref().and_then(neutralised), None, "{character:?}");
        }
    }
}
