//! The table of emoji; its first lines explain the format.

use std::collections::BTreeSet;

const TABLE: &str = include_str!("emoji.txt");
const TONES: std::ops::RangeInclusive<char> = '\u{1F3FB}'..='\u{1F3FF}';

/// Returns every sequence once.
pub(crate) fn all() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for line in TABLE.lines().filter(|line| !line.starts_with('#')) {
        let (kind, items) = line.split_once(": ").unwrap();
        match kind {
            "one" => found.extend(characters(items).map(String::from)),
            "both" => {
                found.extend(characters(items).flat_map(|one| [format!("{one}"), format!("{one}\u{FE0F}")]));
            }
            "flags" => found.extend(items.split(' ').map(flag)),
            "seq" => {
                let (heads, tail) = items.split_once(" , ").unwrap();
                found.extend(characters(heads).flat_map(|head| sequences(head, tail)));
            }
            other => unreachable!("{other}"),
        }
    }
    found
}

/// Parses characters and ranges in hexadecimal.
fn characters(items: &str) -> impl Iterator<Item = char> {
    items.split(' ').flat_map(|item| {
        let (first, last) = item.split_once('-').unwrap_or((item, item));
        character(first)..=character(last)
    })
}

fn character(code: &str) -> char {
    char::from_u32(u32::from_str_radix(code, 16).unwrap()).unwrap()
}

fn flag(letters: &str) -> String {
    letters
        .chars()
        .map(|letter| char::from_u32(0x1F1E6 + u32::from(letter) - u32::from('A')).unwrap())
        .collect()
}

/// Expands a line with alternatives.
fn sequences(head: char, tail: &str) -> Vec<String> {
    let mut all = vec![String::from(head)];
    for item in tail.split(' ') {
        let choices: Vec<String> = match item {
            "*" => TONES.map(String::from).collect(),
            "?" => vec![String::new(), "\u{FE0F}".into()],
            "+" => vec!["\u{200D}".into()],
            code => vec![character(code).into()],
        };
        all = all
            .iter()
            .flat_map(|begun| choices.iter().map(move |choice| format!("{begun}{choice}")))
            .collect();
    }
    all
}
