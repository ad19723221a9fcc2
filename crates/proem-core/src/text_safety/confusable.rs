//! Names that look like another name: different case, letters of another script, invisible characters.

use alloc::string::String;

use crate::text::slice;

/// Letters of other scripts that look like a Latin letter in most fonts.
const TWINS: [(&str, char); 26] = [
    ("АΑ", 'a'),
    ("аα", 'a'),
    ("ВΒ", 'b'),
    ("СсϹϲⅭⅽ", 'c'),
    ("ԁⅮⅾ", 'd'),
    ("ЕеΕЁё", 'e'),
    ("ɡԌ", 'g'),
    ("НΗһ", 'h'),
    ("ІіΙıӀⅠⅰ", 'i'),
    ("ЈјͿϳ", 'j'),
    ("КкΚκ", 'k'),
    ("Ⅼⅼӏ", 'l'),
    ("МмΜⅯⅿ", 'm'),
    ("Νηո", 'n'),
    ("ОоΟοՕօ", 'o'),
    ("РрΡρ", 'p'),
    ("ԚԛႳ", 'q'),
    ("гꓣ", 'r'),
    ("ЅѕՏ", 's'),
    ("ТтΤτ", 't'),
    ("ՍսԱ", 'u'),
    ("ѴѵνⅤⅴ", 'v'),
    ("ԜԝѡѠ", 'w'),
    ("ХхΧχⅩⅹ", 'x'),
    ("УуΥγҮү", 'y'),
    ("Ζ", 'z'),
];

/// The letter that Turkish and related languages use in ordinary words.
const DOTLESS_I: char = 'ı';

/// Returns the visible form of a name: lower case, Latin letters for their lookalikes, nothing invisible.
fn seen(name: &str) -> impl Iterator<Item = char> {
    name.chars().filter(|character| !is_invisible(*character)).map(plain)
}

fn plain(character: char) -> char {
    if character.is_ascii() {
        return character.to_ascii_lowercase();
    }
    let twin = TWINS.iter().find(|(twins, _)| twins.contains(character)).map(|(_, letter)| *letter);
    let wide = u32::from(character).checked_sub(0xFEE0).filter(|code| (0x21..0x7F).contains(code));
    twin.or_else(|| wide.and_then(char::from_u32)).unwrap_or(character).to_ascii_lowercase()
}

const fn is_invisible(character: char) -> bool {
    matches!(
        character,
        '\u{AD}' | '\u{34F}' | '\u{61C}' | '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}'
            | '\u{2060}'..='\u{2069}' | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}' | '\u{E0000}'..='\u{E01EF}'
    )
}

/// Tells whether `name` differs from `wanted` and looks like it.
///
/// ```
/// use proem_core::text_safety::confusable::is_variant;
///
/// assert!(is_variant("agents.md", "AGENTS.md"));
/// assert!(is_variant("\u{410}GENTS.md", "AGENTS.md"));
/// assert!(!is_variant("AGENTS.md", "AGENTS.md"));
/// assert!(!is_variant("AGENT.md", "AGENTS.md"));
/// ```
#[must_use]
pub fn is_variant(name: &str, wanted: &str) -> bool {
    // The comparison is lazy: most names differ in the first letter.
    seen(name).eq(seen(wanted)) && name != wanted
}

/// Finds the first word that mixes Latin letters with lookalikes from another script, and returns it with the Latin
/// word that it looks like.
///
/// The dotless `ı` is a Latin letter of ordinary Turkish words, and counts in addresses alone.
///
/// ```
/// use proem_core::text_safety::confusable::disguised_word;
///
/// assert_eq!(disguised_word("## S\u{435}curity"), Some(("S\u{435}curity", "security".into())));
/// assert_eq!(disguised_word("## Безопасность and α-helix"), None);
/// assert_eq!(disguised_word("kullanıcı kuralları"), None);
/// assert_eq!(disguised_word("see https://gıthub.com"), Some(("gıthub", "github".into())));
/// ```
#[must_use]
pub fn disguised_word(text: &str) -> Option<(&str, String)> {
    let (mut rest, mut is_address) = (text, false);
    while let Some(start) = rest.find(char::is_alphabetic) {
        is_address = is_address_behind(slice(rest, 0, start), is_address);
        rest = slice(rest, start, rest.len());
        let end = rest.find(|character: char| !character.is_alphanumeric()).unwrap_or(rest.len());
        let word = slice(rest, 0, end);
        rest = slice(rest, end, rest.len());
        if !word.is_ascii() && word.contains(|letter: char| letter.is_ascii_alphabetic()) {
            let others = || word.chars().filter(|letter| !letter.is_ascii());
            // An ending in another script after an abbreviation is not a disguise.
            let stem = word.trim_end_matches(|letter: char| !letter.is_ascii());
            let is_ending = stem.len() > 1 && stem.chars().all(|letter| letter.is_ascii_uppercase());
            let is_turkish = || !is_address && others().all(|letter| letter == DOTLESS_I);
            if !is_ending && others().all(|letter| plain(letter).is_ascii_alphabetic()) && !is_turkish() {
                return Some((word, seen(word).collect()));
            }
        }
    }
    None
}

/// Tells whether an address with a scheme goes on behind what stands between two words.
fn is_address_behind(gap: &str, is_address: bool) -> bool {
    match gap.rfind(char::is_whitespace) {
        Some(space) => slice(gap, space, gap.len()).contains("://"),
        None => is_address || gap.contains("://"),
    }
}
