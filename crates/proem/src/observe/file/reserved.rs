//! Files of this process that readers must not open: those of an open database.
//!
//! SQLite's locks belong to the process and the file, not to a descriptor. Closing any descriptor of such a file drops
//! them all, after which another process may delete or overwrite what this one still writes to.

use std::collections::BTreeMap;
use std::fs::Metadata;
use std::sync::{PoisonError, RwLock};

use super::open::Identity;

/// The number of reservations of each file.
static RESERVED: RwLock<BTreeMap<Identity, usize>> = RwLock::new(BTreeMap::new());

/// Keeps files from being opened by the readers of this process, by whatever name, for as long as it exists.
///
/// ```
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("AGENTS.md");
/// std::fs::write(&path, "text")?;
/// assert!(proem::open_named(&path).is_ok());
/// let reservation = proem::Reservation::new([&std::fs::metadata(&path)?]);
/// assert!(proem::open_named(&path).is_err());
/// drop(reservation);
/// assert!(proem::open_named(&path).is_ok());
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
#[must_use]
pub struct Reservation(Vec<Identity>);

impl Reservation {
    /// Reserves the files with this metadata.
    pub fn new<'m>(files: impl IntoIterator<Item = &'m Metadata>) -> Self {
        let files: Vec<Identity> = files.into_iter().map(Identity::from_metadata).collect();
        let mut reserved = RESERVED.write().unwrap_or_else(PoisonError::into_inner);
        for file in &files {
            *reserved.entry(*file).or_default() += 1;
        }
        Self(files)
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let mut reserved = RESERVED.write().unwrap_or_else(PoisonError::into_inner);
        for file in &self.0 {
            if let Some(count) = reserved.get_mut(file) {
                *count -= 1;
                if *count == 0 {
                    reserved.remove(file);
                }
            }
        }
    }
}

/// Tells whether a file is reserved.
pub(super) fn contains(file: Identity) -> bool {
    RESERVED.read().unwrap_or_else(PoisonError::into_inner).contains_key(&file)
}
