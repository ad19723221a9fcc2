//! One skill, from the head of its file, by the Agent Skills specification: parsed leniently, so that a fault causes a
//! note and does not remove the skill, unless the description is missing.

use std::path::Path;
use std::sync::Arc;

use proem_core::front_matter::{self, FrontMatter, Split, Value};
use proem_core::limit::{
    FRONT_MATTER_BYTES_MAX, SKILL_COMPATIBILITY_CHARACTERS_MAX, SKILL_DESCRIPTION_CHARACTERS_MAX,
    SKILL_NAME_CHARACTERS_MAX, Size,
};
use proem_core::note::{Code, Note, Severity};
use proem_core::profile::{SkillName, SkillsRecipe, WithoutDescription};
use proem_core::source::Source;
use proem_core::text::{Place, Places, is_javascript_space};

use super::{Owner, SkillPlace};
use crate::observe::file::shown;

/// A skill as it appears in the prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Skill {
    pub(crate) name: Arc<str>,
    pub(crate) description: Arc<str>,
    pub(crate) location: Arc<str>,
    pub(crate) owner: Owner,
    /// True if it asks not to be listed.
    pub(crate) is_hidden: bool,
}

/// A fault of a skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) code: Code,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
    pub(crate) severity: Severity,
    pub(crate) place: Option<Place>,
}

impl Problem {
    fn new(message: impl Into<String>) -> Self {
        let (code, severity) = (Code::MalformedSkill, Severity::Warning);
        Self { code, message: message.into(), hint: None, severity, place: None }
    }

    /// Marks the fault as one that does not affect the skill.
    fn harmless(self) -> Self {
        Self { severity: Severity::Info, ..self }
    }

    /// Adds the place, if it is known.
    fn at(self, place: Option<Place>) -> Self {
        Self { place, ..self }
    }

    fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Makes a fault: another skill has the same name.
    pub(super) fn shadowed(name: &str, first: &str) -> Self {
        let (name, first) = (name.escape_debug(), shown(Path::new(first)));
        let message = format!("the skill `{name}` is not listed: {first} has the same name and comes first");
        Self { code: Code::Shadowed, ..Self::new(message).hint("rename one of them, or remove it") }
    }

    /// Makes the note about it.
    pub(crate) fn note(&self, location: &str) -> Note {
        let source = Source::File { path: location.into(), place: self.place };
        let note = Note::new(self.code, self.severity, self.message.clone()).with_source(source);
        self.hint.iter().cloned().fold(note, Note::with_hint)
    }
}

/// A skill, if the file is valid, and its faults.
pub(super) type ParsedSkill = (Option<Arc<Skill>>, Vec<Problem>);

/// Parses a skill from the head of its file. If there is no skill, the first problem is the reason.
pub(super) fn read(
    spot: &SkillPlace<'_>,
    recipe: &SkillsRecipe,
    location: &Arc<str>,
    head: &[u8],
) -> ParsedSkill {
    let is_absent =
        !head.strip_prefix(b"---").is_some_and(|rest| rest.starts_with(b"\n") || rest.starts_with(b"\r"));
    let parsed = match front_matter(head) {
        Err(_) if is_absent && recipe.without_description == WithoutDescription::BodyAlone => {
            Ok(Head { front_matter: FrontMatter::default(), yaml: "" })
        }
        parsed => parsed,
    };
    match parsed {
        Err(problem) => (None, vec![problem]),
        Ok(parsed) => {
            let (skill, problems) = skill(spot, recipe, location, (&parsed, head));
            (skill.map(Arc::new), problems)
        }
    }
}

/// Front matter, and its text, which gives line numbers.
struct Head<'h> {
    front_matter: FrontMatter,
    yaml: &'h str,
}

impl Head<'_> {
    fn value(&self, key: &str) -> Option<&Value> {
        self.front_matter.value(key)
    }

    /// Returns the place of a key in the file. Keys of the outermost map begin a line; a key of a map in braces has no
    /// place.
    fn place(&self, key: &str) -> Option<Place> {
        let line = self.yaml.lines().position(|line| key_of(line) == Some(key))?;
        // The first line of the YAML is the file's second.
        Some(Place { line: line + 2, column: 1 })
    }

    /// Returns the place of a key of the map below another key, else that of the map.
    fn place_below(&self, key: &str, inner: &str) -> Option<Place> {
        let outer = self.place(key)?;
        let below = self.yaml.lines().enumerate().skip(outer.line - 1);
        let mut own = below.take_while(|(_, line)| line.is_empty() || line.starts_with([' ', '\t', '#']));
        let found = own.find(|(_, line)| key_of(line.trim_start()) == Some(inner));
        let place = |(index, line): (usize, &str)| Place {
            line: index + 2,
            column: line.chars().take_while(|character| character.is_whitespace()).count() + 1,
        };
        Some(found.map_or(outer, place))
    }
}

/// Returns the key at the beginning of a line.
fn key_of(line: &str) -> Option<&str> {
    let (key, _) = line.split_once(':')?;
    Some(key.trim_end().trim_matches(['"', '\'']))
}

fn skill(
    spot: &SkillPlace<'_>,
    recipe: &SkillsRecipe,
    location: &Arc<str>,
    (head, bytes): (&Head<'_>, &[u8]),
) -> (Option<Skill>, Vec<Problem>) {
    let SkillPlace { path, owner, is_in_root, named_by_file } = *spot;
    let described = match (description(head), recipe.without_description) {
        (Ok(description), _) => cut(description, recipe),
        (Err(_), WithoutDescription::Body | WithoutDescription::BodyAlone) => Ok(first_line(bytes)),
        (Err(_), WithoutDescription::Empty) => Ok(String::new()),
        (Err(problem), WithoutDescription::Required) => Err(problem),
    };
    let description = match described {
        Ok(description) => description,
        Err(problem) => return (None, vec![problem]),
    };
    let description = description.as_str();
    let folder = path.parent().and_then(Path::file_name).and_then(|name| name.to_str()).unwrap_or_default();
    let name = match head.value("name") {
        Some(Value::Text(name)) if !name.is_empty() && recipe.name != SkillName::Folder => name,
        _ if recipe.name == SkillName::Required => {
            let problem = Problem::new("the skill is not listed: it has no `name`");
            return (None, vec![problem.hint("give it the name of its folder")]);
        }
        _ if named_by_file => stem(path),
        _ => folder,
    };
    let mut problems = Vec::new();
    check_name(name, (!is_in_root).then_some(folder), head, &mut problems);
    check_length("description", description, SKILL_DESCRIPTION_CHARACTERS_MAX, head, &mut problems);
    check_others(head, &mut problems);
    let key = "disable-model-invocation";
    let hides = |key: &String| !matches!(head.value(key), None | Some(Value::Null | Value::Bool(false)));
    let is_hidden = match &recipe.hidden_by {
        None => head.value(key) == Some(&Value::Bool(true)),
        Some(keys) => keys.iter().any(hides),
    };
    if let Some(other @ (Value::Text(_) | Value::Number(_))) = head.value(key) {
        let message = format!("`{key}` is {}, which does not hide the skill", other.word());
        let problem = Problem::new(message).hint("write `true` or `false`, without quotes");
        problems.push(problem.at(head.place(key)));
    }
    let (name, description, location) = (name.into(), description.into(), Arc::clone(location));
    (Some(Skill { name, description, location, owner, is_hidden }), problems)
}

/// Cuts a description to the recipe's limit.
fn cut(description: &str, recipe: &SkillsRecipe) -> Result<String, Problem> {
    let Some(max) = recipe.description_characters_max.filter(|max| description.chars().count() > *max) else {
        return Ok(description.to_owned());
    };
    let Some(mark) = &recipe.description_cut else {
        let message = format!("the skill is not listed: its `description` has more than {max} characters");
        return Err(Problem::new(message).hint("shorten it"));
    };
    let kept = max.saturating_sub(mark.chars().count());
    Ok(description.chars().take(kept).chain(mark.chars()).collect())
}

/// Returns the first line of the body that has text, without the marks of a heading.
fn first_line(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let body = match front_matter::split(&text) {
        Split::Found { body, .. } => body,
        _ => &text,
    };
    let line = body.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    line.trim_start_matches('#').trim().to_owned()
}

/// Returns the file's name without `.md`.
fn stem(path: &Path) -> &str {
    path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default()
}

fn front_matter(head: &[u8]) -> Result<Head<'_>, Problem> {
    let none = |message: &str| {
        Problem::new(format!("the skill is not listed: {message}"))
            .hint("begin the file with a `---` line, `name:` and `description:`, and another `---` line")
            .at(Some(Place { line: 1, column: 1 }))
    };
    let text = match text_of_front_matter(head).map_or_else(|| str::from_utf8(head), Ok) {
        Ok(text) => text,
        // The head may end inside a character, which is not a fault of the file; and the body is not checked here.
        Err(error) => {
            let valid = head.get(..error.valid_up_to()).and_then(|valid| str::from_utf8(valid).ok());
            let valid = valid.unwrap_or_default();
            if error.error_len().is_some() && !matches!(front_matter::split(valid), Split::Found { .. }) {
                let message = format!("not UTF-8: bad byte at offset {}", valid.len());
                return Err(none(&message).at(Some(Places::new(valid).at(valid.len()))));
            }
            valid
        }
    };
    if text.starts_with('\u{FEFF}') {
        return Err(none("a byte order mark stands before the first line").hint("save it without one"));
    }
    match front_matter::split(text) {
        Split::Found { yaml, .. } => match front_matter::parse(yaml) {
            Ok(front_matter) => Ok(Head { front_matter, yaml }),
            Err(error) => Err(none(&format!("its front matter is broken: {}", error.message))
                .hint("look at the line that is named; a value with `: ` or ` #` in it needs quotes")
                .at(Some(error.place_in_file()))),
        },
        Split::Absent => Err(none("it has no front matter: the first line is not `---`")),
        Split::Unclosed => Err(none("its front matter has no closing `---`")),
        Split::TooLong => {
            let limit = Size::new(FRONT_MATTER_BYTES_MAX);
            Err(none(&format!("its front matter has no closing `---` within {limit}")))
        }
    }
}

/// Returns the head up to the first line that may close the front matter. Most of a head is the body, which need not be
/// valid text.
fn text_of_front_matter(head: &[u8]) -> Option<&str> {
    let mut breaks = memchr::memchr_iter(b'\n', head).map(|at| at + 1);
    breaks.find(|start| head.get(*start..).is_some_and(|rest| rest.starts_with(b"---")))?;
    let text = str::from_utf8(head.get(..breaks.next()?)?).ok()?;
    matches!(front_matter::split(text), Split::Found { .. }).then_some(text)
}

fn description<'h>(head: &'h Head<'_>) -> Result<&'h str, Problem> {
    let none = |message: String| {
        Problem::new(format!("the skill is not listed: {message}"))
            .hint("say in `description` what the skill does and when to use it")
            .at(head.place("description").or(Some(Place { line: 1, column: 1 })))
    };
    match head.value("description") {
        None | Some(Value::Null) => Err(none("it has no `description`".into())),
        Some(Value::Text(text)) if text.chars().all(is_javascript_space) => {
            Err(none("its `description` is empty".into()))
        }
        Some(Value::Text(text)) => Ok(text),
        Some(other) => Err(none(format!("its `description` is {}, and must be text", other.word()))),
    }
}

fn check_name(name: &str, folder: Option<&str>, head: &Head<'_>, problems: &mut Vec<Problem>) {
    let place = head.place("name");
    if let Some(other @ (Value::Bool(_) | Value::Number(_) | Value::List(_) | Value::Map(_))) =
        head.value("name")
    {
        let whose = if folder.is_some() { "folder" } else { "file" };
        let message = format!("`name` is {}; the {whose}'s name is taken", other.word());
        problems.push(Problem::new(message).hint("put it into quotes").at(place));
    }
    let is_word = |word: &str| {
        !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    let is_well_formed = name.split('-').all(is_word);
    let faults = [
        (!is_well_formed).then(|| "not well formed".to_owned()),
        folder
            .filter(|folder| *folder != name)
            .map(|folder| format!("not that of its folder, `{}`", folder.escape_debug())),
    ];
    let faults: Vec<String> = faults.into_iter().flatten().collect();
    if !faults.is_empty() {
        // One name is one fault: a new name fixes both.
        let message = format!("the name `{}` is {}", name.escape_debug(), faults.join(", and "));
        let hint = if is_well_formed {
            "rename the folder or the skill"
        } else {
            "use lower-case letters, digits and single hyphens between them"
        };
        problems.push(Problem::new(message).hint(hint).at(place));
    }
    check_length("name", name, SKILL_NAME_CHARACTERS_MAX, head, problems);
}

fn check_length(key: &str, text: &str, max: usize, head: &Head<'_>, problems: &mut Vec<Problem>) {
    let characters = text.chars().count();
    if characters > max {
        let message = format!("`{key}` has {characters} characters, and at most {max} are allowed");
        problems.push(Problem::new(message).at(head.place(key)));
    }
}

/// Checks the fields that do not appear in the prompt.
fn check_others(head: &Head<'_>, problems: &mut Vec<Problem>) {
    let mut must_be_text = |key: &str, is_right: fn(&Value) -> bool| {
        if let Some(value) = head.value(key).filter(|value| !is_right(value)) {
            let message = format!("`{key}` is {}, and must be text", value.word());
            problems.push(Problem::new(message).at(head.place(key)));
        }
    };
    let is_text = |value: &Value| matches!(value, Value::Text(_));
    must_be_text("license", is_text);
    must_be_text("compatibility", is_text);
    // The specification has names separated by spaces; agents also accept a list.
    must_be_text("allowed-tools", |value| match value {
        Value::List(names) => names.iter().all(|name| matches!(name, Value::Text(_))),
        value => matches!(value, Value::Text(_)),
    });
    check_metadata(head, problems);
    if let Some(Value::Text(text)) = head.value("compatibility") {
        check_length("compatibility", text, SKILL_COMPATIBILITY_CHARACTERS_MAX, head, problems);
    }
}

/// Checks `metadata`, which no agent shows to a model. The specification allows texts only; `internal: true` and
/// `version: 1` are accepted as well, as all agents do.
fn check_metadata(head: &Head<'_>, problems: &mut Vec<Problem>) {
    let entries = match head.value("metadata") {
        None | Some(Value::Null) => return,
        Some(Value::Map(entries)) => entries,
        Some(other) => {
            let message = format!("`metadata` is {}, and must be a map of keys and texts", other.word());
            problems.push(Problem::new(message).at(head.place("metadata")));
            return;
        }
    };
    for (key, value) in entries {
        if let Value::List(_) | Value::Map(_) = value {
            let message = format!(
                "`metadata.{}` is {}; the Agent Skills format has only texts there",
                key.escape_debug(),
                value.word()
            );
            let problem = Problem::new(message).harmless().at(head.place_below("metadata", key));
            problems.push(problem.hint("write it as one text, or leave it: agents ignore it"));
        }
    }
}
