//! `proem store`: what is kept, as a whole.

use std::env;
use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use proem_store::{Place, Store, TransferError, Transferred, export, import};

use super::store_check::{self, Again, Check};
use crate::arguments::{StoreCommand, StoreFlags};
use crate::failure::Failure;
use crate::notes::print_status;
use crate::terminal::print;

/// The store that a flag names, else the environment, else the user's own.
pub(crate) fn place(flag: Option<&str>) -> Result<Place, Failure> {
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
pub(crate) fn open(flags: &StoreFlags) -> Result<Box<dyn Store>, Failure> {
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
pub(crate) fn open_known(flags: &StoreFlags) -> Result<Option<Box<dyn Store>>, Failure> {
    if flags.store.is_some() || env::var_os("PROEM_STORE").is_some() {
        return open(flags).map(Some);
    }
    match place(None) {
        Ok(place) if !place.is_new() => Ok(Some(place.open()?)),
        _ => Ok(None),
    }
}

pub(crate) fn run(command: &StoreCommand) -> Result<(), Failure> {
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
            print(&format!("{}: its tables are of the newest version\n", store.describe()))
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
            message: format!("it stopped: {error}"),
            hint: "what was done before stays; run it again when the cause is gone".into(),
        }),
    }
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
