//! `proem store`: checks, exports, imports and migrates a store.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use clap::{Subcommand, ValueHint};
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use proem_store::{ExportLine, StoreLocation, TransferCounts, TransferError, export, import};

use super::store_check::{self, Check, StoreOption};
use crate::arguments::store::{named_by_variable, open, place};
use crate::arguments::{Format, Output, StoreFlags};
use crate::failure::Failure;
use crate::notes::print_status;
use crate::terminal::{print, visible_line};

/// Check a store, forget calls, or export, import and migrate its data
#[derive(Debug, Subcommand)]
pub(crate) enum StoreCommand {
    /// Check a store for damage; exits with code 1 if there is any
    Check {
        #[command(flatten)]
        flags: StoreFlags,
        /// Also remove texts that no epoch uses
        #[arg(long)]
        prune: bool,
        /// Continue an interrupted check after the place that it printed
        #[arg(long, value_name = "PLACE", value_parser = place_of_check)]
        after: Option<String>,
        #[command(flatten)]
        output: Output<Format>,
    },
    /// Export everything as JSON lines
    Export {
        #[command(flatten)]
        flags: StoreFlags,
        /// File to create, readable by its owner alone; never overwritten; `-` is standard output, the default
        #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
        file: Option<PathBuf>,
    },
    /// Import an export; existing data stays
    Import {
        #[command(flatten)]
        flags: StoreFlags,
        /// File to read; `-` is standard input [default: standard input]
        #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
        file: Option<PathBuf>,
    },
    /// Remove recorded calls of agents, with their sums and excerpts
    Forget {
        #[command(flatten)]
        flags: StoreFlags,
        /// Remove calls; nothing else can be forgotten like this
        #[arg(long, required = true)]
        calls: bool,
        /// Time before which calls are removed: RFC 3339, a day such as `2026-11-01`, or an age such as `30d`
        #[arg(long, value_name = "TIME", value_parser = time)]
        before: Timestamp,
    },
    /// Migrate the tables to the newest version, as every command does that opens a store
    Migrate {
        #[command(flatten)]
        flags: StoreFlags,
    },
}

/// Parses a time: RFC 3339, a day in UTC, or an age.
fn time(text: &str) -> Result<Timestamp, String> {
    let wrong =
        || "write a time such as `2026-11-01T12:00:00Z`, a day, or an age such as `30d` or `12h`".to_owned();
    if let Ok(at) = text.parse() {
        return Ok(at);
    }
    if let Ok(day) = text.parse::<Date>() {
        return TimeZone::UTC.to_timestamp(day.at(0, 0, 0, 0)).map_err(|_| wrong());
    }
    let unit = match text.chars().last() {
        Some('d') => 86_400,
        Some('h') => 3_600,
        _ => return Err(wrong()),
    };
    let count: i64 = text.trim_end_matches(['d', 'h']).parse().map_err(|_| wrong())?;
    let seconds = count.checked_mul(unit).filter(|seconds| *seconds >= 0).ok_or_else(wrong)?;
    Timestamp::now().checked_sub(SignedDuration::from_secs(seconds)).map_err(|_| wrong())
}

/// Parses the place at which a check stopped.
fn place_of_check(text: &str) -> Result<String, &'static str> {
    let is_place = text == PRUNE || proem_store::Cursor::parse(text).is_some();
    is_place.then(|| text.to_owned()).ok_or("an interrupted `proem store check` prints the place")
}

/// The place after the check itself: pruning finds its own position.
pub(crate) const PRUNE: &str = "prune";

pub(crate) fn run(command: &StoreCommand) -> Result<(), Failure> {
    match command {
        StoreCommand::Check { flags, prune, after, output } => {
            let (flag, variable) = (flags.store.as_deref(), named_by_variable());
            let store_option = StoreOption::new(flag, variable.as_deref(), &place(flag)?);
            let store = open(flags)?;
            let (after, format) = (after.as_deref(), output.format());
            store_check::run(Check { store: &*store, store_option, prunes: *prune, after, format })
        }
        StoreCommand::Export { flags, file } => {
            let store = open(flags)?;
            let done = match file.as_deref().filter(|path| *path != Path::new("-")) {
                Some(path) => export(&*store, &mut BufWriter::new(created(path)?)),
                None => export(&*store, &mut BufWriter::new(io::stdout().lock())),
            };
            exported(done)
        }
        StoreCommand::Import { flags, file } => {
            let place = place(flags.store.as_deref())?;
            match file.as_deref().filter(|path| *path != Path::new("-")) {
                Some(path) => {
                    let name = visible_line(&path.display().to_string());
                    imported(&place, &name, &mut BufReader::new(opened(path)?))
                }
                None => imported(&place, "standard input", &mut BufReader::new(io::stdin().lock())),
            }
        }
        StoreCommand::Forget { flags, calls: _, before } => {
            let removed = open(flags)?.forget_calls(before.as_millisecond())?;
            let calls = if removed == 1 { "call" } else { "calls" };
            print(&format!("removed {removed} {calls} before {before}, with their sums\n"))
        }
        StoreCommand::Migrate { flags } => {
            let store = open(flags)?;
            print(&format!("{}: its tables have the newest version\n", store.describe()))
        }
    }
}

fn exported(done: Result<TransferCounts, TransferError>) -> Result<(), Failure> {
    match done {
        Ok(TransferCounts { epochs, templates, .. }) => {
            print_status(&format!("exported {}", counted(epochs, templates)));
            io::stdout().flush().map_err(Failure::Output)
        }
        Err(TransferError::Store(error)) => Err(error.into()),
        Err(error) => Err(Failure::Server {
            message: format!("the export stopped: {error}"),
            hint: "what was written before is not whole; run it again when the cause is gone".into(),
        }),
    }
}

/// Imports lines into a store, which is made only when the first line is one of an export.
fn imported(place: &StoreLocation, name: &str, lines: &mut dyn BufRead) -> Result<(), Failure> {
    const HINT: &str = "import what `proem store export` wrote, whole and unchanged";
    let malformed = |why: &str| Failure::Usage {
        message: format!("cannot import {name} into the store {place}: {why}"),
        hint: HINT.into(),
    };
    let (begin, first) = beginning(lines).map_err(|error| malformed(&crate::input::reason(&error)))?;
    if begin.trim_ascii().is_empty() {
        return Err(malformed("it is empty"));
    }
    let text =
        std::str::from_utf8(&begin).map_err(|_| malformed(&format!("line {first}: it is not UTF-8")))?;
    ExportLine::parse(text.trim()).map_err(|why| malformed(&format!("line {first}: {why}")))?;
    let store = place.open()?;
    match import(&*store, &mut begin.as_slice().chain(lines)) {
        Ok(TransferCounts { epochs, templates, known_epochs, known_templates }) => {
            let known = match known_epochs + known_templates {
                0 => String::new(),
                _ => format!("; {} were there already", counted(known_epochs, known_templates)),
            };
            print_status(&format!("imported {}{known}", counted(epochs, templates)));
            Ok(())
        }
        Err(TransferError::Store(error)) => Err(error.into()),
        Err(error @ TransferError::Line { .. }) => {
            let hint = format!("{HINT}; the lines before it stay imported");
            Err(Failure::Usage {
                message: format!("cannot import {name} into the store {place}: {error}"),
                hint,
            })
        }
        Err(error) => Err(Failure::Server {
            message: format!("cannot import {name} into the store {place}: {error}"),
            hint: "nothing is ever replaced; the lines before it stay imported".into(),
        }),
    }
}

/// Reads up to the end of the first line that is not blank; returns the bytes and the number of that line.
fn beginning(lines: &mut dyn BufRead) -> io::Result<(Vec<u8>, usize)> {
    let (mut begin, mut count) = (Vec::new(), 0);
    while begin.trim_ascii().is_empty() {
        count += 1;
        if lines.read_until(b'\n', &mut begin)? == 0 {
            break;
        }
    }
    Ok((begin, count))
}

fn counted(epochs: u64, templates: u64) -> String {
    let word = |count: u64, one: &str, many: &str| format!("{count} {}", if count == 1 { one } else { many });
    let templates = word(templates, "version of the template", "versions of the template");
    format!("{} and {templates}", word(epochs, "epoch", "epochs"))
}

/// Makes the file of an export. It holds every prompt, and so only its owner may read it, as with the store itself.
fn created(path: &Path) -> Result<File, Failure> {
    let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    made.map_err(|why| Failure::Write { path: path.display().to_string(), why })
}

fn opened(path: &Path) -> Result<File, Failure> {
    proem::open_named(path).map_err(|error| Failure::Input {
        what: "export",
        path: path.display().to_string(),
        why: crate::input::reason(&error),
    })
}
