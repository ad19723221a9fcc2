//! Flags that name a store or a server, and the store that they name.

use std::env;
use std::path::PathBuf;

use clap::Args;
use proem_store::{Store, StoreLocation};

use crate::failure::Failure;

/// Flags for a server in place of a store.
#[derive(Debug, Args)]
pub(crate) struct ServerFlags {
    /// Query this server instead of a store, for example `https://prompts.example.com`; the token is read from `PROEM_TOKEN`
    #[arg(long, value_name = "URL", conflicts_with = "store")]
    pub(crate) url: Option<String>,
}

/// Flags for a store.
#[derive(Debug, Args)]
pub(crate) struct StoreFlags {
    /// Store: a file, `sqlite:FILE`, or `postgres://USER@HOST/DATABASE` [default: `PROEM_STORE`, else a file in the user's
    /// data directory]
    #[arg(long, value_name = "STORE")]
    pub(crate) store: Option<String>,
}

/// Returns the location of the store: from the flag, else `PROEM_STORE`, else the data directory of the user.
pub(crate) fn place(flag: Option<&str>) -> Result<StoreLocation, Failure> {
    let named = flag.map(str::to_owned).or_else(named_by_variable).filter(|text| !text.is_empty());
    if let Some(named) = named {
        return Ok(StoreLocation::parse(&named)?);
    }
    let data = env::var_os("XDG_DATA_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let home = env::var_os("HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let folder = data.or_else(|| home.map(|home| home.join(".local/share")));
    let folder = folder.ok_or_else(|| Failure::Server {
        message: "no location for the store: HOME is not set".into(),
        hint: "name one with `--store FILE`".into(),
    })?;
    Ok(StoreLocation::Sqlite(folder.join("proem/proem.db")))
}

/// Returns the value of `PROEM_STORE`.
pub(crate) fn named_by_variable() -> Option<String> {
    env::var("PROEM_STORE").ok().filter(|text| !text.is_empty())
}

/// Opens an existing store; never creates a file.
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

/// Opens the store if it exists. A store named by the flag or the variable must exist.
pub(crate) fn open_known(flags: &StoreFlags) -> Result<Option<Box<dyn Store>>, Failure> {
    if flags.store.is_some() || env::var_os("PROEM_STORE").is_some() {
        return open(flags).map(Some);
    }
    match place(None) {
        Ok(place) if !place.is_new() => Ok(Some(place.open()?)),
        _ => Ok(None),
    }
}
