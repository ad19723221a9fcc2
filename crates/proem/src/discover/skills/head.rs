//! Reads the head of a skill file: enough for front matter, usually in one read.

use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use proem_core::fact::Absence;
use proem_core::limit::FRONT_MATTER_BYTES_MAX;
use rustix::fs::FileType;
use rustix::io::Errno;

use crate::observe::file::{self, Handle, Identity, ReadPolicy};

/// The largest front matter with its two rules and the line breaks.
pub(super) const HEAD_BYTES_MAX: usize = FRONT_MATTER_BYTES_MAX + 16;
/// The bytes of the first read; most heads are shorter.
const FIRST_READ: usize = 2 << 10;

/// The result of opening a file.
pub(super) enum HeadResult {
    /// A regular file: its head is in the buffer.
    Head(Identity, usize),
    /// A symbolic link, or a file that needs the guarded reader.
    Careful,
    Missing,
    Failed(Errno),
}

/// Reads the head of `name` below `folder` into `buffer`, unless the last part of the name is a link.
///
/// Special files and reserved files are not opened here; the guarded reader reports the reason.
pub(super) fn read_beneath(folder: BorrowedFd<'_>, name: &[u8], buffer: &mut Vec<u8>) -> HeadResult {
    let found = match Handle::below(folder, name) {
        Ok(found) if found.kind() == FileType::RegularFile => found,
        Ok(_) | Err(Errno::LOOP) => return HeadResult::Careful,
        Err(Errno::NOENT | Errno::NOTDIR) => return HeadResult::Missing,
        Err(error) => return HeadResult::Failed(error),
    };
    let identity = Identity::from_status(found.status());
    match found.open_below(folder, name).and_then(|opened| fill(opened.as_fd(), buffer)) {
        Ok(bytes) => HeadResult::Head(identity, bytes),
        Err(Errno::BUSY) => HeadResult::Careful,
        Err(error) => HeadResult::Failed(error),
    }
}

/// Reads until the front matter is closed, the buffer is full or the file ends.
fn fill(opened: BorrowedFd<'_>, buffer: &mut Vec<u8>) -> Result<usize, Errno> {
    buffer.resize(HEAD_BYTES_MAX, 0);
    let mut filled = 0;
    let mut goal = FIRST_READ;
    while filled < HEAD_BYTES_MAX {
        match rustix::io::read(opened, &mut buffer[filled..goal]) {
            Ok(0) => break,
            Ok(bytes) => filled += bytes,
            Err(Errno::INTR) => continue,
            Err(error) => return Err(error),
        }
        if filled == goal {
            if is_closed(&buffer[..filled]) {
                break;
            }
            goal = HEAD_BYTES_MAX;
        } else if filled < FIRST_READ {
            // A short read of a regular file is its end.
            break;
        }
    }
    Ok(filled)
}

/// Tells whether the head holds all of the front matter.
fn is_closed(head: &[u8]) -> bool {
    !head.starts_with(b"---") || memchr::memmem::find(head, b"\n---").is_some_and(|at| at + 8 < head.len())
}

/// Reads the head of a file that may be a link, with all checks for untrusted files.
pub(super) fn read_guarded(path: &Path, policy: &ReadPolicy) -> Result<file::ReadFile, Absence> {
    file::read_head(path, policy, HEAD_BYTES_MAX)
}
