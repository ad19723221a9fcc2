//! `proem explain --all`: shows every run of bytes with its source.

use std::collections::HashMap;

use anstyle::Style;
use proem::Build;
use proem::stats::{SectionStats, Stats};
use proem_core::carrier::Carrier;
use proem_core::frozen::{Body, PlacedSection};
use proem_core::rendered::Span;
use proem_core::source::Source;
use proem_core::stability::Stability;

use crate::colour;
use crate::label::{first_line, with_line};
use crate::paths::Paths;
use crate::table::{Cell, Column, Table};
use crate::terminal::visible_line;

const DIM: Style = Style::new().dimmed();

type Row = Vec<Cell>;

/// Formats carriers, their sections, and the runs of bytes in each.
pub(crate) fn tree(build: &Build, stats: &Stats, paths: &Paths, width: Option<usize>) -> String {
    let mut parts = Vec::new();
    if build.whole().carriers().next().is_none() {
        parts.push("The prompt is empty: no section has text.\n".to_owned());
    }
    let rows: Vec<Row> =
        Carrier::ALL.into_iter().flat_map(|carrier| branch(build.whole(), carrier, stats, paths)).collect();
    if !rows.is_empty() {
        let columns = [
            Column::number("bytes"),
            Column::word("range").dispensable(2),
            Column::number("tokens"),
            Column::word("cached"),
            Column::word("stability"),
            Column::text("source").least(30),
            Column::text("inserted by").least(26).dispensable(1),
        ];
        parts.push(Table::new(columns).with(rows).print(width));
    }
    parts.join("\n")
}

/// Formats a carrier with its sections; empty if it has no text.
fn branch(body: &Body, carrier: Carrier, stats: &Stats, paths: &Paths) -> Vec<Row> {
    let mut rest = body.spans(carrier);
    if rest.is_empty() {
        return Vec::new();
    }
    let text = body.text(carrier).unwrap_or_default();
    let bytes = text.len();
    let word = Cell::new(carrier.word(), Style::new().bold());
    let tokens = stats.carriers.iter().find(|one| one.carrier == carrier.word()).map_or(0, |one| one.tokens);
    let empty = || Cell::plain("");
    let mut rows = vec![vec![number(bytes), empty(), number(tokens), empty(), empty(), word]];
    let sections: Vec<&PlacedSection> =
        body.sections().iter().filter(|section| section.carrier == carrier).collect();
    let own = stats.sections.iter().rev().filter(|one| one.carrier == carrier.word());
    // Of two sections with the same name, the first one counts.
    let counted: HashMap<&str, &SectionStats> = own.map(|one| (one.id.as_str(), one)).collect();
    for (index, section) in sections.iter().enumerate() {
        let next = sections.get(index + 1).copied();
        let count = rest.iter().take_while(|span| is_part(span, section, next)).count();
        let (own, others) = rest.split_at(count);
        rows.push(section_row(section, counted.get(section.id.as_str()).copied(), paths));
        rows.extend(
            own.chunk_by(|span, next| is_one_run(text, span, next)).map(|spans| run_row(spans, paths)),
        );
        rest = others;
    }
    // Without a section, only empty values are left.
    rows.extend(rest.chunk_by(|span, next| is_one_run(text, span, next)).map(|spans| run_row(spans, paths)));
    rows
}

/// Returns `true` if a span is in `section`. For an empty span between two sections, its template decides.
fn is_part(span: &Span, section: &PlacedSection, next: Option<&PlacedSection>) -> bool {
    if !span.bytes.is_empty() || span.bytes.start != section.bytes.end {
        return span.bytes.end <= section.bytes.end;
    }
    let template = span.template.as_ref().map(Source::without_place);
    let is_of = |section: &PlacedSection| template.as_ref() == Some(&section.source);
    is_of(section) || !next.is_some_and(is_of)
}

/// Returns `true` if two adjacent spans have the same source, template and stability, and the second continues on the line
/// of the source where the first ends.
fn is_one_run(text: &str, span: &Span, next: &Span) -> bool {
    let own = text.get(span.bytes.clone()).unwrap_or_default();
    let goes_on = match (span.source.place(), next.source.place()) {
        (Some(place), Some(next)) => next.line == place.line + own.matches('\n').count(),
        _ => true,
    };
    goes_on
        && span.stability == next.stability
        && span.template == next.template
        && span.included_from == next.included_from
        && span.source.is_same(&next.source)
}

fn section_row(section: &PlacedSection, counted: Option<&SectionStats>, paths: &Paths) -> Row {
    let PlacedSection { id, bytes, stability, source, .. } = section;
    let text = format!("  {} from {}", visible_line(id), paths.source(source));
    vec![
        number(bytes.len()),
        Cell::plain(format!("{}..{}", bytes.start, bytes.end)),
        counted.map_or_else(|| Cell::plain(""), |counted| number(counted.tokens)),
        Cell::plain(counted.map_or("", |counted| counted.cached.words())),
        word(*stability),
        Cell::plain(text),
    ]
}

fn run_row(spans: &[Span], paths: &Paths) -> Row {
    let (first, last) = (&spans[0], &spans[spans.len() - 1]);
    let (start, end) = (first.bytes.start, last.bytes.end);
    // A variable with the content of a file has the name of that file.
    let name = match &first.source {
        Source::Variable { path: Some(path), .. } => paths.shown(path),
        source => paths.source(&source.without_place()),
    };
    let label = with_line(&name, first_line(&first.source));
    vec![
        number(end - start),
        Cell::plain(format!("{start}..{end}")),
        Cell::plain(""),
        Cell::plain(""),
        word(first.stability),
        Cell::plain(format!("    {label}")),
        Cell::new(inserted_by(first, paths), DIM),
    ]
}

/// Formats the place in the template, preceded by the variable for the content of a file, and the includes that lead to
/// that template.
fn inserted_by(span: &Span, paths: &Paths) -> String {
    let place = span.template.as_ref().map(|template| match &span.source {
        Source::Variable { path: Some(_), .. } => {
            format!("{} at {}", visible_line(&span.source.to_string()), paths.source(template))
        }
        _ => paths.source(template),
    });
    let includes = span.included_from.iter().map(|from| format!("included from {}", paths.source(from)));
    place.into_iter().chain(includes).collect::<Vec<_>>().join(", ")
}

fn number(value: usize) -> Cell {
    Cell::plain(value.to_string()).right()
}

fn word(stability: Stability) -> Cell {
    Cell::new(stability.word(), colour::style(stability))
}
