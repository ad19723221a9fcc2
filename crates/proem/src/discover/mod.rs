//! Finds the files that a prompt is made of, in their order, and records why other files are not used.

pub(crate) mod agent_rules;
pub mod catalog;
pub(crate) mod documents;
pub(crate) mod ignored;
pub(crate) mod libraries;
pub(crate) mod override_files;
pub(crate) mod repository;
pub(crate) mod residents;
pub(crate) mod roster;
mod search_roots;
pub(crate) mod skill_directory;
pub(crate) mod skills;

use std::collections::BTreeMap;

use proem_core::fact::Absence;
use proem_core::file_outcome::{FileOutcome, Outcome};
use proem_core::note::{Code, Note, Severity};
use proem_core::source::Source;
use proem_core::stability::Stability;

pub(crate) use search_roots::SearchRoots;

/// The owner of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Owner {
    /// The user's: it lies in their home or in a folder of their configuration.
    User,
    /// The project's: it lies at or above the working directory.
    Project,
}

impl Owner {
    /// Returns the period for which such a file is expected to stay the same.
    pub(crate) const fn stability(self) -> Stability {
        match self {
            Self::User => Stability::User,
            Self::Project => Stability::Project,
        }
    }

    /// Returns the word that templates see.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::User => "global",
            Self::Project => "project",
        }
    }
}

/// The by-products of a search: notes and outcomes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Trail {
    pub(crate) notes: Vec<Note>,
    pub(crate) considered: Vec<FileOutcome>,
    /// The files that exist and could not be read.
    pub(crate) unread: Vec<(String, Absence)>,
}

impl Trail {
    fn consider(&mut self, path: &str, outcome: Outcome, why: Option<String>) {
        self.considered.push(FileOutcome { path: path.to_owned(), outcome, why });
    }

    /// Notes a location that this caller may not read at all: the file itself has no fault.
    pub(crate) fn out_of_reach(&mut self, path: &str, why: &Absence) {
        self.consider(
            path,
            Outcome::from_absence(why),
            Some("not looked at: outside the allowed roots".to_owned()),
        );
        let note = out_of_reach();
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// Notes a file that could not be read; a missing one is only listed.
    fn unread(&mut self, path: &str, why: &Absence) {
        self.consider(path, Outcome::from_absence(why), Some(why.to_string()));
        if *why == Absence::NoSuchFile {
            return;
        }
        self.unread.push((path.to_owned(), why.clone()));
        // `absent` speaks of variables.
        let code = if why.code() == Code::Absent { Code::Unreadable } else { why.code() };
        let note = Note::new(code, Severity::Warning, format!("{path} is left out: {why}"));
        let note = note.with_source(file(path));
        self.notes.push(why.hint().into_iter().fold(note, Note::with_hint));
    }
}

/// The one note about all places that a caller may not look at.
pub(crate) fn out_of_reach() -> Note {
    let message = "files outside the working directory and its git repository are not looked for: neither for requests over \
                   HTTP nor for profiles of a workspace";
    Note::new(Code::RootNotAllowed, Severity::Info, message).with_hint(
        "a server reads its user's files (AGENTS.md and skills of the configuration directory and the home) with \
         `serve --user-files`",
    )
}

/// The files of a build by section, so that each search runs once.
#[derive(Debug, Clone, Default)]
pub(crate) struct DiscoveredFiles {
    pub(crate) instead: BTreeMap<String, (Vec<override_files::FileText>, Trail)>,
    pub(crate) documents: BTreeMap<String, (Vec<documents::Document>, Trail)>,
    pub(crate) skills: BTreeMap<String, skills::FoundSkills>,
    pub(crate) rules: BTreeMap<String, agent_rules::RuleFiles>,
    pub(crate) skill_directories: BTreeMap<String, (Vec<skill_directory::Line>, Trail)>,
}

/// Makes a file the source of bytes.
pub(crate) fn file(path: &str) -> Source {
    Source::File { path: path.into(), place: None }
}
