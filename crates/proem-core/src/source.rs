//! The sources of bytes.

use alloc::sync::Arc;
use core::fmt;

use crate::text::{Place, Places};

/// The source of a piece of text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// Text compiled into proem, by its name in `builtin/`.
    BuiltIn {
        /// The asset's name, for example `template/base`.
        name: Arc<str>,
        /// The place in it, if known.
        place: Option<Place>,
    },
    /// A file on disk.
    File {
        /// The path that was opened.
        path: Arc<str>,
        /// The place in it, if known.
        place: Option<Place>,
    },
    /// The value of a variable.
    Variable {
        /// The variable's key, for example `git:branch`.
        key: Arc<str>,
        /// The file that the value was read from, for `file:`.
        path: Option<Arc<str>>,
    },
    /// A field of the request.
    Request {
        /// The field's name, for example `append`.
        field: Arc<str>,
        /// The place in it, if known.
        place: Option<Place>,
    },
    /// Wording of a pack.
    Pack {
        /// The pack's file.
        path: Arc<str>,
        /// The key of the catalog.
        key: Arc<str>,
        /// The place in the wording, if known.
        place: Option<Place>,
    },
    /// Text that the profile puts around a section.
    Profile {
        /// The profile's name.
        profile: Arc<str>,
        /// The key that holds the text, for example `section.append.before`.
        key: Arc<str>,
    },
    /// A hook.
    Hook {
        /// The hook's name.
        name: Arc<str>,
    },
}

impl Source {
    /// Returns the same source with another place; sources without places are returned unchanged.
    #[must_use]
    pub fn at(&self, place: Place) -> Self {
        let mut source = self.clone();
        if let Some(own) = source.place_mut() {
            *own = Some(place);
        }
        source
    }

    const fn place_mut(&mut self) -> Option<&mut Option<Place>> {
        match self {
            Self::BuiltIn { place, .. }
            | Self::File { place, .. }
            | Self::Request { place, .. }
            | Self::Pack { place, .. } => Some(place),
            Self::Variable { .. } | Self::Profile { .. } | Self::Hook { .. } => None,
        }
    }

    /// Returns the source of the text after `passed`, which starts here.
    #[must_use]
    pub(crate) fn behind(&self, passed: &str) -> Self {
        let Some(begin) = self.place() else { return self.clone() };
        let inside = Places::new(passed).at(passed.len());
        let column = if inside.line == 1 { begin.column + inside.column - 1 } else { inside.column };
        self.at(Place { line: begin.line + inside.line - 1, column })
    }

    /// Removes a prefix from the path of a file.
    pub fn move_file(&mut self, beginning: &str) {
        let (Self::File { path, .. } | Self::Pack { path, .. } | Self::Variable { path: Some(path), .. }) =
            self
        else {
            return;
        };
        if let Some(rest) = path.strip_prefix(beginning) {
            *path = rest.into();
        }
    }

    /// Returns the same source without a place.
    #[must_use]
    pub fn without_place(&self) -> Self {
        let mut source = self.clone();
        if let Some(own) = source.place_mut() {
            *own = None;
        }
        source
    }

    /// Tells whether two sources are equal apart from their places.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::BuiltIn { name: a, .. }, Self::BuiltIn { name: b, .. })
            | (Self::File { path: a, .. }, Self::File { path: b, .. })
            | (Self::Request { field: a, .. }, Self::Request { field: b, .. }) => a == b,
            (Self::Pack { path: a, key, .. }, Self::Pack { path: b, key: other, .. }) => {
                a == b && key == other
            }
            _ => self == other,
        }
    }

    /// Returns the place in the source, if it has one.
    #[must_use]
    pub const fn place(&self) -> Option<Place> {
        match self {
            Self::BuiltIn { place, .. }
            | Self::File { place, .. }
            | Self::Request { place, .. }
            | Self::Pack { place, .. } => *place,
            Self::Variable { .. } | Self::Profile { .. } | Self::Hook { .. } => None,
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BuiltIn { name, .. } => write!(formatter, "built-in {name}")?,
            Self::File { path, .. } => formatter.write_str(path)?,
            Self::Variable { key, .. } => write!(formatter, "[{key}]")?,
            Self::Request { field, .. } => write!(formatter, "request field `{field}`")?,
            Self::Pack { path, key, .. } => write!(formatter, "{path}, `{key}`")?,
            Self::Profile { profile, key } => write!(formatter, "profile {profile}, {key}")?,
            Self::Hook { name } => write!(formatter, "hook {name}")?,
        }
        match self.place() {
            Some(Place { line, column }) => write!(formatter, ":{line}:{column}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_the_same_at_another_place() {
        let place = |line: usize| Some(Place { line, column: 1 });
        let all = |line: usize| {
            let (a, b) = (|| Arc::from("a"), || Arc::from("b"));
            [
                Source::BuiltIn { name: a(), place: place(line) },
                Source::BuiltIn { name: b(), place: place(line) },
                Source::File { path: a(), place: place(line) },
                Source::File { path: a(), place: None },
                Source::Variable { key: a(), path: None },
                Source::Variable { key: a(), path: Some(b()) },
                Source::Request { field: a(), place: place(line) },
                Source::Pack { path: a(), key: b(), place: place(line) },
                Source::Pack { path: a(), key: a(), place: place(line) },
                Source::Profile { profile: a(), key: b() },
                Source::Hook { name: a() },
            ]
        };
        for a in &all(1) {
            for b in &all(2) {
                assert_eq!(a.is_same(b), a.without_place() == b.without_place(), "{a:?} and {b:?}");
            }
        }
    }
}
