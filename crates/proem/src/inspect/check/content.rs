//! Finds problems of the finished text: repetitions and contradictions.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use proem_core::front_matter::{self, Split};
use proem_core::frozen::Body;
use proem_core::note::{Code, Note, Severity};
use proem_core::rendered::Span;
use proem_core::source::Source;
use proem_core::stability::Stability;
use proem_core::text::Place;

use crate::sections::text_findings::SECRETS;
use crate::settings::allow::file_of;
use crate::settings::tokens::Tokenizer;

/// Paragraphs that are shorter may well be there twice: headings, commands, short rules.
const PARAGRAPH_BYTES_MIN: usize = 80;

/// A line with fewer letters is a ruler.
const LETTERS_MIN: usize = 30;

/// Most findings of one kind.
const LISTED_MAX: usize = 50;

/// Looks through everything that is frozen.
pub(super) fn lints(body: &Body, tokenizer: Tokenizer) -> Vec<Note> {
    let mut notes = Vec::new();
    let mut statements = Statements::default();
    for (carrier, text) in body.carriers() {
        let located = LocatedText::new(text, body.spans(carrier));
        notes.extend(located.duplicates(tokenizer));
        located.statements(&mut statements);
        notes.extend(located.headings());
    }
    notes.extend(statements.contradictions());
    notes
}

/// Checks files that are read one after the other, and returns the findings for the last of them.
pub(super) fn lints_of_last(files: &[(&str, &str)]) -> Vec<Note> {
    let (mut text, mut spans) = (String::new(), Vec::new());
    for (path, own) in files {
        let (body, line) = match front_matter::split(own) {
            Split::Found { body, body_line, .. } => (body, body_line),
            _ => (*own, 1),
        };
        let start = text.len();
        text.push_str(body);
        if !text.ends_with('\n') {
            text.push('\n');
        }
        let source = Source::File { path: (*path).into(), place: Some(Place { line, column: 1 }) };
        let (template, included_from, stability) = (None, Vec::new(), Stability::Project);
        spans.push(Span { bytes: start..text.len(), source, template, included_from, stability });
    }
    let located = LocatedText::new(&text, &spans);
    let mut statements = Statements::default();
    located.statements(&mut statements);
    let mut notes = located.duplicates(Tokenizer::Estimate);
    notes.extend(statements.contradictions());
    let last = spans.last().map(|span| &span.source);
    notes.retain(|note| is_same_source(note.source.as_ref(), last));
    notes
}

/// A carrier's text, and where its bytes come from.
struct LocatedText<'t> {
    text: &'t str,
    spans: &'t [Span],
    /// The ends of lines.
    breaks: Vec<usize>,
}

impl<'t> LocatedText<'t> {
    fn new(text: &'t str, spans: &'t [Span]) -> Self {
        Self { text, spans, breaks: memchr::memchr_iter(b'\n', text.as_bytes()).collect() }
    }

    fn slice(&self, bytes: &Range<usize>) -> &'t str {
        self.text.get(bytes.clone()).unwrap_or_default()
    }

    fn span(&self, byte: usize) -> Option<&'t Span> {
        let after = self.spans.partition_point(|span| span.bytes.end <= byte);
        self.spans.get(after)
    }

    /// Returns the origin of a byte of the text, with its line.
    fn source(&self, byte: usize) -> Option<Source> {
        let span = self.span(byte)?;
        let before = |byte: usize| self.breaks.partition_point(|end| *end < byte);
        let passed = before(byte) - before(span.bytes.start);
        let (whole, first) = match &span.source {
            Source::Variable { path: Some(path), .. } => {
                (Source::File { path: path.clone(), place: None }, 1)
            }
            source => (source.clone(), source.place().map_or(1, |place| place.line)),
        };
        Some(whole.at(Place { line: first + passed, column: 1 }))
    }

    /// Tells whether these bytes were written for this prompt. Built-in text is not checked.
    fn is_written(&self, byte: usize) -> bool {
        let source = self.span(byte).map(|span| &span.source);
        source.is_some_and(|source| !matches!(source, Source::BuiltIn { .. } | Source::Profile { .. }))
    }

    /// Paragraphs of prose: bytes of one source between blank lines. Blocks of code and comments end a paragraph and
    /// do not count as one: a command may well be repeated, and models do not obey comments.
    fn paragraphs(&self) -> Vec<Range<usize>> {
        let (mut found, mut start, mut end) = (Vec::new(), None, 0);
        let (mut source, mut passed) = (None, MarkdownState::default());
        for line in lines(self.text) {
            let own = self.span(line.start).map(|span| &span.source);
            let text = self.slice(&line).trim();
            // Text that a profile puts around a file begins on a line of its own, and does not belong to a paragraph.
            let is_other = !is_same_source(source, own);
            if is_other {
                passed = MarkdownState::default();
            }
            source = own;
            let is_prose = passed.is_prose(text) && !text.is_empty();
            if is_other || !is_prose {
                found.extend(start.take().map(|start| start..end));
            }
            if is_prose {
                start.get_or_insert(line.start);
                end = line.end;
            }
        }
        found.extend(start.map(|start| start..end));
        found
    }

    fn duplicates(&self, tokenizer: Tokenizer) -> Vec<Note> {
        let mut first: BTreeMap<&str, usize> = BTreeMap::new();
        let mut notes = Vec::new();
        for paragraph in self.paragraphs() {
            let text = self.slice(&paragraph).trim();
            let is_said = text.chars().filter(|character| character.is_alphanumeric()).count() >= LETTERS_MIN;
            let is_short = text.len() < PARAGRAPH_BYTES_MIN || !is_said;
            if is_short || !self.is_written(paragraph.start) || is_boilerplate(text) {
                continue;
            }
            let Some(known) = first.get(text).copied() else {
                first.insert(text, paragraph.start);
                continue;
            };
            let (Some(here), Some(there)) = (self.source(paragraph.start), self.source(known)) else {
                continue;
            };
            let message = format!(
                "this paragraph stands at {} already: {} tokens are paid twice",
                line_of(&there),
                tokenizer.count(text)
            );
            let note = Note::new(Code::DuplicateContent, Severity::Warning, message);
            notes.push(note.with_hint("keep one of the two").with_source(here));
            if notes.len() == LISTED_MAX {
                break;
            }
        }
        notes
    }

    /// Rules: items of lists and paragraphs of one line, with the headings above them.
    fn statements(&self, statements: &mut Statements) {
        let all: Vec<Range<usize>> = lines(self.text).collect();
        let source_of = |line: &Range<usize>| self.span(line.start).map(|span| &span.source);
        // A line of something else is as good as none.
        let text_of = |index: usize, beside: &Range<usize>| {
            let own = all.get(index).filter(|line| is_same_source(source_of(line), source_of(beside)));
            own.map_or("", |line| self.slice(line))
        };
        let (mut is_code, mut heading, mut label) = (false, String::new(), String::new());
        for (index, line) in all.iter().enumerate() {
            let text = self.slice(line);
            is_code ^= text.trim_start().starts_with("```");
            if is_code || !self.is_written(line.start) {
                continue;
            }
            if text.starts_with("##") {
                heading = text.trim_matches(['#', ' ']).to_lowercase();
                label.clear();
            } else if text.starts_with('#') {
                heading.clear();
                label.clear();
            } else if text.trim_end().ends_with([':', '?']) {
                label = text.trim().to_lowercase();
            }
            let before = index.checked_sub(1).map_or("", |index| text_of(index, line));
            if !is_rule(before, text, text_of(index + 1, line)) {
                continue;
            }
            for statement in Statement::parse(&SECRETS.without_secrets(text)) {
                if let Some(source) = self.source(line.start) {
                    let below = LineContext { heading: heading.clone(), label: label.clone() };
                    statements.take(PlacedStatement { statement, source, below });
                }
            }
        }
    }

    /// Finds sections of two files with the same heading and different text.
    fn headings(&self) -> Vec<Note> {
        let mut first: BTreeMap<String, (Source, &str)> = BTreeMap::new();
        let mut notes = Vec::new();
        for (heading, start, body) in self.sections() {
            // Trimmed once: the first one is compared with every other.
            let body = body.trim();
            let (Some(here), true) = (self.source(start), self.is_written(start)) else { continue };
            match first.get(&heading) {
                Some((there, other)) if !there.is_same(&here) => {
                    // A file of a folder below has the same headings for its own part, and that is why it is there.
                    if *other != body && notes.len() < LISTED_MAX && !is_nested(there, &here) {
                        let message =
                            format!("`{heading}` is a heading at {}, too, with other text", line_of(there));
                        let note = Note::new(Code::Contradiction, Severity::Info, message);
                        let hint = "say in one of them which one holds, or give them headings of their own";
                        notes.push(note.with_hint(hint).with_source(here));
                    }
                }
                Some(_) => {}
                None => drop(first.insert(heading, (here, body))),
            }
        }
        notes
    }

    /// Headings in lower case, where they begin, and the text up to the next one.
    fn sections(&self) -> Vec<(String, usize, &'t str)> {
        let mut found: Vec<(String, usize, usize)> = Vec::new();
        let mut is_code = false;
        for line in lines(self.text) {
            let text = self.slice(&line).trim();
            is_code ^= text.starts_with("```");
            let title = text.trim_start_matches('#');
            if !is_code && title.len() < text.len() && title.starts_with(' ') && !title.trim().is_empty() {
                found.push((title.trim().to_lowercase(), line.start, line.end));
            }
        }
        let ends: Vec<usize> =
            found.iter().skip(1).map(|(_, start, _)| *start).chain([self.text.len()]).collect();
        let body = |((heading, start, from), end): ((String, usize, usize), usize)| {
            // A section ends where another file begins.
            let end = self.span(from).map_or(end, |_| self.end_of_source(from, end));
            (heading, start, self.text.get(from..end).unwrap_or_default())
        };
        found.into_iter().zip(ends).map(body).collect()
    }

    fn end_of_source(&self, from: usize, end: usize) -> usize {
        let own = self.span(from.saturating_sub(1)).map(|span| &span.source);
        let after = self.spans.partition_point(|span| span.bytes.end <= from);
        let others = self.spans.iter().skip(after).take_while(|span| span.bytes.start < end);
        others
            .filter(|span| span.bytes.start >= from)
            .find(|span| own.is_none_or(|own| !own.is_same(&span.source)))
            .map_or(end, |span| span.bytes.start)
    }
}

/// Wording of licences and of generators: it appears in many files on purpose.
const BOILERPLATE: [&str; 12] = [
    "spdx-license-identifier",
    "licensed under",
    "licensed to the",
    "copyright (c)",
    "copyright ©",
    "all rights reserved",
    "generated by",
    "auto-generated",
    "autogenerated",
    "do not edit",
    "prettier-ignore",
    "markdownlint-",
];

/// Tells whether a paragraph is a licence, or text that a program wrote.
fn is_boilerplate(text: &str) -> bool {
    let text = text.to_lowercase();
    BOILERPLATE.iter().any(|words| text.contains(words))
}

/// The open construct at a line of Markdown: a fence of code, or a comment.
#[derive(Default)]
struct MarkdownState {
    fence: Option<&'static str>,
    is_comment: bool,
}

impl MarkdownState {
    /// Takes the next line, and tells whether it is prose.
    fn is_prose(&mut self, line: &str) -> bool {
        const FENCES: [&str; 2] = ["```", "~~~"];
        if self.is_comment {
            self.is_comment = !line.contains("-->");
            return false;
        }
        if let Some(fence) = FENCES.into_iter().find(|fence| line.starts_with(fence)) {
            match self.fence {
                None => self.fence = Some(fence),
                Some(open) if open == fence => self.fence = None,
                Some(_) => {}
            }
            return false;
        }
        if self.fence.is_some() {
            return false;
        }
        if line.starts_with("<!--") {
            self.is_comment = !line.contains("-->");
            return false;
        }
        true
    }
}

fn is_same_source(a: Option<&Source>, b: Option<&Source>) -> bool {
    // Comparing places would part every line of a template.
    match (a, b) {
        (Some(a), Some(b)) => a.is_same(b),
        _ => false,
    }
}

/// Tells whether the folder of one file holds the folder of the other.
fn is_nested(a: &Source, b: &Source) -> bool {
    let folder = |source| file_of(source).and_then(|path| Path::new(path).parent());
    let (Some(a), Some(b)) = (folder(a), folder(b)) else { return false };
    a != b && (a.starts_with(b) || b.starts_with(a))
}

/// The lines of a text, without their ends.
fn lines(text: &str) -> impl Iterator<Item = Range<usize>> {
    let mut start = 0;
    text.split_inclusive('\n').map(move |line| {
        let range = start..start + line.trim_end_matches(['\n', '\r']).len();
        start += line.len();
        range
    })
}

/// A source with its line and without its column.
fn line_of(source: &Source) -> String {
    let whole = source.without_place();
    source.place().map_or_else(|| whole.to_string(), |place| format!("{whole}:{}", place.line))
}

/// An instruction in a normal form: the action, and whether it is required or forbidden.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Statement {
    what: String,
    is_wanted: bool,
    /// For `use A for B`: the A.
    means: Option<String>,
}

const FORBIDS: [&str; 12] = [
    "never ",
    "do not ",
    "don't ",
    "don’t ",
    "must not ",
    "you must not ",
    "should not ",
    "you should not ",
    "avoid ",
    "you must never ",
    "please do not ",
    "please don't ",
];
const ASKS: [&str; 9] = [
    "always ",
    "you must always ",
    "you must ",
    "must ",
    "you should ",
    "should ",
    "please ",
    "do ",
    "prefer to ",
];

impl Statement {
    /// Parses the instructions of a line: as a whole, and for `use A for B` the choice for B.
    fn parse(line: &str) -> Vec<Self> {
        const LINE_BYTES_MAX: usize = 160;
        if line.len() > LINE_BYTES_MAX || line.starts_with('#') {
            return Vec::new();
        }
        let plain: String = line.chars().filter(|character| !"*`_\"".contains(*character)).collect();
        let text = without_mark(plain.trim()).to_lowercase();
        let text = text.trim_end_matches(['.', '!', ';', ':']).trim();
        let (rest, is_wanted) = match FORBIDS.iter().find_map(|word| text.strip_prefix(word)) {
            Some(rest) => (rest, false),
            None => (ASKS.iter().find_map(|word| text.strip_prefix(word)).unwrap_or(text), true),
        };
        let rest = rest.strip_prefix("using ").map_or_else(|| rest.to_owned(), |rest| format!("use {rest}"));
        let words: Vec<&str> = rest.split_whitespace().collect();
        if words.len() < 2 {
            return Vec::new();
        }
        let mut said = vec![Self { what: words.join(" "), is_wanted, means: None }];
        if let ["use", means, "for", what @ ..] = words.as_slice()
            && is_wanted
            && !what.is_empty()
        {
            let what = format!("use … for {}", what.join(" "));
            said.push(Self { what, is_wanted, means: Some((*means).to_owned()) });
        }
        said
    }
}

/// Returns a line without its list marker.
fn without_mark(line: &str) -> &str {
    let number = line.trim_start_matches(|character: char| character.is_ascii_digit());
    let is_numbered = number.len() < line.len();
    let rest = match number.strip_prefix(['.', ')']) {
        Some(rest) if is_numbered => rest,
        _ => line.trim_start_matches(['-', '+', '•']),
    };
    let rest = rest.trim_start();
    rest.strip_prefix("[ ] ").or_else(|| rest.strip_prefix("[x] ")).unwrap_or(rest)
}

/// Tells whether a line is a sentence of its own: an item that ends with its line, or a paragraph of one line. Steps of a
/// procedure are none: they hold one after the other.
fn is_rule(before: &str, line: &str, after: &str) -> bool {
    let is_item = |line: &str| line.trim_start().starts_with(['-', '*', '+', '•']);
    let goes_on = !after.trim().is_empty() && !is_item(after) && !after.starts_with('#');
    if is_item(line) {
        return !goes_on;
    }
    let is_alone = before.trim().is_empty() || before.starts_with('#');
    is_alone
        && after.trim().is_empty()
        && !line.trim_start().starts_with(|first: char| first.is_ascii_digit())
}

/// The context of a line: the nearest heading that is not the title, and the nearest line that announces a list.
#[derive(Debug, Clone, PartialEq, Eq)]
struct LineContext {
    heading: String,
    label: String,
}

/// A statement, its position, and its context.
struct PlacedStatement {
    statement: Statement,
    source: Source,
    below: LineContext,
}

impl PlacedStatement {
    /// Tells whether two statements are about the same: under two headings, both may be right.
    fn is_about_same(&self, other: &Self) -> bool {
        let (own, others) = (&self.below, &other.below);
        let is_general = own.heading.is_empty() || others.heading.is_empty();
        own.label == others.label && (own.heading == others.heading || is_general)
    }
}

#[derive(Default)]
struct Statements {
    first: BTreeMap<String, PlacedStatement>,
    notes: Vec<Note>,
}

impl Statements {
    fn take(&mut self, said: PlacedStatement) {
        let key = said.statement.what.clone();
        let Some(known) = self.first.get(&key) else {
            self.first.insert(key, said);
            return;
        };
        let (statement, there) = (&said.statement, &known.source);
        let is_opposite = known.statement.is_wanted != statement.is_wanted;
        let is_elsewhere = !there.is_same(&said.source);
        let is_other = known.statement.means != statement.means && is_elsewhere;
        if (!is_opposite && !is_other) || self.notes.len() == LISTED_MAX || !said.is_about_same(known) {
            return;
        }
        let message = if is_opposite {
            format!("this contradicts {}: `{}` is asked for and forbidden", line_of(there), statement.what)
        } else {
            let means = |statement: &Statement| statement.means.clone().unwrap_or_default();
            format!(
                "this contradicts {}: `{}` with `{}` there and `{}` here",
                line_of(there),
                statement.what,
                means(&known.statement),
                means(statement)
            )
        };
        let note = Note::new(Code::Contradiction, Severity::Warning, message);
        self.notes.push(note.with_hint("keep one of the two").with_source(said.source));
    }

    fn contradictions(self) -> Vec<Note> {
        self.notes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_are_reduced_to_what_they_ask() {
        let first = |line: &str| Statement::parse(line).into_iter().next();
        let of = |line: &str| first(line).map(|statement| (statement.what, statement.is_wanted));
        assert_eq!(of("- **Always** use `tabs`."), Some(("use tabs".into(), true)));
        assert_eq!(of("2. Avoid using tabs"), Some(("use tabs".into(), false)));
        assert_eq!(of("Don't commit secrets!"), Some(("commit secrets".into(), false)));
        assert_eq!(of("- one"), None);
        assert_eq!(of("# Never say never"), None);
        assert_eq!(
            Statement::parse("Use pnpm for packages").pop().and_then(|found| found.means),
            Some("pnpm".into())
        );
    }

    #[test]
    fn lines_know_their_bytes() {
        let text = "a\r\n\nbc";
        assert_eq!(lines(text).filter_map(|line| text.get(line)).collect::<Vec<_>>(), ["a", "", "bc"]);
    }
}
