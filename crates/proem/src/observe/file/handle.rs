//! The only way to the content of files: finds a file without opening it, and opens what was found.
//!
//! On Linux a file is found with `O_PATH`, which neither reads nor locks nor waits, and is opened for reading through
//! `/proc/self/fd`, so that the file that was judged is the file that is opened. Elsewhere the file is judged by name
//! and then opened. If it turns out to be reserved only after that, its descriptor stays open for the life of the
//! process, because closing it would drop the locks of its owner.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use proem_core::fact::Absence;
use rustix::fs::{FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::open::{Identity, absence};
use super::reserved;

/// Flags with which files are opened for reading: never waits, never becomes a terminal's owner.
const READ: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// A file that was found and is not open for reading.
pub(crate) struct Handle {
    /// A descriptor that leads to the file without opening it; `None` where the system has no such descriptors.
    descriptor: Option<OwnedFd>,
    status: Stat,
}

impl Handle {
    /// Finds the file at `path`. With `NOFOLLOW` that may be a link itself.
    pub(super) fn find(path: &Path, flags: OFlags) -> io::Result<Self> {
        #[cfg(target_os = "linux")]
        return Self::from_descriptor(rustix::fs::open(
            path,
            OFlags::PATH | OFlags::CLOEXEC | flags,
            Mode::empty(),
        )?);
        #[cfg(not(target_os = "linux"))]
        {
            let status = if flags.contains(OFlags::NOFOLLOW) {
                rustix::fs::lstat(path)
            } else {
                rustix::fs::stat(path)
            };
            Ok(Self { descriptor: None, status: status? })
        }
    }

    /// Finds `name` below a folder that is open, without following a link.
    pub(crate) fn below(folder: BorrowedFd<'_>, name: &[u8]) -> Result<Self, Errno> {
        #[cfg(target_os = "linux")]
        return super::open_below(folder, name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC).and_then(
            |descriptor| Ok(Self { status: rustix::fs::fstat(&descriptor)?, descriptor: Some(descriptor) }),
        );
        #[cfg(not(target_os = "linux"))]
        {
            let status = rustix::fs::statat(folder, name, rustix::fs::AtFlags::SYMLINK_NOFOLLOW)?;
            Ok(Self { descriptor: None, status })
        }
    }

    /// Takes a descriptor that was opened with `O_PATH`.
    #[cfg(target_os = "linux")]
    pub(super) fn from_descriptor(descriptor: OwnedFd) -> io::Result<Self> {
        let status = rustix::fs::fstat(&descriptor)?;
        Ok(Self { descriptor: Some(descriptor), status })
    }

    pub(crate) fn status(&self) -> &Stat {
        &self.status
    }

    pub(crate) fn kind(&self) -> FileType {
        FileType::from_raw_mode(self.status.st_mode)
    }

    pub(super) fn bytes(&self) -> u64 {
        u64::try_from(self.status.st_size).unwrap_or_default()
    }

    pub(super) fn identity(&self) -> Identity {
        Identity::from_status(&self.status)
    }

    /// Fails for everything but a regular file.
    pub(super) fn regular(&self) -> Result<(), Absence> {
        regular(self.kind())
    }

    /// Returns the path of the file, links resolved. The descriptor is queried, so a swapped folder has no effect.
    pub(super) fn real_path(&self, path: &Path) -> io::Result<PathBuf> {
        if let Some(descriptor) = &self.descriptor {
            super::real_path(descriptor, path)
        } else {
            let real = path.canonicalize()?;
            let found = rustix::fs::lstat(&real)?;
            let is_same = Identity::from_status(&found) == self.identity();
            if is_same { Ok(super::view::as_seen(real)) } else { Err(changed()) }
        }
    }

    /// Opens the file for reading. `path` is the path at which it was found.
    pub(super) fn open(self, path: &Path) -> Result<File, Absence> {
        self.open_as(path, READ)
    }

    /// Opens the file for reading, below the folder in which it was found.
    pub(crate) fn open_below(self, folder: BorrowedFd<'_>, name: &[u8]) -> Result<OwnedFd, Errno> {
        self.check_reserved().map_err(|_| Errno::BUSY)?;
        let again = || super::open_below(folder, name, READ | OFlags::NOFOLLOW);
        self.reopen(READ, again).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
    }

    pub(super) fn open_as(self, path: &Path, flags: OFlags) -> Result<File, Absence> {
        self.check_reserved()?;
        let again = || rustix::fs::open(path, flags, Mode::empty());
        self.reopen(flags, again).map(File::from).map_err(|error| absence(&error))
    }

    /// Refuses files that are open elsewhere in this process and must not be closed: those of the store.
    fn check_reserved(&self) -> Result<(), Absence> {
        if reserved::contains(self.identity()) { Err(Absence::Reserved) } else { Ok(()) }
    }

    /// Opens the same file that was found: through its descriptor, or by name where that is not possible.
    fn reopen(self, flags: OFlags, again: impl FnOnce() -> Result<OwnedFd, Errno>) -> io::Result<OwnedFd> {
        if let Some(descriptor) = &self.descriptor {
            match reopen_descriptor(descriptor.as_fd(), flags) {
                // This system has no `/proc`.
                Err(Errno::NOENT) => {}
                opened => return Ok(opened?),
            }
        }
        let opened = again()?;
        let identity = Identity::from_status(&rustix::fs::fstat(&opened)?);
        if identity == self.identity() {
            return Ok(opened);
        }
        if reserved::contains(identity) {
            // The file was swapped after it was judged. Closing it would drop the locks of its owner.
            std::mem::forget(opened);
        }
        Err(changed())
    }
}

#[cfg(target_os = "linux")]
fn reopen_descriptor(descriptor: BorrowedFd<'_>, flags: OFlags) -> Result<OwnedFd, Errno> {
    use std::os::fd::AsRawFd;
    rustix::fs::open(format!("/proc/self/fd/{}", descriptor.as_raw_fd()), flags, Mode::empty())
}

#[cfg(not(target_os = "linux"))]
fn reopen_descriptor(_descriptor: BorrowedFd<'_>, _flags: OFlags) -> Result<OwnedFd, Errno> {
    Err(Errno::NOENT)
}

fn changed() -> io::Error {
    io::Error::other("the path changed while it was read")
}

pub(super) fn regular(kind: FileType) -> Result<(), Absence> {
    match kind {
        FileType::RegularFile => Ok(()),
        FileType::Directory => Err(Absence::IsADirectory),
        FileType::Fifo => Err(Absence::NotRegular("FIFO")),
        FileType::Socket => Err(Absence::NotRegular("socket")),
        FileType::CharacterDevice => Err(Absence::NotRegular("character device")),
        FileType::BlockDevice => Err(Absence::NotRegular("block device")),
        _ => Err(Absence::NotRegular("special file")),
    }
}
