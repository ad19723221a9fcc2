//! `proem store check`: damage and unused texts, in batches that can be interrupted and continued.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use proem_store::{Cursor, Place, Progress, Pruned, Store, StoreError, prune, redacted};
use serde_json::{Value, json};
use tokio::signal::unix::{SignalKind, signal};

use super::store::PRUNE;
use crate::arguments::Format;
use crate::failure::Failure;
use crate::notes::print_status;
use crate::terminal::{print, visible_line};

/// Rows between two lines about the progress. By count, so that the same store gives the same lines.
const ROWS_PER_LINE: u64 = 100_000;

/// What to check, and how.
pub(crate) struct Check<'c> {
    pub(crate) store: &'c dyn Store,
    /// The store as the next command line names it.
    pub(crate) again: Again,
    pub(crate) prunes: bool,
    pub(crate) after: Option<&'c str>,
    pub(crate) format: Format,
}

/// The way to name the same store again, without credentials.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Again {
    /// The flag, with a space before it; empty where the variable or the default names the store.
    pub(crate) flag: String,
    /// What the flag leaves to add.
    pub(crate) addition: &'static str,
}

impl Again {
    /// Names the store of a flag or, without one, of `PROEM_STORE`.
    pub(crate) fn new(flag: Option<&str>, variable: Option<&str>, place: &Place) -> Self {
        let said = flag.or(variable);
        let named = |text: &str| format!(" --store {}", quoted(text));
        match (place, said) {
            (_, None) | (Place::Memory, _) => Self::default(),
            (Place::Postgres(_), Some(_)) if flag.is_none() => {
                Self { flag: String::new(), addition: ", with the same PROEM_STORE" }
            }
            (Place::Postgres(url), Some(_)) => {
                let shown = redacted(url);
                let is_whole = shown == *url;
                let addition = if is_whole {
                    ""
                } else {
                    "; write user name, password and options into the URL as before"
                };
                Self { flag: named(&shown), addition }
            }
            (_, Some(said)) => Self { flag: named(said), addition: "" },
        }
    }
}

/// A word of a shell's command line.
fn quoted(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-:@%+,=".contains(&byte);
    if !text.is_empty() && text.bytes().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

pub(crate) fn run(check: Check<'_>) -> Result<(), Failure> {
    let Check { store, again, prunes, after, format } = check;
    let mut watch =
        Watch { format, again, is_asked_to_stop: stop_flag()?, part: "", lines: 0, found: 0, failed: None };
    if after != Some(PRUNE) {
        let cursor = after.and_then(Cursor::parse);
        let mut reached = after.unwrap_or_default().to_owned();
        let stopped = proem_store::check(store, cursor.as_ref(), &mut |progress| {
            progress.cursor.clone_into(&mut reached);
            watch.tell(progress)
        });
        let stopped = stopped.map_err(|error| watch.interrupted(&error, &reached, prunes))?;
        watch.written()?;
        if let Some(cursor) = stopped {
            return Err(watch.stopped(&cursor.to_string(), prunes));
        }
        if watch.found > 0 {
            watch.end(&json!({ "event": "done", "damage": watch.found }))?;
            return Err(Failure::Found);
        }
    }
    let described = store.describe();
    if !prunes && after != Some(PRUNE) {
        watch.end(&json!({ "event": "done", "damage": 0 }))?;
        return watch.say(&format!("{described}: no damage\n"));
    }
    let done = prune(store, &mut |progress| watch.tell(progress));
    let Pruned { texts, bytes, is_stopped } = done.map_err(|error| watch.interrupted(&error, PRUNE, true))?;
    watch.written()?;
    if is_stopped {
        return Err(watch.stopped(PRUNE, true));
    }
    watch.end(&json!({ "event": "done", "damage": 0, "removed_texts": texts, "removed_bytes": bytes }))?;
    let checked = if after == Some(PRUNE) { "" } else { "no damage; " };
    watch.say(&format!("{described}: {checked}{bytes} bytes of unused texts removed\n"))
}

/// Prints what a check tells, and passes on that it is to stop.
struct Watch {
    format: Format,
    again: Again,
    is_asked_to_stop: Arc<AtomicBool>,
    part: &'static str,
    /// Lines about the progress of this part.
    lines: u64,
    /// Damage so far.
    found: usize,
    /// An output that could not be written ends the work.
    failed: Option<Failure>,
}

impl Watch {
    fn tell(&mut self, progress: &Progress<'_>) -> ControlFlow<()> {
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
        let goes_on = self.failed.is_none() && !self.is_asked_to_stop.load(Ordering::Relaxed);
        if goes_on { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }

    /// Fails if something could not be written.
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
        let hint = self.go_on(place, prunes);
        written
            .err()
            .unwrap_or(Failure::Server { message: "stopped; nothing was left half done".into(), hint })
    }

    /// The command that goes on, as it can be typed.
    fn go_on(&self, place: &str, prunes: bool) -> String {
        // Nothing is removed from a store that is damaged.
        let prune = if prunes && self.found == 0 { " --prune" } else { "" };
        let format = if self.format == Format::Json { " --format json" } else { "" };
        let Again { flag, addition } = &self.again;
        format!("`proem store check{flag}{prune} --after {place}{format}` goes on from here{addition}")
    }

    /// A failure of the store in the middle of the work, with the way to go on.
    fn interrupted(&self, error: &StoreError, place: &str, prunes: bool) -> Failure {
        let hint = error.hint().unwrap_or_default();
        let hint = if place.is_empty() { hint } else { format!("{hint}; {}", self.go_on(place, prunes)) };
        Failure::Server { message: error.to_string(), hint }
    }
}

fn line_of(event: &Value) -> Result<(), Failure> {
    print(&format!("{event}\n"))
}

/// A flag that SIGINT and SIGTERM set. What is under way is then ended after its batch.
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
        let again = |flag: Option<&str>, variable: Option<&str>| {
            let place = Place::parse(flag.or(variable).unwrap_or("own.db")).expect("it is a store");
            let Again { flag, addition } = Again::new(flag, variable, &place);
            (flag, addition)
        };
        let named = |flag: &str| (flag.to_owned(), "");
        assert_eq!(again(None, None), named(""));
        assert_eq!(again(Some("a.db"), Some("b.db")), named(" --store a.db"));
        assert_eq!(again(None, Some("sqlite:b c.db")), named(" --store 'sqlite:b c.db'"));
        assert_eq!(again(Some("$HOME's.db"), None), named(r" --store '$HOME'\''s.db'"));
        assert_eq!(again(Some("postgres://db:5433/x"), None), named(" --store postgres://db:5433/x"));
        let addition = "; write user name, password and options into the URL as before";
        let url = "postgres://me:hunter2@db/x?sslmode=require";
        assert_eq!(again(Some(url), None), (" --store postgres://db/x".to_owned(), addition));
        assert_eq!(again(None, Some(url)), (String::new(), ", with the same PROEM_STORE"));
    }
}
