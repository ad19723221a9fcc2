//! The reasons why recorded calls missed the provider's cache, as JSON: that of `proem report --format json`.

use std::fs;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use proem::models::Models;
use proem::traffic::collect::{ReadOptions, TrafficSource, find, read};
use proem::traffic::lines::{LineDefaults, call_of_line};
use proem::traffic::report::ReportSource;
use proem::traffic::{Call, ReportFilter, TrafficReport};
use proem::{Caller, Note, Request};
use proem_core::limit::CALL_BYTES_MAX;
use proem_core::note::{Code, Severity};

use crate::failure::Failure;

/// Days that are read of the usual places.
const DAYS_OF_PLACES: i64 = 7;

/// Sources of calls, by the words of `--from`.
const SOURCES: [(&str, TrafficSource); 6] = [
    ("claude-code", TrafficSource::ClaudeCode),
    ("codex", TrafficSource::Codex),
    ("opencode", TrafficSource::Opencode),
    ("pi", TrafficSource::Pi),
    ("claude-tap", TrafficSource::ClaudeTap),
    ("jsonl", TrafficSource::Jsonl),
];

/// The recordings that a report reads.
#[derive(Debug, Clone, Default)]
pub struct ReportOptions {
    /// The folder or file; without one, the places where agents keep their recordings.
    pub path: Option<String>,
    /// The writer of the recordings: `claude-code`, `codex`, `opencode`, `pi`, `claude-tap` or `jsonl`.
    pub source: Option<String>,
    /// Only calls of the last days or hours, such as `7d` or `12h`.
    pub since: Option<String>,
    /// Only calls of this conversation.
    pub conversation: Option<String>,
    /// The provider of calls that name none.
    pub provider: Option<String>,
}

/// Reads recordings, and tells why calls missed the cache.
pub fn report(options: &ReportOptions) -> Result<String, Failure> {
    let models = Models::load(&Request::default(), Caller::User)?;
    let source = options.source.as_deref().map(source).transpose()?;
    let since = options.since.as_deref().map(seconds).transpose()?;
    let since = since.or_else(|| options.path.is_none().then_some(DAYS_OF_PLACES * 86_400));
    let now = Timestamp::now().as_millisecond();
    let filter = ReportFilter {
        since: since.map(|seconds| now.saturating_sub(seconds.saturating_mul(1_000))),
        conversation: options.conversation.clone(),
    };
    let mut sources = Vec::new();
    let calls = match (options.path.as_deref().map(Path::new), source) {
        (Some(path), None | Some(TrafficSource::Jsonl)) if !path.is_dir() => {
            lines(path, options.provider.as_deref(), &mut sources)?
        }
        (Some(path), Some(source)) => {
            fs::metadata(path).map_err(|error| unreadable(path, &error.to_string()))?;
            joined(calls_of_places(&[(source, path.to_owned())], filter.since, &mut sources))
        }
        (Some(path), None) => {
            let message = format!("{} is a folder, and `source` does not say who wrote it", path.display());
            return Err(Failure::bad_request(message).with_hint("add `source`, such as `claude-code`"));
        }
        (None, source) => {
            let home = std::env::home_dir();
            let found = find(home.as_deref(), &|name| std::env::var(name).ok()).into_iter();
            let places: Vec<_> = found
                .filter(|found| source.is_none_or(|source| source == found.source))
                .map(|found| (found.source, found.path))
                .collect();
            joined(calls_of_places(&places, filter.since, &mut sources))
        }
    };
    let mut report = TrafficReport::new(calls, &models, &filter);
    report.sources = sources;
    Ok(serde_json::to_string(&report)?)
}

fn unreadable(path: &Path, why: &str) -> Failure {
    Failure::bad_request(format!("cannot read {}: {why}", path.display()))
}

fn source(word: &str) -> Result<TrafficSource, Failure> {
    let found = SOURCES.iter().find(|(known, _)| *known == word).map(|(_, source)| *source);
    found.ok_or_else(|| {
        let words = SOURCES.map(|(known, _)| known).join("`, `");
        Failure::bad_request(format!("unknown source `{word}`")).with_hint(format!("use one of `{words}`"))
    })
}

fn seconds(text: &str) -> Result<i64, Failure> {
    let wrong = || {
        Failure::bad_request(format!("`since` is `{text}`"))
            .with_hint("write a number with `d` or `h`, such as `7d`")
    };
    let unit = match text.chars().last() {
        Some('d') => 86_400,
        Some('h') => 3_600,
        _ => return Err(wrong()),
    };
    let number: i64 = text.trim_end_matches(['d', 'h']).parse().map_err(|_| wrong())?;
    number.checked_mul(unit).filter(|seconds| *seconds >= 0).ok_or_else(wrong)
}

/// Calls, and notes about records that were skipped.
pub type ReadCalls = (Vec<Call>, Vec<Note>);

/// Reads the calls of some places.
pub fn calls_of_places(
    places: &[(TrafficSource, PathBuf)],
    since: Option<i64>,
    sources: &mut Vec<ReportSource>,
) -> ReadCalls {
    let options = ReadOptions { since, sqlite: Some(proem_store::read_sqlite_rows), progress: None };
    let (mut calls, mut notes): ReadCalls = (Vec::new(), Vec::new());
    for (source, path) in places {
        let summary = read(*source, path, &options, &mut |call| calls.push(call));
        notes.extend(summary.notes);
        let (kind, path) = (source.name().to_owned(), path.display().to_string());
        sources.push(ReportSource { kind, path, calls: summary.calls });
    }
    (calls, notes)
}

/// Reads the calls of a file of lines, in the order of time where every call has one. A line that is not a call leaves a
/// note. The error says why the file cannot be read.
pub fn calls_of_lines(
    reader: &mut dyn BufRead,
    defaults: &LineDefaults,
    sources: &mut Vec<ReportSource>,
) -> Result<ReadCalls, LinesError> {
    let (mut calls, mut skipped): ReadCalls = (Vec::new(), Vec::new());
    let path = &defaults.path;
    for number in 1.. {
        let mut line = Vec::new();
        let most = CALL_BYTES_MAX as u64 + 1;
        if reader.take(most).read_until(b'\n', &mut line).map_err(LinesError::Read)? == 0 {
            break;
        }
        if line.len() > CALL_BYTES_MAX {
            return Err(LinesError::TooLong(number));
        }
        let text = String::from_utf8_lossy(&line);
        if text.trim().is_empty() {
            continue;
        }
        match call_of_line(text.trim(), number, defaults) {
            Ok(call) => calls.push(call),
            Err(why) => {
                let message = format!("{path}:{number} is left out: {why}");
                skipped.push(Note::new(Code::Unreadable, Severity::Warning, message));
            }
        }
    }
    if calls.iter().all(|call| call.at.is_some()) {
        calls.sort_by_key(|call| call.at);
    }
    sources.push(ReportSource { kind: "jsonl".to_owned(), path: path.clone(), calls: calls.len() });
    Ok((calls, skipped))
}

/// The reason why a file of lines cannot be read.
#[derive(Debug)]
pub enum LinesError {
    /// The file itself.
    Read(io::Error),
    /// The line of this number is longer than a call may be.
    TooLong(usize),
}

impl std::fmt::Display for LinesError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Read(error) => error.fmt(formatter),
            Self::TooLong(number) => write!(formatter, "line {number} is longer than {CALL_BYTES_MAX} bytes"),
        }
    }
}

impl std::error::Error for LinesError {}

/// Joins calls with the notes about records that were skipped: these go with the first call.
fn joined((mut calls, notes): ReadCalls) -> Vec<Call> {
    if let Some(first) = calls.first_mut() {
        first.notes.extend(notes);
    }
    calls
}

fn lines(path: &Path, provider: Option<&str>, sources: &mut Vec<ReportSource>) -> Result<Vec<Call>, Failure> {
    let file = proem::open_named(path).map_err(|error| unreadable(path, &error.to_string()))?;
    let defaults = LineDefaults {
        path: path.display().to_string(),
        provider: provider.map(str::to_owned),
        ..LineDefaults::default()
    };
    let read = calls_of_lines(&mut BufReader::new(file), &defaults, sources);
    read.map(joined).map_err(|why| unreadable(path, &why.to_string()))
}
