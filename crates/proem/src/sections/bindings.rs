//! Collects the content of sections: the scope, the project's instructions, residents.

use std::collections::BTreeMap;
use std::sync::Arc;

use proem_core::fact::{Absence, Facts};
use proem_core::file_outcome::{FileOutcome, Outcome};
use proem_core::limit::FILE_BYTES_MAX;
use proem_core::note::{Note, Severity};
use proem_core::profile::{Collection, Profile};
use proem_core::source::Source;
use proem_core::stability::Stability;
use proem_core::text::Place;

use crate::discover::agent_rules::{ConditionalFile, Piece, RuleFiles};
use crate::discover::documents::Document;
use crate::discover::residents::{self, ResidentKind};
use crate::discover::skills::{self, Skill};
use crate::discover::{self, Trail, skill_directory};
use crate::error::Error;
use crate::jinja::{Binding, Context, Field, Item};
use crate::observe::file::{Cap, ReadPolicy, read_source_utf8};
use crate::observe::workspace::Workspace;
use crate::request::Request;
use crate::sections::scope;
use crate::sections::tools::{Sentence, ToolLine, Tools};

/// The key of the active tools among a profile's variables.
pub(crate) const ACTIVE_TOOLS: &str = "tools:active";
/// The key of the guidelines.
pub(crate) const GUIDELINES: &str = "tools:guidelines";

/// The content found for a section: the variable that its format reads, if there is any content.
pub(crate) struct SectionContent {
    pub(crate) binding: Option<(&'static str, Binding)>,
    /// Further variables for its format.
    pub(crate) more: Vec<(&'static str, Binding)>,
    pub(crate) source: Source,
    pub(crate) notes: Vec<Note>,
    pub(crate) considered: Vec<FileOutcome>,
}

/// The policies under which a section's files are read.
pub(crate) struct SectionPolicies {
    pub(crate) instructions: ReadPolicy,
    pub(crate) own_files: ReadPolicy,
}

/// Returns the variables that Jinja templates of a profile can read.
pub(crate) fn context(request: &Request, profile: &Profile, tools: &Tools) -> Context {
    let mut bindings: BTreeMap<String, Binding> = BTreeMap::new();
    bindings.extend(texts(profile).map(|texts| ("texts".to_owned(), texts)));
    for (name, key) in &profile.jinja.variables {
        let binding = match key.as_str() {
            "prompt:tools" => tool_names(request),
            ACTIVE_TOOLS => active_tools(tools),
            GUIDELINES => guidelines(tools),
            _ => Binding::Fact(key.clone()),
        };
        bindings.insert(name.clone(), binding);
    }
    let keys = request.variables.keys();
    for name in keys.clone().filter(|key| !key.contains(':')) {
        bindings.insert(name.clone(), Binding::Fact(name.clone()));
    }
    let own_keys = keys.filter(|key| key.contains(':')).cloned().collect();
    let aliases = profile.jinja.aliases.clone();
    Context { bindings, facts: Some(Facts::new()), own_keys, aliases, ..Context::default() }
}

/// The names of the tools, sorted: their order in the request has no meaning.
fn tool_names(request: &Request) -> Binding {
    let mut items: Vec<String> = request.tools.iter().flatten().map(|tool| tool.name.clone()).collect();
    items.sort();
    let source = Source::Request { field: "tools".into(), place: None };
    Binding::List { items, source, stability: Stability::Session }
}

fn field(name: &str, sentence: &Sentence) -> Field {
    let (source, stability) = (sentence.source.clone(), sentence.stability);
    Field::new(name.into(), sentence.text.as_str().into(), source, stability)
}

/// The active tools: `name` and `text`.
fn active_tools(tools: &Tools) -> Binding {
    let item = |line: &ToolLine| Item { fields: vec![field("name", &line.name), field("text", &line.text)] };
    items(tools.active.iter().map(item).collect(), request_tools(), Stability::Session)
}

/// The guidelines: `text`.
fn guidelines(tools: &Tools) -> Binding {
    let item = |sentence: &Sentence| Item { fields: vec![field("text", sentence)] };
    items(tools.guidelines.iter().map(item).collect(), request_tools(), Stability::Session)
}

fn request_tools() -> Source {
    Source::Request { field: "tools".into(), place: None }
}

fn items(items: Vec<Item>, source: Source, stability: Stability) -> Binding {
    Binding::Items { items: Arc::new(items), source, stability }
}

/// The sentences of the profile: a field for each.
pub(crate) fn texts(profile: &Profile) -> Option<Binding> {
    let fields = profile.texts.iter().map(|(name, text)| {
        let key = format!("texts.{name}");
        let stability = profile.stability_of(&key);
        let source = Source::Profile { profile: profile.name.as_str().into(), key: key.into() };
        Field::new(name.as_str().into(), text.as_str().into(), source, stability)
    });
    let item = Item { fields: fields.collect() };
    (!item.fields.is_empty()).then(|| Binding::Fields { item: Arc::new(vec![item]) })
}

/// Instruction files: `path`, `content`, and `layer`, which is `global` or `project`.
pub(crate) fn documents(documents: &[Document], source: Source, trail: Trail) -> SectionContent {
    let item = |document: &Document| {
        let (source, stability) = (discover::file(&document.path), document.owner.stability());
        let field = |name: &str, text: &str, source: &Source| {
            Field::new(name.into(), text.into(), source.clone(), stability)
        };
        let content = document.line_map.source(&source);
        Item {
            fields: vec![
                field("path", &document.path, &source),
                field("content", &document.text, &content).taken_from(Some(&document.line_map)),
                field("layer", document.owner.word(), &source),
            ],
        }
    };
    found("documents", documents.iter().map(item).collect(), source, trail)
}

/// Instruction files in pieces: `path`, `relative`, `kind`, `layer`, `content`, and `begins` and `ends`, which have text
/// where an entry begins and ends. Files that apply only to some work: `path`, `relative`, `layer`, `patterns`,
/// `description`. And `cwd`.
pub(crate) fn rules(found: &RuleFiles, source: Source, names: (&str, &str), cwd: &str) -> SectionContent {
    let field = |name: &str, text: &str, source: &Source, stability: Stability| {
        Field::new(name.into(), text.into(), source.clone(), stability)
    };
    let piece = |piece: &Piece| {
        let (own, stability) = (discover::file(&piece.path), piece.owner.stability());
        let flag = |is_set: bool| if is_set { "yes" } else { "" };
        Item {
            fields: vec![
                field("path", &piece.path, &own, stability),
                field("relative", &piece.relative, &own, stability),
                field("kind", &piece.kind, &own, stability),
                field("layer", piece.owner.word(), &own, stability),
                field("content", &piece.text, &piece.source.source(names.0, names.1), stability)
                    .taken_from(piece.source.line_map()),
                field("begins", flag(piece.begins), &own, stability),
                field("ends", flag(piece.ends), &own, stability),
            ],
        }
    };
    let conditional = |one: &ConditionalFile| {
        let (own, stability) = (discover::file(&one.path), one.owner.stability());
        Item {
            fields: vec![
                field("path", &one.path, &own, stability),
                field("relative", &one.relative, &own, stability),
                field("layer", one.owner.word(), &own, stability),
                field("patterns", &one.patterns, &own, stability),
                field("description", &one.description, &own, stability),
            ],
        }
    };
    let is_empty = found.pieces.is_empty() && found.conditional.is_empty();
    let pieces = items(found.pieces.iter().map(piece).collect(), source.clone(), Stability::Project);
    let conditional =
        items(found.conditional.iter().map(conditional).collect(), source.clone(), Stability::Project);
    let of_cwd = Source::Variable { key: "prompt:cwd".into(), path: None };
    let cwd = Binding::Text { text: cwd.to_owned(), source: of_cwd, stability: Stability::Session };
    let Trail { notes, considered, .. } = found.trail.clone();
    let more = vec![("conditional", conditional), ("cwd", cwd)];
    SectionContent { binding: (!is_empty).then_some(("pieces", pieces)), more, source, notes, considered }
}

/// Skills: `name`, `description`, `location`, and `layer`, which is `global` or `project`.
pub(crate) fn skills(skills: &skills::FoundSkills, source: Source) -> SectionContent {
    let names: [Arc<str>; 4] = ["name".into(), "description".into(), "location".into(), "layer".into()];
    let mut layers: BTreeMap<&str, Arc<str>> = BTreeMap::new();
    let item = |skill: &Skill| {
        let source = Source::File { path: Arc::clone(&skill.location), place: None };
        let (word, stability) = (skill.owner.word(), skill.owner.stability());
        let layer = layers.entry(word).or_insert_with(|| word.into());
        let texts = [&skill.name, &skill.description, &skill.location, layer];
        let fields = names
            .iter()
            .zip(texts)
            .map(|(name, text)| Field::new(Arc::clone(name), Arc::clone(text), source.clone(), stability));
        Item { fields: fields.collect() }
    };
    found("skills", skills.listed().map(item).collect(), source, skills.trail())
}

/// A directory of skills: `text` is the line, whole.
pub(crate) fn skill_directory(
    skills: &[skill_directory::Line],
    source: Source,
    trail: Trail,
) -> SectionContent {
    let item = |line: &skill_directory::Line| {
        let (source, stability) = (discover::file(&line.location), line.owner.stability());
        Item { fields: vec![Field::new("text".into(), line.text.as_str().into(), source, stability)] }
    };
    found("skills", skills.iter().map(item).collect(), source, trail)
}

/// Makes the content of a section from a list of files; an empty list leaves the section without text.
fn found(variable: &'static str, list: Vec<Item>, source: Source, trail: Trail) -> SectionContent {
    let Trail { notes, considered, .. } = trail;
    let binding = (!list.is_empty()).then(|| (variable, items(list, source.clone(), Stability::Project)));
    SectionContent { binding, more: Vec::new(), source, notes, considered }
}

/// Collects the content of a section.
pub(crate) fn collect(
    what: &Collection,
    request: &Request,
    workspace: &Workspace,
    policies: &SectionPolicies,
) -> Result<SectionContent, Error> {
    match what {
        Collection::Scope => {
            let text = scope::summary(request.scope.as_ref(), workspace.path())?;
            let source = Source::Request { field: "scope".into(), place: None };
            Ok(text_of("scope_summary", text, source, Stability::Session))
        }
        Collection::AgentsMd if request.project == Some(false) => Ok(nothing("project")),
        Collection::AgentsMd => Ok(agents_md(workspace, &policies.instructions)),
        Collection::Knowledge | Collection::Workflows if request.residents == Some(false) => {
            Ok(nothing("residents"))
        }
        Collection::Knowledge | Collection::Workflows if request.project == Some(false) => {
            Ok(nothing("project"))
        }
        Collection::Knowledge => {
            resident(ResidentKind::Knowledge, "knowledge", workspace, &policies.own_files)
        }
        Collection::Workflows => resident(ResidentKind::Workflow, "workflow", workspace, &policies.own_files),
        // These have rules of their own, and are collected by the modules that own them.
        Collection::Documents(_)
        | Collection::Skills(_)
        | Collection::SkillDirectory(_)
        | Collection::Rules(_) => Ok(nothing("cwd")),
    }
}

fn text_of(variable: &'static str, text: String, source: Source, stability: Stability) -> SectionContent {
    let binding = Binding::Text { text, source: source.clone(), stability };
    SectionContent {
        binding: Some((variable, binding)),
        more: Vec::new(),
        source,
        notes: Vec::new(),
        considered: Vec::new(),
    }
}

/// Leaves a section out because the request disables it.
fn nothing(field: &str) -> SectionContent {
    let source = Source::Request { field: field.into(), place: None };
    SectionContent { binding: None, more: Vec::new(), source, notes: Vec::new(), considered: Vec::new() }
}

/// The `AGENTS.md` of the working directory, whole; white space alone counts as none.
fn agents_md(workspace: &Workspace, policy: &ReadPolicy) -> SectionContent {
    const CAP: Cap = Cap::new(FILE_BYTES_MAX);
    let path = workspace.path().join("AGENTS.md");
    let shown = path.display().to_string();
    let source = Source::File { path: shown.clone().into(), place: None };
    let text = read_source_utf8(&path, policy, CAP);
    let (outcome, why, note) = match &text {
        Ok(text) if text.trim().is_empty() => (Outcome::Empty, None, None),
        Ok(_) => (Outcome::Used, None, None),
        Err(why @ Absence::NoSuchFile) => (Outcome::Missing, Some(why.to_string()), None),
        Err(why) => {
            let message = format!("{shown} is left out: {why}");
            let note = Note::new(why.code(), Severity::Warning, message).with_source(source.clone());
            (Outcome::Unreadable, Some(why.to_string()), Some(note))
        }
    };
    let considered = vec![FileOutcome { path: shown, outcome, why }];
    let text = text.ok().filter(|text| !text.trim().is_empty());
    let binding = text.map(|text| {
        let source = source.at(Place { line: 1, column: 1 });
        ("agents_md", Binding::Text { text, source, stability: Stability::Project })
    });
    SectionContent { binding, more: Vec::new(), source, notes: note.into_iter().collect(), considered }
}

fn resident(
    kind: ResidentKind,
    folder: &str,
    workspace: &Workspace,
    policy: &ReadPolicy,
) -> Result<SectionContent, Error> {
    let folder = workspace.folder().join(folder);
    let source = Source::File { path: folder.display().to_string().into(), place: None };
    let residents::ResidentFiles { entries, notes, considered } = residents::collect(&folder, kind, policy)?;
    let binding = (!entries.is_empty()).then(|| {
        let text = residents::lines(&entries);
        ("entries", Binding::Text { text, source: source.clone(), stability: Stability::Project })
    });
    Ok(SectionContent { binding, more: Vec::new(), source, notes, considered })
}
