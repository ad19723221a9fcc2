//! The prompt with the source of each line in a margin. The text itself is unchanged.

use anstyle::Style;
use proem::Build;
use proem_core::carrier::Carrier;
use proem_core::rendered::Span;
use proem_core::stability::Stability;

use crate::colour;
use crate::label::{first_line, name, shortened, with_line};
use crate::paths::Paths;
use crate::terminal::{Reader, visible};
use crate::wrap::columns_of;

/// The width of the margin in characters, without the bar.
const MARGIN: usize = 28;

/// Fewest columns of text behind the margin.
const TEXT_MIN: usize = 20;

const DIM: Style = Style::new().dimmed();

/// Formats the text of every carrier, with a margin before each line.
///
/// With a single system carrier, the text after the bars is the prompt, byte for byte. Otherwise each carrier has a
/// heading with its size, because a last line without a line break gets one.
///
/// On a terminal of `width` columns a long line continues after the bar of an empty margin, and the page ends with a line
/// break.
pub(crate) fn annotated(build: &Build, reader: Reader, paths: &Paths, width: Option<usize>) -> String {
    let whole = build.whole();
    let carriers: Vec<(Carrier, &str, &[Span])> =
        whole.carriers().map(|(carrier, text)| (carrier, text, whole.spans(carrier))).collect();
    let mut page = Page { reader, paths, output: String::new(), last: None };
    match carriers.as_slice() {
        [(Carrier::System, text, spans)] => page.add(text, spans),
        all => {
            for (carrier, text, spans) in all {
                page.head(*carrier, text.len());
                page.add(text, spans);
            }
        }
    }
    let is_open = !page.output.is_empty() && !page.output.ends_with('\n');
    if reader == Reader::Person && is_open {
        page.output.push('\n');
    }
    match width.filter(|_| reader == Reader::Person) {
        Some(width) => page.output.split_inclusive('\n').map(|line| wrapped(line, width)).collect(),
        None => page.output,
    }
}

/// A line with its margin, in as many lines of a terminal as it takes, broken behind a space where there is one. The bar
/// stands before each of them, so that no text stands where sources do.
fn wrapped(line: &str, width: usize) -> String {
    const TEXT: usize = MARGIN + 3;
    let begin = format!("\n{:MARGIN$} {DIM}│{DIM:#} ", "");
    let room = width.max(TEXT + TEXT_MIN);
    let (mut lines, mut colour, mut escape) = (String::new(), String::new(), None);
    // The columns that are taken, and the last place to break at: its byte, its column and its colour.
    let (mut taken, mut place): (usize, Option<(usize, usize, String)>) = (0, None);
    for character in line.chars() {
        if character == '\u{1b}' {
            escape = Some(lines.len());
        }
        let columns = if escape.is_some() || character == '\n' { 0 } else { columns_of(character) };
        if taken + columns > room {
            let (byte, column, own) = place.take().unwrap_or_else(|| (lines.len(), taken, colour.clone()));
            lines.insert_str(byte, &format!("{begin}{own}"));
            taken = TEXT + taken - column;
        }
        taken += columns;
        lines.push(character);
        if escape.is_none() && character == ' ' && taken > TEXT {
            place = Some((lines.len(), taken, colour.clone()));
        }
        if let Some(start) = escape.take_if(|_| character == 'm') {
            lines.get(start..).unwrap_or_default().clone_into(&mut colour);
        }
    }
    lines
}

/// The lines so far.
struct Page<'p> {
    reader: Reader,
    paths: &'p Paths,
    output: String,
    /// The source at the start of the previous line, and the line in that source.
    last: Option<(String, Option<usize>)>,
}

impl Page<'_> {
    fn head(&mut self, carrier: Carrier, bytes: usize) {
        if !self.output.is_empty() && !self.output.ends_with('\n') {
            self.output.push('\n');
        }
        let unit = if bytes == 1 { "byte" } else { "bytes" };
        self.push(&format!("{:─<MARGIN$}─┬─", format!("{carrier}, {bytes} {unit} ")), DIM);
        self.output.push('\n');
        self.last = None;
    }

    fn add(&mut self, text: &str, spans: &[Span]) {
        let mut is_line_start = true;
        for span in spans {
            let own = text.get(span.bytes.clone()).unwrap_or_default();
            for (breaks, piece) in own.split_inclusive('\n').enumerate() {
                let words = piece.strip_suffix('\n').unwrap_or(piece);
                if is_line_start {
                    self.begin_line(span, breaks, words);
                }
                if !words.is_empty() {
                    self.push_words(words, span);
                }
                is_line_start = words.len() < piece.len();
                if is_line_start {
                    self.output.push('\n');
                }
            }
        }
    }

    /// Writes the margin. It is blank if the source continues with its next line.
    fn begin_line(&mut self, span: &Span, breaks: usize, words: &str) {
        let name = name(&span.source, self.paths);
        let line = first_line(&span.source).map(|first| first + breaks);
        let goes_on = self.last.as_ref().is_some_and(|(last_name, last_line)| {
            *last_name == name && last_line.map(|last_line| last_line + 1) == line
        });
        let label = if goes_on { String::new() } else { shortened(&with_line(&name, line), MARGIN) };
        // No trailing space on an empty line.
        let gap = if words.is_empty() { "" } else { " " };
        self.push(&format!("{label:MARGIN$} │{gap}"), DIM);
        self.last = Some((name, line));
    }

    fn push_words(&mut self, words: &str, span: &Span) {
        match self.reader {
            Reader::Program => self.output.push_str(words),
            Reader::Person => self.push(&visible(words), style(span)),
        }
    }

    fn push(&mut self, text: &str, style: Style) {
        match self.reader {
            Reader::Program => self.output.push_str(text),
            Reader::Person => self.output.push_str(&format!("{style}{text}{style:#}")),
        }
    }
}

/// Returns no colour for the text of templates, and the colour of its stability for text that is inserted or that changes
/// within a session.
fn style(span: &Span) -> Style {
    if span.template.is_none() && span.stability <= Stability::Session {
        Style::new()
    } else {
        colour::style(span.stability)
    }
}
