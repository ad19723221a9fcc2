//! One skill, from the head of its file, by the Agent Skills specification: read leniently, so that a
//! fault costs a note and not the skill, unless there is no description.

use std::path::Path;
use std::sync::Arc;

use proem_core::front_matter::{self, FrontMatter, Split, Value};
use proem_core::note::{Code, Note, Severity};
use proem_core::source::Source;
use proem_core::text::{Place, is_javascript_space};

use super::{Owner, Spot};
use crate::file::shown;

const NAME_CHARACTERS_MAX: usize = 64;
const DESCRIPTION_CHARACTERS_MAX: usize = 1024;
const COMPATIBILITY_CHARACTERS_MAX: usize = 500;

/// A skill as the prompt knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Skill {
    pub(crate) name: Arc<str>,
    pub(crate) description: Arc<str>,
    pub(crate) location: Arc<str>,
    pub(crate) owner: Owner,
    /// Whether it asks not to be listed.
    pub(crate) is_hidden: bool,
}

/// Something about a skill that should be otherwise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) code: Code,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
    place: Option<Place>,
}

impl Problem {
    fn new(message: impl Into<String>) -> Self {
        Self { code: Code::MalformedSkill, message: message.into(), hint: None, place: None }
    }

    fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The name is taken.
    pub(super) fn shadowed(name: &str, first: &str) -> Self {
        let (name, first) = (name.escape_debug(), shown(Path::new(first)));
        let message = format!("the skill `{name}` is not listed: {first} has the same name and comes first");
        Self { code: Code::Shadowed, ..Self::new(message).hint("rename one of them, or remove it") }
    }

    /// The note for a prompt's reader.
    pub(crate) fn note(&self, location: &str) -> Note {
        let source = Source::File { path: location.into(), place: self.place };
        let note = Note::new(self.code, Severity::Warning, self.message.clone()).with_source(source);
        self.hint.iter().cloned().fold(note, Note::with_hint)
    }
}

/// Reads a skill from the head of its file. Without one, the first problem says why.
pub(super) fn read(spot: &Spot<'_>, location: &Arc<str>, head: &[u8]) -> (Option<Arc<Skill>>, Vec<Problem>) {
    match front_matter(head) {
        Err(problem) => (None, vec![problem]),
        Ok(front_matter) => {
            let (skill, problems) = skill(spot, location, &front_matter);
            (skill.map(Arc::new), problems)
        }
    }
}

fn skill(spot: &Spot<'_>, location: &Arc<str>, front_matter: &FrontMatter) -> (Option<Skill>, Vec<Problem>) {
    let Spot { path, owner, is_in_root, named_by_file } = *spot;
    let description = match description(front_matter) {
        Ok(description) => description,
        Err(problem) => return (None, vec![problem]),
    };
    let folder = path.parent().and_then(Path::file_name).and_then(|name| name.to_str()).unwrap_or_default();
    let name = match front_matter.value("name") {
        Some(Value::Text(name)) if !name.is_empty() => name,
        _ if named_by_file => stem(path),
        _ => folder,
    };
    let mut problems = Vec::new();
    check_name(name, (!is_in_root).then_some(folder), front_matter, &mut problems);
    check_length("description", description, DESCRIPTION_CHARACTERS_MAX, &mut problems);
    check_others(front_matter, &mut problems);
    let is_hidden = front_matter.value("disable-model-invocation") == Some(&Value::Bool(true));
    if let Some(other @ (Value::Text(_) | Value::Number(_))) = front_matter.value("disable-model-invocation")
    {
        let message =
            format!("`disable-model-invocation` is {}, which does not hide the skill", other.word());
        problems.push(Problem::new(message).hint("write `true` or `false`, without quotes"));
    }
    let (name, description, location) = (name.into(), description.into(), Arc::clone(location));
    (Some(Skill { name, description, location, owner, is_hidden }), problems)
}

/// The file's name without `.md`.
fn stem(path: &Path) -> &str {
    path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default()
}

fn front_matter(head: &[u8]) -> Result<FrontMatter, Problem> {
    let none = |message: &str| {
        Problem::new(format!("the skill is not listed: {message}"))
            .hint("begin the file with a `---` line, `name:` and `description:`, and another `---` line")
    };
    let text = match text_of_front_matter(head).map_or_else(|| str::from_utf8(head), Ok) {
        Ok(text) => text,
        // The head may end inside a character, and the body is nobody's business here.
        Err(error) => match head.get(..error.valid_up_to()).map(str::from_utf8) {
            Some(Ok(text)) if matches!(front_matter::split(text), Split::Found { .. }) => text,
            _ => return Err(none(&format!("not UTF-8: bad byte at offset {}", error.valid_up_to()))),
        },
    };
    if text.starts_with('\u{FEFF}') {
        return Err(none("a byte order mark stands before the first line").hint("save it without one"));
    }
    match front_matter::split(text) {
        Split::Found { yaml, .. } => front_matter::parse(yaml).map_err(|error| Problem {
            place: Some(error.place_in_file()),
            ..none(&format!("its front matter is broken: {}", error.message))
                .hint("look at the line that is named; a value with `: ` or ` #` in it needs quotes")
        }),
        Split::Absent => Err(none("it has no front matter: the first line is not `---`")),
        Split::Unclosed => Err(none("its front matter has no closing `---`")),
        Split::TooLong => Err(none("its front matter has no closing `---` within 8 KiB")),
    }
}

/// The head up to the first line that may close the front matter, if that has it all: most of a head is the body, and
/// whether that is text need not be looked at.
fn text_of_front_matter(head: &[u8]) -> Option<&str> {
    let mut breaks = memchr::memchr_iter(b'\n', head).map(|at| at + 1);
    breaks.find(|start| head.get(*start..).is_some_and(|rest| rest.starts_with(b"---")))?;
    let text = str::from_utf8(head.get(..breaks.next()?)?).ok()?;
    matches!(front_matter::split(text), Split::Found { .. }).then_some(text)
}

fn description(front_matter: &FrontMatter) -> Result<&str, Problem> {
    let none = |message: String| {
        Problem::new(format!("the skill is not listed: {message}"))
            .hint("say in `description` what the skill does and when to use it")
    };
    match front_matter.value("description") {
        None | Some(Value::Null) => Err(none("it has no `description`".into())),
        Some(Value::Text(text)) if text.chars().all(is_javascript_space) => {
            Err(none("its `description` is empty".into()))
        }
        Some(Value::Text(text)) => Ok(text),
        Some(other) => Err(none(format!("its `description` is {}, and must be text", other.word()))),
    }
}

fn check_name(name: &str, folder: Option<&str>, front_matter: &FrontMatter, problems: &mut Vec<Problem>) {
    if let Some(other @ (Value::Bool(_) | Value::Number(_) | Value::List(_) | Value::Map(_))) =
        front_matter.value("name")
    {
        let whose = if folder.is_some() { "folder" } else { "file" };
        let message = format!("`name` is {}; the {whose}'s name is taken", other.word());
        problems.push(Problem::new(message).hint("put it into quotes"));
    }
    let is_word = |word: &str| {
        !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    if !name.split('-').all(is_word) {
        let message = format!("the name `{}` is not well formed", name.escape_debug());
        problems.push(
            Problem::new(message).hint("use lower-case letters, digits and single hyphens between them"),
        );
    }
    check_length("name", name, NAME_CHARACTERS_MAX, problems);
    if let Some(folder) = folder.filter(|folder| *folder != name) {
        let message = format!(
            "the name `{}` is not that of its folder, `{}`",
            name.escape_debug(),
            folder.escape_debug()
        );
        problems.push(Problem::new(message).hint("rename the folder or the skill"));
    }
}

fn check_length(key: &str, text: &str, max: usize, problems: &mut Vec<Problem>) {
    let characters = text.chars().count();
    if characters > max {
        problems.push(Problem::new(format!(
            "`{key}` has {characters} characters, and at most {max} are allowed"
        )));
    }
}

/// Checks the fields that do not appear in the prompt.
fn check_others(front_matter: &FrontMatter, problems: &mut Vec<Problem>) {
    let mut must_be = |key: &str, is_right: bool, what: &str, value: &Value| {
        if !is_right {
            problems.push(Problem::new(format!("`{key}` is {}, and must be {what}", value.word())));
        }
    };
    for key in ["license", "compatibility", "allowed-tools"] {
        if let Some(value) = front_matter.value(key) {
            must_be(key, matches!(value, Value::Text(_)), "text", value);
        }
    }
    if let Some(value) = front_matter.value("metadata") {
        let is_right = match value {
            Value::Map(entries) => entries.values().all(|entry| matches!(entry, Value::Text(_))),
            _ => false,
        };
        must_be("metadata", is_right, "a map of texts", value);
    }
    if let Some(Value::Text(text)) = front_matter.value("compatibility") {
        check_length("compatibility", text, COMPATIBILITY_CHARACTERS_MAX, problems);
    }
}
