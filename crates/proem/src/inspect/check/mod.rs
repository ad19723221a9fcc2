//! Checks a prompt for problems that cost money, mislead the model or leak secrets.
//!
//! A finding is a note: one that every build reports, or one that only a check computes.

mod agents;
mod all;
mod choices;
mod content;
mod determinism;
mod fix;
mod references;
mod sarif;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Path, PathBuf};

use proem_core::file_outcome::Outcome;
use proem_core::limit::DOCUMENTS_BYTES_MAX;
use proem_core::note::{Code, Note, Severity};
use proem_core::source::Source;
use proem_core::stability::Stability;

pub use crate::settings::allow::{Allow, AllowFile, AllowedFinding, file_of};
pub use agents::check_as;
pub use all::{check_all, other_files};
pub use determinism::{Axis, MovedSource, determinism};
pub use fix::{Repairs, fix};
pub use sarif::sarif;

use crate::build::Build;
use crate::costs::stats::stats;
use crate::deliver::DeliverOptions;
use crate::discover::SearchRoots;
use crate::engine::Engine;
use crate::error::Error;
use crate::inspect::preview::breaks;
use crate::observe::file::{Cap, ReadPolicy, read_utf8, without_dots};
use crate::observe::host::Host;
use crate::observe::workspace::Workspace;
use crate::request::caller::Author;
use crate::request::caller::Caller;
use crate::request::{OneOrMany, Request};
use crate::sections::build_state::BuildState;
use crate::sections::resolver::Resolver;
use crate::sections::text_findings::SECRETS;
use crate::sections::text_findings::ScannedText;
use crate::sections::text_policy::is_of_treatment;
use crate::settings::config::Config;
use crate::settings::models::{Model, Models};
use crate::settings::tokens::Tokenizer;

const FILE: Cap = Cap::new(DOCUMENTS_BYTES_MAX);

/// The result of checking a prompt, or all files of a project.
#[derive(Debug, Clone)]
pub struct Report {
    /// The findings, by file and line.
    pub findings: Vec<Note>,
    /// The findings that a rule allows, with the reason.
    pub allowed: Vec<AllowedFinding>,
    /// The subject of the check.
    pub subject: Subject,
    /// The files that were read, by path.
    pub files: BTreeSet<String>,
}

/// The subject of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// One prompt.
    Prompt {
        /// The profile that it was built by.
        profile: String,
        /// The size of the frozen prompt in bytes.
        bytes: usize,
    },
    /// Every file of agents in a project.
    Project {
        /// The number of directories that were searched.
        directories: usize,
        /// The role of each file, by path.
        roles: BTreeMap<String, &'static str>,
    },
}

/// Tells whether `fix` repairs the finding of a note: only if no visible or meaningful text is lost.
#[must_use]
pub fn is_mendable(note: &Note) -> bool {
    let is_safe = matches!(note.code, Code::HiddenText | Code::UnknownName | Code::LineEndings);
    is_safe && note.fix.is_some() && matches!(note.source, Some(Source::File { .. }))
}

impl Report {
    /// Counts the findings of at least this severity.
    #[must_use]
    pub fn count(&self, severity: Severity) -> usize {
        self.findings.iter().filter(|note| note.severity == severity).count()
    }

    /// Counts the findings that only rules of the repository silence.
    #[must_use]
    pub fn silenced_by_repository(&self) -> usize {
        self.allowed.iter().filter(|allowed| allowed.is_of_repository).count()
    }

    /// Everything counts as an error.
    pub fn make_strict(&mut self) {
        for note in &mut self.findings {
            note.severity = Severity::Error;
        }
    }

    /// Adds further findings, unless a rule allows them.
    pub fn add(&mut self, notes: Vec<Note>, request: &Request, caller: Caller) -> Result<(), Error> {
        if notes.is_empty() {
            return Ok(());
        }
        self.findings.extend(notes);
        let host = Host::observe(request, caller)?;
        let config = Config::load(&host, &Workspace::find(&host, request.cwd.as_deref())?)?;
        self.sort(&allowances(&config)?);
        Ok(())
    }

    /// Tells whether this check could have reported the finding that a rule allows.
    fn judges(&self, allow: &Allow) -> bool {
        match self.subject {
            Subject::Prompt { .. } => {
                allow.path.is_none() || self.files.iter().any(|path| allow.covers(path))
            }
            Subject::Project { .. } => all::CODES.contains(&allow.code),
        }
    }

    fn sort(&mut self, allows: &[Allow]) {
        let (mut findings, mut used, mut seen) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
        for mut note in std::mem::take(&mut self.findings) {
            // No message about a text may contain its secrets.
            mask(&mut note.message);
            note.hint.iter_mut().for_each(mask);
            note.source = note.source.map(plainly);
            let place = note.source.as_ref().map(ToString::to_string);
            // The user's rules come first, also where the repository has a rule for the same finding.
            let of_user = || allows.iter().position(|allow| !allow.is_of_repository && allow.allows(&note));
            let any = || allows.iter().position(|allow| allow.allows(&note));
            if let Some(index) = of_user().or_else(any) {
                used.insert(index);
                let Allow { reason, is_of_repository, .. } = allows[index].clone();
                self.allowed.push(AllowedFinding { note, reason, is_of_repository });
            } else if seen.insert((note.code, note.message.clone(), place)) {
                findings.push(note);
            }
        }
        let is_used = |index: usize, allow: &Allow| {
            used.contains(&index) || self.allowed.iter().any(|allowed| allow.allows(&allowed.note))
        };
        let unused = allows.iter().enumerate();
        let unused = unused.filter(|(index, allow)| !is_used(*index, allow) && self.judges(allow));
        let unused: Vec<Note> = unused.map(|(_, allow)| allow.unused()).collect();
        findings.retain(|note| note.code != Code::UnusedAllow);
        findings.extend(unused);
        findings.sort_by_key(|note| {
            let place = note.source.as_ref().and_then(Source::place);
            let path = note.source.as_ref().map(|source| source.without_place().to_string());
            (path, place, note.code)
        });
        self.findings = findings;
    }
}

/// The directory that a request's project begins at: its git repository, or the working directory outside of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root {
    /// Its path as findings have it.
    pub path: PathBuf,
    /// The same with links resolved.
    pub real: PathBuf,
}

/// Finds the root of a request's project.
pub fn project(request: &Request, caller: Caller) -> Result<Root, Error> {
    let (host, workspace) = (Host::observe(request, caller)?, Workspace::open(request.cwd.as_deref())?);
    let places = SearchRoots::new(&host, &workspace);
    Ok(Root { path: places.project().to_owned(), real: places.real_project().to_owned() })
}

/// Builds the prompt of a request and checks it.
///
/// Findings do not depend on the state of the working tree, so git is not run.
pub fn check(request: &Request, caller: Caller) -> Result<Report, Error> {
    let request = &without_git(request);
    let mut memory = BuildState { lints: Some(Vec::new()), ..BuildState::default() };
    let build = Engine::new().build_with(request, caller, &mut memory)?;
    let host = Host::observe(request, caller)?;
    let workspace = Workspace::find(&host, request.cwd.as_deref())?;
    let config = Config::load(&host, &workspace)?;
    let allows = allowances(&config)?;
    let models = Models::load(request, caller)?;
    let model = request.model.as_deref().and_then(|name| models.find(name));

    // Skips notes that are reported below in more detail, ordinary absences, and the paths of settings.
    let is_repeated = |note: &&Note| {
        note.code == Code::VolatileInPrefix
            || is_of_treatment(note.code)
            || note.code == Code::WorkspaceAbove
            || (note.code == Code::Absent && note.severity == Severity::Info)
    };
    let mut notes: Vec<Note> = build.notes().iter().filter(|note| !is_repeated(note)).cloned().collect();
    notes.extend(memory.lints.unwrap_or_default());
    notes.extend(volatile(&build, model));
    if let Some(name) = &request.model {
        notes.extend(model.is_none().then(|| unknown_model(name, &models)));
        notes.extend(stats(&build, request, None, &models, &DeliverOptions::default())?.1);
    }
    let policy = match caller {
        Caller::User => Resolver::new(request, &host, &workspace, &config)
            .discovery_policy(Author::User, &SearchRoots::new(&host, &workspace)),
        Caller::Remote(_) => workspace.own_files(&host),
    };
    let files = files(&build, &policy);
    notes.extend(shadowed(&build, &files, &policy));
    for (path, text) in &files {
        let source = Source::File { path: path.as_str().into(), place: None };
        notes.extend(ScannedText { text, source, is_file: true }.lints());
    }
    notes.extend(said(request).iter().flat_map(ScannedText::lints));
    notes.extend(dangling(&build));
    notes.extend(of_values(&build));
    let tokenizer = model.map_or(Tokenizer::Estimate, Model::tokenizer);
    notes.extend(content::lints(build.frozen().body(), tokenizer));
    notes.extend(unordered(request));

    let bytes = build.frozen().body().carriers().map(|(_, text)| text.len()).sum();
    let mut report = Report {
        findings: notes,
        allowed: Vec::new(),
        subject: Subject::Prompt { profile: build.frozen().profile().to_owned(), bytes },
        files: files.into_keys().collect(),
    };
    report.sort(&allows);
    Ok(report)
}

/// Returns the request without the facts for which git must be run. They change from turn to turn, and the speed of
/// git must not decide the findings.
pub(crate) fn without_git(request: &Request) -> Request {
    let mut request = request.clone();
    for key in ["git:status", "git:diff"] {
        request.variables.entry(key.to_owned()).or_insert_with(|| Some(String::new()));
    }
    request
}

/// Masks likely secrets.
fn mask(text: &mut String) {
    if let Cow::Owned(masked) = SECRETS.without_secrets(text) {
        *text = masked;
    }
}

/// A file by its shortest name: a configured template may be written with dots.
fn plainly(source: Source) -> Source {
    match source {
        Source::File { path, place } => Source::File {
            path: without_dots(Path::new(&*path)).to_string_lossy().into_owned().into(),
            place,
        },
        other => other,
    }
}

/// Everything that the configuration allows.
fn allowances(config: &Config) -> Result<Vec<Allow>, Error> {
    let files = config.allow.iter().map(AllowFile::read).collect::<Result<Vec<_>, _>>()?;
    Ok(files.into_iter().flatten().collect())
}

/// Finds values that change more often than the frozen prompt may, with the cost of that.
fn volatile(build: &Build, model: Option<&Model>) -> Vec<Note> {
    let found = breaks(build, model);
    let note = |found: &crate::inspect::preview::Break| {
        let severity = if found.stability == Stability::Turn { Severity::Warning } else { Severity::Info };
        let cost = found.usd.map_or_else(String::new, |usd| format!(" ({usd:.6} dollars each time)"));
        let message = format!(
            "{} stands at token {} and changes {}: rebuilding the prompt then loses {} cached tokens{cost}",
            found.source,
            found.token,
            found.stability.rhythm(),
            found.lost_tokens,
        );
        Note::new(Code::VolatileInPrefix, severity, message)
            .with_hint("move it to a section on the `turn` carrier, or as far down as possible")
            .with_source(found.template.clone().unwrap_or_else(|| found.source.clone()))
    };
    found.iter().map(note).collect()
}

/// The files that the prompt is made of, by path.
fn files(build: &Build, policy: &ReadPolicy) -> BTreeMap<String, String> {
    let considered = build.frozen().considered().iter().filter(|one| one.outcome == Outcome::Used);
    let mut paths: BTreeSet<&str> = considered.map(|one| one.path.as_str()).collect();
    for (carrier, _) in build.whole().carriers() {
        paths.extend(build.whole().spans(carrier).iter().filter_map(|span| file_of(&span.source)));
    }
    let read = |path: &str| Some((path.to_owned(), read_utf8(Path::new(path), policy, FILE).ok()?));
    paths.into_iter().filter_map(read).collect()
}

fn unknown_model(name: &str, models: &Models) -> Note {
    let message = format!("the model `{name}` is not in the table of {}", models.as_of);
    Note::new(Code::UnknownModel, Severity::Warning, message)
        .with_hint("correct the name, or add a row to models.toml in the configuration directory")
        .with_source(Source::Request { field: "model".into(), place: None })
}

/// Returns the texts of the request as they were written: the prompt does not contain the name in a tag.
fn said(request: &Request) -> Vec<ScannedText<'_>> {
    let field = |name: &str| Source::Request { field: name.into(), place: None };
    let own = [("template", &request.template), ("system", &request.system), ("recalled", &request.recalled)];
    // A template that was read from a file is checked as a file.
    let is_of_file = |name: &str| name == "template" && request.template_path.is_some();
    let own = own.into_iter().filter(|(name, _)| !is_of_file(name));
    let own = own.filter_map(|(name, text)| Some((name, text.as_deref()?)));
    let append = request.append.iter().flat_map(OneOrMany::texts).map(|text| ("append", text.as_str()));
    let read = |(name, text)| ScannedText { text, source: field(name), is_file: false };
    own.chain(append).map(read).collect()
}

/// Links that lead nowhere: to a build they are files that do not exist.
fn dangling(build: &Build) -> Vec<Note> {
    let missing = build.frozen().considered().iter().filter(|one| one.outcome == Outcome::Missing);
    let links = missing.filter(|one| Path::new(&one.path).is_symlink());
    let note = |one: &proem_core::file_outcome::FileOutcome| {
        let target = std::fs::read_link(&one.path)
            .map(|target| crate::observe::file::shown(&target))
            .unwrap_or_default();
        let message = format!("it is a broken link to {target}");
        let source = Source::File { path: one.path.as_str().into(), place: None };
        Note::new(Code::Unreadable, Severity::Warning, message).with_source(source)
    };
    links.map(note).collect()
}

/// Finds problems of text in the prompt that comes from no file: values, packs, text from hooks.
fn of_values(build: &Build) -> Vec<Note> {
    let (mut notes, mut plain) = (Vec::new(), HashSet::new());
    for (source, text) in values(build) {
        // A value appears at each of its tags, and is checked once if it has no problem.
        if plain.contains(&text) {
            continue;
        }
        let found = ScannedText { text: &text, source, is_file: false }.lints();
        if found.is_empty() {
            plain.insert(text);
        }
        notes.extend(found);
    }
    notes
}

/// Returns the text in the prompt that comes from no file: neighbours of one source are one text.
fn values(build: &Build) -> Vec<(Source, Cow<'_, str>)> {
    let mut found: Vec<(Source, Cow<'_, str>)> = Vec::new();
    for (carrier, text) in build.whole().carriers() {
        for span in build.whole().spans(carrier) {
            let is_value = matches!(
                span.source,
                Source::Variable { path: None, .. } | Source::Pack { .. } | Source::Hook { .. }
            );
            let own = text.get(span.bytes.clone()).unwrap_or_default();
            match found.last_mut() {
                Some((source, text)) if *source == span.source && is_value => text.to_mut().push_str(own),
                _ if is_value => found.push((span.source.clone(), Cow::Borrowed(own))),
                _ => {}
            }
        }
    }
    found
}

/// Instruction files that are not used because of others, and are another text. A file that names the one that is used, or is
/// named by it, is there for other agents.
fn shadowed(build: &Build, files: &BTreeMap<String, String>, policy: &ReadPolicy) -> Vec<Note> {
    let noted = |path: &str| {
        let mut notes = build.notes().iter().filter(|note| note.code == Code::Shadowed);
        notes.any(|note| note.source.as_ref().and_then(file_of) == Some(path))
    };
    let shadowed = build.frozen().considered().iter().filter(|one| one.outcome == Outcome::Shadowed);
    let shadowed = shadowed.filter(|one| !noted(&one.path));
    let note = |one: &proem_core::file_outcome::FileOutcome| {
        let text = read_utf8(Path::new(&one.path), policy, FILE).ok()?;
        let own = (Path::new(&one.path), text.as_str());
        if files.iter().any(|(path, other)| references::are_related(own, (Path::new(path), other))) {
            return None;
        }
        let why = one.why.as_deref().unwrap_or_default();
        let message = format!("it is not in the prompt: its place is taken {why}");
        let note = Note::new(Code::Shadowed, Severity::Warning, message);
        let note =
            note.with_hint("put what matters into the file that is used, or name one of them in the other");
        Some(note.with_source(Source::File { path: one.path.as_str().into(), place: None }))
    };
    shadowed.filter_map(note).collect()
}

/// Finds lists of the request whose order depends on chance, such as the order in which servers connect.
fn unordered(request: &Request) -> Vec<Note> {
    let tools: Vec<&str> = request.tools.iter().flatten().map(|tool| tool.name.as_str()).collect();
    let servers: Vec<&str> = request.mcp_servers.iter().flatten().map(String::as_str).collect();
    let note = |(field, names): (&str, Vec<&str>)| {
        let (before, after) = names.windows(2).map(|pair| (pair[0], pair[1])).find(|(a, b)| a > b)?;
        let message = format!(
            "`{field}` is not sorted: `{after}` comes after `{before}`; a connection that comes back may change \
             the order, and with it the cached bytes"
        );
        let source = Source::Request { field: field.into(), place: None };
        let note = Note::new(Code::Unordered, Severity::Info, message).with_source(source);
        Some(note.with_hint("sort it by name"))
    };
    [("tools", tools), ("mcp_servers", servers)].into_iter().filter_map(note).collect()
}
