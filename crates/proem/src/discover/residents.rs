//! Resident entries: knowledge and workflows that are listed in the prompt by one line each.
//!
//! Only names and front matter are used; the body of a file must never reach a prompt from here. A bad knowledge file
//! is skipped with a note. A bad workflow stops the build: a model that does not know of it does the work by other
//! means, without any sign of a fault.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use proem_core::fact::Absence;
use proem_core::file_outcome::{FileOutcome, Outcome};
use proem_core::front_matter::{self, FrontMatter, Split, Value};
use proem_core::limit::{
    FRONT_MATTER_BYTES_MAX, RESIDENT_BYTES_MAX, RESIDENT_NAME_BYTES_MAX, RESIDENTS_MAX, Size,
    WORKFLOW_DESCRIPTION_CHARACTERS_MAX,
};
use proem_core::note::{Code, Note, Severity};
use proem_core::source::Source;
use proem_core::text::Place;

use crate::error::Error;
use crate::error::reason;
use crate::observe::file::{Cap, ReadPolicy, is_dir, read_dir, read_source_text, shown};

const CAP: Cap = Cap::new(RESIDENT_BYTES_MAX);

/// The key that makes a file resident: as the format spells it, and as the dictionary does.
const FLAGS: [&str; 2] = ["model_invokation", "model_invocation"];

/// The kind of files in a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResidentKind {
    /// Files must state whether they are resident; a bad one is skipped with a note.
    Knowledge,
    /// Files are resident if they state so; a bad one is an error.
    Workflow,
}

/// One resident file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    /// The file's name without `.md`.
    pub(crate) slug: String,
    /// The description from the YAML, line breaks included.
    pub(crate) description: String,
    /// The file.
    pub(crate) path: String,
}

/// The results for a folder.
#[derive(Debug, Default)]
pub(crate) struct ResidentFiles {
    /// The resident files, by slug.
    pub(crate) entries: Vec<Entry>,
    /// Notes about skipped files.
    pub(crate) notes: Vec<Note>,
    /// Every file examined, by slug.
    pub(crate) considered: Vec<FileOutcome>,
}

/// Reads the front matter of every `*.md` directly in `folder`.
///
/// As in a shell, `*` does not match a leading dot: editors leave such files behind. A folder that does
/// not exist has no entries.
pub(crate) fn collect(
    folder: &Path,
    kind: ResidentKind,
    policy: &ReadPolicy,
) -> Result<ResidentFiles, Error> {
    let mut collected = ResidentFiles::default();
    let listing = match list(folder, policy) {
        Ok(listing) => listing,
        Err(problem) => {
            collected.refuse(folder, kind, problem)?;
            Listing::default()
        }
    };
    for slug in &listing.slugs {
        let path = path_of(folder, slug);
        match examine(&path, slug, kind, policy) {
            Ok(Finding::Resident(entry)) => collected.add(entry),
            Ok(Finding::Passed(outcome, why)) => collected.consider(&path, outcome, Some(why)),
            Err(problem) => collected.refuse(&path, kind, problem)?,
        }
    }
    if listing.left_out > 0 {
        collected.notes.push(over_limit(folder, listing.left_out));
    }
    Ok(collected)
}

/// Formats the entries as a list of `- slug: description`, without a final line break.
///
/// A description must not begin a line of its own, so each CR and LF becomes a space.
pub(crate) fn lines(entries: &[Entry]) -> String {
    let line = |entry: &Entry| format!("- {}: {}", entry.slug, entry.description.replace(['\r', '\n'], " "));
    entries.iter().map(line).collect::<Vec<_>>().join("\n")
}

impl ResidentFiles {
    fn add(&mut self, entry: Entry) {
        let path = entry.path.clone();
        self.considered.push(FileOutcome { path, outcome: Outcome::Used, why: None });
        self.entries.push(entry);
    }

    fn consider(&mut self, path: &Path, outcome: Outcome, why: Option<String>) {
        self.considered.push(FileOutcome { path: shown(path), outcome, why });
    }

    /// Notes a problem with knowledge; returns an error for a workflow.
    fn refuse(&mut self, path: &Path, kind: ResidentKind, problem: Problem) -> Result<(), Error> {
        match kind {
            ResidentKind::Workflow => Err(problem.into_error(path)),
            ResidentKind::Knowledge => {
                self.notes.push(problem.note(path));
                self.consider(path, problem.outcome, Some(problem.message));
                Ok(())
            }
        }
    }
}

/// The files of a folder by name without `.md`, and the number of further ones.
#[derive(Default)]
struct Listing {
    slugs: BTreeSet<OsString>,
    left_out: usize,
}

/// Lists a folder. If there are too many files, those with the first names are taken, whatever the order of the file
/// system.
fn list(folder: &Path, policy: &ReadPolicy) -> Result<Listing, Problem> {
    let mut listing = Listing::default();
    let Some(entries) = open(folder, policy)? else { return Ok(listing) };
    for entry in entries {
        let name = entry.map_err(|error| Problem::system(&error))?.file_name();
        let Some(slug) = name.as_bytes().strip_suffix(b".md") else { continue };
        if name.as_bytes().starts_with(b".") {
            continue;
        }
        listing.slugs.insert(OsStr::from_bytes(slug).to_owned());
        if listing.slugs.len() > RESIDENTS_MAX {
            listing.slugs.pop_last();
            listing.left_out += 1;
        }
    }
    Ok(listing)
}

fn open(folder: &Path, policy: &ReadPolicy) -> Result<Option<std::fs::ReadDir>, Problem> {
    match crate::observe::file::canonical(folder) {
        Ok(real) if !policy.allows(&real) => return Err(Problem::unread(&Absence::OutsideRoots)),
        Ok(real) if !is_dir(&real) => return Err(Problem::malformed("it is not a folder")),
        Ok(_) => {}
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(error) => return Err(Problem::system(&error)),
    }
    read_dir(folder).map(Some).map_err(|error| Problem::system(&error))
}

fn path_of(folder: &Path, slug: &OsStr) -> PathBuf {
    let name = [slug.as_bytes(), b".md"].concat();
    folder.join(OsString::from_vec(name))
}

/// The result for one valid file.
enum Finding {
    Resident(Entry),
    Passed(Outcome, String),
}

fn examine(path: &Path, slug: &OsStr, kind: ResidentKind, policy: &ReadPolicy) -> Result<Finding, Problem> {
    let text = match read_source_text(path, policy, CAP) {
        Ok(text) => text,
        // A folder of that name is not a file.
        Err(why @ Absence::IsADirectory) => {
            return Ok(Finding::Passed(Outcome::Unreadable, why.to_string()));
        }
        Err(why) => return Err(Problem::unread(&why)),
    };
    let slug = slug.to_str().filter(|slug| is_slug(slug)).ok_or_else(Problem::slug)?;
    let front_matter = read(&text)?;
    // Knowledge with the flag `false` is skipped without checks of its other fields.
    if kind == ResidentKind::Knowledge && matches!(flag(&front_matter), Ok(Some(false))) {
        return Ok(Finding::Passed(Outcome::Hidden, format!("`{}` is not true", FLAGS[0])));
    }
    let description = description(&front_matter)?;
    let is_resident = match (flag(&front_matter)?, kind) {
        (Some(flag), _) => flag,
        (None, ResidentKind::Workflow) => false,
        (None, ResidentKind::Knowledge) => return Err(Problem::no_flag()),
    };
    if !is_resident {
        return Ok(Finding::Passed(Outcome::Hidden, format!("`{}` is not true", FLAGS[0])));
    }
    let chars = description.chars().count();
    if kind == ResidentKind::Workflow && chars > WORKFLOW_DESCRIPTION_CHARACTERS_MAX {
        let message = format!(
            "`description` has {chars} characters, and at most {WORKFLOW_DESCRIPTION_CHARACTERS_MAX} may be resident"
        );
        return Err(Problem::malformed(message));
    }
    Ok(Finding::Resident(Entry { slug: slug.into(), description: description.into(), path: shown(path) }))
}

fn read(text: &str) -> Result<FrontMatter, Problem> {
    let yaml = match front_matter::split(text) {
        Split::Found { yaml, .. } => yaml,
        Split::Absent => {
            return Err(Problem::malformed("there is no front matter: the first line is not `---`"));
        }
        Split::Unclosed => return Err(Problem::malformed("front matter has no closing `---`")),
        Split::TooLong => {
            let limit = Size::new(FRONT_MATTER_BYTES_MAX);
            return Err(Problem::malformed(format!("front matter has no closing `---` within {limit}")));
        }
    };
    front_matter::parse(yaml).map_err(|error| {
        let place = Some(error.place_in_file());
        Problem { place, ..Problem::malformed(error.message) }
    })
}

fn description(front_matter: &FrontMatter) -> Result<&str, Problem> {
    match front_matter.value("description") {
        None | Some(Value::Null) => Err(Problem::malformed("there is no `description`")),
        Some(Value::Text(text)) if text.chars().all(char::is_whitespace) => {
            Err(Problem::malformed("`description` is empty"))
        }
        Some(Value::Text(text)) => Ok(text),
        Some(other) => {
            let message = format!("`description` is {}, and must be text", other.word());
            Err(Problem { hint: Some("put it into quotes"), ..Problem::malformed(message) })
        }
    }
}

fn flag(front_matter: &FrontMatter) -> Result<Option<bool>, Problem> {
    let mut given = None;
    for key in FLAGS {
        given = match (front_matter.value(key), given) {
            (None, before) => before,
            (Some(Value::Bool(now)), Some(before)) if *now != before => {
                let [format, dictionary] = FLAGS;
                let message = format!("`{format}` and `{dictionary}` are both there, and they differ");
                return Err(Problem { hint: Some("remove one of them"), ..Problem::malformed(message) });
            }
            (Some(Value::Bool(now)), _) => Some(*now),
            (Some(other), _) => {
                let message = format!("`{key}` is {}, and must be `true` or `false`", other.word());
                let hint = Some("write it without quotes; `yes` and `on` are text in YAML 1.2");
                return Err(Problem { hint, ..Problem::malformed(message) });
            }
        };
    }
    Ok(given)
}

/// Tells whether a text has only lower-case letters and digits, with single hyphens between them.
fn is_slug(slug: &str) -> bool {
    let is_word = |word: &str| {
        !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    slug.len() <= RESIDENT_NAME_BYTES_MAX && slug.split('-').all(is_word)
}

/// The reason why a file or folder cannot be used.
struct Problem {
    code: Code,
    outcome: Outcome,
    message: String,
    hint: Option<&'static str>,
    place: Option<Place>,
}

impl Problem {
    fn malformed(message: impl Into<String>) -> Self {
        let (code, outcome) = (Code::MalformedResident, Outcome::Malformed);
        Self { code, outcome, message: message.into(), hint: None, place: None }
    }

    fn slug() -> Self {
        let hint = Some("use lower-case letters, digits and single hyphens between them, at most 64 in all");
        Self { hint, ..Self::malformed("its name is not a slug") }
    }

    fn no_flag() -> Self {
        let hint = Some("add `model_invokation: true`, or `false` if the model need not know of it");
        let message = format!("there is no `{}`", FLAGS[0]);
        Self { hint, outcome: Outcome::Hidden, ..Self::malformed(message) }
    }

    fn unread(why: &Absence) -> Self {
        // The code `absent` is for variables; the other codes fit files.
        let code = if why.code() == Code::Absent { Code::MalformedResident } else { why.code() };
        let outcome = Outcome::from_absence(why);
        Self { code, outcome, message: why.to_string(), hint: why.hint(), place: None }
    }

    fn system(error: &io::Error) -> Self {
        Self::unread(&Absence::Unreadable(reason(error)))
    }

    fn note(&self, path: &Path) -> Note {
        let name = shown(Path::new(path.file_name().unwrap_or(path.as_os_str())));
        let source = Source::File { path: shown(path).into(), place: self.place };
        let note = Note::new(self.code, Severity::Warning, format!("`{name}` is skipped: {}", self.message));
        Note { hint: self.hint.map(Into::into), ..note.with_source(source) }
    }

    fn into_error(self, path: &Path) -> Error {
        let message = match self.place {
            Some(Place { line, column }) => format!("line {line}, column {column}: {}", self.message),
            None => self.message,
        };
        Error::Resident { path: shown(path), message }
    }
}

fn over_limit(folder: &Path, left_out: usize) -> Note {
    let message = format!("{left_out} files are not read: there are more than {RESIDENTS_MAX}");
    let source = Source::File { path: shown(folder).into(), place: None };
    Note::new(Code::OverLimit, Severity::Warning, message).with_source(source)
}

#[cfg(test)]
mod tests;
