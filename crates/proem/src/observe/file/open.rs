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
use crate::error::reason;

/// What the kernel writes behind the name of what was removed.
#[cfg(target_os = "linux")]
const DELETED: &[u8] = b" (deleted)";

/// What stays the same when a file has several names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Identity {
    device: u64,
    inode: u64,
}

impl Identity {
    pub(crate) fn of(metadata: &Metadata) -> Self {
        Self { device: metadata.dev(), inode: metadata.ino() }
    }

    /// The same, from the system call.
    pub(crate) fn of_status(status: &rustix::fs::Stat) -> Self {
        // The types differ between systems.
        fn wide(number: impl TryInto<u64>) -> u64 {
            number.try_into().unwrap_or(u64::MAX)
        }
        Self { device: wide(status.st_dev), inode: wide(status.st_ino) }
    }
}

/// An open regular file, with the path that it really has.
pub(super) struct Opened {
    pub(super) file: File,
    pub(super) bytes: u64,
    pub(super) path: PathBuf,
    pub(super) identity: Identity,
}

/// Opens `path` if it is a regular file and `judge` accepts its real path.
///
/// Judges before it opens: a FIFO's writer or a device never notices, and a file that is refused was never open. That
/// matters beyond politeness. When a process closes any descriptor of a file, the system drops all locks that the process
/// holds on that file, so a refused link to the store's database would still end the store's locks.
pub(super) fn open(path: &Path, judge: impl FnOnce(&Path) -> Result<(), Absence>) -> Result<Opened, Absence> {
    look(path, Look::Content);
    let (found, real) = find(path).map_err(|error| absence(&error))?;
    let real = real.map_or_else(|| found.real_path(path), Ok).map_err(|error| absence(&error))?;
    judge(&real)?;
    found.regular()?;
    let (bytes, identity) = (found.bytes(), found.identity());
    Ok(Opened { file: found.open(path)?, bytes, path: real, identity })
}

/// Opens `path` if it is a regular file that is itself no link, and `judge` accepts its real path; `None` if it is a link.
pub(super) fn open_unlinked(
    path: &Path,
    judge: impl FnOnce(&Handle) -> Result<(), Absence>,
) -> Result<Option<(File, u64)>, Absence> {
    look(path, Look::Content);
    let found = Handle::of(path, OFlags::NOFOLLOW).map_err(|error| absence(&error))?;
    if found.kind() == FileType::Symlink {
        return Ok(None);
    }
    found.regular()?;
    judge(&found)?;
    let bytes = found.bytes();
    Ok(Some((found.open(path)?, bytes)))
}

/// Opens what the user named on the command line, whatever it is: a pipe is fine there, the store is not.
pub fn open_named(path: &Path) -> io::Result<File> {
    let found = Handle::of(path, OFlags::empty())?;
    // Waits for a pipe's writer, as every program does that is told to read one.
    found.open_as(path, OFlags::RDONLY | OFlags::NOCTTY | OFlags::CLOEXEC).map_err(|why| match why {
        Absence::Unreadable(why) => io::Error::other(why),
        why => io::Error::other(why.to_string()),
    })
}

/// Finds a path, and says which one it really has if there is no link on the way.
fn find(path: &Path) -> io::Result<(Handle, Option<PathBuf>)> {
    match find_linkless(path)? {
        Some((handle, real)) => Ok((handle, Some(real))),
        None => Ok((Handle::of(path, OFlags::empty())?, None)),
    }
}

/// Finds a path on which there is no link, which says what its real path is: the one that is written. `None` where there is
/// one, and where the system cannot tell.
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

/// The path of what was opened, links resolved: asked of the descriptor, so that nobody can swap it.
#[cfg(target_os = "linux")]
pub(crate) fn real_path(file: &impl AsRawFd, _path: &Path) -> io::Result<PathBuf> {
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    let path = std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
    // What was replaced meanwhile keeps its name, with a mark behind it. A name that says secret must not
    // become harmless by that.
    let name = path.as_os_str().as_bytes();
    Ok(OsString::from_vec(name.strip_suffix(DELETED).unwrap_or(name).to_vec()).into())
}

/// The path with every link resolved, as the kernel finds it: two calls where there is no link and five where there is,
/// where asking link by link takes one for each folder on the way.
#[cfg(target_os = "linux")]
pub(crate) fn canonical(path: &Path) -> io::Result<PathBuf> {
    look(path, Look::Kind);
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    if let Some((_, real)) = open_linkless(path, flags)? {
        return Ok(real);
    }
    let opened = rustix::fs::open(path, flags, Mode::empty())?;
    let real = std::fs::read_link(format!("/proc/self/fd/{}", opened.as_raw_fd()));
    match real {
        Ok(real) if real.is_absolute() && !is_marked_deleted(&real) => Ok(real),
        // Without `/proc`, for what was removed meanwhile, and for a name that looks as if it were.
        _ => path.canonicalize(),
    }
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn canonical(path: &Path) -> io::Result<PathBuf> {
    look(path, Look::Kind);
    path.canonicalize()
}

#[cfg(target_os = "linux")]
fn is_marked_deleted(path: &Path) -> bool {
    path.as_os_str().as_encoded_bytes().ends_with(DELETED)
}

/// The path of what was opened, links resolved, checked against the descriptor's identity.
#[cfg(not(target_os = "linux"))]
pub(crate) fn real_path(file: &impl std::os::fd::AsFd, path: &Path) -> io::Result<PathBuf> {
    let real = path.canonicalize()?;
    let (found, opened) = (std::fs::symlink_metadata(&real)?, rustix::fs::fstat(file)?);
    let is_same = Identity::of(&found) == Identity::of_status(&opened);
    if is_same { Ok(real) } else { Err(io::Error::other("the path changed while it was read")) }
}

/// Tells whether `path` leads to a regular file, without opening it.
pub(crate) fn check_regular(path: &Path) -> Result<(), Absence> {
    look(path, Look::Kind);
    let status = rustix::fs::stat(path).map_err(|error| absence(&error.into()))?;
    regular(FileType::from_raw_mode(status.st_mode))
}

/// Why something is absent, from the system's error.
pub(super) fn absence(error: &io::Error) -> Absence {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Absence::NoSuchFile,
        io::ErrorKind::InvalidFilename => Absence::BadPath("the path is too long"),
        _ => Absence::Unreadable(reason(error)),
    }
}
