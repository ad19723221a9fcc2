//! Opening a name below a folder that is open already.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

/// Opens without following any link: the folder on the way may have become one since it was listed.
#[cfg(target_os = "linux")]
pub(crate) fn open_below(folder: BorrowedFd<'_>, name: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
    use rustix::fs::ResolveFlags;
    match rustix::fs::openat2(folder, name, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
        // An old kernel, or a sandbox that does not know the call.
        Err(Errno::NOSYS | Errno::PERM) => open_in_steps(folder, name, flags),
        opened => opened,
    }
}

#[cfg(not(target_os = "linux"))]
pub(crate) use open_in_steps as open_below;

/// The same, one folder after the other.
fn open_in_steps(folder: BorrowedFd<'_>, name: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
    let Some(at) = memchr::memchr(b'/', name) else {
        return rustix::fs::openat(folder, name, flags, Mode::empty());
    };
    let (first, rest) = name.split_at(at);
    let below = rustix::fs::openat(folder, first, flags | OFlags::DIRECTORY, Mode::empty());
    // This call reports a link as "not a directory". The caller must learn that it is a link.
    let below = below.map_err(|error| if error == Errno::NOTDIR { Errno::LOOP } else { error })?;
    open_in_steps(below.as_fd(), &rest[1..], flags)
}
