//! `proem explain`: the finished prompt as a tree, with the source of every byte.

use std::collections::HashMap;

use anstyle::{AnsiColor, Style};
use proem::deliver::Options;
use proem::models::Models;
use proem::stats::{SectionStats, Stats, stats};
use proem::wire::BuildShape;
use proem::{Build, Caller};
use proem_core::carrier::Carrier;
use proem_core::considered::{Considered, Outcome};
use proem_core::frozen::{Body, Frozen, Placed};
use proem_core::note::Note;
use proem_core::rendered::Span;
use proem_core::source::Source;
use proem_core::stability::Stability;

use super::explain_page::page;
use super::request::prompt_request;
use crate::arguments::{Explain, PageFormat};
use crate::colour;
use crate::failure::Failure;
use crate::label::{first_line, name, with_line};
use crate::notes;
use crate::table::{Cell, layout};
use crate::terminal::{print, print_json, print_raw, visible_line};

const DIM: Style = Style::new().dimmed();

type Row = Vec<Cell>;

pub(super) fn run(arguments: &Explain) -> Result<(), Failure> {
    if arguments.files && arguments.format != PageFormat::Text {
        return Err(Failure::Flags {
            flag: "--files",
            other: if arguments.format == PageFormat::Json { "--format json" } else { "--format html" },
            hint: "leave `--files` out: `considered` in the JSON is the list of files",
        });
    }
    let request = prompt_request(&arguments.prompt)?;
    let build = proem::build(&request, Caller::User)?;
    let frozen = &build.frozen;
    match arguments.format {
        PageFormat::Json => print_json(&BuildShape::of(&build).with_request(&request)),
        PageFormat::Html => print_raw(&page(&build, &request)?),
        PageFormat::Text if arguments.files => print(&files(frozen.considered())),
        PageFormat::Text => {
            let models = Models::load(&request, Caller::User)?;
            let stats = stats(&build, &request, None, &models, &Options::default())?.0;
            let parts = [
                header(frozen, &stats),
                tree(&build, &stats),
                files(frozen.considered()),
                said(frozen.notes()),
            ];
            print(&parts.join("\n"))
        }
    }
}

fn header(frozen: &Frozen, stats: &Stats) -> String {
    let row = |title: &str, value: String| vec![Cell::new(title, DIM), Cell::plain(value)];
    let bytes = frozen.prefix().len();
    let unit = if bytes == 1 { "byte" } else { "bytes" };
    layout(&[
        row("profile", visible_line(frozen.profile())),
        row("digest", frozen.digest().hex()),
        row("prefix", format!("{bytes} {unit}")),
        row("tokens", format!("{} with the tools", stats.prefix_tokens)),
        row("counted", visible_line(&stats.counted)),
    ])
}

/// Carriers, their sections, and the runs of bytes in each.
fn tree(build: &Build, stats: &Stats) -> String {
    let mut parts = Vec::new();
    if build.whole.carriers().next().is_none() {
        parts.push("The prompt is empty: no section has text.\n".to_owned());
    }
    let rows: Vec<Row> =
        Carrier::ALL.into_iter().flat_map(|carrier| branch(&build.whole, carrier, stats)).collect();
    if !rows.is_empty() {
        parts.push(titled(
            &["bytes", "range", "tokens", "cached", "stability", "source", "inserted by"],
            rows,
        ));
    }
    parts.join("\n")
}

/// A carrier and everything below it; nothing if nothing rides on it.
fn branch(body: &Body, carrier: Carrier, stats: &Stats) -> Vec<Row> {
    let mut rest = body.spans(carrier);
    if rest.is_empty() {
        return Vec::new();
    }
    let bytes = body.text(carrier).map_or(0, str::len);
    let word = Cell::new(carrier.word(), Style::new().bold());
    let tokens = stats.carriers.iter().find(|one| one.carrier == carrier.word()).map_or(0, |one| one.tokens);
    let empty = || Cell::plain("");
    let mut rows = vec![vec![number(bytes), empty(), number(tokens), empty(), empty(), word]];
    let sections: Vec<&Placed> =
        body.sections().iter().filter(|section| section.carrier == carrier).collect();
    let own = stats.sections.iter().rev().filter(|one| one.carrier == carrier.word());
    // Of two sections of one name, the first one is meant.
    let counted: HashMap<&str, &SectionStats> = own.map(|one| (one.id.as_str(), one)).collect();
    for (index, section) in sections.iter().enumerate() {
        let next = sections.get(index + 1).copied();
        let count = rest.iter().take_while(|span| is_part(span, section, next)).count();
        let (own, others) = rest.split_at(count);
        rows.push(section_row(section, counted.get(section.id.as_str()).copied()));
        rows.extend(own.chunk_by(is_one_run).map(run_row));
        rest = others;
    }
    // Without any section there are only values that are empty this time.
    rows.extend(rest.chunk_by(is_one_run).map(run_row));
    rows
}

/// Tells whether a span lies in `section`. One without bytes may lie between two: its template decides.
fn is_part(span: &Span, section: &Placed, next: Option<&Placed>) -> bool {
    if !span.bytes.is_empty() || span.bytes.start != section.bytes.end {
        return span.bytes.end <= section.bytes.end;
    }
    let template = span.template.as_ref().map(Source::without_place);
    let is_of = |section: &Placed| template.as_ref() == Some(&section.source);
    is_of(section) || !next.is_some_and(is_of)
}

/// Tells whether a reader would see two neighbours as one piece.
fn is_one_run(span: &Span, next: &Span) -> bool {
    span.stability == next.stability
        && span.template == next.template
        && span.included_from == next.included_from
        && span.source.is_same(&next.source)
}

fn section_row(section: &Placed, counted: Option<&SectionStats>) -> Row {
    let Placed { id, bytes, stability, source, .. } = section;
    let text = format!("  {} from {}", visible_line(id), visible_line(&source.to_string()));
    vec![
        number(bytes.len()),
        Cell::plain(format!("{}..{}", bytes.start, bytes.end)),
        counted.map_or_else(|| Cell::plain(""), |counted| number(counted.tokens)),
        Cell::plain(counted.map_or("", |counted| counted.cached.words())),
        word(*stability),
        Cell::plain(text),
    ]
}

fn run_row(spans: &[Span]) -> Row {
    let (first, last) = (&spans[0], &spans[spans.len() - 1]);
    let (start, end) = (first.bytes.start, last.bytes.end);
    let label = with_line(&name(&first.source), first_line(&first.source));
    vec![
        number(end - start),
        Cell::plain(format!("{start}..{end}")),
        Cell::plain(""),
        Cell::plain(""),
        word(first.stability),
        Cell::plain(format!("    {label}")),
        Cell::new(inserted_by(first), DIM),
    ]
}

/// The place in the template; for a file also the variable, which its name does not show. Then the
/// includes on the way to that template.
fn inserted_by(span: &Span) -> String {
    let place = span.template.as_ref().map(|template| match &span.source {
        Source::Variable { path: Some(_), .. } => format!("{} at {template}", span.source),
        _ => template.to_string(),
    });
    let includes = span.included_from.iter().map(|from| format!("included from {from}"));
    visible_line(&place.into_iter().chain(includes).collect::<Vec<_>>().join(", "))
}

fn titled(titles: &[&str], rows: impl IntoIterator<Item = Row>) -> String {
    let titles: Row = titles.iter().map(|title| Cell::new(*title, DIM)).collect();
    layout(&core::iter::once(titles).chain(rows).collect::<Vec<_>>())
}

fn number(value: usize) -> Cell {
    Cell::plain(value.to_string()).right()
}

fn word(stability: Stability) -> Cell {
    Cell::new(stability.word(), colour::of(stability))
}

fn files(considered: &[Considered]) -> String {
    if considered.is_empty() {
        return "No file was looked at.\n".to_owned();
    }
    titled(&["outcome", "file", "why"], considered.iter().map(file_row))
}

fn file_row(file: &Considered) -> Row {
    let style = match file.outcome {
        Outcome::Used => AnsiColor::Green.on_default(),
        Outcome::Missing => DIM,
        _ => AnsiColor::Yellow.on_default(),
    };
    let why = visible_line(file.why.as_deref().unwrap_or_default());
    vec![Cell::new(file.outcome.word(), style), Cell::plain(visible_line(&file.path)), Cell::new(why, DIM)]
}

fn said(notes: &[Note]) -> String {
    if notes.is_empty() {
        "There are no notes.\n".to_owned()
    } else {
        notes.iter().map(notes::shown).collect()
    }
}
