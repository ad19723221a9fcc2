//! The directory that a build is about, and the places that belong to it.

use std::path::{Component, Path, PathBuf};

use crate::error::Error;
use crate::file::{ReadPolicy, metadata, reason};
use crate::host::Host;

/// The name of the folder in which a workspace keeps what is proem's.
pub(crate) const FOLDER: &str = ".proem";

/// A directory that exists, with its path as it was given.
#[derive(Debug, Clone)]
pub struct Workspace {
    cwd: String,
}

impl Workspace {
    /// Checks that `cwd` is a directory; the process's own when not given.
    ///
    /// An absolute path stays as it is written, links unresolved, because it is what prompts show.
    pub fn open(cwd: Option<&str>) -> Result<Self, Error> {
        let refuse = |path: &str, why: &str| Error::Cwd { path: path.to_owned(), why: why.to_owned() };
        let own = || std::env::current_dir().map_err(|error| refuse(".", &reason(&error)));
        let path = match cwd {
            Some("") => return Err(refuse("", "it is empty")),
            Some(path) if path.contains('\0') => {
                return Err(refuse(&path.escape_debug().to_string(), "it has a NUL"));
            }
            Some(path) if path.starts_with('/') => PathBuf::from(path),
            Some(path) => absolute(&own()?, path),
            None => own()?,
        };
        let text = path.to_str().ok_or_else(|| refuse(&path.to_string_lossy(), "its path is not UTF-8"))?;
        match metadata(&path) {
            Ok(found) if found.is_dir() => Ok(Self { cwd: text.to_owned() }),
            Ok(_) => Err(refuse(text, "it is not a directory")),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                Err(refuse(text, "no such directory"))
            }
            Err(error) => Err(refuse(text, &reason(&error))),
        }
    }

    /// The path as text.
    #[must_use]
    pub fn cwd(&self) -> &str {
        &self.cwd
    }

    /// The path.
    #[must_use]
    pub fn path(&self) -> &Path {
        Path::new(&self.cwd)
    }

    /// What may be read as the workspace's own settings: a link to the user's files is not followed.
    pub(crate) fn own_files(&self, host: &Host) -> ReadPolicy {
        ReadPolicy::beneath(&[self.own_path()], host.home().as_deref(), &[])
    }

    /// The folder in which the workspace keeps what is proem's.
    #[must_use]
    pub fn folder(&self) -> PathBuf {
        self.own_path().join(FOLDER)
    }

    /// The path to read from. Only the file system knows where `..` leads when there are links.
    fn own_path(&self) -> PathBuf {
        let climbs = self.path().components().any(|component| component == Component::ParentDir);
        let real = if climbs { crate::file::canonical(self.path()).ok() } else { None };
        real.unwrap_or_else(|| self.path().to_owned())
    }
}

/// Joins a relative path to the process's directory, without `.`, `..` and doubled slashes.
fn absolute(own: &Path, path: &str) -> PathBuf {
    let joined: PathBuf = own.join(path).components().collect();
    let climbs = joined.components().any(|component| component == Component::ParentDir);
    // Only the file system knows where `..` leads when there are links.
    if climbs { crate::file::canonical(&joined).unwrap_or(joined) } else { joined }
}
