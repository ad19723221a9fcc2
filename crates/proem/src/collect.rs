//! Collects what sections are about: the scope, the project's instructions, residents.

use std::collections::BTreeMap;

use proem_core::considered::{Considered, Outcome};
use proem_core::fact::{Absence, Facts};
use proem_core::limit::FILE_BYTES_MAX;
use proem_core::note::{Note, Severity};
use proem_core::profile::{Collection, Profile};
use proem_core::source::Source;
use proem_core::stability::Stability;
use proem_core::text::Place;

use crate::error::Error;
use crate::file::{Cap, ReadPolicy, read_utf8};
use crate::jinja::{Binding, Context};
use crate::request::Request;
use crate::residents::{self, ResidentKind};
use crate::scope;
use crate::workspace::Workspace;

/// What was found for a section: the variable that its format sees, if there is anything at all.
pub(crate) struct Collected {
    pub(crate) binding: Option<(&'static str, Binding)>,
    pub(crate) source: Source,
    pub(crate) notes: Vec<Note>,
    pub(crate) considered: Vec<Considered>,
}

/// What may be read.
pub(crate) struct Policies {
    pub(crate) instructions: ReadPolicy,
    pub(crate) own_files: ReadPolicy,
}

/// What Jinja templates of a profile see.
pub(crate) fn context(request: &Request, profile: &Profile) -> Context {
    let mut bindings: BTreeMap<String, Binding> = BTreeMap::new();
    for (name, key) in &profile.jinja.variables {
        let binding = if key == "prompt:tools" { tools(request) } else { Binding::Fact(key.clone()) };
        bindings.insert(name.clone(), binding);
    }
    let keys = request.variables.keys();
    for name in keys.clone().filter(|key| !key.contains(':')) {
        bindings.insert(name.clone(), Binding::Fact(name.clone()));
    }
    let own_keys = keys.filter(|key| key.contains(':')).cloned().collect();
    Context { bindings, facts: Some(Facts::new()), own_keys, aliases: profile.jinja.aliases.clone() }
}

/// The names of the tools, sorted: their order in the request says nothing.
fn tools(request: &Request) -> Binding {
    let mut items: Vec<String> = request.tools.iter().flatten().map(|tool| tool.name.clone()).collect();
    items.sort();
    let source = Source::Request { field: "tools".to_owned(), place: None };
    Binding::List { items, source, stability: Stability::Session }
}

/// Collects what a section is about.
pub(crate) fn collect(
    what: Collection,
    request: &Request,
    workspace: &Workspace,
    policies: &Policies,
) -> Result<Collected, Error> {
    match what {
        Collection::Scope => {
            let text = scope::summary(request.scope.as_ref(), workspace.path())?;
            let source = Source::Request { field: "scope".to_owned(), place: None };
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
    }
}

fn text_of(variable: &'static str, text: String, source: Source, stability: Stability) -> Collected {
    let binding = Binding::Text { text, source: source.clone(), stability };
    Collected { binding: Some((variable, binding)), source, notes: Vec::new(), considered: Vec::new() }
}

/// Left out because the request says so.
fn nothing(field: &str) -> Collected {
    let source = Source::Request { field: field.to_owned(), place: None };
    Collected { binding: None, source, notes: Vec::new(), considered: Vec::new() }
}

/// The `AGENTS.md` of the working directory, whole; white space alone counts as none.
fn agents_md(workspace: &Workspace, policy: &ReadPolicy) -> Collected {
    const CAP: Cap = Cap { bytes_max: FILE_BYTES_MAX, words: "1 MiB" };
    let path = workspace.path().join("AGENTS.md");
    let shown = path.display().to_string();
    let source = Source::File { path: shown.clone(), place: None };
    let text = read_utf8(&path, policy, CAP);
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
    let considered = vec![Considered { path: shown, outcome, why }];
    let text = text.ok().filter(|text| !text.trim().is_empty());
    let binding = text.map(|text| {
        let source = source.at(Place { line: 1, column: 1 });
        ("agents_md", Binding::Text { text, source, stability: Stability::Project })
    });
    Collected { binding, source, notes: note.into_iter().collect(), considered }
}

fn resident(
    kind: ResidentKind,
    folder: &str,
    workspace: &Workspace,
    policy: &ReadPolicy,
) -> Result<Collected, Error> {
    let folder = workspace.folder().join(folder);
    let source = Source::File { path: folder.display().to_string(), place: None };
    let residents::Collected { entries, notes, considered } = residents::collect(&folder, kind, policy)?;
    let binding = (!entries.is_empty()).then(|| {
        let text = residents::lines(&entries);
        ("entries", Binding::Text { text, source: source.clone(), stability: Stability::Project })
    });
    Ok(Collected { binding, source, notes, considered })
}
