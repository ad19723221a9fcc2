//! Collectors: read what agents already write, and turn it into calls.
//!
//! [`find()`] looks in the usual places, [`read()`] reads one of them. A reading never fails as a whole: what cannot be
//! read or understood is skipped with a note that names the file and the line. Memory is bounded by the limits
//! `collect_…`, however large the files are.
//!
//! ```
//! use proem::traffic::collect::{ReadOptions, TrafficSource, read};
//!
//! let folder = tempfile::tempdir()?;
//! let line = r#"{"at": 1794927031, "request": {"model": "m"}, "response": {"id": "r-1", "usage": {"input_tokens": 9}}}"#;
//! std::fs::write(folder.path().join("calls.jsonl"), line)?;
//! let mut ids = Vec::new();
//! let summary = read(TrafficSource::Jsonl, folder.path(), &ReadOptions::default(), &mut |call| ids.push(call.id));
//! assert_eq!((ids, summary.calls), (vec!["r-1".to_owned()], 1));
//! # Ok::<(), std::io::Error>(())
//! ```

mod claude_code;
mod claude_tap;
mod codex;
mod files;
mod find;
mod har;
mod identity;
mod json;
mod jsonl;
pub mod live;
mod merge;
mod notebook;
mod opencode;
mod pi;
mod rules;

use std::path::{Path, PathBuf};

use proem_core::note::{Code, Note};

pub use claude_code::EventCalls;
pub use find::{FoundSource, find};
pub use notebook::ReadProgress;

use self::merge::{BodyOrigin, Merge};
use self::notebook::{Notebook, Problem};
use super::call::{Call, CallPlace};
use crate::observe::file::{metadata, shown};

/// An agent or format whose files can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TrafficSource {
    /// Claude Code: raw bodies, events, transcripts.
    ClaudeCode,
    /// Codex: traces, rollouts.
    Codex,
    /// opencode: logs of a plugin, exports, the session database.
    Opencode,
    /// pi: logs of an extension, sessions.
    Pi,
    /// claude-tap: its database, bundles, and lines of records.
    ClaudeTap,
    /// Lines of `{at, conversation?, request, response}`, and HAR files.
    Jsonl,
}

impl TrafficSource {
    /// All sources.
    pub const ALL: [Self; 6] =
        [Self::ClaudeCode, Self::Codex, Self::Opencode, Self::Pi, Self::ClaudeTap, Self::Jsonl];

    /// Returns the name, as users write it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::Codex => "codex",
            Self::Opencode => "opencode",
            Self::Pi => "pi",
            Self::ClaudeTap => "claude-tap",
            Self::Jsonl => "jsonl",
        }
    }

    /// Returns the source of a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|source| source.name() == name)
    }
}

/// Runs a query on a SQLite file and visits its rows; a value that is not text is `None`. The error is for people.
///
/// This crate has no database driver; `proem_store::read_sqlite_rows` is one.
pub type SqliteRows = fn(&Path, &str, &mut dyn FnMut(Vec<Option<String>>)) -> Result<(), String>;

/// Options of a reading.
#[derive(Debug, Clone, Copy, Default)]
pub struct ReadOptions {
    /// The earliest time of interest, in milliseconds since 1970: files that were last written before it are left out.
    pub since: Option<i64>,
    /// The reader of SQLite files; without one they are skipped with a note.
    pub sqlite: Option<SqliteRows>,
    /// Learns of the progress.
    pub progress: Option<ReadProgress>,
}

/// The outcome of a reading, next to the calls.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ReadSummary {
    /// The files that were looked at.
    pub files: usize,
    /// The files that do not belong to the source.
    pub foreign: usize,
    /// The files that were last written before the time of interest.
    pub old: usize,
    /// The calls that were visited.
    pub calls: usize,
    /// The notes.
    pub notes: Vec<Note>,
}

const FOREIGN: Problem = Problem::info(Code::SkippedRecord, "the file does not belong to the source");
const CLOCK: Problem =
    Problem::info(Code::SkippedRecord, "the clock went back between two calls; the order of the file counts");
const NO_SQLITE: Problem = Problem::warning(Code::Unreadable, "a SQLite file cannot be read here");
const REPEATED: Problem =
    Problem::warning(Code::OverLimit, "calls that repeat or exceed `collect_calls_max` are left out");

/// Reads the calls of a folder or file.
///
/// Records of one call in several files are joined. Calls come in the order of time; when more than
/// `collect_held_bytes_max` bytes are held, those are visited before the rest is read.
pub fn read(
    source: TrafficSource,
    path: &Path,
    options: &ReadOptions,
    visit: &mut dyn FnMut(Call),
) -> ReadSummary {
    let mut sink = Sink {
        options: *options,
        notes: Notebook::default(),
        merge: Merge::new(visit),
        summary: ReadSummary::default(),
    };
    let files = sink.files(path);
    match source {
        TrafficSource::ClaudeCode => claude_code::read(&files, &mut sink),
        TrafficSource::Codex => codex::read(&files, &mut sink),
        TrafficSource::Opencode => opencode::read(&files, &mut sink),
        TrafficSource::Pi => pi::read(&files, &mut sink),
        TrafficSource::ClaudeTap => claude_tap::read(&files, &mut sink),
        TrafficSource::Jsonl => jsonl::read(&files, &mut sink),
    }
    sink.finish(path)
}

/// The receiver of what the collectors find.
struct Sink<'a> {
    options: ReadOptions,
    notes: Notebook,
    merge: Merge<'a>,
    summary: ReadSummary,
}

impl Sink<'_> {
    /// Returns the files below a path that are new enough.
    fn files(&mut self, path: &Path) -> Vec<PathBuf> {
        let mut files = files::below(path, &mut self.notes);
        self.summary.files = files.len();
        if let Some(since) = self.options.since {
            files.retain(|file| written(file).is_none_or(|written| written >= since));
            self.summary.old = self.summary.files - files.len();
        }
        let size = |file: &PathBuf| metadata(file).map_or(0, |found| found.len());
        let total = self.options.progress.map_or(0, |_| files.iter().map(size).sum());
        self.notes.watch(self.options.progress, total);
        files
    }

    fn note(&mut self, problem: Problem, path: &Path, line: Option<usize>) {
        self.notes.add(problem, path, line);
    }

    /// Skips a file that does not belong to the source.
    fn foreign(&mut self, path: &Path) {
        self.summary.foreign += 1;
        self.notes.add(FOREIGN, path, None);
    }

    /// Begins a file whose calls follow each other.
    fn begin(&mut self) {
        self.merge.begin();
    }

    /// Takes a call that was found at a place.
    fn call(&mut self, mut call: Call, origin: BodyOrigin, path: &Path, line: Option<usize>) {
        call.place = Some(CallPlace { path: shown(path), line });
        if self.merge.add(call, origin) {
            self.notes.add(CLOCK, path, line);
        }
    }

    /// Runs a query on a SQLite file; problems are noted.
    fn sqlite(&mut self, path: &Path, sql: &str, visit: &mut dyn FnMut(Vec<Option<String>>)) {
        let is_read = self.options.sqlite.is_some_and(|rows| rows(path, sql, visit).is_ok());
        if !is_read {
            self.notes.add(NO_SQLITE, path, None);
        }
    }

    fn finish(mut self, path: &Path) -> ReadSummary {
        self.merge.give();
        self.summary.calls = self.merge.calls;
        if self.merge.dropped > 0 {
            self.notes.add(REPEATED, path, None);
        }
        self.summary.notes = self.notes.into_notes();
        self.summary
    }
}

/// Returns the time of the last change of a file, in milliseconds since 1970.
fn written(path: &Path) -> Option<i64> {
    let time = metadata(path).ok()?.modified().ok()?;
    let since = time.duration_since(std::time::UNIX_EPOCH).ok()?;
    i64::try_from(since.as_millis()).ok()
}

/// Returns the name and version of the agent that a `user-agent` header names.
pub(super) fn agent_of(user_agent: &str) -> Option<(String, String)> {
    let (name, version) = rules::CollectRules::built_in().agent(user_agent)?;
    Some((name.to_owned(), version.to_owned()))
}

/// Returns the day of the facts about places and names.
#[must_use]
pub fn rules_as_of() -> &'static str {
    &rules::CollectRules::built_in().as_of
}
