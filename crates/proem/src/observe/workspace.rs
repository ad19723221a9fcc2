//! The directory that a build is about, and the places that belong to it.

use std::path::{Component, Path, PathBuf};

use proem_core::limit::ANCESTORS_MAX;
use proem_core::profile::Profile;

use crate::error::{Error, ErrorCause, reason};
use crate::observe::file::{ReadPolicy, is_dir, metadata, without_dots};
use crate::observe::git;
use crate::observe::host::Host;

/// The name of the folder in which a workspace keeps proem's files.
pub(crate) const FOLDER: &str = ".proem";

/// The location with which a profile names its folder in the working directory.
const PLACE: &str = "workspace";

/// A directory that exists, with its path as it was given, and the folder above it that holds its settings.
#[derive(Debug, Clone)]
pub struct Workspace {
    cwd: String,
    /// The directory above the working directory whose `.proem` applies; `None` if the working directory's own applies.
    above: Option<PathBuf>,
    /// The name of the folder, where a profile gives it another one.
    name: Option<String>,
}

impl Workspace {
    /// Opens a directory, and finds the `.proem` that applies: the nearest one, from the working directory up to the
    /// root of its git repository. Outside of a repository only the directory's own applies.
    ///
    /// The search never leaves the area that the caller may read: it does not go up in a repository that holds the home
    /// directory, and for a remote client only if the whole repository lies in a workspace of the server.
    pub fn find(host: &Host, cwd: Option<&str>) -> Result<Self, Error> {
        let own = Self::open(cwd)?;
        let path = without_dots(&own.own_path());
        let above = folder_above(host, &path);
        Ok(Self { above, ..own })
    }

    /// Checks that `cwd` is a directory; the process's own when not given. Its settings are those of its own `.proem`.
    ///
    /// An absolute path stays as it is written, links unresolved, because it is what prompts show.
    pub fn open(cwd: Option<&str>) -> Result<Self, Error> {
        let refuse = |path: &str, why: &str| Error::Cwd {
            path: path.to_owned(),
            why: why.to_owned(),
            cause: ErrorCause::NONE,
        };
        let own = || std::env::current_dir().map_err(|error| refuse(".", &reason(&error)).caused_by(error));
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
            Ok(found) if found.is_dir() => Ok(Self { cwd: text.to_owned(), above: None, name: None }),
            Ok(_) => Err(refuse(text, "it is not a directory")),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                Err(refuse(text, "no such directory").caused_by(error))
            }
            Err(error) => Err(refuse(text, &reason(&error)).caused_by(error)),
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

    /// Returns the policy for the workspace's own settings: a link to the user's files is not followed.
    pub(crate) fn own_files(&self, host: &Host) -> ReadPolicy {
        ReadPolicy::beneath(&[self.root()], host.home().as_deref(), &[]).served(host.caller(), &[])
    }

    /// Returns the folder in which the workspace keeps proem's files.
    #[must_use]
    pub fn folder(&self) -> PathBuf {
        self.root().join(self.name.as_deref().unwrap_or(FOLDER))
    }

    /// The directory that holds the workspace's folder: the working directory, or one above it.
    #[must_use]
    pub fn root(&self) -> PathBuf {
        self.above.clone().unwrap_or_else(|| self.own_path())
    }

    /// Returns the folder of the settings, if it lies above the working directory.
    pub(crate) fn folder_above(&self) -> Option<PathBuf> {
        self.above.as_ref().map(|above| above.join(FOLDER))
    }

    /// Returns the workspace for a profile. A profile that names the location `workspace` uses that folder of the
    /// working directory only.
    #[must_use]
    pub fn seen_by(&self, profile: &Profile) -> Self {
        match profile.places.get(PLACE) {
            Some(name) => Self { cwd: self.cwd.clone(), above: None, name: Some(name.clone()) },
            None => self.clone(),
        }
    }

    /// Returns the path to read from. Only the file system knows where `..` leads when there are links.
    fn own_path(&self) -> PathBuf {
        let climbs = self.path().components().any(|component| component == Component::ParentDir);
        let real = if climbs { crate::observe::file::canonical(self.path()).ok() } else { None };
        real.unwrap_or_else(|| self.path().to_owned())
    }
}

/// Returns the nearest directory above `cwd`, up to the root of the repository, that has proem's folder; `None` if
/// `cwd` has one itself.
fn folder_above(host: &Host, cwd: &Path) -> Option<PathBuf> {
    let repository = repository_of(cwd).filter(|repository| is_repository(repository, cwd))?;
    if !host.reaches(repository) {
        return None;
    }
    let inside = cwd.ancestors().take_while(|folder| folder.starts_with(repository));
    let found = inside.into_iter().find(|folder| is_dir(&folder.join(FOLDER)))?;
    (found != cwd).then(|| found.to_owned())
}

/// Tells whether a folder with a `.git` is the root of the repository that git itself finds: an empty folder of that
/// name is ignored.
fn is_repository(folder: &Path, cwd: &Path) -> bool {
    let real = crate::observe::file::canonical(cwd).ok().and_then(|cwd| git::root_of(&cwd));
    real.is_some() && crate::observe::file::canonical(folder).ok() == real
}

/// The root of the git repository around a directory, by its path as it is written.
pub(crate) fn repository_of(cwd: &Path) -> Option<&Path> {
    cwd.ancestors().take(ANCESTORS_MAX).find(|folder| crate::observe::file::exists(&folder.join(".git")))
}

/// Returns a relative directory as an absolute one; `None` for any other text.
pub(crate) fn absolute_cwd(path: &str) -> Option<String> {
    if path.is_empty() || path.starts_with('/') || path.contains('\0') {
        return None;
    }
    absolute(&std::env::current_dir().ok()?, path).to_str().map(str::to_owned)
}

/// Joins a relative path to the process's directory, without `.`, `..` and doubled slashes.
fn absolute(own: &Path, path: &str) -> PathBuf {
    let joined: PathBuf = own.join(path).components().collect();
    let climbs = joined.components().any(|component| component == Component::ParentDir);
    // Only the file system knows where `..` leads when there are links.
    if climbs { crate::observe::file::canonical(&joined).unwrap_or(joined) } else { joined }
}
