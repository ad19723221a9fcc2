//! Files that replace or extend a section's text: `SYSTEM.md` for the base, `APPEND_SYSTEM.md` after it.

use proem_core::fact::Absence;
use proem_core::file_outcome::Outcome;
use proem_core::limit::TEMPLATE_BYTES_MAX;

use super::{Owner, SearchRoots, Trail};
use crate::observe::file::{Cap, ReadPolicy, exists, read};

const CAP: Cap = Cap::new(TEMPLATE_BYTES_MAX);

/// A file's text.
#[derive(Debug, Clone)]
pub(crate) struct FileText {
    pub(crate) path: String,
    pub(crate) text: String,
    pub(crate) owner: Owner,
}

/// The number of files to take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Take {
    First,
    All,
}

/// Reads the files at `paths`, in their order. Empty and unreadable files are skipped.
pub(crate) fn find(
    paths: &[(std::path::PathBuf, Owner)],
    take: Take,
    places: &SearchRoots,
    policy: &ReadPolicy,
) -> (Vec<FileText>, Trail) {
    let (mut found, mut trail) = (Vec::<FileText>::new(), Trail::default());
    for (path, owner) in paths {
        let shown = path.display().to_string();
        if take == Take::First
            && let Some(first) = found.first()
        {
            if exists(path) {
                trail.consider(&shown, Outcome::Shadowed, Some(format!("by {}", first.path)));
            }
            continue;
        }
        let text = read(path, policy, CAP).and_then(|file| {
            trail.notes.extend(places.link_outside(path, &file.real));
            file.into_text()
        });
        match text {
            Ok(text) if text.is_empty() => trail.consider(&shown, Outcome::Empty, None),
            Ok(text) => {
                trail.consider(&shown, Outcome::Used, None);
                found.push(FileText { path: shown, text, owner: *owner });
            }
            // For a remote client the place is out of reach by rule. A profile of the workspace names it by itself: that is
            // worth a warning.
            Err(why @ Absence::OutsideRoots)
                if policy.is_served() && policy.check_as_written(path).is_err() =>
            {
                trail.out_of_reach(&shown, &why);
            }
            Err(why) => trail.unread(&shown, &why),
        }
    }
    (found, trail)
}
