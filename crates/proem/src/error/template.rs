//! Errors of templates: which template, where in it, and by which includes it was reached.

use std::fmt;

use proem_core::source::Source;
use proem_core::text::{Place, Places};

use super::Excerpt;

/// A template that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TemplateError {
    /// The template: a reference such as `$user/greet`, or what else it is called.
    pub template: String,
    /// The file it was read from, if it was.
    pub path: Option<String>,
    /// Where in it.
    pub place: Option<Place>,
    /// The line at that place.
    pub line: Option<String>,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub hint: Option<String>,
    /// The templates that include it, the nearest first, each as `$user/parent, line 3`.
    pub included_from: Vec<String>,
    /// Whether a limit stopped it, rather than a mistake in the text.
    pub is_limit: bool,
}

impl TemplateError {
    pub(crate) fn new(template: &str, message: impl Into<String>) -> Self {
        Self {
            template: template.to_owned(),
            path: None,
            place: None,
            line: None,
            message: message.into(),
            hint: None,
            included_from: Vec::new(),
            is_limit: false,
        }
    }

    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds where in the template's text the mistake is.
    pub(crate) fn at(mut self, text: &str, origin: &Source, offset: usize) -> Self {
        let place = Places::new(text).at(offset);
        self.place = Some(place);
        self.line = text.lines().nth(place.line - 1).map(str::to_owned);
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

impl std::error::Error for TemplateError {}
