//! Front matter: the YAML between `---` lines at the top of a Markdown file.
//!
//! The authors of these files are not trusted, so the parser accepts little: one map of plain data, typed by the core
//! schema of YAML 1.2. Aliases, anchors, tags, merge keys and directives are errors, not features: with them a few
//! hundred bytes can become gigabytes, or text can change its type. Nothing is expanded and nothing recurses, so an
//! alias bomb is rejected at its first anchor. No other module reads YAML.

mod plain;

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use granit_parser::{ErrorKind, Event, Marker, Options, Parser, ScalarStyle, ScanError, Span};

use crate::limit::{FRONT_MATTER_BYTES_MAX, FRONT_MATTER_DEPTH_MAX, FRONT_MATTER_NODES_MAX, Size};
use crate::text::{Place, Places, slice};

/// A file, divided into front matter and body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Split<'t> {
    /// The first line is not `---`: the whole file is body.
    Absent,
    /// No line after the first is `---`.
    Unclosed,
    /// The closing `---` is missing within the limit.
    TooLong,
    /// The file has front matter.
    Found {
        /// The text between the two `---` lines; starts on the file's second line.
        yaml: &'t str,
        /// The text after the second `---`.
        body: &'t str,
        /// The line of the file on which the body starts, from 1.
        body_line: usize,
    },
}

/// Splits a file into front matter and body.
///
/// Front matter is the text between a first line that is exactly `---` and the next such line. LF and CRLF end a
/// line; a byte order mark before the first line is skipped. A caller that does not need `body` can pass the first
/// [`FRONT_MATTER_BYTES_MAX`] + 16 bytes of a file: the result is the same.
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

/// Returns the text after a first line that is exactly `---`.
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
    /// An integer or a decimal number as written, because nothing here computes with it.
    Number(String),
    /// Every other scalar, and every quoted or block scalar.
    Text(String),
    /// A list.
    List(Vec<Self>),
    /// A map. Keys are the text of a single value, whatever its type.
    Map(BTreeMap<String, Self>),
}

impl Value {
    /// Returns the name of the type, for messages.
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

    /// Determines the type of a scalar that is neither quoted nor a block.
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

/// Parsed front matter.
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

    /// Iterates over all keys with their values, by key.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.entries.iter().map(|(key, value)| (key.as_str(), value))
    }
}

/// Front matter that cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FrontMatterError {
    /// The place, counted from the line after the first `---`.
    pub place: Place,
    /// The problem.
    pub message: String,
    /// The error of the YAML parser, if any.
    yaml: Option<Box<ScanError>>,
}

impl FrontMatterError {
    /// Returns the place counted from the top of the file.
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

impl core::error::Error for FrontMatterError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        Some(self.yaml.as_deref()?)
    }
}

/// Parses the YAML of front matter, as [`split`] returns it.
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
    match plain::parse(yaml) {
        Some(entries) => Ok(FrontMatter { entries }),
        None => parse_any(yaml),
    }
}

/// Parses everything that is allowed; this function alone decides which input is rejected.
fn parse_any(yaml: &str) -> Result<FrontMatter, FrontMatterError> {
    let mut tree = Tree { yaml, open: Vec::new(), nodes: 0, root: None };
    if yaml.len() > FRONT_MATTER_BYTES_MAX {
        let message = format!("front matter is over {}", Size::new(FRONT_MATTER_BYTES_MAX));
        return Err(tree.error(FRONT_MATTER_BYTES_MAX, message));
    }
    if let Some(offset) = tab_before_key(yaml) {
        return Err(tree.error(offset, "a tab stands before a key; indent with spaces"));
    }
    for next in Parser::new_from_str_with_options(yaml, options()) {
        let (event, span) = next.map_err(|error| tree.broken(error))?;
        tree.take(event, &span)?;
    }
    Ok(FrontMatter { entries: tree.root.unwrap_or_default() })
}

/// Sets every option that affects the result, because another crate in the build could change a default.
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

/// Returns the place of a first key that is indented with a tab, which YAML forbids and the parser accepts.
fn tab_before_key(yaml: &str) -> Option<usize> {
    let mut offset = 0;
    let first = yaml.split_inclusive('\n').find(|line| {
        let is_first = !line.trim().is_empty() && !line.trim_start().starts_with('#');
        offset += if is_first { 0 } else { line.len() };
        is_first
    });
    first.filter(|line| line.starts_with('\t')).map(|_| offset)
}

const NOT_A_MAP: &str = "front matter must be a map of keys and values";

/// The values parsed so far.
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

    /// Checks the rules that every node must satisfy.
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
            // The parser represents a missing key as `~`.
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

    /// Adds a finished value to its parent.
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

    fn broken(&self, error: ScanError) -> FrontMatterError {
        let broken = match error.kind() {
            ErrorKind::RecursionLimitExceeded => self.at(error.marker(), too_deep()),
            // Frequent mistakes for which the parser's message does not name a fix.
            ErrorKind::InvalidQuotedScalarIndent => {
                self.at(error.marker(), "a quote is not closed, or its next line is not indented")
            }
            ErrorKind::MappingValueNotAllowed => {
                self.at(error.marker(), "a second `:` in the line; quote a value that has `: ` in it")
            }
            _ => self.at(error.marker(), error.info()),
        };
        FrontMatterError { yaml: Some(Box::new(error)), ..broken }
    }

    fn at(&self, marker: &Marker, message: impl Into<String>) -> FrontMatterError {
        self.error(marker.byte_offset().unwrap_or(self.yaml.len()), message)
    }

    fn error(&self, offset: usize, message: impl Into<String>) -> FrontMatterError {
        FrontMatterError { place: Places::new(self.yaml).at(offset), message: message.into(), yaml: None }
    }
}

fn too_deep() -> String {
    format!("lists and maps are more than {FRONT_MATTER_DEPTH_MAX} deep")
}

/// Tells whether the core schema reads a plain scalar as an integer or a floating point number.
fn is_number(text: &str) -> bool {
    let all = |digits: &str, is_digit: fn(char) -> bool| !digits.is_empty() && digits.chars().all(is_digit);
    // Most values are words.
    if !text.starts_with(|first: char| first.is_ascii_digit() || matches!(first, '-' | '+' | '.')) {
        return false;
    }
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
mod tests;
