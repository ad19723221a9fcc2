//! `proem store`: what is kept, as a whole.

use std::env;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use proem_store::{Place, Record, Store, TransferError, Transferred, export, import};

use super::store_check::{self, Again, Check};
use crate::arguments::{StoreCommand, StoreFlags};
use crate::failure::Failure;
use crate::notes::print_status;
use crate::terminal::{print, visible_line};

/// The store that a flag names, else the environment, else the user's own.
pub(super) fn place(flag: Option<&str>) -> Result<Place, Failure> {
    let said = flag.map(str::to_owned).or_else(named_by_variable).filter(|text| !text.is_empty());
    if let Some(said) = said {
        return Ok(Place::parse(&said)?);
    }
    let data = env::var_os("XDG_DATA_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let home = env::var_os("HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let folder = data.or_else(|| home.map(|home| home.join(".local/share")));
    let folder = folder.ok_or_else(|| Failure::Server {
        message: "there is no place for the store: HOME is not set".into(),
        hint: "name one with `--store FILE`".into(),
    })?;
    Ok(Place::Sqlite(folder.join("proem/proem.db")))
}

/// The store that the environment names.
fn named_by_variable() -> Option<String> {
    env::var("PROEM_STORE").ok().filter(|text| !text.is_empty())
}

/// Opens the store; one that is not there is not made by looking at it.
pub(super) fn open(flags: &StoreFlags) -> Result<Box<dyn Store>, Failure> {
    let place = place(flags.store.as_deref())?;
    if let Some(path) = place.path().filter(|path| !path.exists()) {
        return Err(Failure::Server {
            message: format!("there is no store at {}", path.display()),
            hint: "`proem serve` makes one; name another with `--store`".into(),
        });
    }
    Ok(place.open()?)
}

/// Opens the store if there is one; one that was named must be there.
pub(super) fn open_known(flags: &StoreFlags) -> Result<Option<Box<dyn Store>>, Failure> {
    if flags.store.is_some() || env::var_os("PROEM_STORE").is_some() {
        return open(flags).map(Some);
    }
    match place(None) {
        Ok(place) if !place.is_new() => Ok(Some(place.open()?)),
        _ => Ok(None),
    }
}

pub(super) fn run(command: &StoreCommand) -> Result<(), Failure> {
    match command {
        StoreCommand::Check { flags, prune, after, output } => {
            let (flag, variable) = (flags.store.as_deref(), named_by_variable());
            let again = Again::new(flag, variable.as_deref(), &place(flag)?);
            let store = open(flags)?;
            let (after, format) = (after.as_deref(), output.format());
            store_check::run(Check { store: &*store, again, prunes: *prune, after, format })
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
        StoreCommand::Migrate { flags } => {
            let store = open(flags)?;
            print(&format!("{}: its tables are of the newest version\n", store.describe()))
        }
    }
}

fn exported(done: Result<Transferred, TransferError>) -> Result<(), Failure> {
    match done {
        Ok(Transferred { epochs, templates, .. }) => {
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
fn imported(place: &Place, name: &str, lines: &mut dyn BufRead) -> Result<(), Failure> {
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
    Record::parse(text.trim()).map_err(|why| malformed(&format!("line {first}: {why}")))?;
    let store = place.open()?;
    match import(&*store, &mut begin.as_slice().chain(lines)) {
        Ok(Transferred { epochs, templates, known_epochs, known_templates }) => {
            let known = match known_epochs + known_templates {
                0 => String::new(),
                _ => format!("; {} were there already", counted(known_epochs, known_templates)),
            };
            print_status(&format!("imported {}{known}", counted(epochs, templates)));
            Ok(())
        }
        Err(TransferError::Store(error)) => Err(error.into()),
        Err(error @ TransferError::Line(..)) => {
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
