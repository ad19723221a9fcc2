//! The cause of a change, as a sentence for people and a word for programs.

use std::fmt;

use proem_core::source::Source;
use proem_core::stability::Stability;
use proem_core::variable::{self, ReadFrom, Variable};

use crate::sections::resolver::CUT_MARKER;

/// The provider's word for a miss.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MissReason {
    /// Another model reads another cache.
    Model,
    /// The definitions of the tools differ.
    Tools,
    /// The system prompt differs.
    System,
    /// A message differs.
    Messages,
}

impl MissReason {
    /// The word that providers use.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Model => "model_changed",
            Self::Tools => "tools_changed",
            Self::System => "system_changed",
            Self::Messages => "messages_changed",
        }
    }
}

/// The cause of a change.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Cause {
    /// The model is another one.
    Model,
    /// The profile is another one.
    Profile {
        /// Before.
        before: String,
        /// After.
        after: String,
    },
    /// The version of proem is another one, and so is its own text.
    Engine {
        /// The built-in text.
        name: String,
    },
    /// A tool was added.
    ToolAdded(String),
    /// A tool was removed.
    ToolRemoved(String),
    /// A tool's definition was edited.
    ToolEdited(String),
    /// The same tools come in another order.
    ToolsReordered,
    /// The tools differ, and it is not known which.
    Tools,
    /// A value that changes with every turn, such as a clock.
    Clock(String),
    /// A value that changes from day to day.
    Day(String),
    /// Git's state.
    Git(String),
    /// Another value of a variable.
    Variable(String),
    /// A variable that only the second prompt has a value of.
    VariableAppeared(String),
    /// A variable that only the first prompt has a value of.
    VariableGone(String),
    /// A file was edited.
    FileEdited(String),
    /// Only the line endings of a file differ.
    LineEndings(String),
    /// Only a byte-order mark of a file differs.
    ByteOrderMark(String),
    /// Only white space at the end of a file, or of its lines, differs.
    TrailingSpace(String),
    /// A file is new, or is read now.
    FileAppeared(String),
    /// A file is gone, or is not read any more.
    FileGone(String),
    /// The same sources come in another order.
    Reordered(String),
    /// Text is cut at another place.
    CutMoved(String),
    /// Another version of the stored template is the base.
    Template {
        /// Before.
        before: u64,
        /// After.
        after: u64,
        /// The author of the version after.
        author: Option<String>,
    },
    /// A field of the request differs.
    Request(String),
    /// The text from a hook differs.
    Hook(String),
    /// Wording of a pack differs.
    Pack(String),
    /// A condition of a template decides otherwise.
    Condition(String),
    /// A section is new.
    SectionAppeared(String),
    /// A section is gone.
    SectionGone(String),
    /// Text of the profile itself differs.
    Wording(String),
}

impl Cause {
    /// The stable word for programs.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::Profile { .. } => "profile",
            Self::Engine { .. } => "engine",
            Self::ToolAdded(_) => "tool_added",
            Self::ToolRemoved(_) => "tool_removed",
            Self::ToolEdited(_) => "tool_edited",
            Self::ToolsReordered => "tools_reordered",
            Self::Tools => "tools",
            Self::Clock(_) => "clock",
            Self::Day(_) => "day",
            Self::Git(_) => "git",
            Self::Variable(_) | Self::VariableAppeared(_) | Self::VariableGone(_) => "variable",
            Self::FileEdited(_) => "file_edited",
            Self::LineEndings(_) => "line_endings",
            Self::ByteOrderMark(_) => "byte_order_mark",
            Self::TrailingSpace(_) => "trailing_space",
            Self::FileAppeared(_) => "file_appeared",
            Self::FileGone(_) => "file_gone",
            Self::Reordered(_) => "reordered",
            Self::CutMoved(_) => "cut_moved",
            Self::Template { .. } => "template",
            Self::Request(_) => "request",
            Self::Hook(_) => "hook",
            Self::Pack(_) => "pack",
            Self::Condition(_) => "condition",
            Self::SectionAppeared(_) => "section_appeared",
            Self::SectionGone(_) => "section_gone",
            Self::Wording(_) => "wording",
        }
    }

    /// Tells whether the value changes by itself, with the day or with every turn: a prompt that is built again always
    /// differs there, although nothing was edited.
    #[must_use]
    pub fn is_volatile(&self) -> bool {
        match self {
            Self::Clock(_) | Self::Day(_) => true,
            Self::Git(key) | Self::Variable(key) => {
                variable::find(key).is_some_and(|found| found.stability() >= Stability::Day)
            }
            _ => false,
        }
    }

    /// The cause when one source gives another text.
    pub(super) fn edited(source: &Source, stability: Stability, before: &str, after: &str) -> Self {
        let owner = match source {
            Source::File { path, .. } | Source::Variable { path: Some(path), .. } => {
                return of_file(path, before, after);
            }
            Source::Variable { key, .. } => return of_variable(key, stability),
            other => other.without_place(),
        };
        match owner {
            Source::BuiltIn { name, .. } => Self::Engine { name: name.as_ref().into() },
            Source::Request { field, .. } => Self::Request(field.as_ref().into()),
            Source::Hook { name } => Self::Hook(name.as_ref().into()),
            Source::Pack { path, key, .. } => Self::Pack(format!("{path}, `{key}`")),
            Source::Profile { profile, key } => Self::Wording(format!("profile {profile}, {key}")),
            Source::File { path, .. } => Self::FileEdited(path.as_ref().into()),
            Source::Variable { key, .. } => Self::Variable(key.as_ref().into()),
        }
    }

    /// The cause when a source is there on one side only.
    pub(super) fn one_sided(span: (&Source, Stability), section: Option<&str>, is_new: bool) -> Self {
        let (source, stability) = span;
        match (source, is_new) {
            (Source::File { path, .. } | Source::Variable { path: Some(path), .. }, true) => {
                Self::FileAppeared(path.as_ref().into())
            }
            (Source::File { path, .. } | Source::Variable { path: Some(path), .. }, false) => {
                Self::FileGone(path.as_ref().into())
            }
            (Source::Variable { key, .. }, is_new) => match (of_variable(key, stability), is_new) {
                (Self::Variable(key), true) => Self::VariableAppeared(key),
                (Self::Variable(key), false) => Self::VariableGone(key),
                (other, _) => other,
            },
            (Source::Request { field, .. }, _) => Self::Request(field.as_ref().into()),
            (Source::Hook { name }, _) => Self::Hook(name.as_ref().into()),
            (Source::Pack { path, key, .. }, _) => Self::Pack(format!("{path}, `{key}`")),
            (Source::Profile { .. } | Source::BuiltIn { .. }, true) => {
                Self::SectionAppeared(section.unwrap_or("the text").to_owned())
            }
            (Source::Profile { .. } | Source::BuiltIn { .. }, false) => {
                Self::SectionGone(section.unwrap_or("the text").to_owned())
            }
        }
    }
}

fn of_file(path: &str, before: &str, after: &str) -> Cause {
    let path = path.to_owned();
    if is_cut_elsewhere(before, after) {
        Cause::CutMoved(path)
    } else if lines(before).eq(lines(after)) {
        Cause::LineEndings(path)
    } else if without_marks(before) == without_marks(after) {
        Cause::ByteOrderMark(path)
    } else if without_blanks(before).eq(without_blanks(after)) {
        Cause::TrailingSpace(path)
    } else {
        Cause::FileEdited(path)
    }
}

fn without_marks(text: &str) -> &str {
    text.trim_start_matches('\u{feff}')
}

/// The lines of a text, and whether each has an end, of whichever kind.
fn lines(text: &str) -> impl Iterator<Item = (&str, bool)> {
    text.split_inclusive('\n').map(|line| match line.strip_suffix('\n') {
        Some(line) => (line.strip_suffix('\r').unwrap_or(line), true),
        None => (line, false),
    })
}

/// The lines of a text without white space at their ends, and at its own.
fn without_blanks(text: &str) -> impl Iterator<Item = &str> {
    text.trim_end().lines().map(str::trim_end)
}

/// Tells whether one text is the other's beginning, each with a mark where it is cut.
fn is_cut_elsewhere(before: &str, after: &str) -> bool {
    match (before.strip_suffix(CUT_MARKER), after.strip_suffix(CUT_MARKER)) {
        (None, None) => false,
        (Some(a), Some(b)) => a.starts_with(b) || b.starts_with(a),
        // The complete one must be longer: otherwise the text grew.
        (Some(a), None) => after.starts_with(a),
        (None, Some(b)) => before.starts_with(b),
    }
}

fn of_variable(key: &str, stability: Stability) -> Cause {
    let key = key.to_owned();
    match (variable::find(&key).map(Variable::read_from), stability) {
        (Some(ReadFrom::Git), _) => Cause::Git(key),
        (Some(ReadFrom::Clock), Stability::Day) => Cause::Day(key),
        (Some(ReadFrom::Clock), _) => Cause::Clock(key),
        _ => Cause::Variable(key),
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Model => formatter.write_str("the model is another one: no two models share a cache"),
            Self::Profile { before, after } => {
                write!(formatter, "the profile changed from `{before}` to `{after}`")
            }
            Self::Engine { name } => {
                write!(formatter, "another version of proem has another text for {name}")
            }
            Self::ToolAdded(name) => write!(formatter, "the tool `{name}` was added"),
            Self::ToolRemoved(name) => write!(formatter, "the tool `{name}` was removed"),
            Self::ToolEdited(name) => write!(formatter, "the definition of the tool `{name}` was edited"),
            Self::ToolsReordered => formatter.write_str("the same tools are sent in another order"),
            Self::Tools => formatter.write_str("the tools are others"),
            Self::Clock(key) => write!(formatter, "[{key}] changes with every turn"),
            Self::Day(key) => write!(formatter, "[{key}] changed with the day"),
            Self::Git(key) => write!(formatter, "[{key}] changed: git's state is another one"),
            Self::Variable(key) => write!(formatter, "[{key}] has another value"),
            Self::VariableAppeared(key) => write!(formatter, "[{key}] is absent in A, and has a value in B"),
            Self::VariableGone(key) => write!(formatter, "[{key}] has a value in A, and is absent in B"),
            Self::FileEdited(path) => write!(formatter, "{path} was edited"),
            Self::LineEndings(path) => write!(formatter, "{path} has other line endings, and the same text"),
            Self::ByteOrderMark(path) => write!(formatter, "{path} has a byte-order mark on one side only"),
            Self::TrailingSpace(path) => {
                write!(formatter, "{path} has other white space at the end of lines, or of itself")
            }
            Self::FileAppeared(path) => write!(formatter, "{path} is read now, and was not"),
            Self::FileGone(path) => write!(formatter, "{path} was read, and is not any more"),
            Self::Reordered(what) => write!(formatter, "{what} stands at another place: the order changed"),
            Self::CutMoved(path) => write!(formatter, "{path} is cut at another place"),
            Self::Template { before, after, author } => {
                write!(formatter, "template version {before} → {after}")?;
                author.as_ref().map_or(Ok(()), |author| write!(formatter, ", saved by {author}"))
            }
            Self::Request(field) => write!(formatter, "the request says another `{field}`"),
            Self::Hook(name) => write!(formatter, "the hook `{name}` says something else"),
            Self::Pack(wording) => write!(formatter, "the wording of {wording} is another one"),
            Self::Condition(place) => write!(formatter, "a condition before {place} decides otherwise"),
            Self::SectionAppeared(id) => write!(formatter, "the section `{id}` is new"),
            Self::SectionGone(id) => write!(formatter, "the section `{id}` is gone"),
            Self::Wording(what) => write!(formatter, "the text of {what} is another one"),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text() -> impl Strategy<Value = String> {
        let parts = ["a", "b", " ", "\t", "\r", "\n", "\r\n", "\u{feff}", "é"];
        prop::collection::vec(prop::sample::select(parts.to_vec()), 0..10).prop_map(|parts| parts.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 4_000, ..ProptestConfig::default() })]

        #[test]
        fn texts_are_compared_as_their_rewritten_copies(before in text(), after in text()) {
            let unix = |text: &str| text.replace("\r\n", "\n");
            prop_assert_eq!(lines(&before).eq(lines(&after)), unix(&before) == unix(&after));
            let trimmed = |text: &str| text.trim_end().lines().map(str::trim_end).collect::<Vec<_>>().join("\n");
            let is_same = without_blanks(&before).eq(without_blanks(&after));
            prop_assert_eq!(is_same, trimmed(&before) == trimmed(&after));
        }
    }
}
