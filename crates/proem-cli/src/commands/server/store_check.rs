//! `proem store check`: finds damage and unused texts, in batches that can be interrupted and continued.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use proem_store::{Cursor, Progress, PruneReport, Store, StoreError, StoreLocation, prune, redacted};
use serde_json::{Value, json};
use tokio::signal::unix::{SignalKind, signal};

use super::store::PRUNE;
use crate::arguments::Format;
use crate::failure::Failure;
use crate::notes::print_status;
use crate::terminal::{print, visible_line};

/// Rows between two progress lines. Counted, not timed, so that the same store gives the same lines.
const ROWS_PER_LINE: u64 = 100_000;

/// The options of a check.
pub(crate) struct Check<'c> {
    pub(crate) store: &'c dyn Store,
    /// The store in the command line that continues the check.
    pub(crate) store_option: StoreOption,
    pub(crate) prunes: bool,
    pub(crate) after: Option<&'c str>,
    pub(crate) format: Format,
}

/// The store in a command line, without credentials.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct StoreOption {
    /// The flag, after a space; empty if the variable or the default names the store.
    pub(crate) flag: String,
    /// A remark on the parts that the flag leaves out.
    pub(crate) addition: &'static str,
}

impl StoreOption {
    /// Names the store of a flag or, without one, of `PROEM_STORE`.
    pub(crate) fn new(flag: Option<&str>, variable: Option<&str>, place: &StoreLocation) -> Self {
        let named_store = flag.or(variable);
        let named = |text: &str| format!(" --store {}", quoted(text));
        match (place, named_store) {
            (_, None) | (StoreLocation::Memory, _) => Self::default(),
            (StoreLocation::Postgres(_), Some(_)) if flag.is_none() => {
                Self { flag: String::new(), addition: ", with the same PROEM_STORE" }
            }
            (StoreLocation::Postgres(url), Some(_)) => {
                let shown = redacted(url);
                let is_whole = shown == *url;
                let addition = if is_whole {
                    ""
                } else {
                    "; write user name, password and options into the URL as before"
                };
                Self { flag: named(&shown), addition }
            }
            (_, Some(text)) => Self { flag: named(text), addition: "" },
        }
    }
}

/// Quotes a word for a shell.
fn quoted(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-:@%+,=".contains(&byte);
    if !text.is_empty() && text.bytes().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

pub(crate) fn run(check: Check<'_>) -> Result<(), Failure> {
    let Check { store, store_option, prunes, after, format } = check;
    let mut watch = Watch {
        format,
        store_option,
        is_interrupted: stop_flag()?,
        part: "",
        lines: 0,
        found: 0,
        failed: None,
    };
    if after != Some(PRUNE) {
        let cursor = after.and_then(Cursor::parse);
        let mut reached = after.unwrap_or_default().to_owned();
        let stopped = proem_store::check(store, cursor.as_ref(), &mut |progress| {
            progress.cursor.clone_into(&mut reached);
            watch.update(progress)
        });
        let stopped = stopped.map_err(|error| watch.interrupted(&error, &reached, prunes))?;
        watch.written()?;
        if let Some(cursor) = stopped {
            return Err(watch.stopped(&cursor.to_string(), prunes));
        }
        if watch.found > 0 {
            watch.end(&json!({ "event": "done", "damage": watch.found }))?;
            return Err(Failure::Findings);
        }
    }
    let described = store.describe();
    if !prunes && after != Some(PRUNE) {
        watch.end(&json!({ "event": "done", "damage": 0 }))?;
        return watch.say(&format!("{described}: no damage\n"));
    }
    let done = prune(store, &mut |progress| watch.update(progress));
    let PruneReport { texts, bytes, is_stopped } =
        done.map_err(|error| watch.interrupted(&error, PRUNE, true))?;
    watch.written()?;
    if is_stopped {
        return Err(watch.stopped(PRUNE, true));
    }
    watch.end(&json!({ "event": "done", "damage": 0, "removed_texts": texts, "removed_bytes": bytes }))?;
    let checked = if after == Some(PRUNE) { "" } else { "no damage; " };
    watch.say(&format!("{described}: {checked}{bytes} bytes of unused texts removed\n"))
}

/// Prints the progress of a check, and stops it on a signal.
struct Watch {
    format: Format,
    store_option: StoreOption,
    is_interrupted: Arc<AtomicBool>,
    part: &'static str,
    /// Progress lines of this part.
    lines: u64,
    /// Damaged rows so far.
    found: usize,
    /// A failure of the output, which ends the check.
    failed: Option<Failure>,
}

impl Watch {
    fn update(&mut self, progress: &Progress<'_>) -> ControlFlow<()> {
        let Progress { part, rows, found, cursor } = progress;
        if self.part != *part {
            (self.part, self.lines) = (part, 0);
        }
        self.found += found.len();
        for line in *found {
            let written = match self.format {
                Format::Text => print(&format!("{}\n", visible_line(line))),
                Format::Json => line_of(&json!({ "event": "damage", "what": line })),
            };
            self.failed = self.failed.take().or(written.err());
        }
        if rows / ROWS_PER_LINE > self.lines {
            self.lines = rows / ROWS_PER_LINE;
            let event = json!({ "event": "progress", "part": part, "rows": rows, "after": cursor });
            match self.format {
                Format::Text => print_status(&format!("{part}: {rows} rows")),
                Format::Json => self.failed = self.failed.take().or(line_of(&event).err()),
            }
        }
        let goes_on = self.failed.is_none() && !self.is_interrupted.load(Ordering::Relaxed);
        if goes_on { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }

    /// Returns the failure of the output, if any.
    fn written(&mut self) -> Result<(), Failure> {
        self.failed.take().map_or(Ok(()), Err)
    }

    /// Prints the last line for programs.
    fn end(&self, event: &Value) -> Result<(), Failure> {
        if self.format == Format::Json { line_of(event) } else { Ok(()) }
    }

    /// Prints the last line for people.
    fn say(&self, line: &str) -> Result<(), Failure> {
        if self.format == Format::Text { print(line) } else { Ok(()) }
    }

    fn stopped(&self, place: &str, prunes: bool) -> Failure {
        let written = self.end(&json!({ "event": "stopped", "after": place, "damage": self.found }));
        let hint = self.continuation(place, prunes);
        written
            .err()
            .unwrap_or(Failure::Server { message: "stopped; nothing was left half done".into(), hint })
    }

    /// Returns the command that continues the check.
    fn continuation(&self, place: &str, prunes: bool) -> String {
        // A damaged store is not pruned.
        let prune = if prunes && self.found == 0 { " --prune" } else { "" };
        let format = if self.format == Format::Json { " --format json" } else { "" };
        let StoreOption { flag, addition } = &self.store_option;
        format!("`proem store check{flag}{prune} --after {place}{format}` continues from here{addition}")
    }

    /// Makes a failure of the store during the check, with the command that continues it.
    fn interrupted(&self, error: &StoreError, place: &str, prunes: bool) -> Failure {
        let hint = error.hint().unwrap_or_default();
        let hint =
            if place.is_empty() { hint } else { format!("{hint}; {}", self.continuation(place, prunes)) };
        Failure::Server { message: error.to_string(), hint }
    }
}

fn line_of(event: &Value) -> Result<(), Failure> {
    print(&format!("{event}\n"))
}

/// Returns a flag that SIGINT and SIGTERM set. The check then stops after the current batch.
fn stop_flag() -> Result<Arc<AtomicBool>, Failure> {
    let failed = |error: std::io::Error| Failure::Server {
        message: format!("cannot wait for signals: {}", crate::input::reason(&error)),
        hint: "try again".into(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let (mut interrupt, mut terminate) = {
        let _inside = runtime.enter();
        (signal(SignalKind::interrupt()).map_err(failed)?, signal(SignalKind::terminate()).map_err(failed)?)
    };
    let flag = Arc::new(AtomicBool::new(false));
    let own = Arc::clone(&flag);
    thread::spawn(move || {
        runtime.block_on(async {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
        });
        own.store(true, Ordering::Relaxed);
    });
    Ok(flag)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_that_goes_on_names_the_store_without_credentials() {
        let store_option = |flag: Option<&str>, variable: Option<&str>| {
            let place = StoreLocation::parse(flag.or(variable).unwrap_or("own.db")).expect("it is a store");
            let StoreOption { flag, addition } = StoreOption::new(flag, variable, &place);
            (flag, addition)
        };
        let named = |flag: &str| (flag.to_owned(), "");
        assert_eq!(store_option(None, None), named(""));
        assert_eq!(store_option(Some("a.db"), Some("b.db")), named(" --store a.db"));
        assert_eq!(store_option(None, Some("sqlite:b c.db")), named(" --store 'sqlite:b c.db'"));
        assert_eq!(store_option(Some("$HOME's.db"), None), named(r" --store '$HOME'\''s.db'"));
        assert_eq!(store_option(Some("postgres://db:5433/x"), None), named(" --store postgres://db:5433/x"));
        let addition = "; write user name, password and options into the URL as before";
        let url = "postgres://me:hunter2@db/x?sslmode=require";
        assert_eq!(store_option(Some(url), None), (" --store postgres://db/x".to_owned(), addition));
        assert_eq!(store_option(None, Some(url)), (String::new(), ", with the same PROEM_STORE"));
    }
}
