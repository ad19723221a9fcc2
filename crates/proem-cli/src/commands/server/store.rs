//! `proem store`: checks, exports, imports and migrates a store.

use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use clap::{Subcommand, ValueHint};
use proem_store::{TransferError, Transferred, export, import};

use super::store_check::{self, Check, StoreOption};
use crate::arguments::store::{named_by_variable, open, place};
use crate::arguments::{Format, Output, StoreFlags};
use crate::failure::Failure;
use crate::notes::print_status;
use crate::terminal::print;

/// Check a store, or export, import and migrate its data
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
    /// Migrate the tables to the newest version, as every command does that opens a store
    Migrate {
        #[command(flatten)]
        flags: StoreFlags,
    },
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
            report(done, "exported")
        }
        StoreCommand::Import { flags, file } => {
            let store = place(flags.store.as_deref())?.open()?;
            let done = match file.as_deref().filter(|path| *path != Path::new("-")) {
                Some(path) => import(&*store, &mut BufReader::new(opened(path)?)),
                None => import(&*store, &mut BufReader::new(io::stdin().lock())),
            };
            report(done, "imported")
        }
        StoreCommand::Migrate { flags } => {
            let store = open(flags)?;
            print(&format!("{}: its tables have the newest version\n", store.describe()))
        }
    }
}

fn report(done: Result<Transferred, TransferError>, word: &str) -> Result<(), Failure> {
    match done {
        Ok(Transferred { epochs, templates }) => {
            print_status(&format!("{word} {epochs} epochs and {templates} versions of the template"));
            io::stdout().flush().map_err(Failure::Output)
        }
        Err(TransferError::Store(error)) => Err(error.into()),
        Err(error) => Err(Failure::Server {
            message: format!("the transfer stopped: {error}"),
            hint: "everything before it is done; fix the cause and run the command again".into(),
        }),
    }
}

/// Creates the file of an export. It contains every prompt, so only its owner may read it, as with the store itself.
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
