//! Tests of the scanner. Tokens are assembled at run time, so that no secret scanner reports this file.

use super::randomness::entropy;
use super::shapes::{SHAPES, Shape, TOKEN_BYTES_MIN, is_run_byte, long_runs};
use super::*;

fn without_secrets(text: &str) -> String {
    Scanner::new().without_secrets(text).into_owned()
}

fn found(text: &str) -> Vec<&'static str> {
    scan(text).into_iter().map(|secret| secret.what).collect()
}

/// Assembles a token.
fn token(begins: &str, length: usize) -> String {
    const LETTERS: &str = "k7Qw2ZpR9sT4vB6nM1xC8dF3gH5jL0yU";
    begins.chars().chain(LETTERS.chars().cycle()).take(begins.len() + length).collect()
}

/// Row C9.
#[test]
fn of_two_secrets_that_overlap_nothing_is_left() {
    let says = " RSA PRIVATE KEY-----\n";
    let key = ["-----BEGIN", says, &"MIIEpAIBAAKCAQEA".repeat(3), "\n-----END", says].concat();
    for between in [" ", ""] {
        let text = ["password=", &token("x", 24), between, &key, "rest"].concat();
        let masked = without_secrets(&text);
        assert!(!masked.contains("MIIEpAIB") && !masked.contains("END RSA"), "{masked}");
        assert!(masked.trim_end().ends_with("rest"), "{masked}");
        assert_eq!(without_secrets(&masked), masked);
    }
}

/// The value is not random enough as a whole, but is without the part that is masked first.
#[test]
fn what_is_left_around_a_masked_secret_is_looked_at_again() {
    let key = ["..AKIA", &"B".repeat(10), "2h1j0k9l", &"B".repeat(7), "Q4f"].concat();
    let header = ["Bearer 8ch", &"M".repeat(14), "aracf7terd6postgres", &key].concat();
    let masked = without_secrets(&header);
    assert!(!masked.contains("aracf7terd6"), "{masked}");
    assert_eq!(without_secrets(&masked), masked);
}

#[test]
fn runs_are_found_wherever_they_begin() {
    for skipped in 0..200 {
        for length in 0..60 {
            let text = [" ".repeat(skipped), "a-_.Z9".repeat(10)[..length].into(), "é x".into()].concat();
            let expected = (length >= TOKEN_BYTES_MIN).then_some(skipped..skipped + length);
            assert!(long_runs(text.as_bytes()).eq(expected), "{skipped} {length}");
        }
    }
    let two = ["b".repeat(20), "c".repeat(99)].join(" ");
    assert!(long_runs(two.as_bytes()).eq([0..20, 21..120]));
    let is_of_run = |shape: &Shape| shape.begins.bytes().all(is_run_byte);
    assert!(SHAPES.iter().all(is_of_run), "a token lies in one run");
}

/// Row C9.
#[test]
fn known_shapes_are_found() {
    for shape in &SHAPES {
        let text = alloc::format!("use {} here", token(shape.begins, shape.least));
        assert_eq!(found(&text), [shape.what], "{text}");
        let short = alloc::format!("use {} here", token(shape.begins, shape.least - 8));
        assert_eq!(found(&short), [] as [&str; 0], "{short}");
    }
}

#[test]
fn blocks_addresses_and_telling_names_are_found() {
    let body = token("", 64);
    let key = ["-----BEGIN RSA PRIVATE", " KEY-----\n", &body, "\n-----END RSA PRIVATE KEY-----"].concat();
    assert_eq!(found(&key), ["a private key"]);
    assert_eq!(scan(&key)[0].bytes, 0..key.len());
    let part = token("eyJ", 30);
    assert_eq!(found(&[part.as_str(), &part, &part].join(".")), ["a JSON web token"]);
    assert_eq!(found("postgres://me:s3cr7t-pw@db/x"), ["a password in an address"]);
    let value = token("", 24);
    for name in ["DB_PASSWORD=", "\"api_key\": \"", "**Token**: `", "client_secret = '"] {
        assert_eq!(found(&alloc::format!("{name}{value}")), ["a value beside a telling name"], "{name}");
    }
}

#[test]
fn webhooks_and_bots_are_found_also_without_a_space_or_a_scheme() {
    let value = [token("", 18), token("", 40)].join("/");
    for site in ["hooks.slack.com/services/", "discord.com/api/webhooks/", "discordapp.com/api/webhooks/"] {
        for before in ["", "https://", "see ", "x."] {
            let text = [before, site, &value].concat();
            let bytes = text.len() - value.len()..text.len();
            assert_eq!(scan(&text), [Secret { bytes, what: "the address of a webhook" }], "{text}");
        }
        assert_eq!(found(&["my", site, &value].concat()).len(), 1, "{site}");
    }
    for other in ["discord.com/api/", "example.com/api/webhooks/", "discord.org/api/webhooks/"] {
        assert_eq!(found(&[other, &value].concat()), [] as [&str; 0], "{other}");
    }
    let bot = ["1234567890", ":AA", &token("", 33)].concat();
    for (before, behind) in [("", ""), ("bot", "/getMe"), ("use ", " here")] {
        assert_eq!(found(&[before, &bot, behind].concat()), ["a Telegram token"], "{before}");
    }
    // The more specific of two names for the same bytes wins.
    assert_eq!(found(&["token=", &bot].concat()), ["a Telegram token"]);
    assert_eq!(found(&["token=", &token("ghp_", 36)].concat()), ["a GitHub token"]);
}

/// A long text with a possible token or value after each separator takes linear time; scanning each to its end would
/// take minutes.
#[test]
fn a_text_that_begins_again_and_again_is_looked_through_once() {
    for part in ["SG.", "ya29.", "token=", "token:", "secret=a1B2", "sk-", "eyJ.", "://", "Bearer ", ":AA"] {
        let text = part.repeat((1 << 18) / part.len());
        assert!(scan(&text).len() < 10, "{part}");
    }
}

/// Row C9, the control.
#[test]
fn words_placeholders_and_mentions_are_not() {
    for text in [
        "Set `ANTHROPIC_API_KEY=sk-ant-...` first",
        "token: see the documentation of the service",
        "api_key = \"YOUR-KEY-0123456789-HERE\"",
        "AKIAIOSFODNN7EXAMPLE",
        "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
        "begins with -----BEGIN PRIVATE KEY----- and so on",
        "postgres://user:password@localhost/app",
        "redis://user:$PASSWORD@host",
        "secret: keep-this-long-sentence-with-hyphens-to-yourself",
        "token_count: 00000000000000000000",
    ] {
        assert_eq!(found(text), [] as [&str; 0], "{text}");
    }
}

/// Row C9.
#[test]
fn what_is_shown_has_no_secret() {
    let token = token("ghp_", 36);
    let shown = without_secrets(&alloc::format!("key {token} end"));
    assert_eq!(shown, "key ghp_… (40 characters) end");
    assert_eq!(entropy("aaaa"), 0);
    assert!((399..=401).contains(&entropy("0123456789abcdef")));
}
