//! Findings that the configuration allows, each with a reason.

use std::path::{Path, PathBuf};

use ignore::gitignore::{Gitignore, GitignoreBuilder};
use proem_core::did_you_mean::nearest;
use proem_core::note::{Code, Note, Severity};
use proem_core::source::Source;
use serde::Deserialize;

use crate::error::{Error, ErrorCause, FileRole};

/// An allowance as it is written.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AllowKeys {
    code: String,
    #[serde(default)]
    path: Option<String>,
    #[serde(default)]
    text: Option<String>,
    reason: String,
}

/// The allowances of a file, not yet parsed: a code that only a later version of proem knows must not stop this one
/// from building.
#[derive(Debug, Clone)]
pub struct AllowFile {
    pub(crate) keys: Vec<AllowKeys>,
    pub(crate) origin: PathBuf,
    /// The folder that patterns are relative to.
    pub(crate) folder: PathBuf,
    /// True for a file of the repository itself, false for one of the user.
    pub(crate) is_of_repository: bool,
}

impl AllowFile {
    /// Reads the allowances.
    pub fn read(&self) -> Result<Vec<Allow>, Error> {
        let read = |keys: &AllowKeys| {
            let allow = Allow::read(keys.clone(), &self.origin, &self.folder)?;
            Ok(Allow { is_of_repository: self.is_of_repository, ..allow })
        };
        self.keys.iter().map(read).collect()
    }
}

/// A kind of finding that does not count.
#[derive(Debug, Clone)]
pub struct Allow {
    /// The code of the findings.
    pub code: Code,
    /// The reason why they are acceptable.
    pub reason: String,
    /// A pattern, as in ignore files, for the files to which this is limited.
    pub path: Option<String>,
    /// A text that the message must contain.
    pub text: Option<String>,
    /// The file that has the allowance.
    pub origin: PathBuf,
    /// True for a file of the repository itself, false for one of the user.
    pub is_of_repository: bool,
    files: Option<Gitignore>,
    folder: PathBuf,
}

impl Allow {
    /// Parses an allowance; its pattern is relative to `folder`.
    pub(crate) fn read(keys: AllowKeys, origin: &Path, folder: &Path) -> Result<Self, Error> {
        let refuse = |message: String, hint: Option<String>| Error::Config {
            role: FileRole::Configuration,
            path: origin.display().to_string(),
            message,
            hint,
            excerpt: None,
            cause: ErrorCause::NONE,
        };
        let code = Code::from_word(&keys.code).ok_or_else(|| {
            let near = nearest(&keys.code, Code::ALL.into_iter().map(Code::word));
            let hint = near.map_or_else(
                || "`proem check --codes` lists the codes".to_owned(),
                |near| format!("did you mean `{near}`?"),
            );
            refuse(format!("`check.allow` has the code `{}`, which does not exist", keys.code), Some(hint))
        })?;
        if keys.reason.trim().is_empty() {
            let message = format!("`check.allow` of `{code}` has an empty `reason`");
            return Err(refuse(message, Some("write why the finding is acceptable".into())));
        }
        let pattern = |pattern: &String| {
            let mut builder = GitignoreBuilder::new(folder);
            let plain = pattern.strip_prefix("./").unwrap_or(pattern);
            let wrong = |why: &str| {
                refuse(format!("`check.allow` of `{code}` has the path `{pattern}`: {why}"), None)
            };
            let added = builder.add_line(None, plain).map(drop);
            let files = added.and_then(|()| builder.build()).map_err(|error| wrong(&error.to_string()))?;
            let is_broken =
                files.num_ignores() == 0 || plain.matches('[').count() > plain.matches(']').count();
            if is_broken { Err(wrong("it is not a pattern of an ignore file")) } else { Ok(files) }
        };
        let files = keys.path.as_ref().map(pattern).transpose()?;
        let (origin, folder) = (origin.to_owned(), folder.to_owned());
        let AllowKeys { path, text, reason, .. } = keys;
        Ok(Self { code, reason, path, text, origin, is_of_repository: false, files, folder })
    }

    /// Tells whether this allows a note.
    #[must_use]
    pub fn allows(&self, note: &Note) -> bool {
        self.code == note.code
            && self.text.as_ref().is_none_or(|text| note.message.contains(text.as_str()))
            && self.files.as_ref().is_none_or(|files| self.is_in(files, note.source.as_ref()))
    }

    /// Tells whether a path is one of those to which this applies.
    #[must_use]
    pub fn covers(&self, path: &str) -> bool {
        self.files.as_ref().is_none_or(|files| self.is_below(files, path))
    }

    fn is_in(&self, files: &Gitignore, source: Option<&Source>) -> bool {
        source.and_then(file_of).is_some_and(|path| self.is_below(files, path))
    }

    fn is_below(&self, files: &Gitignore, path: &str) -> bool {
        let path = Path::new(path);
        let inside = path.strip_prefix(&self.folder).unwrap_or(path);
        inside.ancestors().any(|part| files.matched(part, part != inside).is_ignore())
    }

    /// Makes a note that this allowance matches no finding.
    #[must_use]
    pub(crate) fn unused(&self) -> Note {
        let place = self.path.as_ref().map_or_else(String::new, |path| format!(" in `{path}`"));
        let message = format!("nothing needs the allowance of `{}`{place}", self.code);
        Note::new(Code::UnusedAllow, Severity::Info, message)
            .with_hint("remove it from the configuration")
            .with_source(Source::File { path: self.origin.display().to_string().into(), place: None })
    }
}

/// A finding that does not count, because a file of settings allows it.
#[derive(Debug, Clone)]
pub struct AllowedFinding {
    /// The finding.
    pub note: Note,
    /// The reason that the file gives.
    pub reason: String,
    /// True if the repository itself allows it and the user does not.
    pub is_of_repository: bool,
}

impl AllowedFinding {
    /// Tells whether it is shown in full nevertheless. A hostile repository would allow itself text that a reader
    /// cannot see.
    #[must_use]
    pub fn is_shown(&self) -> bool {
        let is_hidden =
            matches!(self.note.code, Code::HiddenText | Code::BidiControl | Code::ControlCharacter);
        self.is_of_repository && is_hidden
    }
}

/// Returns the file of a source, or the file that its value was read from.
#[must_use]
pub fn file_of(source: &Source) -> Option<&str> {
    match source {
        Source::File { path, .. } | Source::Pack { path, .. } => Some(path),
        Source::Variable { path, .. } => path.as_deref(),
        Source::BuiltIn { .. } | Source::Request { .. } | Source::Profile { .. } | Source::Hook { .. } => {
            None
        }
    }
}
