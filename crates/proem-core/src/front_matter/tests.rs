//! Every rule of front matter, as a table where possible.

use std::time::{Duration, Instant};
use std::{iter, vec};

use super::*;

fn found<'t>(yaml: &'t str, body: &'t str, body_line: usize) -> Split<'t> {
    Split::Found { yaml, body, body_line }
}

fn text(value: &str) -> Value {
    Value::Text(value.into())
}

fn number(value: &str) -> Value {
    Value::Number(value.into())
}

#[test]
fn rules_are_whole_lines() {
    for (file, expected) in [
        ("", Split::Absent),
        ("# Title\n", Split::Absent),
        ("\n---\na: b\n---\n", Split::Absent),
        (" ---\na: b\n---\n", Split::Absent),
        ("--- \na: b\n---\n", Split::Absent),
        ("----\na: b\n----\n", Split::Absent),
        ("---\ra: b\r---\r", Split::Absent),
        ("---", Split::Unclosed),
        ("---\n", Split::Unclosed),
        ("---\na: b\n", Split::Unclosed),
        ("---\na: b\n--- \n ---\n----\n---x", Split::Unclosed),
        ("---\na: ---\n---\rb", Split::Unclosed),
        ("---\n---", found("", "", 3)),
        ("---\n---\n", found("", "", 3)),
        ("---\r\n---\r\n", found("", "", 3)),
        ("---\na: b\n---\nbody\n---\n", found("a: b\n", "body\n---\n", 4)),
        ("---\r\na: b\r\n---\r\nbody", found("a: b\r\n", "body", 4)),
        ("---\na: b\r\n---\nbody", found("a: b\r\n", "body", 4)),
        ("\u{FEFF}---\na: b\n---\nbody", found("a: b\n", "body", 4)),
        ("\u{FEFF}\u{FEFF}---\na: b\n---\nbody", Split::Absent),
        ("---\n\n\n---\n\nbody", found("\n\n", "\nbody", 5)),
    ] {
        assert_eq!(split(file), expected, "{file:?}");
    }
}

/// Row M7.
#[test]
fn front_matter_is_looked_for_within_its_limit_only() {
    let file = |bytes: usize| format!("---\r\n{}\n---\r\nbody", "x".repeat(bytes - 1));
    let largest = file(FRONT_MATTER_BYTES_MAX);
    assert_eq!(split(&largest), found(&largest[5..5 + FRONT_MATTER_BYTES_MAX], "body", 4));
    assert_eq!(split(&file(FRONT_MATTER_BYTES_MAX + 1)), Split::TooLong);
    assert_eq!(split(&file(1 << 20)), Split::TooLong);
    let endless = format!("---\n{}", "x".repeat(FRONT_MATTER_BYTES_MAX));
    assert_eq!(split(&endless), Split::Unclosed);
    assert_eq!(split(&format!("{endless}x")), Split::TooLong);
}

#[test]
fn head_of_a_file_gives_the_same_answer() {
    for filler in FRONT_MATTER_BYTES_MAX - 20..FRONT_MATTER_BYTES_MAX + 20 {
        for ending in ["", "\n---", "\n---\n", "\r\n---\r\nbody", "\n---x\n---\n", "\n----\n"] {
            let file = format!("\u{FEFF}---\r\n{}{ending}{}", "x".repeat(filler), " ".repeat(40));
            let head = crate::text::clip(&file, FRONT_MATTER_BYTES_MAX + 16);
            let brief = |split: Split<'_>| match split {
                Split::Found { yaml, body_line, .. } => Ok((String::from(yaml), body_line)),
                Split::Absent => Err("absent"),
                Split::Unclosed => Err("unclosed"),
                Split::TooLong => Err("too long"),
            };
            assert_eq!(brief(split(head)), brief(split(&file)), "{filler} {ending:?}");
        }
    }
}

fn check(yaml: &str, expected: &[(&str, Value)]) {
    let found = parse(yaml).unwrap_or_else(|error| panic!("{yaml:?}: {error}"));
    let expected: Vec<(&str, &Value)> = expected.iter().map(|(key, value)| (*key, value)).collect();
    assert_eq!(found.iter().collect::<Vec<_>>(), expected, "{yaml:?}");
}

/// Row M9.
#[test]
fn values_have_the_types_of_the_core_schema() {
    for (yaml, expected) in [
        ("a: plain text", text("plain text")),
        ("a:   spaced out   ", text("spaced out")),
        ("a: two\n  lines", text("two lines")),
        ("a: x # comment", text("x")),
        ("a: x#y", text("x#y")),
        ("a:\tb", text("b")),
        ("a: 'it''s'", text("it's")),
        ("a: ' kept '", text(" kept ")),
        ("a: \"tab\\t, \\u00e9, line\\n\"", text("tab\t, é, line\n")),
        ("a: ''", text("")),
        ("a: |\n  one\n  two\n", text("one\ntwo\n")),
        ("a: |-\n  one\n   two\n", text("one\n two")),
        ("a: |+\n  one\n\n", text("one\n\n")),
        ("a: >\n  one\n  two\n\n  three\n", text("one two\nthree\n")),
        ("a: >-\r\n  one\r\n  two\r\n", text("one two")),
        ("a: |\r\n  one\r\n  two\r\n", text("one\ntwo\n")),
        ("a: |-\n  true\n", text("true")),
        ("a:", Value::Null),
        ("a: ~", Value::Null),
        ("a: null", Value::Null),
        ("a: NULL", Value::Null),
        ("a: nULL", text("nULL")),
        ("a: 'null'", text("null")),
        ("a: true\r\n", Value::Bool(true)),
        ("a: True", Value::Bool(true)),
        ("a: TRUE", Value::Bool(true)),
        ("a: tRUE", text("tRUE")),
        ("a: false", Value::Bool(false)),
        ("a: FALSE", Value::Bool(false)),
        ("a: \"true\"", text("true")),
        ("a: yes", text("yes")),
        ("a: no", text("no")),
        ("a: on", text("on")),
        ("a: y", text("y")),
        ("a: []", Value::List(vec![])),
        ("a: [1, b]", Value::List(vec![number("1"), text("b")])),
        ("a:\n- 1\n- b\n", Value::List(vec![number("1"), text("b")])),
        ("a: {b: 1}", Value::Map(iter::once(("b".into(), number("1"))).collect())),
        ("a:\n  b: 1\n", Value::Map(iter::once(("b".into(), number("1"))).collect())),
    ] {
        check(yaml, &[("a", expected)]);
    }
}

/// Row M9.
#[test]
fn numbers_keep_their_spelling() {
    for spelling in [
        "0", "-1", "+12", "007", "0o17", "0xfF", "1.", ".5", "-0.0", "1e3", "1.5E-7", ".5e+1", ".inf",
        "-.INF", "+.Inf", ".nan", ".NaN",
    ] {
        check(&format!("a: {spelling}"), &[("a", number(spelling))]);
    }
    for spelling in [
        "0o8",
        "0o",
        "0x",
        "0xg",
        "-0x1",
        "0b1",
        "1_000",
        "1,000",
        ".",
        "-.",
        "e3",
        "1e",
        "1e+",
        "1.2.3",
        "--1",
        "-.nan",
        ".iNF",
        "12:30:45",
        "2026-03-07",
        "١",
    ] {
        check(&format!("a: {spelling}"), &[("a", text(spelling))]);
    }
}

/// Row M8, the control.
#[test]
fn maps_are_read_by_key() {
    check("", &[]);
    check("\r\n# only a comment\r\n", &[]);
    check("b: 1\na: x\r\n\"c d\": ~\n", &[("a", text("x")), ("b", number("1")), ("c d", Value::Null)]);
    check("1: a\ntrue: b\n'<<': c\n", &[("1", text("a")), ("<<", text("c")), ("true", text("b"))]);
    check("{a: 1}\n...\n", &[("a", number("1"))]);
    assert_eq!(parse("a: 1").unwrap().value("a"), Some(&number("1")));
    assert_eq!(parse("a: 1").unwrap().value("b"), None);
}

/// Row M8.
#[test]
fn what_is_not_allowed_is_named_with_its_place() {
    const ANCHOR: &str = "anchors are not allowed; quote a value that begins with `&`";
    const ALIAS: &str = "aliases are not allowed; quote a value that begins with `*`";
    const TAG: &str = "tags are not allowed; quote a value that begins with `!`";
    const COLON: &str = "a second `:` in the line; quote a value that has `: ` in it";
    for (yaml, line, column, message) in [
        ("just text\n", 1, 1, NOT_A_MAP),
        ("~", 1, 1, NOT_A_MAP),
        ("\n- a\n- b\n", 2, 1, NOT_A_MAP),
        ("[a]", 1, 1, NOT_A_MAP),
        ("a: 1\nb: 2\na: 3\n", 3, 1, "the key `a` is there twice"),
        ("a: 1\r\n\"a\": 2\r\n", 2, 1, "the key `a` is there twice"),
        ("é: {b: 1, b: 2}", 1, 11, "the key `b` is there twice"),
        ("a: &x 1\nb: *x", 1, 7, ANCHOR),
        ("a: &x [1]\n", 1, 7, ANCHOR),
        ("&x a: 1", 1, 4, ANCHOR),
        ("a: *unknown", 1, 4, ALIAS),
        ("*unknown : a", 1, 1, ALIAS),
        ("a: !!str 1", 1, 4, TAG),
        ("a: !own {b: 1}", 1, 4, TAG),
        ("a: ! 1", 1, 4, TAG),
        ("!!map\na: 1", 1, 1, TAG),
        ("%TAG ! tag:x,2000:\n", 1, 1, "YAML directives are disallowed"),
        ("b: 1\n<<: {a: 1}", 2, 1, "merge keys are not allowed"),
        ("a: {<<: [1]}", 1, 5, "merge keys are not allowed"),
        (": a", 1, 1, "a key is missing"),
        ("~: a", 1, 1, "a key is missing"),
        ("? [a]\n: b", 1, 3, "a key must be a single value"),
        ("{a: 1}: b", 1, 1, "a key must be a single value"),
        ("a: 1\n...\nb: 2\n", 3, 1, "there is more than one document"),
        ("a: 1\n--- b\n", 2, 1, "there is more than one document"),
        ("a: Use when: asked", 1, 12, COLON),
        ("a:\n\tb: c\n", 2, 2, "tabs disallowed within this context (block indentation)"),
        ("a: |\n\tb\n", 1, 4, "a block scalar content cannot start with a tab"),
        ("a: 'b\n", 2, 1, "a quote is not closed, or its next line is not indented"),
        ("a: 1\nb: [c\n", 2, 4, "unclosed bracket '['"),
        ("a: @b", 1, 4, "unexpected character: `@'"),
    ] {
        let error = parse(yaml).unwrap_err();
        assert_eq!((error.place, error.message.as_str()), (Place { line, column }, message), "{yaml:?}");
    }
}

#[test]
fn error_says_where() {
    let error = parse("a: 1\na: 2").unwrap_err();
    assert_eq!(error.to_string(), "line 2, column 1 of the front matter: the key `a` is there twice");
    assert_eq!(error.place_in_file(), Place { line: 3, column: 1 });
    assert!(core::error::Error::source(&error).is_none());
    let of_parser = parse("a: @b").unwrap_err();
    let source = core::error::Error::source(&of_parser).unwrap();
    assert!(source.downcast_ref::<ScanError>().is_some(), "{source}");
}

/// Row M7.
#[test]
fn limits_hold_to_the_last_one() {
    let flow = |depth: usize| format!("a: {}{}", "[".repeat(depth - 1), "]".repeat(depth - 1));
    let indented = |level| " ".repeat(level) + "a:\n";
    let block = |depth: usize| (0..depth).map(indented).collect::<String>();
    let mixed = |depth: usize| format!("a:\n- b:\n  - {}{}", "[".repeat(depth - 4), "]".repeat(depth - 4));
    let compact = |depth: usize| format!("a:\n{}b", "- ".repeat(depth - 1));
    let nodes = |count: usize| format!("a: [{}]", "b,".repeat(count - 3));
    let bytes = |count: usize| format!("a: {}", "b".repeat(count - 3));
    let too_many = "there are more than 256 keys and values";
    let message = |yaml: String| parse(&yaml).map(drop).map_err(|error| error.message);
    for depth in [FRONT_MATTER_DEPTH_MAX + 1, 100, 4000] {
        for yaml in [flow(depth), block(depth.min(100)), mixed(depth), compact(depth)] {
            assert_eq!(message(yaml), Err(too_deep()), "{depth}");
        }
    }
    let depth = FRONT_MATTER_DEPTH_MAX;
    for yaml in [flow(depth), block(depth), mixed(depth), compact(depth), nodes(256), bytes(8192)] {
        assert_eq!(message(yaml), Ok(()));
    }
    assert_eq!(message(nodes(257)), Err(too_many.into()));
    assert_eq!(message(bytes(8193)), Err("front matter is over 8 KiB".into()));
}

/// Row M10.
#[test]
fn alias_bomb_is_refused_at_once() {
    let levels = "bcdefghi".chars().zip("abcdefgh".chars());
    let bomb: String = iter::once("a: &a [x,x,x,x,x,x,x,x,x]\n".into())
        .chain(levels.map(|(name, below)| {
            let aliases = iter::repeat_n(format!("*{below}"), 9).collect::<Vec<_>>().join(",");
            format!("{name}: &{name} [{aliases}]\n")
        }))
        .collect();
    assert_eq!(bomb.len(), 306);
    assert_eq!(parse(&bomb).unwrap_err().place, Place { line: 1, column: 7 });
    // Takes the fastest of several runs, so that a busy machine does not fail the test.
    let fastest = (0..20).map(|_| time(&bomb)).min().unwrap();
    assert!(fastest < Duration::from_millis(1), "{fastest:?}");
}

fn time(yaml: &str) -> Duration {
    let start = Instant::now();
    assert!(parse(yaml).is_err());
    start.elapsed()
}
