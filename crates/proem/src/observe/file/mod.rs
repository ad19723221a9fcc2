//! Reads files that untrusted authors may have written.
//!
//! Every read of the product goes through [`read`]: regular files only, at most a given number of bytes, from one
//! descriptor, and only where the [`ReadPolicy`] allows it. Skills, which are read by the thousand, have a faster way
//! with the same guarantees.

mod below;
mod handle;
mod lazy;
mod open;
mod policy;
mod reserved;
mod secret;
mod source_texts;
mod stamps;
mod view;

use std::io::Read;
use std::path::{Path, PathBuf};

use proem_core::fact::Absence;
use proem_core::limit::PATH_BYTES_MAX;
use rustix::buffer::spare_capacity;
use rustix::io::retry_on_intr;

use crate::error::reason;
use crate::observe::deadline;

pub(crate) use below::open_below;
pub(crate) use handle::Handle;
pub(crate) use lazy::{
    LayOut, Look, Registration, exists, is_dir, is_lazy, lay_out_everything, look, metadata, read_dir, watch,
    with_looks,
};
pub use open::open_named;
pub(crate) use open::{Identity, canonical, check_regular, real_path};
pub(crate) use policy::{ProjectFence, ReadPolicy, with_fixed_roots, without_dots};
pub use reserved::Reservation;
pub(crate) use source_texts::{SourceTexts, read_source_text, read_source_utf8, with_source_texts};
pub(crate) use stamps::Stamps;
pub(crate) use view::{ViewGuard, VirtualTree, is_virtual, on_disk, virtual_tree};

/// Prepares a path for messages: control characters in its name must not reach a terminal.
pub(crate) fn shown(path: &Path) -> String {
    let escape = |character: char| match character {
        control if control.is_control() => control.escape_unicode().to_string(),
        other => other.to_string(),
    };
    // Nearly every path is this plain, and its bytes are compared many at a time.
    let is_plain = |text: &&str| text.bytes().fold(true, |all, byte| all & matches!(byte, b' '..=b'~'));
    if let Some(text) = path.to_str().filter(is_plain) {
        return text.to_owned();
    }
    let text = path.to_string_lossy();
    if text.contains(char::is_control) { text.chars().map(escape).collect() } else { text.into_owned() }
}

/// A limit on the size of a file, as a number and in words for messages.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cap {
    pub(crate) bytes_max: usize,
}

impl Cap {
    pub(crate) const fn new(bytes_max: usize) -> Self {
        Self { bytes_max }
    }
}

/// Reads a text file. Refuses a file with a NUL byte, which is not text.
pub(crate) fn read_text(path: &Path, policy: &ReadPolicy, cap: Cap) -> Result<String, Absence> {
    let text = read_utf8(path, policy, cap)?;
    match memchr::memchr(0, text.as_bytes()) {
        Some(offset) => Err(Absence::HasNul(offset)),
        None => Ok(text),
    }
}

/// Reads a text file; returns `None` if `path` is a link. The caller decides where the file may lie.
pub(crate) fn read_unlinked(path: &Path, cap: Cap) -> Result<Option<String>, Absence> {
    deadline::check_read()?;
    let Some((file, bytes)) = open::open_unlinked(path, |_| Ok(()))? else { return Ok(None) };
    text_of(&file, bytes, cap).map(Some)
}

fn text_of(file: &std::fs::File, bytes: u64, cap: Cap) -> Result<String, Absence> {
    if bytes > cap.bytes_max as u64 {
        return Err(Absence::OverLimit(cap.bytes_max));
    }
    let bytes = take(file, bytes, cap)?;
    if let Some(offset) = memchr::memchr(0, &bytes) {
        return Err(Absence::HasNul(offset));
    }
    String::from_utf8(bytes).map_err(|error| Absence::NotUtf8(error.utf8_error().valid_up_to()))
}

/// Reads a text file that is not a link and whose real path lies below one of `roots`, which are real paths. The
/// descriptor is queried, so a folder on the way cannot be swapped.
pub(crate) fn read_within(path: &Path, roots: &[&Path], cap: Cap) -> Result<String, Absence> {
    deadline::check_read()?;
    let judge = |found: &Handle| {
        let real = found.real_path(path).map_err(|error| Absence::Unreadable(reason(&error)))?;
        if is_within(&real, roots) { Ok(()) } else { Err(Absence::OutsideRoots) }
    };
    let opened = open::open_unlinked(path, judge).map_err(|why| match why {
        // The error must not reveal which files exist outside.
        Absence::NoSuchFile if !is_within(&policy::nearest_existing(path, 0), roots) => Absence::OutsideRoots,
        why => why,
    })?;
    let (file, bytes) = opened.ok_or(Absence::NotRegular("link"))?;
    text_of(&file, bytes, cap)
}

fn is_within(real: &Path, roots: &[&Path]) -> bool {
    roots.iter().any(|root| policy::lies_below(real, root))
}

/// Reads a UTF-8 file as it is, NUL bytes included: for instruction files, which are taken byte for byte.
pub(crate) fn read_utf8(path: &Path, policy: &ReadPolicy, cap: Cap) -> Result<String, Absence> {
    read(path, policy, cap)?.into_text()
}

/// Reads a regular file of at most `cap` bytes.
pub(crate) fn read_bytes(path: &Path, policy: &ReadPolicy, cap: Cap) -> Result<Vec<u8>, Absence> {
    read(path, policy, cap).map(|found| found.bytes)
}

/// The bytes of a file, its identity and its real path.
#[derive(Debug)]
pub(crate) struct ReadFile {
    pub(crate) bytes: Vec<u8>,
    pub(crate) identity: Identity,
    /// The path with all links resolved.
    pub(crate) real: PathBuf,
    /// The size of the file, however much of it was read.
    pub(crate) size: u64,
}

impl ReadFile {
    /// Returns the bytes as text. A character that is cut at the end is dropped, because the file goes on.
    pub(crate) fn into_head(mut self) -> Result<String, Absence> {
        if self.size > self.bytes.len() as u64
            && let Err(error) = std::str::from_utf8(&self.bytes)
            && error.error_len().is_none()
        {
            self.bytes.truncate(error.valid_up_to());
        }
        self.into_text()
    }

    /// Returns the bytes as text.
    pub(crate) fn into_text(self) -> Result<String, Absence> {
        String::from_utf8(self.bytes).map_err(|error| Absence::NotUtf8(error.utf8_error().valid_up_to()))
    }
}

/// Reads a regular file of at most `cap` bytes.
pub(crate) fn read(path: &Path, policy: &ReadPolicy, cap: Cap) -> Result<ReadFile, Absence> {
    deadline::check_read()?;
    let opened = open_allowed(path, policy)?;
    if opened.bytes > cap.bytes_max as u64 {
        return Err(Absence::OverLimit(cap.bytes_max));
    }
    let bytes = take(&opened.file, opened.bytes, cap)?;
    let size = bytes.len() as u64;
    Ok(ReadFile { bytes, identity: opened.identity, real: opened.path, size })
}

/// Reads the first `bytes_max` bytes of a regular file, however large it is.
pub(crate) fn read_head(path: &Path, policy: &ReadPolicy, bytes_max: usize) -> Result<ReadFile, Absence> {
    deadline::check_read()?;
    let opened = open_allowed(path, policy)?;
    let mut bytes = Vec::new();
    let read = opened.file.take(bytes_max as u64).read_to_end(&mut bytes);
    read.map_err(|error| Absence::Unreadable(reason(&error)))?;
    let size = opened.bytes.max(bytes.len() as u64);
    Ok(ReadFile { bytes, identity: opened.identity, real: opened.path, size })
}

fn open_allowed(path: &Path, policy: &ReadPolicy) -> Result<open::OpenFile, Absence> {
    let shown = path.as_os_str().as_encoded_bytes();
    if shown.len() > PATH_BYTES_MAX {
        return Err(Absence::BadPath("the path is too long"));
    }
    if shown.contains(&0) {
        return Err(Absence::BadPath("the path has a NUL"));
    }
    policy.check_as_written(path)?;
    let judge = |real: &Path| {
        policy.check_opened(path, real)?;
        // Files of the kernel differ each time and describe this process: a template must name them to get them.
        let is_of_kernel = |path: &Path| {
            ["/proc", "/sys"].into_iter().any(|folder| policy::lies_below(path, Path::new(folder)))
        };
        if is_of_kernel(real) && !is_of_kernel(path) {
            Err(Absence::NotRegular("file of the kernel"))
        } else {
            Ok(())
        }
    };
    open::open(path, judge).map_err(|why| policy.hide_absence(path, why))
}

/// Bytes that are read at a time once a file turns out to be longer than its reported size.
const STEP: usize = 8 * 1024;

/// Reads to the end, but never more than one byte over the cap: a file may grow while it is read.
fn take(file: &std::fs::File, size: u64, cap: Cap) -> Result<Vec<u8>, Absence> {
    // One byte more than the reported size: if it stays free, the file has ended, and one read is enough.
    let size = usize::try_from(size).unwrap_or(usize::MAX).min(cap.bytes_max);
    let mut bytes = Vec::with_capacity(size + 1);
    loop {
        let read = retry_on_intr(|| rustix::io::read(file, spare_capacity(&mut bytes)));
        let read = read.map_err(|error| Absence::Unreadable(reason(&error.into())))?;
        if bytes.len() > cap.bytes_max {
            return Err(Absence::OverLimit(cap.bytes_max));
        }
        if read == 0 || bytes.len() == size {
            return Ok(bytes);
        }
        // Files of the kernel report a size of 0, and others may grow.
        if bytes.len() == bytes.capacity() {
            bytes.reserve(STEP.min(cap.bytes_max + 1 - bytes.len()));
        }
    }
}
