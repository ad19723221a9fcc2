//! Skills that earlier scans of this process read, by directory.
//!
//! A directory is remembered from its second scan on: a process that builds one prompt pays nothing.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::{Owner, Problem, Skill};
use crate::observe::file_stamp::{self, Moment, Stamp};

/// About how much memory all of it may take; over that, everything is forgotten.
const BYTES_MAX: usize = 16 << 20;
/// How many directories are known, at most; one that holds no skill counts as well.
const DIRECTORIES_MAX: usize = 4096;
/// What a skill takes besides its texts.
const SKILL_BYTES: usize = 512;

/// What was read of one skill.
pub(super) type Read = (Option<Arc<Skill>>, Vec<Problem>);

/// A folder that has a `SKILL.md` and no ignore file, as it was when that was read.
#[derive(Debug, Clone)]
pub(super) struct Known {
    pub(super) folder: Stamp,
    pub(super) file: Stamp,
    pub(super) read: Arc<Read>,
}

type Folders = HashMap<Vec<u8>, Known>;

/// What one scan of a directory may use, and what it finds out.
pub(super) enum Scan {
    /// Nothing is used or kept.
    Cold,
    Warm {
        known: Arc<Folders>,
        found: Folders,
        entries: usize,
        settled_before: Moment,
    },
}

#[derive(Default)]
struct Memory {
    directories: BTreeMap<(PathBuf, Owner), Arc<Folders>>,
    bytes: usize,
}

static MEMORY: Mutex<Option<Memory>> = Mutex::new(None);

/// Begins a scan. Only a directory that was scanned before is worth remembering.
pub(super) fn begin(directory: &Path, owner: Owner) -> Scan {
    if !file_stamp::is_on() {
        return Scan::Cold;
    }
    let mut memory = MEMORY.lock().unwrap_or_else(PoisonError::into_inner);
    let directories = &memory.get_or_insert_default().directories;
    let key = (directory.to_owned(), owner);
    if let (Some(known), Some(settled_before)) = (directories.get(&key), file_stamp::settled_before()) {
        return Scan::Warm { known: Arc::clone(known), found: HashMap::new(), entries: 0, settled_before };
    }
    if directories.len() == DIRECTORIES_MAX {
        *memory = None;
    }
    memory.get_or_insert_default().directories.insert(key, Arc::default());
    Scan::Cold
}

/// Ends a scan: what it found is known to the next one.
pub(super) fn end(directory: &Path, owner: Owner, scan: Scan) {
    let Scan::Warm { known, mut found, entries, .. } = scan else { return };
    if found.is_empty() {
        return;
    }
    // What is gone stays until it is more than what there is: it costs memory and is never taken for true.
    if known.len() <= 2 * entries {
        for (name, skill) in known.iter() {
            found.entry(name.clone()).or_insert_with(|| skill.clone());
        }
    }
    let mut memory = MEMORY.lock().unwrap_or_else(PoisonError::into_inner);
    let memory = memory.get_or_insert_default();
    let bytes = weight(&found);
    let before = memory.directories.insert((directory.to_owned(), owner), Arc::new(found));
    memory.bytes = (memory.bytes + bytes).saturating_sub(before.map_or(0, |before| weight(&before)));
    if memory.bytes > BYTES_MAX {
        *memory = Memory::default();
    }
}

fn weight(folders: &Folders) -> usize {
    let texts = |skill: &Skill| skill.name.len() + skill.description.len() + skill.location.len();
    let of_problems =
        |problems: &[Problem]| problems.iter().map(|problem| problem.message.len()).sum::<usize>();
    let each = folders
        .values()
        .map(|known| SKILL_BYTES + known.read.0.as_deref().map_or(0, texts) + of_problems(&known.read.1));
    each.sum()
}

#[cfg(test)]
thread_local! {
    static USES: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Counts that what is known of a folder holds, for tests: those that never use it try nothing.
pub(super) fn used() {
    #[cfg(test)]
    USES.set(USES.get() + 1);
}

/// How often this thread used what was known.
#[cfg(test)]
pub(super) fn uses() -> usize {
    USES.get()
}

impl Scan {
    /// What is known of a folder, whether or not it still holds.
    pub(super) fn known(&self, name: &[u8]) -> Option<&Known> {
        match self {
            Self::Cold => None,
            Self::Warm { known, .. } => known.get(name),
        }
    }

    pub(super) const fn is_warm(&self) -> bool {
        matches!(self, Self::Warm { .. })
    }

    /// Counts a folder that may hold a skill.
    pub(super) const fn count(&mut self) {
        if let Self::Warm { entries, .. } = self {
            *entries += 1;
        }
    }

    /// Keeps what was read, unless a change from now on might not show.
    pub(super) fn keep(&mut self, name: &[u8], skill: &Known) {
        if let Self::Warm { found, settled_before, .. } = self
            && skill.folder.is_settled(*settled_before)
            && skill.file.is_settled(*settled_before)
        {
            found.insert(name.to_owned(), skill.clone());
        }
    }
}
