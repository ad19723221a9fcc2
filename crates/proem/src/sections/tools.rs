//! The active tools: how the prompt describes them, and which guidelines follow from them.

use proem_core::limit::TOOLS_MAX;
use proem_core::note::{Code, Note, Severity};
use proem_core::profile::{GuidelineRecipe, Profile, ToolOrder};
use proem_core::source::Source;
use proem_core::stability::Stability;
use proem_core::text::is_javascript_space;

use crate::error::Error;
use crate::request::{Request, Tool};

/// The active tools, in the order of the profile.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tools {
    pub(crate) active: Vec<ToolLine>,
    pub(crate) guidelines: Vec<Sentence>,
    /// True if the request lists the tools.
    is_given: bool,
    pub(crate) notes: Vec<Note>,
}

/// A tool's line.
#[derive(Debug, Clone)]
pub(crate) struct ToolLine {
    pub(crate) name: Sentence,
    pub(crate) text: Sentence,
}

/// A piece of text and where it comes from.
#[derive(Debug, Clone)]
pub(crate) struct Sentence {
    pub(crate) text: String,
    pub(crate) source: Source,
    pub(crate) stability: Stability,
}

impl Tools {
    /// Describes the tools of a request in the profile's wording. Of two tools with one name the first is used.
    pub(crate) fn new(request: &Request, profile: &Profile) -> Result<Self, Error> {
        let mut tools = Self { is_given: request.tools.is_some(), ..Self::default() };
        let mut given = match &request.tools {
            Some(given) => distinct(given, &mut tools.notes)?,
            None => Vec::new(),
        };
        if profile.tools.order == ToolOrder::Name {
            // No two have one name.
            given.sort_by(|(_, a), (_, b)| a.name.cmp(&b.name));
        }
        tools.active = match &request.tools {
            Some(_) => given.iter().map(|(index, tool)| line(*index, tool, profile)).collect(),
            None => profile.tools.default.iter().map(|name| default_line(name, profile)).collect(),
        };
        tools.guidelines = tools.guidelines(&given, profile);
        Ok(tools)
    }

    /// Tells whether a tool is active; without a list of tools, every tool may be.
    pub(crate) fn may_use(&self, name: &str) -> bool {
        !self.is_given || self.is_active(name)
    }

    fn is_active(&self, name: &str) -> bool {
        self.active.iter().any(|line| line.name.text == name)
    }

    fn guidelines(&self, given: &[(usize, &Tool)], profile: &Profile) -> Vec<Sentence> {
        let mut sentences: Vec<Sentence> = Vec::new();
        for (index, recipe) in profile.tools.guidelines.iter().enumerate() {
            let sentences_here = match &recipe.text {
                Some(text) => vec![of_profile(text, profile, &format!("tools.guidelines[{index}]"))],
                None => own_guidelines(given),
            };
            if holds(recipe, self) {
                for sentence in sentences_here {
                    if !sentences.iter().any(|known| known.text == sentence.text) {
                        sentences.push(sentence);
                    }
                }
            }
        }
        sentences
    }
}

fn holds(recipe: &GuidelineRecipe, tools: &Tools) -> bool {
    recipe.holds(|name| tools.is_active(name))
}

/// Notes the tools that have the name of an earlier one. Too many tools, or one with an invalid name, are an error.
pub(crate) fn duplicates(given: &[Tool]) -> Result<Vec<Note>, Error> {
    let mut notes = Vec::new();
    distinct(given, &mut notes)?;
    Ok(notes)
}

/// The tools with their numbers in the request, without repetitions.
fn distinct<'t>(given: &'t [Tool], notes: &mut Vec<Note>) -> Result<Vec<(usize, &'t Tool)>, Error> {
    if given.len() > TOOLS_MAX {
        return Err(Error::request(format!("there are {} tools, and {TOOLS_MAX} are allowed", given.len())));
    }
    let mut tools: Vec<(usize, &Tool)> = Vec::new();
    for (index, tool) in given.iter().enumerate() {
        check_name(index, &tool.name)?;
        match tools.iter().find(|(_, known)| known.name == tool.name) {
            Some((first, _)) => notes.push(duplicate(index, *first, &tool.name)),
            None => tools.push((index, tool)),
        }
    }
    Ok(tools)
}

fn check_name(index: usize, name: &str) -> Result<(), Error> {
    let why = match name {
        "" => "is empty",
        _ if name.chars().all(is_javascript_space) => "is white space alone",
        _ if name.chars().any(char::is_control) => "has control characters",
        _ => return Ok(()),
    };
    let message = format!("`tools[{index}].name` {why}");
    Err(Error::request_with_hint(message, "a tool is called by its name: letters, digits, `_` and `-`"))
}

fn duplicate(index: usize, first: usize, name: &str) -> Note {
    let message = format!("`tools[{index}]` is left out: `tools[{first}]` is called `{name}`, too");
    Note::new(Code::DuplicateTool, Severity::Warning, message)
        .with_hint("give each tool a name of its own")
        .with_source(Source::Request { field: format!("tools[{index}]").into(), place: None })
}

fn line(index: usize, tool: &Tool, profile: &Profile) -> ToolLine {
    let name = of_request(tool.name.clone(), format!("tools[{index}].name"));
    let snippet = tool.snippet.as_deref().map(folded).filter(|text| !text.is_empty());
    let description = tool.description.as_deref().map(folded).filter(|text| !text.is_empty());
    let text = snippet
        .map(|text| of_request(text, format!("tools[{index}].snippet")))
        .or_else(|| well_known(&tool.name, profile))
        .or_else(|| description.map(|text| of_request(text, format!("tools[{index}].description"))))
        .unwrap_or_else(|| name.clone());
    ToolLine { name, text }
}

fn default_line(name: &str, profile: &Profile) -> ToolLine {
    let own = of_profile(name, profile, "tools.default");
    let text = well_known(name, profile).unwrap_or_else(|| own.clone());
    ToolLine { name: own, text }
}

fn well_known(name: &str, profile: &Profile) -> Option<Sentence> {
    let text = profile.tools.descriptions.get(name)?;
    Some(of_profile(text, profile, &format!("tools.descriptions.{name}")))
}

/// The tools' own guidelines, trimmed, blank ones left out.
fn own_guidelines(given: &[(usize, &Tool)]) -> Vec<Sentence> {
    let all = given.iter().flat_map(|(index, tool)| {
        tool.guidelines
            .iter()
            .enumerate()
            .map(move |(line, text)| (format!("tools[{index}].guidelines[{line}]"), text))
    });
    let sentences =
        all.map(|(field, text)| of_request(text.trim_matches(is_javascript_space).to_owned(), field));
    sentences.filter(|sentence| !sentence.text.is_empty()).collect()
}

/// The text on one line: runs of white space become one space, none at the ends.
fn folded(text: &str) -> String {
    text.split(is_javascript_space).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

fn of_request(text: String, field: String) -> Sentence {
    Sentence {
        text,
        source: Source::Request { field: field.into(), place: None },
        stability: Stability::Session,
    }
}

fn of_profile(text: &str, profile: &Profile, key: &str) -> Sentence {
    let source = Source::Profile { profile: profile.name.as_str().into(), key: key.into() };
    Sentence { text: text.to_owned(), source, stability: profile.stability_of(key) }
}
