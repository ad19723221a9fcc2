//! `proem store`: what is kept, as a whole.

use std::env;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use proem_store::{Store, TransferError, Transferred, export, import};

use super::store_check;
use crate::arguments::{StoreCommand, StoreFlags};
use crate::failure::Failure;
use crate::notes::print_status;
use crate::terminal::print;

/// The store that a flag names, else the environment, else the user's own.
pub(super) fn place(flag: Option<&str>) -> Result<String, Failure> {
    let said =
        flag.map(str::to_owned).or_else(|| env::var("PROEM_STORE").ok()).filter(|text| !text.is_empty());
    if let Some(said) = said {
        return Ok(said);
    }
    let data = env::var_os("XDG_DATA_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let home = env::var_os("HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let folder = data.or_else(|| home.map(|home| home.join(".local/share")));
    let folder = folder.ok_or_else(|| Failure::Server {
        message: "there is no place for the store: HOME is not set".into(),
        hint: "name one with `--store FILE`".into(),
    })?;
    Ok(folder.join("proem/proem.db").display().to_string())
}

/// Opens the store; one that is not there is not made by looking at it.
pub(super) fn open(flags: &StoreFlags) -> Result<Box<dyn Store>, Failure> {
    let place = place(flags.store.as_deref())?;
    let path = place.strip_prefix("sqlite:").unwrap_or(&place);
    if !place.contains("://") && !Path::new(path).exists() {
        return Err(Failure::Server {
            message: format!("there is no store at {path}"),
            hint: "`proem serve` makes one; name another with `--store`".into(),
        });
    }
    Ok(proem_store::open(&place)?)
}

/// Opens the store if there is one; one that was named must be there.
pub(super) fn open_known(flags: &StoreFlags) -> Result<Option<Box<dyn Store>>, Failure> {
    if flags.store.is_some() || env::var_os("PROEM_STORE").is_some() {
        return open(flags).map(Some);
    }
    match place(None) {
        Ok(place) if Path::new(&place).exists() => Ok(Some(proem_store::open(&place)?)),
        _ => Ok(None),
    }
}

pub(super) fn run(command: &StoreCommand) -> Result<(), Failure> {
    match command {
        StoreCommand::Check { flags, prune, after, output } => {
            store_check::run(&*open(flags)?, *prune, after.as_deref(), output.format())
        }
        StoreCommand::Export { flags, file } => {
            let store = open(flags)?;
            let done = match file {
                Some(path) => export(&*store, &mut BufWriter::new(created(path)?)),
                None => export(&*store, &mut BufWriter::new(io::stdout().lock())),
            };
            report(done, "exported")
        }
        StoreCommand::Import { flags, file } => {
            let store = proem_store::open(&place(flags.store.as_deref())?)?;
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

fn created(path: &Path) -> Result<File, Failure> {
    File::create_new(path).map_err(|why| Failure::Write { path: path.display().to_string(), why })
}

fn opened(path: &Path) -> Result<File, Failure> {
    proem::open_named(path).map_err(|error| Failure::Input {
        what: "export",
        path: path.display().to_string(),
        why: crate::input::reason(&error),
    })
}
