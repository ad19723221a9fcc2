//! Text of instruction files in pieces, each with its origin.

use std::borrow::Cow;

use proem_core::line_map::LineMap;
use proem_core::source::Source;

use crate::discover::{Owner, file};

/// A piece of the text of instruction files, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Piece {
    /// The path of the file whose entry it belongs to, as it was found.
    pub(crate) path: String,
    /// The same path, relative to the project's root if it lies below.
    pub(crate) relative: String,
    pub(crate) kind: String,
    pub(crate) owner: Owner,
    pub(crate) text: String,
    /// The origin of the text: a file, or the profile's wording around an import.
    pub(crate) source: PieceSource,
    /// True if it is the first piece of an entry; `ends` is true for the last.
    pub(crate) begins: bool,
    pub(crate) ends: bool,
}

/// The origin of a piece.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PieceSource {
    /// A file, and the lines of the piece in it.
    File(String, LineMap),
    /// Wording of the profile.
    Words(Cow<'static, str>),
}

/// A file that applies only to some tasks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ConditionalFile {
    pub(crate) path: String,
    pub(crate) relative: String,
    pub(crate) owner: Owner,
    pub(crate) patterns: String,
    pub(crate) description: String,
}

impl PieceSource {
    /// Returns the source for provenance.
    pub(crate) fn source(&self, profile: &str, section: &str) -> Source {
        match self {
            Self::File(path, line_map) => line_map.source(&file(path)),
            Self::Words(key) => Source::Profile {
                profile: profile.into(),
                key: format!("section.{section}.collect.imports.{key}").into(),
            },
        }
    }

    /// Returns the lines of the piece in its file.
    pub(crate) const fn line_map(&self) -> Option<&LineMap> {
        match self {
            Self::File(_, line_map) => Some(line_map),
            Self::Words(_) => None,
        }
    }
}
