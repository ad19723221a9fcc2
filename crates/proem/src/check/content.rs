//! What is wrong with the finished text: said twice, or said both ways.

use std::collections::BTreeMap;
use std::ops::Range;

use proem_core::frozen::Body;
use proem_core::note::{Code, Note, Severity};
use proem_core::rendered::Span;
use proem_core::source::Source;
use proem_core::text::Place;

use crate::tokens::Tokenizer;

/// Paragraphs that are shorter may well be there twice: headings, commands, short rules.
const PARAGRAPH_BYTES_MIN: usize = 80;

/// Most findings of one kind.
const LISTED_MAX: usize = 50;

/// Looks through everything that is frozen.
pub(super) fn lints(body: &Body, tokenizer: Tokenizer) -> Vec<Note> {
    let mut notes = Vec::new();
    let mut statements = Statements::default();
    for (carrier, text) in body.carriers() {
        let located = Located { text, spans: body.spans(carrier) };
        notes.extend(located.duplicates(tokenizer));
        located.statements(&mut statements);
        notes.extend(located.headings());
    }
    notes.extend(statements.contradictions());
    notes
}

/// A carrier's text, and where its bytes come from.
struct Located<'t> {
    text: &'t str,
    spans: &'t [Span],
}

impl<'t> Located<'t> {
    fn slice(&self, bytes: &Range<usize>) -> &'t str {
        self.text.get(bytes.clone()).unwrap_or_default()
    }

    fn span(&self, byte: usize) -> Option<&'t Span> {
        let after = self.spans.partition_point(|span| span.bytes.end <= byte);
        self.spans.get(after)
    }

    /// Where a byte of the text comes from, with its line.
    fn source(&self, byte: usize) -> Option<Source> {
        let span = self.span(byte)?;
        let passed = self.text.get(span.bytes.start..byte).unwrap_or_default().matches('\n').count();
        let (whole, first) = match &span.source {
            Source::Variable { path: Some(path), .. } => {
                (Source::File { path: path.clone(), place: None }, 1)
            }
            source => (source.clone(), source.place().map_or(1, |place| place.line)),
        };
        Some(whole.at(Place { line: first + passed, column: 1 }))
    }

    /// Tells whether somebody wrote these bytes for this prompt: what is built in says what it says.
    fn is_written(&self, byte: usize) -> bool {
        let source = self.span(byte).map(|span| &span.source);
        source.is_some_and(|source| !matches!(source, Source::BuiltIn { .. } | Source::Profile { .. }))
    }

    /// Paragraphs: bytes of one source between blank lines.
    fn paragraphs(&self) -> Vec<Range<usize>> {
        let (mut found, mut start, mut end) = (Vec::new(), None, 0);
        let mut source = None;
        for line in lines(self.text) {
            let own = self.span(line.start).map(|span| &span.source);
            let is_blank = self.slice(&line).trim().is_empty();
            // What a profile puts around a file begins on a line of its own, and is no part of a paragraph.
            if is_blank || !is_same_source(source, own) {
                found.extend(start.take().map(|start| start..end));
            }
            source = own;
            if !is_blank {
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
            if text.len() < PARAGRAPH_BYTES_MIN || !self.is_written(paragraph.start) {
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

    fn statements(&self, statements: &mut Statements) {
        let mut is_code = false;
        for line in lines(self.text) {
            let text = self.slice(&line);
            is_code ^= text.trim_start().starts_with("```");
            if is_code || !self.is_written(line.start) {
                continue;
            }
            if let Some(statement) = Statement::of(text)
                && let Some(source) = self.source(line.start)
            {
                statements.take(statement, source);
            }
        }
    }

    /// Sections of two files that have the same heading and say something else.
    fn headings(&self) -> Vec<Note> {
        let mut first: BTreeMap<String, (Source, &str)> = BTreeMap::new();
        let mut notes = Vec::new();
        for (heading, start, body) in self.sections() {
            let (Some(here), true) = (self.source(start), self.is_written(start)) else { continue };
            match first.get(&heading) {
                Some((there, other)) if there.without_place() != here.without_place() => {
                    if other.trim() != body.trim() && notes.len() < LISTED_MAX {
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
            // Where another file begins, this one's section ends.
            let end = self.span(from).map_or(end, |_| self.end_of_source(from, end));
            (heading, start, self.text.get(from..end).unwrap_or_default())
        };
        found.into_iter().zip(ends).map(body).collect()
    }

    fn end_of_source(&self, from: usize, end: usize) -> usize {
        let own = self.span(from.saturating_sub(1)).map(|span| span.source.without_place());
        let after = self.spans.partition_point(|span| span.bytes.end <= from);
        let others = self.spans.iter().skip(after).take_while(|span| span.bytes.start < end);
        others
            .filter(|span| span.bytes.start >= from)
            .find(|span| Some(span.source.without_place()) != own)
            .map_or(end, |span| span.bytes.start)
    }
}

fn is_same_source(a: Option<&Source>, b: Option<&Source>) -> bool {
    // Comparing places would part every line of a template.
    match (a, b) {
        (Some(a), Some(b)) => std::ptr::eq(a, b) || a.without_place() == b.without_place(),
        _ => false,
    }
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

/// An instruction in few words: what is to be done, and whether it is to be done.
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
    fn of(line: &str) -> Option<Self> {
        const LINE_BYTES_MAX: usize = 160;
        if line.len() > LINE_BYTES_MAX || line.starts_with('#') {
            return None;
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
            return None;
        }
        Some(match words.as_slice() {
            ["use", means, "for", what @ ..] if is_wanted && !what.is_empty() => Self {
                what: format!("use … for {}", what.join(" ")),
                is_wanted,
                means: Some((*means).to_owned()),
            },
            words => Self { what: words.join(" "), is_wanted, means: None },
        })
    }
}

/// A line without what makes it an item of a list.
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

#[derive(Default)]
struct Statements {
    first: BTreeMap<String, (Statement, Source)>,
    notes: Vec<Note>,
}

impl Statements {
    fn take(&mut self, statement: Statement, source: Source) {
        // What forbids `use A for B` is told by the whole sentence.
        let key = statement.what.clone();
        let Some((known, there)) = self.first.get(&key) else {
            self.first.insert(key, (statement, source));
            return;
        };
        let is_opposite = known.is_wanted != statement.is_wanted;
        let is_other = known.means != statement.means && there.without_place() != source.without_place();
        if (!is_opposite && !is_other) || self.notes.len() == LISTED_MAX {
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
                means(known),
                means(&statement)
            )
        };
        let note = Note::new(Code::Contradiction, Severity::Warning, message);
        self.notes.push(note.with_hint("keep one of the two").with_source(source));
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
        let of = |line: &str| Statement::of(line).map(|statement| (statement.what, statement.is_wanted));
        assert_eq!(of("- **Always** use `tabs`."), Some(("use tabs".into(), true)));
        assert_eq!(of("2. Avoid using tabs"), Some(("use tabs".into(), false)));
        assert_eq!(of("Don't commit secrets!"), Some(("commit secrets".into(), false)));
        assert_eq!(of("- one"), None);
        assert_eq!(of("# Never say never"), None);
        assert_eq!(Statement::of("Use pnpm for packages").and_then(|found| found.means), Some("pnpm".into()));
    }

    #[test]
    fn lines_know_their_bytes() {
        let text = "a\r\n\nbc";
        assert_eq!(lines(text).filter_map(|line| text.get(line)).collect::<Vec<_>>(), ["a", "", "bc"]);
    }
}
