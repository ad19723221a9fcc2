//! Front matter: the YAML between `---` lines at the top of a Markdown file.
//!
//! Strangers write it, so the reader takes little: one map of plain data, typed by the core schema of
//! YAML 1.2 and no other. Aliases, anchors, tags, merge keys and directives are errors, not features:
//! with them a few hundred bytes become gigabytes, or text becomes something else. Nothing is expanded
//! and nothing recurses, so a bomb is refused at its first anchor. No other module reads YAML.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use granit_parser::{ErrorKind, Event, Marker, Options, Parser, ScalarStyle, ScanError, Span};

use crate::limit::{FRONT_MATTER_BYTES_MAX, FRONT_MATTER_DEPTH_MAX, FRONT_MATTER_NODES_MAX};
use crate::text::{Place, Places, slice};

/// A file, divided into front matter and body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Split<'t> {
    /// The first line is not `---`: all of the file is body.
    Absent,
    /// No line after the first is `---`.
    Unclosed,
    /// No line after the first is `---` within the limit.
    TooLong,
    /// There is front matter.
    Found {
        /// What stands between the two lines; begins on the file's second line.
        yaml: &'t str,
        /// What follows the second of them.
        body: &'t str,
        /// The line of the file on which the body begins, from 1.
        body_line: usize,
    },
}

/// Divides a file into front matter and body.
///
/// Front matter stands between a first line that is exactly `---` and the next such line. LF and CRLF
/// end a line, a byte order mark before the first one is passed over. Unless `body` is of interest the
/// first [`FRONT_MATTER_BYTES_MAX`] + 16 bytes of a file are enough: they give the same answer.
///
/// ```
/// use proem_core::front_matter::{Split, split};
///
/// let found = Split::Found { yaml: "name: deploy\n", body: "# Deploy\n", body_line: 4 };
/// assert_eq!(split("---\nname: deploy\n---\n# Deploy\n"), found);
/// ```
#[must_use]
pub fn split(text: &str) -> Split<'_> {
    let Some(inner) = after_rule(text.strip_prefix('\u{FEFF}').unwrap_or(text)) else {
        return Split::Absent;
    };
    let line_starts = memchr::memchr_iter(b'\n', inner.as_bytes()).map(|at| at + 1);
    let reachable = core::iter::once(0).chain(line_starts).take_while(|at| *at <= FRONT_MATTER_BYTES_MAX);
    for (line, start) in (2..).zip(reachable) {
        if let Some(body) = after_rule(slice(inner, start, inner.len())) {
            return Split::Found { yaml: slice(inner, 0, start), body, body_line: line + 1 };
        }
    }
    if inner.len() > FRONT_MATTER_BYTES_MAX { Split::TooLong } else { Split::Unclosed }
}

/// Returns what follows a first line that is exactly `---`.
fn after_rule(text: &str) -> Option<&str> {
    let rest = text.strip_prefix("---")?;
    if rest.is_empty() { Some(rest) } else { rest.strip_prefix('\n').or_else(|| rest.strip_prefix("\r\n")) }
}

/// One value of YAML 1.2, by the core schema: `yes`, `no` and `on` are text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// Nothing, `~` or `null`.
    Null,
    /// `true` or `false`, also as `True` or `TRUE`.
    Bool(bool),
    /// An integer or a decimal number as it is written, because no one here calculates.
    Number(String),
    /// Everything else that is one value, and whatever is quoted or a block.
    Text(String),
    /// A list.
    List(Vec<Self>),
    /// A map. Keys are the text of a single value, whatever its type.
    Map(BTreeMap<String, Self>),
}

impl Value {
    /// What it is, for messages.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Null => "nothing",
            Self::Bool(_) => "a boolean",
            Self::Number(_) => "a number",
            Self::Text(_) => "text",
            Self::List(_) => "a list",
            Self::Map(_) => "a map",
        }
    }

    /// Types a scalar that is neither quoted nor a block.
    fn plain(text: &str) -> Self {
        match text {
            "" | "~" | "null" | "Null" | "NULL" => Self::Null,
            "true" | "True" | "TRUE" => Self::Bool(true),
            "false" | "False" | "FALSE" => Self::Bool(false),
            number if is_number(number) => Self::Number(number.to_string()),
            other => Self::Text(other.to_string()),
        }
    }
}

/// What front matter says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FrontMatter {
    entries: BTreeMap<String, Value>,
}

impl FrontMatter {
    /// Looks a key up.
    #[must_use]
    pub fn value(&self, key: &str) -> Option<&Value> {
        self.entries.get(key)
    }

    /// All keys with their values, by key.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.entries.iter().map(|(key, value)| (key.as_str(), value))
    }
}

/// Front matter that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FrontMatterError {
    /// Where, counted from the line after the first `---`.
    pub place: Place,
    /// What is wrong.
    pub message: String,
}

impl FrontMatterError {
    /// Where, counted from the top of the file.
    #[must_use]
    pub const fn place_in_file(&self) -> Place {
        Place { line: self.place.line + 1, column: self.place.column }
    }
}

impl fmt::Display for FrontMatterError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Place { line, column } = self.place;
        write!(formatter, "line {line}, column {column} of the front matter: {}", self.message)
    }
}

impl core::error::Error for FrontMatterError {}

/// Reads the YAML of front matter, as [`split`] found it.
///
/// ```
/// use proem_core::front_matter::{Value, parse};
///
/// let front_matter = parse("description: Ships a release\nresident: yes\n")?;
/// assert_eq!(front_matter.value("description"), Some(&Value::Text("Ships a release".into())));
/// assert_eq!(front_matter.value("resident"), Some(&Value::Text("yes".into())));
/// assert_eq!(parse("a: 1\na: 2\n").unwrap_err().message, "the key `a` is there twice");
/// # Ok::<(), proem_core::front_matter::FrontMatterError>(())
/// ```
pub fn parse(yaml: &str) -> Result<FrontMatter, FrontMatterError> {
    let mut tree = Tree { yaml, open: Vec::new(), nodes: 0, root: None };
    if yaml.len() > FRONT_MATTER_BYTES_MAX {
        return Err(tree.error(FRONT_MATTER_BYTES_MAX, "front matter is over 8 KiB"));
    }
    for next in Parser::new_from_str_with_options(yaml, options()) {
        let (event, span) = next.map_err(|error| tree.broken(&error))?;
        tree.take(event, &span)?;
    }
    Ok(FrontMatter { entries: tree.root.unwrap_or_default() })
}

/// Says everything that bears on the result, because another crate in the build could change a default.
fn options() -> Options {
    granit_parser::options! {
        strict_indentation: false,
        disallow_directives: true,
        emit_unresolved_aliases: true,
        emit_anchor_events: false,
        emit_comments: false,
        simple_key_max_lookahead: 1024,
        flow_nesting_limit: FRONT_MATTER_DEPTH_MAX,
        block_nesting_limit: FRONT_MATTER_DEPTH_MAX,
    }
}

const NOT_A_MAP: &str = "front matter must be a map of keys and values";

/// The values read so far.
struct Tree<'y> {
    yaml: &'y str,
    open: Vec<Open>,
    nodes: usize,
    root: Option<BTreeMap<String, Value>>,
}

/// A list or map that is not closed yet.
enum Open {
    List(Vec<Value>),
    Map { entries: BTreeMap<String, Value>, key: Option<String> },
}

impl Tree<'_> {
    fn take(&mut self, event: Event<'_>, span: &Span) -> Result<(), FrontMatterError> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                self.check(anchor, tag.is_some(), span)?;
                self.scalar(&text, style == ScalarStyle::Plain, span)?;
            }
            Event::SequenceStart(_, anchor, tag) => {
                self.check(anchor, tag.is_some(), span)?;
                self.begin(Open::List(Vec::new()), span)?;
            }
            Event::MappingStart(_, anchor, tag) => {
                self.check(anchor, tag.is_some(), span)?;
                self.begin(Open::Map { entries: BTreeMap::new(), key: None }, span)?;
            }
            Event::SequenceEnd | Event::MappingEnd => self.end(),
            Event::Alias(_) | Event::UnresolvedAlias(_) => {
                return Err(
                    self.at(&span.start, "aliases are not allowed; quote a value that begins with `*`")
                );
            }
            Event::DocumentStart(..) if self.root.is_some() => {
                return Err(self.at(&span.start, "there is more than one document"));
            }
            _ => {}
        }
        Ok(())
    }

    /// Checks what every node must fulfil.
    fn check(&mut self, anchor: usize, has_tag: bool, span: &Span) -> Result<(), FrontMatterError> {
        self.nodes += 1;
        if self.nodes > FRONT_MATTER_NODES_MAX {
            let message = format!("there are more than {FRONT_MATTER_NODES_MAX} keys and values");
            return Err(self.at(&span.start, message));
        }
        if has_tag {
            let start = span.tag_start.unwrap_or(span.start);
            return Err(self.at(&start, "tags are not allowed; quote a value that begins with `!`"));
        }
        if anchor != 0 {
            return Err(self.at(&span.start, "anchors are not allowed; quote a value that begins with `&`"));
        }
        Ok(())
    }

    fn scalar(&mut self, text: &str, is_plain: bool, span: &Span) -> Result<(), FrontMatterError> {
        match self.open.last_mut() {
            None => return Err(self.at(&span.start, NOT_A_MAP)),
            Some(Open::Map { key: None, .. }) if is_plain && text == "<<" => {
                return Err(self.at(&span.start, "merge keys are not allowed"));
            }
            // The parser writes a key that is not there as `~`.
            Some(Open::Map { key: None, .. }) if is_plain && Value::plain(text) == Value::Null => {
                return Err(self.at(&span.start, "a key is missing"));
            }
            Some(Open::Map { key: None, entries }) if entries.contains_key(text) => {
                return Err(self.at(&span.start, format!("the key `{}` is there twice", text.escape_debug())));
            }
            Some(Open::Map { key: key @ None, .. }) => *key = Some(text.to_string()),
            Some(_) if is_plain => self.put(Value::plain(text)),
            Some(_) => self.put(Value::Text(text.to_string())),
        }
        Ok(())
    }

    fn begin(&mut self, open: Open, span: &Span) -> Result<(), FrontMatterError> {
        match (self.open.last(), &open) {
            (None, Open::List(_)) => return Err(self.at(&span.start, NOT_A_MAP)),
            (Some(Open::Map { key: None, .. }), _) => {
                return Err(self.at(&span.start, "a key must be a single value"));
            }
            _ => {}
        }
        if self.open.len() == FRONT_MATTER_DEPTH_MAX {
            return Err(self.at(&span.start, too_deep()));
        }
        self.open.push(open);
        Ok(())
    }

    fn end(&mut self) {
        match self.open.pop() {
            Some(Open::List(values)) => self.put(Value::List(values)),
            Some(Open::Map { entries, .. }) => self.put(Value::Map(entries)),
            None => {}
        }
    }

    /// Puts a finished value where it belongs.
    fn put(&mut self, value: Value) {
        match (self.open.last_mut(), value) {
            (Some(Open::List(values)), value) => values.push(value),
            (Some(Open::Map { entries, key }), value) => {
                entries.extend(key.take().map(|key| (key, value)));
            }
            (None, Value::Map(entries)) => self.root = Some(entries),
            (None, _) => {}
        }
    }

    fn broken(&self, error: &ScanError) -> FrontMatterError {
        match error.kind() {
            ErrorKind::RecursionLimitExceeded => self.at(error.marker(), too_deep()),
            // Frequent mistakes, for which the parser's words do not say what to do.
            ErrorKind::InvalidQuotedScalarIndent => {
                self.at(error.marker(), "a quote is not closed, or its next line is not indented")
            }
            ErrorKind::MappingValueNotAllowed => {
                self.at(error.marker(), "a second `:` in the line; quote a value that has `: ` in it")
            }
            _ => self.at(error.marker(), error.info()),
        }
    }

    fn at(&self, marker: &Marker, message: impl Into<String>) -> FrontMatterError {
        self.error(marker.byte_offset().unwrap_or(self.yaml.len()), message)
    }

    fn error(&self, offset: usize, message: impl Into<String>) -> FrontMatterError {
        FrontMatterError { place: Places::new(self.yaml).at(offset), message: message.into() }
    }
}

fn too_deep() -> String {
    format!("lists and maps are more than {FRONT_MATTER_DEPTH_MAX} deep")
}

/// Tells whether the core schema takes a plain scalar for an integer or a floating point number.
fn is_number(text: &str) -> bool {
    let all = |digits: &str, is_digit: fn(char) -> bool| !digits.is_empty() && digits.chars().all(is_digit);
    if let Some(digits) = text.strip_prefix("0o") {
        return all(digits, |digit| digit.is_digit(8));
    }
    if let Some(digits) = text.strip_prefix("0x") {
        return all(digits, |digit| digit.is_ascii_hexdigit());
    }
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN") {
        return true;
    }
    let (mantissa, exponent) =
        unsigned.split_once(['e', 'E']).map_or((unsigned, None), |(before, after)| (before, Some(after)));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let is_decimal = |digits: &str| all(digits, |digit| digit.is_ascii_digit());
    let is_mantissa = (is_decimal(whole) && (fraction.is_empty() || is_decimal(fraction)))
        || (whole.is_empty() && is_decimal(fraction));
    is_mantissa && exponent.is_none_or(|digits| is_decimal(digits.strip_prefix(['-', '+']).unwrap_or(digits)))
}

#[cfg(test)]
mod tests {
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
            let error = FrontMatterError { place: Place { line, column }, message: message.into() };
            assert_eq!(parse(yaml), Err(error), "{yaml:?}");
        }
    }

    #[test]
    fn error_says_where() {
        let error = parse("a: 1\na: 2").unwrap_err();
        assert_eq!(error.to_string(), "line 2, column 1 of the front matter: the key `a` is there twice");
        assert_eq!(error.place_in_file(), Place { line: 3, column: 1 });
    }

    #[test]
    fn limits_hold_to_the_last_one() {
        let flow = |depth: usize| format!("a: {}{}", "[".repeat(depth - 1), "]".repeat(depth - 1));
        let indented = |level| " ".repeat(level) + "a:\n";
        let block = |depth: usize| (0..depth).map(indented).collect::<String>();
        let mixed =
            |depth: usize| format!("a:\n- b:\n  - {}{}", "[".repeat(depth - 4), "]".repeat(depth - 4));
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
        // The fastest of several: a machine that is busy must not fail the test.
        let fastest = (0..20).map(|_| time(&bomb)).min().unwrap();
        assert!(fastest < Duration::from_millis(1), "{fastest:?}");
    }

    fn time(yaml: &str) -> Duration {
        let start = Instant::now();
        assert!(parse(yaml).is_err());
        start.elapsed()
    }
}
