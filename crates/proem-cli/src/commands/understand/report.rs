//! `proem report`: the reasons why calls of agents missed the provider's cache, and their cost.

use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use anstyle::Style;
use clap::{Args, ValueEnum, ValueHint};
use jiff::Timestamp;
use proem::conversation::RecordedCall;
use proem::models::Models;
use proem::store::traffic::CallQuery;
use proem::traffic::collect::{ReadOptions, ReadProgress, TrafficSource, find, read};
use proem::traffic::lines::{LineDefaults, call_of_line};
use proem::traffic::report::ReportSource;
use proem::traffic::{Call, CallVerdict, ReportBuilder, ReportFilter, TrafficReport};
use proem::{Caller, Note, Request};
use proem_core::limit::{CALL_BYTES_MAX, COLLECT_HELD_BYTES_MAX, COLLECT_NOTES_MAX};
use proem_core::note::{Code, Severity};

use crate::arguments::store::open;
use crate::arguments::{Output, StoreFlags};
use crate::failure::Failure;
use crate::input::reason;
use crate::notes::{print_over, print_status};
use crate::table::{Cell, Column, Table, grouped, one_line};
use crate::terminal::{error_columns, output_columns, print, print_json, print_raw, visible_line};
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
    /// With `--from store`: the store [default: `PROEM_STORE`, else a file in the user's data directory]
    #[arg(long, value_name = "STORE", conflicts_with = "path")]
    store: Option<String>,
    #[command(flatten)]
    output: Output<ReportFormat>,
}

const EXAMPLES: &str = "\
Examples:
  proem report                                    Read the agents of this machine
  proem report --from claude-code DIR             Read recordings of one agent
  proem report calls.jsonl                        Show the misses, most expensive first
  proem report --from store                       Show the calls that a server recorded
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
    /// Calls that a store has: of its conversations, of `POST /calls` and of gateways
    Store,
}

impl ReportFrom {
    /// Returns the reader of recordings; `None` for the store, whose calls are judged already.
    const fn source(self) -> Option<TrafficSource> {
        Some(match self {
            Self::ClaudeCode => TrafficSource::ClaudeCode,
            Self::Codex => TrafficSource::Codex,
            Self::Opencode => TrafficSource::Opencode,
            Self::Pi => TrafficSource::Pi,
            Self::ClaudeTap => TrafficSource::ClaudeTap,
            Self::Jsonl => TrafficSource::Jsonl,
            Self::Store => return None,
        })
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
    if arguments.from == Some(ReportFrom::Store) || arguments.store.is_some() {
        return finish(&stored(arguments, &models, &filter)?, arguments);
    }
    let mut reading = Reading {
        builder: ReportBuilder::new(&models, filter.clone()),
        since: filter.since,
        found: 0,
        skipped: 0,
    };
    match (&arguments.path, arguments.from) {
        (Some(path), None | Some(ReportFrom::Jsonl)) if !path.is_dir() => {
            Lines::open(path, arguments)?.read(&mut reading)?;
        }
        (Some(path), Some(from)) => reading.collect(&place(from, path)?),
        (Some(path), None) => reading.search(path)?,
        (None, from) => reading.collect(&usual_places(from)?),
    }
    let report = reading.builder.finish();
    finish(&report, arguments)
}

/// Returns the report of the calls that a store has.
fn stored(
    arguments: &ReportArguments,
    models: &Models,
    filter: &ReportFilter,
) -> Result<TrafficReport, Failure> {
    const PAGE: usize = 1_000;
    if arguments.from.is_some_and(|from| from != ReportFrom::Store) {
        let message = "`--store` names a store, and `--from` another source".to_owned();
        return Err(Failure::Usage { message, hint: "leave `--from` out, or write `--from store`".into() });
    }
    if let Some(path) = &arguments.path {
        let message = format!(
            "`{}` is a path, and a store is named by `--store`",
            visible_line(&path.display().to_string())
        );
        return Err(Failure::Usage { message, hint: "write `--from store --store STORE`".into() });
    }
    let store = open(&StoreFlags { store: arguments.store.clone() })?;
    let (mut calls, mut after) = (Vec::new(), None);
    loop {
        let query = CallQuery {
            conversation: filter.conversation.clone(),
            since: arguments.since.and(filter.since),
            after: after.take(),
            most: PAGE,
            ..CallQuery::default()
        };
        let page = store.list_calls(&query)?;
        for item in &page.items {
            let call = RecordedCall::read(item)?;
            calls.push((call.call, call.is_list_price));
        }
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    calls.reverse();
    let count = calls.len();
    let mut report = TrafficReport::of_verdicts(calls, models);
    report.sources.push(ReportSource { kind: "store".into(), path: store.describe(), calls: count });
    Ok(report)
}

fn finish(report: &TrafficReport, arguments: &ReportArguments) -> Result<(), Failure> {
    match arguments.output.format() {
        ReportFormat::Json => print_json(report)?,
        ReportFormat::Html => print_raw(&report.to_html(arguments.expected))?,
        ReportFormat::Text => print(&text(report, arguments.expected))?,
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
    Ok(from.source().map(|source| (source, path.to_owned())).into_iter().collect())
}

/// Returns the places where agents keep their recordings on this machine.
fn usual_places(from: Option<ReportFrom>) -> Result<Vec<(TrafficSource, PathBuf)>, Failure> {
    let home = std::env::home_dir();
    let found = find(home.as_deref(), &|name| std::env::var(name).ok());
    let is_wanted = |source: TrafficSource| from.is_none_or(|from| from.source() == Some(source));
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

/// A report that is being read.
struct Reading {
    builder: ReportBuilder,
    since: Option<i64>,
    /// The calls so far.
    found: usize,
    /// The lines that were left out.
    skipped: usize,
}

impl Reading {
    /// Reads the calls of some places.
    fn collect(&mut self, places: &[(TrafficSource, PathBuf)]) {
        for (source, path) in places {
            let notes = self.read(*source, path);
            for note in &notes {
                self.builder.note(note);
            }
        }
    }

    /// Reads the calls of one place, and returns the notes.
    fn read(&mut self, source: TrafficSource, path: &Path) -> Vec<Note> {
        let progress = error_columns().is_some().then_some(show_progress as ReadProgress);
        let options =
            ReadOptions { since: self.since, sqlite: Some(proem_store::read_sqlite_rows), progress };
        let builder = &mut self.builder;
        let summary = read(source, path, &options, &mut |call| builder.take(call));
        end_progress();
        self.found += summary.calls;
        let (kind, path) = (source.name().to_owned(), path.display().to_string());
        if summary.calls > 0 || summary.foreign < summary.files {
            self.builder.source(ReportSource { kind, path, calls: summary.calls });
        }
        summary.notes
    }

    /// Finds out who wrote the recordings of a folder.
    fn search(&mut self, path: &Path) -> Result<(), Failure> {
        for source in TrafficSource::ALL {
            let before = self.found;
            let notes = self.read(source, path);
            if self.found > before {
                for note in &notes {
                    self.builder.note(note);
                }
                print_status(&format!("read {} calls of {}", self.found - before, source.name()));
            }
        }
        if self.found > 0 {
            return Ok(());
        }
        let message =
            format!("{} has no recordings of a known agent", visible_line(&path.display().to_string()));
        let hint = "add `--from`, such as `--from claude-code`, to learn what was skipped; see docs/report-sources.md";
        Err(Failure::Usage { message, hint: hint.to_owned() })
    }
}

/// Bytes from which on a reading shows its progress.
const PROGRESS_FROM: u64 = 32 << 20;

/// Draws a bar, if one more percent was read.
fn show_progress(read: u64, total: u64) {
    const WIDTH: u64 = 30;
    static SHOWN: AtomicU64 = AtomicU64::new(0);
    let percent = read * 100 / total.max(1);
    if total < PROGRESS_FROM || SHOWN.swap(percent, Ordering::Relaxed) == percent {
        return;
    }
    let full = usize::try_from(percent * WIDTH / 100).unwrap_or(0);
    let rest = usize::try_from(WIDTH).unwrap_or(0).saturating_sub(full);
    let (read, total) = (read >> 20, total >> 20);
    print_over(&format!(
        "reading [{}{}] {percent} %, {read} of {total} MiB",
        "#".repeat(full),
        " ".repeat(rest)
    ));
    IS_SHOWN.store(true, Ordering::Relaxed);
}

/// True while a bar is drawn.
static IS_SHOWN: AtomicBool = AtomicBool::new(false);

/// Removes the bar.
fn end_progress() {
    if IS_SHOWN.swap(false, Ordering::Relaxed) {
        print_over("");
    }
}

/// A file of lines.
struct Lines {
    reader: Box<dyn BufRead>,
    defaults: LineDefaults,
    /// The size of the file; 0 if it is not known.
    bytes: u64,
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
        let bytes = std::fs::metadata(path).map_or(0, |found| found.len());
        Ok(Self { reader, defaults, bytes })
    }

    /// Reads all calls, in the order of time where every call has one, as far as they fit into memory together. A line that
    /// is not a call leaves a note.
    fn read(mut self, reading: &mut Reading) -> Result<(), Failure> {
        let (mut held, mut bytes, mut done) = (Vec::new(), 0_usize, 0_u64);
        let (path, total) = (self.defaults.path.clone(), self.bytes);
        for number in 1.. {
            let mut line = Vec::new();
            let most = CALL_BYTES_MAX as u64 + 1;
            let read = self.reader.by_ref().take(most).read_until(b'\n', &mut line);
            let refuse = |why: String| Failure::Input { what: "file of calls", path: path.clone(), why };
            if read.map_err(|error| refuse(reason(&error)))? == 0 {
                break;
            }
            done += line.len() as u64;
            if error_columns().is_some() {
                show_progress(done.min(total), total);
            }
            let skipped = if line.len() > CALL_BYTES_MAX {
                self.skip_line().map_err(|error| refuse(reason(&error)))?;
                Some(format!("it is longer than {CALL_BYTES_MAX} bytes"))
            } else {
                let text = String::from_utf8_lossy(&line);
                if text.trim().is_empty() {
                    continue;
                }
                call_of_line(text.trim(), number, &self.defaults).map(|call| held.push(call)).err()
            };
            if let Some(why) = skipped {
                reading.skip(format!("{path}:{number} is left out: {why}"));
                continue;
            }
            reading.found += 1;
            bytes += line.len();
            if bytes > COLLECT_HELD_BYTES_MAX {
                give(std::mem::take(&mut held), reading);
                bytes = 0;
            }
        }
        give(held, reading);
        end_progress();
        reading.builder.source(ReportSource { kind: "jsonl".to_owned(), path, calls: reading.found });
        Ok(())
    }

    /// Reads to the end of a line that is too long.
    fn skip_line(&mut self) -> io::Result<()> {
        loop {
            let chunk = self.reader.fill_buf()?;
            let (used, is_end) = match chunk.iter().position(|byte| *byte == b'\n') {
                Some(end) => (end + 1, true),
                None => (chunk.len(), chunk.is_empty()),
            };
            self.reader.consume(used);
            if is_end {
                return Ok(());
            }
        }
    }
}

/// Hands on calls in the order of time, if every call has one.
fn give(mut calls: Vec<Call>, reading: &mut Reading) {
    if calls.iter().all(|call| call.at.is_some()) {
        calls.sort_by_key(|call| call.at);
    }
    for call in calls {
        reading.builder.take(call);
    }
}

impl Reading {
    /// Notes a line that is not a call; those after the first ones are counted.
    fn skip(&mut self, message: String) {
        self.skipped += 1;
        if self.skipped <= COLLECT_NOTES_MAX {
            self.builder.note(&Note::new(Code::Unreadable, Severity::Warning, message));
        }
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
