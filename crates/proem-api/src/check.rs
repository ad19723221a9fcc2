//! Findings in a prompt, as JSON: that of `proem check --format json`.

use proem::build_shape::{NoteShape, SourceShape};
use proem::check::{self, MovedSource, Report, Subject, is_mendable};
use proem::{Caller, Request};
use proem_core::note::{Note, Severity};
use serde_json::{Value, json};

use crate::failure::Failure;

/// The form of a check.
#[derive(Debug, Clone, Default)]
pub struct CheckOptions {
    /// Every finding is an error, those of information, too.
    pub strict: bool,
    /// Builds with other clocks, homes and environments, too, and reports what changes.
    pub determinism: bool,
    /// Also checks what these agents would read; every agent if the list is empty.
    pub agents: Option<Vec<String>>,
    /// Checks every instruction file and skill of the repository instead of one prompt.
    pub all: bool,
}

/// Findings by severity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckCounts {
    /// Errors.
    pub errors: usize,
    /// Warnings.
    pub warnings: usize,
    /// Findings of information.
    pub notes: usize,
}

impl CheckCounts {
    /// Counts the findings of a report.
    #[must_use]
    pub fn new(report: &Report) -> Self {
        Self {
            errors: report.count(Severity::Error),
            warnings: report.count(Severity::Warning),
            notes: report.count(Severity::Info),
        }
    }
}

/// Finds what wastes tokens, misleads the model or leaks secrets.
pub fn check(request: &str, options: &CheckOptions) -> Result<String, Failure> {
    let request = &Request::from_json(request)?;
    let mut report = match (&options.agents, options.all) {
        (agents, true) => check::check_all(request, agents.as_deref().unwrap_or_default())?,
        (Some(agents), false) => check::check_as(request, agents)?,
        (None, false) => check::check(request, Caller::User)?,
    };
    let moved = if options.determinism { Some(check::determinism(request, Caller::User)?) } else { None };
    let notes = moved.iter().flatten().filter_map(MovedSource::note).collect();
    report.add(notes, request, Caller::User)?;
    if options.strict {
        report.make_strict();
    }
    Ok(check_json(&report, moved.as_deref(), 0).to_string())
}

/// Puts the report of a check into JSON. `mended` is the number of findings that were fixed.
#[must_use]
pub fn check_json(report: &Report, moved: Option<&[MovedSource]>, mended: usize) -> Value {
    let CheckCounts { errors, warnings, notes } = CheckCounts::new(report);
    let mut value = json!({
        "files": report.files.len(),
        "counts": { "error": errors, "warning": warnings, "info": notes },
        "findings": report.findings.iter().map(finding).collect::<Vec<_>>(),
        "allowed": report.allowed.iter().map(|allowed| {
            let mut value = finding(&allowed.note);
            value["reason"] = json!(allowed.reason);
            value["by"] = json!(if allowed.is_of_repository { "repository" } else { "user" });
            value
        }).collect::<Vec<_>>(),
        "silenced_by_repository": report.silenced_by_repository(),
        "mended": mended,
    });
    match &report.subject {
        Subject::Prompt { profile, bytes } => {
            value["profile"] = json!(profile);
            value["bytes"] = json!(bytes);
        }
        Subject::Project { directories, roles } => {
            let looked = |(path, role): (&String, &&str)| json!({ "path": path, "role": role });
            value["directories"] = json!(directories);
            value["looked_at"] = roles.iter().map(looked).collect();
        }
    }
    if let Some(all) = moved {
        value["moved"] = all.iter().map(moved_json).collect();
    }
    value
}

fn moved_json(moved: &MovedSource) -> Value {
    json!({
        "source": SourceShape::new(&moved.source),
        "with": moved.axis.word(),
        "stability": moved.stability.word(),
        "allowed": moved.is_allowed,
        "frozen": moved.is_frozen,
    })
}

fn finding(note: &Note) -> Value {
    let mut value = serde_json::to_value(NoteShape::new(note)).unwrap_or_default();
    value["fixable"] = json!(is_mendable(note));
    value
}
