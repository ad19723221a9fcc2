//! Files that replace or extend a section's text: `SYSTEM.md` for the base, `APPEND_SYSTEM.md` after it.

use proem_core::fact::Absence;
use proem_core::file_outcome::Outcome;
use proem_core::limit::TEMPLATE_BYTES_MAX;
use proem_core::note::{Code, Note, Severity};

use super::{Owner, SearchRoots, Trail, file};
use crate::observe::file::{Cap, ReadFile, ReadPolicy, exists, read};

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

/// The treatment of files that are not UTF-8.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotUtf8 {
    LeaveOut,
    /// Invalid bytes become U+FFFD, with a note.
    Replace,
}

/// Reads the files at `paths`, in their order. Empty and unreadable files are skipped.
pub(crate) fn find(
    paths: &[(std::path::PathBuf, Owner)],
    (take, not_utf8): (Take, NotUtf8),
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
            text_of(file, &shown, not_utf8, &mut trail)
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

fn text_of(found: ReadFile, path: &str, not_utf8: NotUtf8, trail: &mut Trail) -> Result<String, Absence> {
    let text = String::from_utf8(found.bytes);
    match (text, not_utf8) {
        (Ok(text), _) => Ok(text),
        (Err(error), NotUtf8::LeaveOut) => Err(Absence::NotUtf8(error.utf8_error().valid_up_to())),
        (Err(error), NotUtf8::Replace) => {
            let offset = error.utf8_error().valid_up_to();
            let message = format!("{path} is not UTF-8 from byte {offset} on: invalid bytes become U+FFFD");
            let note = Note::new(Code::NotUtf8, Severity::Warning, message);
            trail.notes.push(note.with_source(file(path)));
            Ok(String::from_utf8_lossy(&error.into_bytes()).into_owned())
        }
    }
}
