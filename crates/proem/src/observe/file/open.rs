//! Opens regular files and nothing else, without waiting for anything.

use std::ffi::OsString;
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use proem_core::fact::Absence;
use rustix::fs::{FileType, Mode, OFlags};

use super::handle::{Handle, regular};
use super::lazy::{Look, look};
use super::view::{as_seen, on_disk};
use crate::error::reason;

/// The mark that the kernel appends to the path of a removed file.
#[cfg(target_os = "linux")]
const DELETED: &[u8] = b" (deleted)";

/// The numbers that identify a file, whichever of its names is used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Identity {
    device: u64,
    inode: u64,
}

impl Identity {
    pub(crate) fn from_metadata(metadata: &Metadata) -> Self {
        Self { device: metadata.dev(), inode: metadata.ino() }
    }

    /// Takes the identity from the result of the system call.
    pub(crate) fn from_status(status: &rustix::fs::Stat) -> Self {
        // The types differ between systems.
        fn wide(number: impl TryInto<u64>) -> u64 {
            number.try_into().unwrap_or(u64::MAX)
        }
        Self { device: wide(status.st_dev), inode: wide(status.st_ino) }
    }
}

/// An open regular file, with its real path.
pub(super) struct OpenFile {
    pub(super) file: File,
    pub(super) bytes: u64,
    pub(super) path: PathBuf,
    pub(super) identity: Identity,
}

/// Opens `path` if it is a regular file and `judge` accepts its real path.
///
/// Judges before it opens: the writer of a FIFO or a device never notices, and a refused file was never open. This
/// protects the store: when a process closes any descriptor of a file, the system drops all locks that the process
/// holds on that file, so a refused link to the store's database would still end the store's locks.
pub(super) fn open(
    path: &Path,
    judge: impl FnOnce(&Path) -> Result<(), Absence>,
) -> Result<OpenFile, Absence> {
    look(path, Look::Content);
    let at = on_disk(path);
    let (found, real) = find(&at).map_err(|error| absence(&error))?;
    let real = real.map(as_seen).map_or_else(|| found.real_path(&at), Ok).map_err(|error| absence(&error))?;
    judge(&real)?;
    found.regular()?;
    let (bytes, identity) = (found.bytes(), found.identity());
    Ok(OpenFile { file: found.open(&at)?, bytes, path: real, identity })
}

/// Opens `path` if it is a regular file and `judge` accepts its real path; returns `None` if `path` is a link.
pub(super) fn open_unlinked(
    path: &Path,
    judge: impl FnOnce(&Handle) -> Result<(), Absence>,
) -> Result<Option<(File, u64)>, Absence> {
    look(path, Look::Content);
    let at = on_disk(path);
    let found = Handle::find(&at, OFlags::NOFOLLOW).map_err(|error| absence(&error))?;
    if found.kind() == FileType::Symlink {
        return Ok(None);
    }
    found.regular()?;
    judge(&found)?;
    let bytes = found.bytes();
    Ok(Some((found.open(&at)?, bytes)))
}

/// Opens a path that the user named on the command line. A pipe is accepted, a file of the store is not.
pub fn open_named(path: &Path) -> io::Result<File> {
    let found = Handle::find(path, OFlags::empty())?;
    // Waits for a pipe's writer, as every program does that reads from a pipe.
    found.open_as(path, OFlags::RDONLY | OFlags::NOCTTY | OFlags::CLOEXEC).map_err(|why| match why {
        Absence::Unreadable(why) => io::Error::other(why),
        why => io::Error::other(why.to_string()),
    })
}

/// Finds a path, and returns its real path if there is no link on the way.
fn find(path: &Path) -> io::Result<(Handle, Option<PathBuf>)> {
    match find_linkless(path)? {
        Some((handle, real)) => Ok((handle, Some(real))),
        None => Ok((Handle::find(path, OFlags::empty())?, None)),
    }
}

/// Finds a path without links, whose real path is the path as it is written. Returns `None` if a link is on the way or
/// the system cannot tell.
#[cfg(target_os = "linux")]
fn find_linkless(path: &Path) -> io::Result<Option<(Handle, PathBuf)>> {
    let Some((descriptor, real)) = open_linkless(path, OFlags::PATH | OFlags::CLOEXEC)? else {
        return Ok(None);
    };
    Ok(Some((Handle::from_descriptor(descriptor)?, real)))
}

#[cfg(not(target_os = "linux"))]
fn find_linkless(_path: &Path) -> io::Result<Option<(Handle, PathBuf)>> {
    Ok(None)
}

/// Opens a path on which there is no link.
#[cfg(target_os = "linux")]
fn open_linkless(path: &Path, flags: OFlags) -> io::Result<Option<(OwnedFd, PathBuf)>> {
    use std::path::Component;

    use rustix::fs::{CWD, ResolveFlags, openat2};
    use rustix::io::Errno;
    let is_climbing = |part: Component<'_>| matches!(part, Component::CurDir | Component::ParentDir);
    let is_plain = super::policy::is_plain(path);
    if !is_plain && (!path.is_absolute() || path.components().any(is_climbing)) {
        return Ok(None);
    }
    match openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
        Ok(opened) if is_plain => Ok(Some((opened, path.to_owned()))),
        Ok(opened) => Ok(Some((opened, path.components().collect()))),
        // A link; or an old kernel, or a sandbox that does not know the call.
        Err(Errno::LOOP | Errno::NOSYS | Errno::PERM) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Returns the path of an open file, links resolved. The descriptor is queried, so a swapped folder has no effect.
#[cfg(target_os = "linux")]
pub(crate) fn real_path(file: &impl AsRawFd, _path: &Path) -> io::Result<PathBuf> {
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    let path = std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
    // The kernel appends a mark to the name of a replaced file. The mark must not make the name of a secret file look
    // harmless.
    let name = path.as_os_str().as_bytes();
    Ok(as_seen(OsString::from_vec(name.strip_suffix(DELETED).unwrap_or(name).to_vec()).into()))
}

/// Returns the path with every link resolved by the kernel: two calls without a link and five with one, instead of one
/// call for each folder on the way.
#[cfg(target_os = "linux")]
pub(crate) fn canonical(path: &Path) -> io::Result<PathBuf> {
    look(path, Look::Kind);
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let path = &*on_disk(path);
    if let Some((_, real)) = open_linkless(path, flags)? {
        return Ok(as_seen(real));
    }
    let opened = rustix::fs::open(path, flags, Mode::empty())?;
    let real = std::fs::read_link(format!("/proc/self/fd/{}", opened.as_raw_fd()));
    match real {
        Ok(real) if real.is_absolute() && !is_marked_deleted(&real) => Ok(as_seen(real)),
        // There is no `/proc`, or the file was removed meanwhile, or its name looks as if it were.
        _ => path.canonicalize().map(as_seen),
    }
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn canonical(path: &Path) -> io::Result<PathBuf> {
    look(path, Look::Kind);
    on_disk(path).canonicalize().map(as_seen)
}

#[cfg(target_os = "linux")]
fn is_marked_deleted(path: &Path) -> bool {
    path.as_os_str().as_encoded_bytes().ends_with(DELETED)
}

/// Returns the path of an open file, links resolved, checked against the descriptor's identity.
#[cfg(not(target_os = "linux"))]
pub(crate) fn real_path(file: &impl std::os::fd::AsFd, path: &Path) -> io::Result<PathBuf> {
    let real = on_disk(path).canonicalize()?;
    let (found, opened) = (std::fs::symlink_metadata(&real)?, rustix::fs::fstat(file)?);
    let is_same = Identity::from_metadata(&found) == Identity::from_status(&opened);
    if is_same { Ok(as_seen(real)) } else { Err(io::Error::other("the path changed while it was read")) }
}

/// Tells whether `path` leads to a regular file, without opening it.
pub(crate) fn check_regular(path: &Path) -> Result<(), Absence> {
    look(path, Look::Kind);
    let status = rustix::fs::stat(&*on_disk(path)).map_err(|error| absence(&error.into()))?;
    regular(FileType::from_raw_mode(status.st_mode))
}

/// Converts a system error to the reason why a file is absent.
pub(super) fn absence(error: &io::Error) -> Absence {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Absence::NoSuchFile,
        io::ErrorKind::InvalidFilename => Absence::BadPath("the path is too long"),
        _ => Absence::Unreadable(reason(error)),
    }
}
