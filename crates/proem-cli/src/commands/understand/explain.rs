//! `proem explain`: shows the sections and files of a prompt as a table, and with `--all` the source of every byte.

use std::collections::BTreeMap;

use anstyle::{AnsiColor, Style};
use clap::{Args, ValueEnum};
use proem::build_shape::BuildShape;
use proem::deliver::DeliverOptions;
use proem::models::{Model, Models};
use proem::stats::{CacheUse, Stats, stats};
use proem::tokens::Tokenizer;
use proem::{Build, Caller};
use proem_core::carrier::Carrier;
use proem_core::file_outcome::{FileOutcome, Outcome};
use proem_core::frozen::{Frozen, PlacedSection};
use proem_core::note::{Note, Severity};
use proem_core::rendered::Span;
use proem_core::source::Source;

use super::explain_all::tree;
use super::explain_page::page;
use crate::arguments::request::prompt_request;
use crate::arguments::{Output, PromptFlags};
use crate::colour;
use crate::commands::prompt::stats::turns;
use crate::failure::Failure;
use crate::notes;
use crate::paths::Paths;
use crate::table::{Cell, Column, Table, grouped};
use crate::terminal::{output_columns, print, print_json, print_raw, visible_line};
use crate::wrap::flow;

const DIM: Style = Style::new().dimmed();

type Row = Vec<Cell>;

/// Show the sections and files of the prompt, with tokens and costs
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ExplainArguments {
    #[command(flatten)]
    prompt: PromptFlags,
    #[command(flatten)]
    output: Output<PageFormat>,
    /// Show the source of every byte, every file considered, and all notes
    #[arg(long, conflicts_with = "files")]
    all: bool,
    /// Show only the files considered
    #[arg(long)]
    files: bool,
}

const EXAMPLES: &str = "\
Examples:
  proem explain                   Show sections and files of the prompt
  proem explain --all             Show the source of every byte
  proem explain --files           Show the files considered, and why not used
  proem explain --format html     Write a page for a browser

`proem build --annotate` prints the text itself, with the source of each line.";

/// Output formats of `proem explain`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum PageFormat {
    /// Tables for a terminal
    Text,
    /// JSON for programs
    Json,
    /// A page for a browser, without scripts
    Html,
}

pub(crate) fn run(arguments: &ExplainArguments) -> Result<(), Failure> {
    let format = arguments.output.format();
    if arguments.files && format != PageFormat::Text {
        return Err(Failure::Flags {
            flag: "--files",
            other: if format == PageFormat::Json { "--format json" } else { "--format html" },
            hint: "leave `--files` out: `considered` in the JSON is the list of files",
        });
    }
    let request = prompt_request(&arguments.prompt)?;
    let build = proem::build(&request, Caller::User)?;
    let frozen = build.frozen();
    let (paths, width) = (Paths::from_request(&request)?, output_columns());
    match format {
        PageFormat::Json => print_json(&BuildShape::new(&build).with_request(&request)),
        PageFormat::Html => print_raw(&page(&build, &request)?),
        PageFormat::Text if arguments.files => print(&files(frozen.considered(), &paths, width)),
        PageFormat::Text => {
            let models = Models::load(&request, Caller::User)?;
            let stats = stats(&build, &request, None, &models, &DeliverOptions::default())?.0;
            let parts = if arguments.all {
                vec![
                    header(frozen, &stats, width),
                    tree(&build, &stats, &paths, width),
                    files(frozen.considered(), &paths, width),
                    note_lines(frozen.notes(), width),
                ]
            } else {
                let model = request.model.as_deref().and_then(|name| models.find(name));
                let summary = Summary { build: &build, stats: &stats, model, paths: &paths, width };
                vec![
                    header(frozen, &stats, width),
                    summary.sections() + &turns(&stats, width),
                    summary.others(),
                    summary.warnings(),
                ]
            };
            print(&parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n"))
        }
    }
}

fn header(frozen: &Frozen, stats: &Stats, width: Option<usize>) -> String {
    let row = |title: &str, value: String| vec![Cell::new(title, DIM), Cell::plain(value)];
    let rows = [
        row("profile", visible_line(frozen.profile())),
        row("digest", frozen.digest().hex()),
        row("prefix", prefix(frozen)),
        row("tokens", format!("{} with the tools", stats.prefix_tokens)),
        row("counted", visible_line(&stats.counted)),
    ];
    Table::new([Column::word("title"), Column::text("value")]).untitled().with(rows).print(width)
}

/// Formats the size of the prefix, and of the frozen text on other carriers.
fn prefix(frozen: &Frozen) -> String {
    let sized = |bytes: usize| format!("{bytes} {}", if bytes == 1 { "byte" } else { "bytes" });
    let own = sized(frozen.prefix().len());
    let others: Vec<String> = [Carrier::Developer, Carrier::FirstUser]
        .into_iter()
        .filter_map(|carrier| Some((carrier, frozen.body().text(carrier).filter(|text| !text.is_empty())?)))
        .map(|(carrier, text)| format!("{} on {carrier}", sized(text.len())))
        .collect();
    if others.is_empty() { own } else { format!("{own} on system, {}", others.join(", ")) }
}

/// The default view: sections and files.
struct Summary<'s> {
    build: &'s Build,
    stats: &'s Stats,
    model: Option<&'s Model>,
    paths: &'s Paths,
    width: Option<usize>,
}

impl Summary<'_> {
    fn sections(&self) -> String {
        let whole = self.build.whole();
        if whole.carriers().next().is_none() {
            return "The prompt is empty: no section has text.\n".to_owned();
        }
        let mut rows: Vec<Row> = Vec::new();
        // Sections are counted in the order in which they are placed.
        let mut counted = self.stats.sections.iter();
        let mut by_carrier: BTreeMap<Carrier, Vec<Row>> = BTreeMap::new();
        for section in whole.sections() {
            let Some(stats) = counted.next() else { break };
            let cost = self.cost(stats.tokens, stats.cached);
            let own = vec![
                Cell::plain(format!("  {}", visible_line(&section.id))),
                Cell::plain(grouped(stats.tokens)).right(),
                Cell::plain(stats.cached.words()),
                Cell::new(section.stability.word(), colour::style(section.stability)),
                Cell::plain(cost).right(),
                Cell::new(self.paths.source(&section.source), DIM),
            ];
            let rows = by_carrier.entry(section.carrier).or_default();
            rows.push(own);
            rows.extend(self.files_of(section));
        }
        for carrier in &self.stats.carriers {
            let word = Cell::new(carrier.carrier, Style::new().bold());
            rows.push(vec![word, Cell::plain(grouped(carrier.tokens)).right()]);
            let known = Carrier::ALL.into_iter().find(|one| one.word() == carrier.carrier);
            rows.extend(known.and_then(|known| by_carrier.remove(&known)).unwrap_or_default());
        }
        let has_prices = self.model.is_some_and(|model| model.input.is_some());
        let mut columns = vec![
            Column::text("section").least(28),
            Column::number("tokens"),
            Column::word("cached"),
            Column::word("stability"),
            Column::number("USD a call"),
            Column::text("from").least(28).dispensable(1),
        ];
        if !has_prices {
            columns.remove(4);
            rows.iter_mut().filter(|row| row.len() > 4).for_each(|row| drop(row.remove(4)));
        }
        Table::new(columns).with(rows).print(self.width)
    }

    /// Returns the price of tokens in a call with a warm cache.
    fn cost(&self, tokens: usize, cached: CacheUse) -> String {
        let price = self.model.and_then(|model| match cached {
            CacheUse::Yes => model.cache_read.or(model.input),
            CacheUse::AsHistory | CacheUse::No | CacheUse::TooShort => model.input,
        });
        let tokens = u32::try_from(tokens).map_or(f64::MAX, f64::from);
        price.map_or_else(String::new, |price| format!("{:.6}", tokens * price / 1e6))
    }

    /// Returns the files of a section with their tokens; none if the section is a single file.
    fn files_of(&self, section: &PlacedSection) -> Vec<Row> {
        let text = self.build.whole().text(section.carrier).unwrap_or_default();
        let mut files: Vec<(&str, String, &Span)> = Vec::new();
        for span in self.build.whole().spans(section.carrier) {
            let is_inside = span.bytes.start >= section.bytes.start && span.bytes.end <= section.bytes.end;
            let Some(path) = file_of(&span.source).filter(|_| is_inside) else { continue };
            let own = text.get(span.bytes.clone()).unwrap_or_default();
            match files.iter_mut().find(|(known, ..)| *known == path) {
                Some((_, text, _)) => text.push_str(own),
                None => files.push((path, own.to_owned(), span)),
            }
        }
        if let [(path, ..)] = files.as_slice()
            && file_of(&section.source) == Some(path)
        {
            return Vec::new();
        }
        let tokenizer = self.model.map_or(Tokenizer::Estimate, Model::tokenizer);
        let row = |(path, text, span): &(&str, String, &Span)| {
            vec![
                Cell::plain(format!("    {}", self.paths.shown(path))),
                Cell::new(grouped(tokenizer.count(text)), DIM).right(),
                Cell::plain(""),
                Cell::new(span.stability.word(), colour::style(span.stability)),
                Cell::plain(""),
                Cell::plain(""),
            ]
        };
        files.iter().map(row).collect()
    }

    /// Formats the files that exist but are not used, and the number of files that do not exist.
    fn others(&self) -> String {
        let considered = self.build.frozen().considered();
        let is_other = |file: &&FileOutcome| !matches!(file.outcome, Outcome::Used | Outcome::Missing);
        let others: Vec<Row> =
            considered.iter().filter(is_other).map(|file| file_row(file, self.paths)).collect();
        let missing = considered.iter().filter(|file| file.outcome == Outcome::Missing).count();
        let mut text = String::new();
        if !others.is_empty() {
            text.push_str(&Table::new(file_columns()).with(others).print(self.width));
        }
        if missing > 0 {
            let line = if missing == 1 {
                "1 more file would be read if it existed: `--files` lists it".to_owned()
            } else {
                format!("{missing} more files would be read if they existed: `--files` lists them")
            };
            let line = format!("{DIM}{line}{DIM:#}\n");
            text.push_str(&flow(&line, self.width, ""));
        }
        text
    }

    fn warnings(&self) -> String {
        let all = self.build.notes();
        let warnings = all.iter().filter(|note| note.severity > Severity::Info);
        let mut text: String = warnings.map(|note| flow(&notes::shown(note), self.width, "  ")).collect();
        let less = all.iter().filter(|note| note.severity == Severity::Info).count();
        let notes = match less {
            0 => String::new(),
            1 => " and 1 more note".to_owned(),
            some => format!(" and {some} more notes"),
        };
        let line = format!(
            "{DIM}`--all` shows the source of every byte{notes}; `proem build --annotate` shows the text with the \
             source of each line{DIM:#}\n"
        );
        text.push_str(&flow(&line, self.width, ""));
        text
    }
}

/// Returns the file that a text comes from.
fn file_of(source: &Source) -> Option<&str> {
    match source {
        Source::File { path, .. } | Source::Pack { path, .. } => Some(path),
        Source::Variable { path, .. } => path.as_deref(),
        _ => None,
    }
}

fn files(considered: &[FileOutcome], paths: &Paths, width: Option<usize>) -> String {
    if considered.is_empty() {
        return "No file was looked at.\n".to_owned();
    }
    let rows = considered.iter().map(|file| file_row(file, paths));
    Table::new(file_columns()).with(rows).print(width)
}

fn file_columns() -> [Column; 3] {
    [Column::word("outcome"), Column::text("file").least(30), Column::text("why").least(24)]
}

fn file_row(file: &FileOutcome, paths: &Paths) -> Row {
    let style = match file.outcome {
        Outcome::Used => AnsiColor::Green.on_default(),
        Outcome::Missing => DIM,
        _ => AnsiColor::Yellow.on_default(),
    };
    let why = paths.in_text(file.why.as_deref().unwrap_or_default());
    vec![Cell::new(file.outcome.word(), style), Cell::plain(paths.shown(&file.path)), Cell::new(why, DIM)]
}

fn note_lines(notes: &[Note], width: Option<usize>) -> String {
    if notes.is_empty() {
        "There are no notes.\n".to_owned()
    } else {
        notes.iter().map(|note| flow(&notes::shown(note), width, "  ")).collect()
    }
}
