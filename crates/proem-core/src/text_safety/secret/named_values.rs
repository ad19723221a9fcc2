//! Values that look random and follow a name such as `password` or `api_key`.

use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

use super::Secret;
use super::formats::is_base64;
use super::randomness::{has_entropy, is_placeholder, is_random, is_wordy};
use super::shapes::is_token_byte;
use crate::text::slice;

pub(super) const IS: &str = " is ";
/// The last word of a name whose value is a secret; below, the last two words.
const TELLING: [&str; 9] =
    ["password", "passwd", "pwd", "passphrase", "secret", "token", "apikey", "credential", "credentials"];
const TELLING_PAIRS: [(&str, &str); 9] = [
    ("api", "key"),
    ("access", "key"),
    ("account", "key"),
    ("private", "key"),
    ("auth", "key"),
    ("secret", "key"),
    ("signing", "key"),
    ("encryption", "key"),
    ("master", "key"),
];

/// Finds values that look random and follow a telling name. `signs` are the separators between name and value.
pub(super) fn telling(text: &str, signs: impl Iterator<Item = Range<usize>>, found: &mut Vec<Secret>) {
    /// Longer values are not secrets, and a text may be one long value after many separators.
    const VALUE_BYTES_MAX: usize = 8 << 10;
    let mut end = 0;
    for sign in signs {
        if !is_telling(name_before(slice(text, 0, sign.start))) {
            continue;
        }
        let value = slice(text, sign.end, text.len()).trim_start_matches([' ', '\t', '"', '\'', '`']);
        let start = text.len() - value.len();
        let is_end = |character: char| character.is_whitespace() || "\"'`,;<>|".contains(character);
        // A value that starts inside the last one ends with it.
        if start >= end {
            end = start + value.find(is_end).unwrap_or(value.len());
        }
        if end - start > VALUE_BYTES_MAX {
            continue;
        }
        let value = slice(text, start, end).trim_end_matches(['.', ')', '*', '!', '?']);
        if is_secret_value(value) {
            found.push(Secret { bytes: start..start + value.len(), what: "a value beside a telling name" });
        }
    }
}

/// Tells whether a value looks generated: a key, or a strong password.
fn is_secret_value(value: &str) -> bool {
    const CODE: &str = "(){}[]$\\";
    if !value.is_ascii()
        || value.contains(|character: char| CODE.contains(character))
        || is_placeholder(value)
    {
        return false;
    }
    let is_plain = |byte: u8| is_token_byte(byte) || is_base64(byte) || byte == b'.';
    if value.bytes().all(is_plain) {
        return value.len() >= 16 && is_random(value) && !is_path_or_address(value) && has_entropy(value);
    }
    let kinds: [fn(u8) -> bool; 4] = [
        |byte| byte.is_ascii_lowercase(),
        |byte| byte.is_ascii_uppercase(),
        |byte| byte.is_ascii_digit(),
        |byte| byte.is_ascii_punctuation(),
    ];
    let count = kinds.iter().filter(|kind| value.bytes().any(kind)).count();
    value.len() >= 12 && count == 4 && !value.contains("://") && !is_wordy(value)
}

/// Tells whether a value is a UUID, which is an identifier.
fn is_uuid(value: &str) -> bool {
    let is_group = |part: &str| part.bytes().all(|byte| byte.is_ascii_hexdigit());
    let lengths: Vec<usize> = value.split('-').map(str::len).collect();
    lengths == [8, 4, 4, 4, 12] && value.split('-').all(is_group)
}

/// Tells whether a value is a path, a UUID or the address of an account on a blockchain, all of which are public.
fn is_path_or_address(value: &str) -> bool {
    let is_account = value.len() == 42 && value.starts_with("0x");
    is_account || is_uuid(value) || value.starts_with(['/', '.']) || value.contains("./")
}

/// Returns the name before a separator, without quotes and emphasis.
fn name_before(before: &str) -> &str {
    let before = before.trim_end_matches([' ', '\t', '"', '\'', '`', '*']);
    let is_of_name = |byte: &u8| is_token_byte(*byte);
    let length = before.bytes().rev().take_while(is_of_name).count();
    let word = slice(before, before.len() - length, before.len());
    // `api key` is a name of two words.
    let first = slice(before, 0, before.len() - length).strip_suffix(' ').unwrap_or_default();
    let pair = first.bytes().rev().take_while(u8::is_ascii_alphabetic).count();
    let is_pair = word.eq_ignore_ascii_case("key") && pair > 0;
    if is_pair { slice(before, before.len() - length - 1 - pair, before.len()) } else { word }
}

/// Words before `token` that mark it as public.
const PUBLIC: [&str; 14] = [
    "public",
    "next",
    "page",
    "client",
    "lock",
    "idempotency",
    "continuation",
    "pagination",
    "sync",
    "cancellation",
    "request",
    "resume",
    "change",
    "design",
];

fn is_telling(name: &str) -> bool {
    const NAME_BYTES_MAX: usize = 64;
    if name.is_empty() || name.len() > NAME_BYTES_MAX {
        return false;
    }
    let words = words_of(name);
    let mut last = words.iter().rev().map(String::as_str);
    match (last.next(), last.next()) {
        (Some("token"), Some(before))
            if PUBLIC.contains(&before) || words.iter().any(|word| word == "public") =>
        {
            false
        }
        (Some("pass"), Some(_)) => true,
        (Some(word), _) if TELLING.contains(&word) => true,
        (Some(word), Some(before)) => TELLING_PAIRS.contains(&(before, word)),
        _ => false,
    }
}

/// Splits a name into words in lower case, at punctuation and before a capital letter that follows a small one.
fn words_of(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut before = ' ';
    for character in name.chars() {
        let is_sign = !character.is_ascii_alphanumeric();
        let begins = !before.is_ascii_alphanumeric()
            || (before.is_ascii_lowercase() && character.is_ascii_uppercase());
        if !is_sign {
            if begins || words.is_empty() {
                words.push(String::new());
            }
            if let Some(word) = words.last_mut() {
                word.push(character.to_ascii_lowercase());
            }
        }
        before = character;
    }
    words
}
