//! Errors of templates: the template, the place in it, and the includes that lead to it.

use std::fmt;

use proem_core::source::Source;
use proem_core::text::{Place, Places};

use super::{ErrorCause, Excerpt};

/// A template that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TemplateError {
    /// The template: a reference such as `$user/greet`, or another name for it.
    pub template: String,
    /// The file that it was read from, if any.
    pub path: Option<String>,
    /// The place of the error.
    pub place: Option<Place>,
    /// The line at that place.
    pub line: Option<String>,
    /// The problem.
    pub message: String,
    /// The fix.
    pub hint: Option<String>,
    /// The templates that include it, the nearest first, each as `$user/parent, line 3`.
    pub included_from: Vec<String>,
    /// The kind of the problem.
    pub kind: TemplateErrorKind,
    /// The source of its text.
    pub(crate) origin: Option<Source>,
    /// The error of the renderer, if any.
    pub(crate) cause: ErrorCause,
}

/// The kind of a template's problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TemplateErrorKind {
    /// The text is not a template.
    Syntax,
    /// It uses a name that is not defined.
    Undefined,
    /// An asset that it includes cannot be loaded.
    Missing,
    /// Another mistake, found while rendering.
    Render,
    /// A limit stopped it.
    Limit,
    /// It includes or calls templates too deeply.
    Nesting,
}

impl TemplateError {
    pub(crate) fn new(template: &str, kind: TemplateErrorKind, message: impl Into<String>) -> Self {
        Self {
            template: template.to_owned(),
            path: None,
            place: None,
            line: None,
            message: message.into(),
            hint: None,
            included_from: Vec::new(),
            kind,
            origin: None,
            cause: ErrorCause::NONE,
        }
    }

    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds the place of the mistake in the template's text.
    pub(crate) fn at(mut self, text: &str, origin: &Source, offset: usize) -> Self {
        let place = Places::new(text).at(offset);
        self.place = Some(place);
        self.line = text.lines().nth(place.line - 1).map(str::to_owned);
        self.origin = Some(origin.clone());
        self.path = match origin {
            Source::File { path, .. } => Some(path.as_ref().into()),
            _ => None,
        };
        self
    }

    pub(crate) fn excerpt(&self) -> Option<Excerpt> {
        Some(Excerpt { place: self.place?, line: self.line.clone()? })
    }
}

impl fmt::Display for TemplateError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "cannot use the template {}", self.template)?;
        if let Some(path) = self.path.as_ref().filter(|path| **path != self.template) {
            write!(formatter, " ({path})")?;
        }
        if let Some(Place { line, column }) = self.place {
            write!(formatter, ", line {line}, column {column}")?;
        }
        write!(formatter, ": {}", self.message)?;
        for (index, parent) in self.included_from.iter().enumerate() {
            formatter.write_str(if index == 0 { "; included from " } else { ", from " })?;
            formatter.write_str(parent)?;
        }
        Ok(())
    }
}

impl std::error::Error for TemplateError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.cause.source()
    }
}
