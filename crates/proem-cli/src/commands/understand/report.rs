//! `proem report`: the reasons why calls of agents missed the provider's cache, and their cost.

use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use anstyle::Style;
use clap::{Args, ValueEnum, ValueHint};
use jiff::Timestamp;
use proem::models::Models;
use proem::traffic::collect::{TrafficSource, find};
use proem::traffic::lines::LineDefaults;
use proem::traffic::report::ReportSource;
use proem::traffic::{Call, CallVerdict, ReportFilter, TrafficReport};
use proem::{Caller, Request};
use proem_api::{LinesError, calls_of_lines, calls_of_places};

use crate::arguments::Output;
use crate::failure::Failure;
use crate::input::reason;
use crate::notes::{print_status, print_warning};
use crate::table::{Cell, Column, Table, grouped, one_line};
use crate::terminal::{output_columns, print, print_json, print_raw, visible_line};
use crate::wrap::flow;

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();

/// Misses that the text shows.
const MISSES_SHOWN: usize = 10;

/// Notes that the text shows.
const NOTES_SHOWN: usize = 5;

/// Days that are read of the usual places.
const DAYS_OF_PLACES: i64 = 7;

/// Columns of the text: it is read in mails and tickets, too.
const COLUMNS_MAX: usize = 80;

/// Find out why calls missed the cache, and what that cost
///
/// Reads what agents have recorded, and prints tokens, money and the misses with their cause, place and owner. Without PATH
/// it looks where agents keep their recordings, and reads the last 7 days.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ReportArguments {
    /// Folder or file to read; `-` reads lines from standard input [default: the usual places of agents]
    #[arg(value_name = "PATH", value_hint = ValueHint::AnyPath)]
    path: Option<PathBuf>,
    /// Writer of the recordings [default: all without PATH, and `jsonl` for a file]
    #[arg(long, value_name = "SOURCE")]
    from: Option<ReportFrom>,
    /// Only calls of the last days or hours, such as `7d` or `12h` [default: 7d without PATH, else all]
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    since: Option<i64>,
    /// Only calls of this conversation
    #[arg(long, value_name = "ID")]
    conversation: Option<String>,
    /// Provider of calls that name none [default: detected]
    #[arg(long, value_name = "PROVIDER")]
    provider: Option<String>,
    /// Show expected misses, too: first calls after a pause, other models, compactions
    #[arg(long)]
    expected: bool,
    /// Exit with code 1 if alarming misses cost more than this
    #[arg(long, value_name = "USD")]
    max_miss_cost: Option<f64>,
    #[command(flatten)]
    output: Output<ReportFormat>,
}

const EXAMPLES: &str = "\
Examples:
  proem report                                    Read the agents of this machine
  proem report --from claude-code DIR             Read recordings of one agent
  proem report calls.jsonl                        Show the misses, most expensive first
  proem report calls.jsonl --format html > r.html Write a page
  proem report calls.jsonl --max-miss-cost 0.50   Fail in CI if misses cost more";

/// Sources of calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ReportFrom {
    /// Raw bodies, events and transcripts of Claude Code
    ClaudeCode,
    /// Traces and rollouts of Codex
    Codex,
    /// Logs of a plugin, exports and sessions of opencode
    Opencode,
    /// Logs of an extension and sessions of pi
    Pi,
    /// The database and bundles of claude-tap
    ClaudeTap,
    /// Lines `{"at": …, "conversation": …, "request": …, "response": …}`, and HAR files
    Jsonl,
}

impl ReportFrom {
    const fn source(self) -> TrafficSource {
        match self {
            Self::ClaudeCode => TrafficSource::ClaudeCode,
            Self::Codex => TrafficSource::Codex,
            Self::Opencode => TrafficSource::Opencode,
            Self::Pi => TrafficSource::Pi,
            Self::ClaudeTap => TrafficSource::ClaudeTap,
            Self::Jsonl => TrafficSource::Jsonl,
        }
    }
}

/// Formats of the report.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportFormat {
    /// Text for people
    #[default]
    Text,
    /// JSON for programs
    Json,
    /// One HTML page
    Html,
}

fn seconds(text: &str) -> Result<i64, String> {
    let wrong = || "write a number with `d` or `h`, such as `7d`".to_owned();
    let unit = match text.chars().last() {
        Some('d') => 86_400,
        Some('h') => 3_600,
        _ => return Err(wrong()),
    };
    let number: i64 = text.trim_end_matches(['d', 'h']).parse().map_err(|_| wrong())?;
    number.checked_mul(unit).filter(|seconds| *seconds >= 0).ok_or_else(wrong)
}

pub(crate) fn run(arguments: &ReportArguments) -> Result<(), Failure> {
    let models = Models::load(&Request::default(), Caller::User)?;
    let now = Timestamp::now().as_millisecond();
    let since = arguments.since.or_else(|| arguments.path.is_none().then_some(DAYS_OF_PLACES * 86_400));
    let filter = ReportFilter {
        since: since.map(|seconds| now.saturating_sub(seconds.saturating_mul(1_000))),
        conversation: arguments.conversation.clone(),
    };
    let mut sources = Vec::new();
    let calls = match (&arguments.path, arguments.from) {
        (Some(path), None | Some(ReportFrom::Jsonl)) if !path.is_dir() => {
            Lines::open(path, arguments)?.read(&mut sources)?
        }
        (Some(path), Some(from)) => collected(&place(from, path)?, filter.since, &mut sources),
        (Some(path), None) => {
            let message = format!("{} is a folder, and `--from` does not say who wrote it", path.display());
            let hint = "add `--from`, such as `--from claude-code`; without a path the usual places are read";
            return Err(Failure::Usage { message, hint: hint.to_owned() });
        }
        (None, from) => collected(&usual_places(from)?, filter.since, &mut sources),
    };
    let mut report = TrafficReport::new(calls, &models, &filter);
    report.sources = sources;
    match arguments.output.format() {
        ReportFormat::Json => print_json(&report)?,
        ReportFormat::Html => print_raw(&report.to_html(arguments.expected))?,
        ReportFormat::Text => print(&text(&report, arguments.expected))?,
    }
    let is_over = arguments.max_miss_cost.is_some_and(|most| report.totals.alarming_usd > most);
    if is_over { Err(Failure::Findings) } else { Ok(()) }
}

/// Returns a place that the user names.
fn place(from: ReportFrom, path: &Path) -> Result<Vec<(TrafficSource, PathBuf)>, Failure> {
    let refuse = |error: io::Error| Failure::Input {
        what: "folder of recordings",
        path: path.display().to_string(),
        why: reason(&error),
    };
    std::fs::metadata(path).map_err(refuse)?;
    Ok(vec![(from.source(), path.to_owned())])
}

/// Returns the places where agents keep their recordings on this machine.
fn usual_places(from: Option<ReportFrom>) -> Result<Vec<(TrafficSource, PathBuf)>, Failure> {
    let home = std::env::home_dir();
    let found = find(home.as_deref(), &|name| std::env::var(name).ok());
    let is_wanted = |source: TrafficSource| from.is_none_or(|from| from.source() == source);
    let places: Vec<_> = found.into_iter().filter(|found| is_wanted(found.source)).collect();
    for found in &places {
        let (agent, path) = (found.source.name(), visible_line(&found.path.display().to_string()));
        print_status(&format!("reading {} of {agent} in {path}", found.what));
    }
    if places.is_empty() {
        let message = "no recordings of agents were found in the usual places";
        let hint =
            "name a file or folder, with `--from` for the agent that wrote it; see docs/report-sources.md";
        return Err(Failure::Usage { message: message.to_owned(), hint: hint.to_owned() });
    }
    Ok(places.into_iter().map(|found| (found.source, found.path)).collect())
}

/// Reads the calls of some places. Notes about records that were skipped go with the first call.
fn collected(
    places: &[(TrafficSource, PathBuf)],
    since: Option<i64>,
    sources: &mut Vec<ReportSource>,
) -> Vec<Call> {
    let (mut calls, notes) = calls_of_places(places, since, sources);
    match calls.first_mut() {
        Some(first) => first.notes.extend(notes),
        None => notes.iter().for_each(|note| print_warning(&note.message)),
    }
    calls
}

/// A file of lines.
struct Lines {
    reader: Box<dyn BufRead>,
    defaults: LineDefaults,
}

impl Lines {
    fn open(path: &Path, arguments: &ReportArguments) -> Result<Self, Failure> {
        let shown = path.display().to_string();
        let refuse = |error: io::Error| Failure::Input {
            what: "file of calls",
            path: shown.clone(),
            why: reason(&error),
        };
        let reader: Box<dyn BufRead> = if path == Path::new("-") {
            Box::new(BufReader::new(io::stdin()))
        } else {
            Box::new(BufReader::new(proem::open_named(path).map_err(refuse)?))
        };
        let defaults = LineDefaults {
            path: shown.clone(),
            provider: arguments.provider.clone(),
            ..LineDefaults::default()
        };
        Ok(Self { reader, defaults })
    }

    /// Reads all calls, in the order of time where every call has one. A line that is not a call leaves a note on the next
    /// call, or a warning if there is none.
    fn read(mut self, sources: &mut Vec<ReportSource>) -> Result<Vec<Call>, Failure> {
        let path = self.defaults.path.clone();
        let (mut calls, skipped) =
            calls_of_lines(&mut self.reader, &self.defaults, sources).map_err(|why| {
                let why = match &why {
                    LinesError::Read(error) => reason(error),
                    LinesError::TooLong(_) => why.to_string(),
                };
                Failure::Input { what: "file of calls", path, why }
            })?;
        match calls.first_mut() {
            Some(first) => first.notes.extend(skipped),
            None => skipped.iter().for_each(|note| print_warning(&note.message)),
        }
        Ok(calls)
    }
}

fn text(report: &TrafficReport, with_expected: bool) -> String {
    let width = Some(output_columns().unwrap_or(COLUMNS_MAX).min(COLUMNS_MAX));
    let totals = &report.totals;
    let list = if totals.is_list_price { " list price" } else { "" };
    let tokens = |tokens: u64| grouped(usize::try_from(tokens).unwrap_or(usize::MAX));
    let mut shown = flow(
        &format!(
            "{BOLD}{} calls{BOLD:#}, ${:.2}{list}, {} of the input read from the cache; ${:.2} lost\n",
            totals.calls,
            totals.usd,
            totals.hit_share(),
            totals.lost()
        ),
        width,
        "",
    );
    shown.push_str(&flow(
        &format!(
            "{DIM}tokens: {} read, {} written, {} uncached, {} of answers{DIM:#}\n\n",
            tokens(totals.read),
            tokens(totals.written),
            tokens(totals.uncached),
            tokens(totals.output)
        ),
        width,
        "",
    ));
    shown.push_str(&days(report, width));
    let misses = report.misses(with_expected);
    if misses.is_empty() {
        shown.push_str("\nno miss needs attention\n");
    }
    for (index, call) in misses.iter().take(MISSES_SHOWN).enumerate() {
        shown.push_str(&miss(index + 1, call, width));
    }
    if misses.len() > MISSES_SHOWN {
        shown.push_str(&format!("\n{} more; `--format json` has all\n", misses.len() - MISSES_SHOWN));
    }
    shown.push_str(&sides(report, width));
    for note in report.notes.iter().take(NOTES_SHOWN) {
        shown.push_str(&flow(&format!("{DIM}note: {}{DIM:#}\n", visible_line(&note.message)), width, "  "));
    }
    if report.notes.len() > NOTES_SHOWN {
        shown.push_str(&format!("{DIM}{} more notes{DIM:#}\n", report.notes.len() - NOTES_SHOWN));
    }
    shown + &format!("{DIM}rules of {}, prices of {}{DIM:#}\n", report.rules_as_of, report.prices_as_of)
}

fn days(report: &TrafficReport, width: Option<usize>) -> String {
    let columns = [
        Column::word("day"),
        Column::number("calls"),
        Column::number("read"),
        Column::number("USD"),
        Column::number("lost"),
    ];
    let share = |read: u64, input: u64| match input {
        0 => "-".to_owned(),
        input => format!("{} %", u128::from(read) * 100 / u128::from(input)),
    };
    let rows = report.totals.by_day.iter().map(|(day, sum)| {
        let cells = [
            day.clone(),
            sum.calls.to_string(),
            share(sum.read, sum.input),
            format!("{:.4}", sum.usd),
            format!("{:.4}", sum.lost_usd),
        ];
        cells.into_iter().map(Cell::plain).collect()
    });
    Table::new(columns).with(rows).print(width)
}

fn miss(number: usize, call: &CallVerdict, width: Option<usize>) -> String {
    let usd = call.lost_usd.map_or_else(|| "no price".to_owned(), |usd| format!("${usd:.4}"));
    let at = call.at.as_deref().unwrap_or("no time");
    let head = format!(
        "\n{number}. {BOLD}{}{BOLD:#} {usd}, {} tokens; {at}, {}\n",
        call.verdict.word(),
        grouped(usize::try_from(call.lost_tokens).unwrap_or(usize::MAX)),
        visible_line(&one_line(&call.conversation, 40))
    );
    let mut shown = flow(&head, width, "   ");
    let mut line = |text: String| shown.push_str(&flow(&format!("   {text}\n"), width, "     "));
    let owner = call.owner_words();
    line(format!(
        "{}{}{}",
        visible_line(&call.why),
        if owner.is_empty() { "" } else { "; by " },
        visible_line(&owner)
    ));
    if let Some(place) = &call.place {
        let part = place.part_after.as_deref().or(place.part_before.as_deref()).unwrap_or_default();
        let numbers = place.byte.zip(place.line).zip(place.column);
        let numbers = numbers
            .map_or_else(String::new, |((byte, row), column)| format!(", byte {byte}, {row}:{column}"));
        line(format!("at {}{numbers}", visible_line(part)));
        for (sign, text) in [("-", &place.before), ("+", &place.after)] {
            if let Some(text) = text {
                line(format!("{DIM}{sign} {}{DIM:#}", visible_line(text)));
            }
        }
    }
    if let Some(told) = &call.provider_reason {
        let opinion = if call.disagrees { ", which disagrees" } else { "" };
        line(format!("the provider says {}{opinion}", visible_line(&told.reason)));
    }
    if let Some(advice) = &call.advice {
        line(visible_line(advice));
    }
    shown
}

fn sides(report: &TrafficReport, width: Option<usize>) -> String {
    let lost = &report.totals.lost_usd;
    let sides = [
        ("own files and tools", lost.ours),
        ("user", lost.user),
        ("agent", lost.agent),
        ("provider", lost.provider),
        ("unknown", lost.unknown),
    ];
    let named: Vec<String> =
        sides.iter().filter(|(_, usd)| *usd > 0.0).map(|(side, usd)| format!("{side} ${usd:.4}")).collect();
    if named.is_empty() {
        "\n".to_owned()
    } else {
        flow(&format!("\nlost by {}\n", named.join(", ")), width, "")
    }
}
