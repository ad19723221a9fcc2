//! The fast path against the YAML parser: a result of the first must equal that of the second.

use std::format;
use std::string::String;
use std::vec::Vec;

use proptest::prelude::*;
use proptest::sample::{Index, select};

use super::super::{FrontMatter, parse_any};
use super::*;

/// Fails if the fast path returns a result that differs from the parser's; tells whether it returned any.
fn check(yaml: &str) -> bool {
    let quick = parse(yaml).map(|entries| Ok(FrontMatter { entries }));
    assert!(quick.is_none() || quick == Some(parse_any(yaml)), "{yaml:?} gives {quick:?}");
    quick.is_some()
}

#[test]
fn usual_forms_are_read_here() {
    for yaml in [
        "",
        "\n\r\n# only a comment\r\n",
        "name: deploy\ndescription: Ships a release (of \"any\" kind), e.g. v1.2 [or later].\nlicense: MIT",
        "name: deploy\r\n\r\n# Why: nobody knows.\r\nhomepage: https://example.org/a#b?c=d\r\n",
        "a: true\nb: ~\nc:\nd: 1.5e3\n0: .inf\ne_f-g: 2026-03-07\n",
        "a: \"Use when: asked # really\"\nb: 'C:\\dir'\nc: ''\nd: \"\"\ne: ' kept '\n",
        "a: naïve — “quoted”… 日本語 🦀\n#é\n",
    ] {
        assert!(check(yaml), "{yaml:?}");
    }
    assert!(check(&format!("a: {}", "b".repeat(FRONT_MATTER_BYTES_MAX - 3))));
    assert!(check(&numbered(ENTRIES_MAX)));
    assert!(check(&format!("{}: b", "a".repeat(KEY_BYTES_MAX))));
}

#[test]
fn everything_else_is_left_to_the_parser() {
    for yaml in [
        "a",
        "a:b",
        "a : b",
        "a:  b",
        "a: b ",
        "a: ",
        " a: b",
        "a:\tb",
        "a: b\tc",
        "a: b\n c",
        "a: b\n\n- c",
        "a:\n- b",
        "a: b # c",
        "a: b: c",
        "a: b:",
        "a: -1",
        "a: [b]",
        "a: |\n  b",
        "a: 'b",
        "a: '",
        "a: 'b''c'",
        "a: \"b\\n\"",
        "a: \"b\" # c",
        "a: 1\na: 2",
        "null: a",
        "-a: b",
        "é: a",
        "'a': b",
        "---\na: b",
        "a: b\n...",
        "a: b\rc: d\n",
        "a: b\r\r\n",
        "a: b\r",
        "\u{FEFF}a: b",
        "a: b\u{85}c",
        "a: b\u{2028}c",
        "a: b\u{A0}c",
        "a: b\u{7F}",
        "a: b\0",
        "# \u{FFFE}",
    ] {
        assert!(!check(yaml), "{yaml:?}");
    }
    assert!(!check(&format!("a: {}", "b".repeat(FRONT_MATTER_BYTES_MAX - 2))));
    assert!(!check(&numbered(ENTRIES_MAX + 1)));
    assert!(!check(&format!("{}: b", "a".repeat(KEY_BYTES_MAX + 1))));
}

fn numbered(entries: usize) -> String {
    (0..entries).map(|number| format!("k{number}: v\n")).collect::<Vec<_>>().concat()
}

/// Returns every text of at most `characters_max` characters of `alphabet`.
fn texts(alphabet: &str, characters_max: usize) -> Vec<String> {
    let mut all = Vec::from([String::new()]);
    let mut start = 0;
    for _ in 0..characters_max {
        let end = all.len();
        for at in start..end {
            all.extend(
                alphabet.chars().map(|character| format!("{}{character}", all[at])).collect::<Vec<_>>(),
            );
        }
        start = end;
    }
    all
}

#[test]
fn all_short_documents_agree() {
    let answered = texts("a:# \n\r\"-", 5).iter().filter(|yaml| check(yaml)).count();
    assert!(answered > 50, "{answered}");
}

#[test]
fn all_short_values_agree() {
    let values = texts("a1:# '\"\\-~.\t\u{85}\u{FEFF}é", 3);
    let answered = values.iter().filter(|value| check(&format!("k: {value}\nl: m"))).count();
    assert!(answered > 500, "{answered}");
}

#[test]
fn all_characters_agree_wherever_they_stand() {
    let planes =
        ('\0'..'\u{2100}').chain(['\u{3000}']).chain('\u{D700}'..'\u{E100}').chain('\u{FE00}'..'\u{10100}');
    for character in planes {
        check(&format!("a: {character}\nb: x{character}x\nc: x{character}\n# {character}\nd: '{character}'"));
        for yaml in ["{}a: b", "a{}: b", "a:{}b", "a: {}b", "a: b{}", "a: b{}\nc: d", "a: \"{}\"", "#{}"] {
            check(&yaml.replace("{}", character.encode_utf8(&mut [0; 4])));
        }
    }
}

const KEYS: [&str; 12] =
    ["name", "description", "license", "a", "b", "allowed-tools", "_", "0", "x-1", "1e3", "true", "A_"];
const VALUES: [&str; 24] = [
    "deploy",
    "Ships a release, then tells everyone about it; see https://example.org/#top (or ask).",
    "日本語 — naïve “text”… 🦀",
    "true",
    "False",
    "NULL",
    "~",
    "yes",
    "0",
    "+1.5e-3",
    ".inf",
    ".nan",
    "0x1F",
    "0o17",
    "2026-03-07",
    "12:30:45",
    "1.2.3",
    "...",
    "<<",
    "=",
    "\"Use when: asked # really\"",
    "'single: # quoted'",
    "''",
    "\"\"",
];
const ODD_KEYS: &[&str] = &[
    "null",
    "Null",
    "~",
    "<<",
    "",
    "-",
    "--",
    "---",
    "...",
    "a b",
    "\"q\"",
    "'q'",
    "? a",
    "- a",
    "é",
    "%YAML",
    "\u{FEFF}a",
    " name",
];
const ODD_VALUES: &[&str] = &["", "-1", "[a, b]", "{a: b}", "|", ">-", "&a", "*a", "!!str a", "- a", "? a"];
const ODD_SEPARATORS: &[&str] = &[":  ", " : ", ":\t", "", " ", "::", ": - ", ": \u{A0}"];
const ODD_BREAKS: &[&str] = &[
    "\r",
    "",
    "\n\n",
    "\r\n\r\n",
    "\r\r\n",
    "\n\r",
    " \n",
    "\t\n",
    "\n ",
    "\n\t",
    "\n  more\n",
    "\n- item\n",
    " # comment\n",
    "\n---\n",
    "\n...\n",
    "\u{2028}",
];
const PIECES: &[&str] = &[
    "a", "B", "7", "word", " ", "  ", "\t", ":", ": ", " :", "::", "#", " #", "# ", "'", "''", "\"", "\\",
    "\\n", "\\\"", "-", "- ", "---", "...", "?", "? ", ",", "[", "]", "{", "}", "&a", "*a", "!", "|", ">",
    "%", "@", "`", "~", "<<", "=", ".", "true", "null", "é", "\u{85}", "\u{2028}", "\u{2029}", "\u{FEFF}",
    "\u{A0}", "\0",
];

fn one_of(texts: &'static [&'static str]) -> impl Strategy<Value = String> {
    select(texts).prop_map(String::from)
}

/// Repeats one of `parts` until it is about as long as the longest key that YAML allows.
fn long(parts: &'static [&'static str]) -> impl Strategy<Value = String> {
    (select(parts), 1015..1035_usize).prop_map(|(part, bytes)| part.repeat(bytes / part.len()))
}

fn piece() -> impl Strategy<Value = String> {
    prop_oneof![
        60 => one_of(PIECES),
        6 => any::<char>().prop_map(String::from),
        3 => one_of(ODD_BREAKS),
        1 => long(&["x", "x ", "é", "x:y "]),
    ]
}

fn pieces(count_max: usize) -> impl Strategy<Value = String> {
    prop::collection::vec(piece(), 0..=count_max).prop_map(|pieces| pieces.concat())
}

fn usual_entry() -> impl Strategy<Value = String> {
    let key = prop_oneof![one_of(&KEYS), "[A-Za-z0-9_][A-Za-z0-9_-]{0,8}"];
    let value = prop_oneof![
        8 => one_of(&VALUES),
        4 => "[a-z.(]( ?[a-z(),.'\"-]){0,20}",
        1 => "[a-zé日]( ?[a-z:#é日🦀]){0,12}",
        1 => "'[ -&(-~]{0,20}'",
        1 => "\"[ !#-\\[\\]-~]{0,20}\"",
        1 => long(&["x", "x y", "é", "x:y"]),
    ];
    let ending = prop_oneof![4 => Just("\n"), 1 => Just("\r\n")];
    (key, value, ending).prop_map(|(key, value, ending)| format!("{key}: {value}{ending}"))
}

/// Generates a key, a separator, a value and an ending, each of them occasionally unusual.
fn odd_entry() -> impl Strategy<Value = String> {
    let key = prop_oneof![
        4 => one_of(&KEYS),
        2 => one_of(ODD_KEYS),
        1 => (60..70_usize).prop_map(|bytes| "k".repeat(bytes)),
        1 => long(&["k"]),
    ];
    let separator =
        prop_oneof![4 => Just(String::from(": ")), 1 => Just(":".into()), 1 => one_of(ODD_SEPARATORS)];
    let value = prop_oneof![
        one_of(&VALUES),
        one_of(ODD_VALUES),
        "[ -~]{0,30}",
        pieces(6),
        pieces(6).prop_map(|inside| format!("\"{inside}\"")),
        pieces(6).prop_map(|inside| format!("'{inside}'")),
    ];
    let ending = prop_oneof![4 => Just(String::from("\n")), 1 => one_of(ODD_BREAKS)];
    (key, separator, value, ending)
        .prop_map(|(key, separator, value, ending)| key + &separator + &value + &ending)
}

fn line() -> impl Strategy<Value = String> {
    prop_oneof![
        24 => usual_entry(),
        4 => odd_entry(),
        2 => (select(&KEYS[..]), select(&["\n", "\r\n"][..])).prop_map(|(key, ending)| format!("{key}:{ending}")),
        2 => select(&["\n", "\r\n"][..]).prop_map(String::from),
        2 => "#[ -~é]{0,20}\n",
        1 => pieces(4).prop_map(|comment| format!("#{comment}\n")),
        1 => pieces(4),
    ]
}

/// Generates a document in which a piece may be inserted or a character removed anywhere.
fn document() -> impl Strategy<Value = String> {
    let edits = prop::collection::vec((any::<Index>(), prop::option::of(piece())), 0..=2);
    (prop::collection::vec(line(), 0..=5), edits).prop_map(|(lines, edits)| {
        let mut characters: Vec<char> = lines.concat().chars().collect();
        for (index, edit) in edits {
            let at = index.index(characters.len() + 1);
            let end = if edit.is_some() { at } else { characters.len().min(at + 1) };
            characters.splice(at..end, edit.unwrap_or_default().chars().collect::<Vec<_>>());
        }
        characters.into_iter().collect()
    })
}

proptest! {
    // PROPTEST_CASES can raise the number.
    #![proptest_config(ProptestConfig {
        cases: ProptestConfig::default().cases.max(4000),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn documents_agree(yaml in document()) {
        check(&yaml);
    }

    #[test]
    fn piled_up_pieces_agree(yaml in pieces(20)) {
        check(&yaml);
    }
}
