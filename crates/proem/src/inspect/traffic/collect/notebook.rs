//! Notes of collectors: one per kind of problem and file, with the number of cases and the first line.

use std::collections::BTreeMap;
use std::path::Path;

use proem_core::limit::COLLECT_NOTES_MAX;
use proem_core::note::{Code, Note, Severity};

use crate::observe::file::shown;

/// The notes of one reading. A note never quotes the content of a file, because that may be a secret.
#[derive(Debug, Default)]
pub(super) struct Notebook {
    cases: BTreeMap<(Severity, String, &'static str), Case>,
    others: usize,
    progress: Option<ReadProgress>,
    read: u64,
    total: u64,
}

/// Learns how many bytes of how many were read.
pub type ReadProgress = fn(read: u64, total: u64);

#[derive(Debug)]
struct Case {
    code: Code,
    count: usize,
    line: Option<usize>,
}

/// A problem, in words that begin with the thing that is counted: `a line is not JSON`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Problem {
    pub(super) code: Code,
    pub(super) severity: Severity,
    pub(super) what: &'static str,
}

impl Problem {
    /// A problem that loses something.
    pub(super) const fn warning(code: Code, what: &'static str) -> Self {
        Self { code, severity: Severity::Warning, what }
    }

    /// A problem that is normal.
    pub(super) const fn info(code: Code, what: &'static str) -> Self {
        Self { code, severity: Severity::Info, what }
    }
}

impl Notebook {
    /// Starts to report the bytes that are read.
    pub(super) const fn watch(&mut self, progress: Option<ReadProgress>, total: u64) {
        (self.progress, self.total) = (progress, total);
    }

    /// Counts bytes that were read.
    pub(super) fn count(&mut self, bytes: usize) {
        self.read = self.read.saturating_add(bytes as u64);
        if let Some(progress) = self.progress {
            // Some files are read twice, to find out what they are.
            progress(self.read.min(self.total), self.total);
        }
    }

    /// Counts a problem of a file, or of one of its lines.
    pub(super) fn add(&mut self, problem: Problem, path: &Path, line: Option<usize>) {
        let key = (problem.severity, shown(path), problem.what);
        if let Some(case) = self.cases.get_mut(&key) {
            case.count += 1;
        } else if self.cases.len() < COLLECT_NOTES_MAX {
            self.cases.insert(key, Case { code: problem.code, count: 1, line });
        } else {
            self.others += 1;
        }
    }

    /// Returns the notes, the more important ones first.
    pub(super) fn into_notes(self) -> Vec<Note> {
        let mut notes: Vec<Note> =
            self.cases.into_iter().rev().map(|(key, case)| note(&key, &case)).collect();
        if self.others > 0 {
            let message = format!(
                "{} further problems are not listed (`collect_notes_max` is {COLLECT_NOTES_MAX})",
                self.others
            );
            notes.push(Note::new(Code::OverLimit, Severity::Warning, message));
        }
        notes
    }
}

fn note((severity, path, what): &(Severity, String, &'static str), case: &Case) -> Note {
    let place = case.line.map_or_else(|| path.clone(), |line| format!("{path}:{line}"));
    let message = match case.count {
        1 => format!("{place}: {what}"),
        count => format!("{place}: {what} ({count} times in this file; this is the first)"),
    };
    Note::new(case.code, *severity, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_problems_of_a_file_are_one_note() {
        let mut notes = Notebook::default();
        let torn = Problem::info(Code::SkippedRecord, "the last line is incomplete");
        let unknown = Problem::warning(Code::SkippedRecord, "a line is not JSON");
        notes.add(torn, Path::new("a.jsonl"), Some(9));
        notes.add(unknown, Path::new("a.jsonl"), Some(3));
        notes.add(unknown, Path::new("a.jsonl"), Some(5));
        let messages: Vec<_> = notes.into_notes().into_iter().map(|note| note.message).collect();
        assert_eq!(
            messages,
            [
                "a.jsonl:3: a line is not JSON (2 times in this file; this is the first)",
                "a.jsonl:9: the last line is incomplete"
            ]
        );
    }

    #[test]
    fn the_list_of_notes_has_a_limit() {
        let mut notes = Notebook::default();
        for number in 0..COLLECT_NOTES_MAX + 3 {
            let name = format!("{number}.jsonl");
            notes.add(Problem::info(Code::SkippedRecord, "a line is not JSON"), Path::new(&name), None);
        }
        let notes = notes.into_notes();
        assert_eq!(notes.len(), COLLECT_NOTES_MAX + 1);
        assert!(notes[COLLECT_NOTES_MAX].message.starts_with("3 further problems"), "{notes:?}");
    }
}
