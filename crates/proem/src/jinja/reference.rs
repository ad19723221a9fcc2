//! References to assets: `$user/greet`, and names relative to the template that includes them.

use std::collections::BTreeMap;
use std::fmt;

/// The place of an asset. A prefix in a reference names one of these, or an alias of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Library {
    BuiltIn,
    User,
    Workspace,
}

impl Library {
    pub(crate) const ALL: [Self; 3] = [Self::BuiltIn, Self::User, Self::Workspace];

    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::BuiltIn => "builtin",
            Self::User => "user",
            Self::Workspace => "workspace",
        }
    }
}

/// A reference that names its library.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Reference {
    pub(crate) library: Library,
    /// Segments joined with `/`, without `.md`.
    pub(crate) path: String,
}

impl fmt::Display for Reference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "${}/{}", self.library.word(), self.path)
    }
}

/// The reason why a reference is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReferenceError {
    Empty,
    PrefixWithoutSlash,
    EmptyPath,
    DotSegment,
    UnknownPrefix,
    Unqualified,
}

impl fmt::Display for ReferenceError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Empty => "the reference is empty",
            Self::PrefixWithoutSlash => "the prefix is not followed by `/`",
            Self::EmptyPath => "the path after the prefix is empty",
            Self::DotSegment => "`.` and `..` are not allowed in a path",
            Self::UnknownPrefix => "the prefix is unknown",
            Self::Unqualified => {
                "it names no library, and only an include in a library's asset may leave it out"
            }
        })
    }
}

impl ReferenceError {
    pub(crate) const fn hint(self) -> &'static str {
        match self {
            Self::Empty | Self::PrefixWithoutSlash | Self::EmptyPath => "write for example `$user/greet`",
            Self::DotSegment => "name the asset by its path from the library's root",
            Self::UnknownPrefix | Self::Unqualified => "begin with `$builtin/`, `$user/` or `$workspace/`",
        }
    }
}

/// Parses a reference. `parent` is the including asset, if that lies in a library.
pub(crate) fn parse(
    text: &str,
    parent: Option<&Reference>,
    aliases: &BTreeMap<String, String>,
) -> Result<Reference, ReferenceError> {
    let text = text.trim();
    if text.is_empty() {
        return Err(ReferenceError::Empty);
    }
    if let Some(qualified) = text.strip_prefix('$') {
        let (prefix, path) = qualified.split_once('/').ok_or(ReferenceError::PrefixWithoutSlash)?;
        let word = aliases.get(prefix).map_or(prefix, String::as_str);
        let library = Library::ALL.into_iter().find(|library| library.word() == word);
        let library = library.ok_or(ReferenceError::UnknownPrefix)?;
        return Ok(Reference { library, path: segments(path)?.join("/") });
    }
    let parent = parent.ok_or(ReferenceError::Unqualified)?;
    let own = segments(text)?;
    let folder = parent.path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let folder = folder.split('/').filter(|segment| !segment.is_empty());
    let path = folder.chain(own).collect::<Vec<_>>().join("/");
    Ok(Reference { library: parent.library, path })
}

/// Returns the segments of a path; doubled and outer slashes are ignored.
fn segments(path: &str) -> Result<Vec<&str>, ReferenceError> {
    let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
    if segments.is_empty() {
        return Err(ReferenceError::EmptyPath);
    }
    if segments.iter().any(|segment| matches!(*segment, "." | "..")) {
        return Err(ReferenceError::DotSegment);
    }
    Ok(segments)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_follow_the_rules() {
        let aliases = BTreeMap::from([("insomnia".to_owned(), "builtin".to_owned())]);
        let parent = Reference { library: Library::User, path: "common/header".into() };
        let top = Reference { library: Library::Workspace, path: "top".into() };
        for (text, parent, expected) in [
            ("$user/greet", None, Ok("$user/greet")),
            ("  $user/greet \n", None, Ok("$user/greet")),
            ("$user//a//b/", None, Ok("$user/a/b")),
            ("$insomnia/default", None, Ok("$builtin/default")),
            ("nested", Some(&parent), Ok("$user/common/nested")),
            ("deep/er", Some(&parent), Ok("$user/common/deep/er")),
            ("/nested", Some(&parent), Ok("$user/common/nested")),
            ("sibling", Some(&top), Ok("$workspace/sibling")),
            ("$builtin/x", Some(&parent), Ok("$builtin/x")),
            ("", None, Err(ReferenceError::Empty)),
            ("  ", Some(&parent), Err(ReferenceError::Empty)),
            ("$user", None, Err(ReferenceError::PrefixWithoutSlash)),
            ("$user/", None, Err(ReferenceError::EmptyPath)),
            ("$user///", None, Err(ReferenceError::EmptyPath)),
            ("/", Some(&parent), Err(ReferenceError::EmptyPath)),
            ("$user/../x", None, Err(ReferenceError::DotSegment)),
            ("$user/./x", None, Err(ReferenceError::DotSegment)),
            ("../x", Some(&parent), Err(ReferenceError::DotSegment)),
            ("$other/x", None, Err(ReferenceError::UnknownPrefix)),
            ("$/x", None, Err(ReferenceError::UnknownPrefix)),
            ("greet", None, Err(ReferenceError::Unqualified)),
        ] {
            let found = parse(text, parent, &aliases).map(|reference| reference.to_string());
            assert_eq!(found, expected.map(str::to_owned), "{text:?}");
        }
    }
}
