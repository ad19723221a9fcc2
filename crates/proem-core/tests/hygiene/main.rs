//! Hidden text, rows C1 to C6: every scalar value, every emoji, and random text of the most difficult characters.
#![expect(clippy::unwrap_used, reason = "a table that cannot be read must stop the test")]

mod emoji;

use proem_core::text_safety::escape::{escape, escape_line};
use proem_core::text_safety::hygiene::{neutralised, scan};
use proptest::prelude::*;

/// The number of scalar values in Unicode.
const SCALARS: usize = 1_112_064;

/// The expected treatment of a character between two letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Removed,
    Visible,
    Kept,
}

/// Ranges of characters.
type Ranges = &'static [(u32, u32)];

/// The rows as documented, independent of the code.
const ROWS: [(&str, Fate, Ranges); 4] = [
    ("C1", Fate::Removed, &[(0xE0000, 0xE007F)]),
    ("C2", Fate::Visible, &[(0x202A, 0x202E), (0x2066, 0x2069), (0x200E, 0x200F), (0x61C, 0x61C)]),
    (
        "C3",
        Fate::Removed,
        &[
            (0x200B, 0x200D),
            (0x2060, 0x2064),
            (0x206A, 0x206F),
            (0xFEFF, 0xFEFF),
            (0xAD, 0xAD),
            (0x34F, 0x34F),
            (0x115F, 0x1160),
            (0x17B4, 0x17B5),
            (0x180B, 0x180F),
            (0xFFF9, 0xFFFB),
            (0x3164, 0x3164),
        ],
    ),
    ("C6", Fate::Visible, &[(0, 8), (0xB, 0x1F), (0x7F, 0x9F)]),
];

fn fate(code: u32) -> Fate {
    let is_in = |ranges: Ranges| ranges.iter().any(|(first, last)| (*first..=*last).contains(&code));
    ROWS.iter().find(|(_, _, ranges)| is_in(ranges)).map_or(Fate::Kept, |(_, fate, _)| *fate)
}

fn clean(text: &str) -> String {
    neutralised(text).unwrap_or_else(|| text.to_owned())
}

/// Rows C1 to C3, C6 and C8.
#[test]
fn every_scalar_value_has_the_fate_of_its_row() {
    let mut count = 0;
    let mut odd = 0;
    for character in '\0'..=char::MAX {
        let code = u32::from(character);
        let expected = match fate(code) {
            Fate::Removed => "xy".to_owned(),
            Fate::Visible => format!("x<U+{code:04X}>y"),
            Fate::Kept => format!("x{character}y"),
        };
        assert_eq!(clean(&format!("x{character}y")), expected, "U+{code:04X}");
        count += 1;
        odd += usize::from(fate(code) != Fate::Kept);
    }
    assert_eq!((count, odd), (SCALARS, 233));
}

/// Row C8: next to characters that give joiners and selectors a meaning, a second pass changes nothing.
#[test]
fn every_scalar_value_beside_others_is_settled_at_once() {
    const AROUND: [(&str, &str); 4] = [
        ("\u{1F468}", "\u{1F469}"),
        ("\u{645}", "\u{62E}"),
        ("\u{1F3F4}\u{E0067}\u{E0062}", "\u{E0065}\u{E006E}\u{E0067}\u{E007F}"),
        ("a\u{200D}", "\u{200D}\r\n"),
    ];
    for character in '\0'..=char::MAX {
        for (before, behind) in AROUND {
            let once = clean(&format!("{before}{character}{behind}"));
            assert_eq!(neutralised(&once), None, "{:04X} in {before:?}", u32::from(character));
        }
    }
}

/// Rows C3 and C8.
#[test]
fn every_emoji_survives_and_nothing_is_said_about_it() {
    let all = emoji::all();
    assert_eq!(all.len(), 5_244);
    // Removing everything without width, a common approach, breaks most of them.
    let is_invisible = |character: char| fate(u32::from(character)) == Fate::Removed;
    let broken = all.iter().filter(|emoji| emoji.contains(is_invisible)).count();
    assert_eq!(broken, 2_670, "control");
    for emoji in &all {
        for text in [
            emoji.clone(),
            format!("a{emoji}b"),
            format!("{emoji}{emoji}"),
            format!("- {emoji} \u{645}{emoji}\n"),
            format!("{emoji}\u{1F600}{emoji}"),
        ] {
            assert_eq!(scan(&text), [], "{}", text.escape_unicode());
            assert_eq!(neutralised(&text), None, "{}", text.escape_unicode());
            assert_eq!(escape(&text), text, "{}", text.escape_unicode());
        }
        // A hidden message after an emoji is removed.
        let hidden = format!("{emoji}\u{E0068}\u{E0069}\u{200B}");
        assert_eq!(clean(&hidden), *emoji, "{}", hidden.escape_unicode());
    }
}

/// Characters that affect each other, and a few that do not.
const NASTY: [&str; 40] = [
    "a",
    " ",
    "\n",
    "\r",
    "\r\n",
    "\t",
    "é",
    "\0",
    "\u{1B}",
    "\u{7F}",
    "\u{9B}",
    "\u{AD}",
    "\u{34F}",
    "\u{61C}",
    "\u{115F}",
    "\u{180B}",
    "\u{200B}",
    "\u{200C}",
    "\u{200D}",
    "\u{200E}",
    "\u{202E}",
    "\u{2060}",
    "\u{2066}",
    "\u{2069}",
    "\u{FEFF}",
    "\u{FE00}",
    "\u{FE0F}",
    "\u{E0100}",
    "\u{E01EF}",
    "\u{E0001}",
    "\u{E0067}",
    "\u{E007F}",
    "\u{1F3F4}",
    "\u{1F468}",
    "\u{2764}",
    "\u{1F3FD}",
    "\u{20E3}",
    "\u{645}",
    "\u{94D}",
    "\u{1D173}",
];

fn nasty() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(NASTY.to_vec()).prop_map(str::to_owned);
    let any_character = any::<char>().prop_map(String::from);
    let pieces = prop_oneof![9 => piece, 1 => any_character];
    prop::collection::vec(pieces, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, failure_persistence: None, ..ProptestConfig::default() })]

    /// Row C8.
    #[test]
    fn neutralising_is_idempotent_and_deterministic(text in nasty()) {
        let once = clean(&text);
        prop_assert_eq!(neutralised(&once), None, "{}", text.escape_unicode());
        prop_assert_eq!(clean(&text), once.clone());
        // The result does not depend on alignment in memory or on preceding text.
        let elsewhere = format!("x{text}");
        prop_assert_eq!(clean(elsewhere.strip_prefix('x').unwrap()), once);
    }

    /// Row C8.
    #[test]
    fn what_is_neutralised_has_nothing_of_the_rows_that_are_made_visible(text in nasty()) {
        let once = clean(&text);
        let mut rest = once.chars().peekable();
        while let Some(character) = rest.next() {
            let is_end_of_line = character == '\r' && rest.peek() == Some(&'\n');
            let is_visible = fate(u32::from(character)) == Fate::Visible;
            prop_assert!(!is_visible || is_end_of_line, "{}", once.escape_unicode());
        }
        // Visible characters are kept.
        let seen = |text: &str| text.chars().filter(char::is_ascii_alphanumeric).count();
        prop_assert!(seen(&once) >= seen(&text), "{}", text.escape_unicode());
    }

    #[test]
    fn what_is_shown_is_legible_and_stays_so(text in nasty()) {
        let once = escape(&text).into_owned();
        prop_assert_eq!(scan(&once), []);
        prop_assert_eq!(escape(&once), once.as_str());
        let line = escape_line(&text);
        prop_assert!(!line.contains(char::is_control), "{}", line.escape_unicode());
    }
}
