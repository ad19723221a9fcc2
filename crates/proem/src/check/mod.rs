//! Looks for what will cost, mislead or leak, before it does.
//!
//! A finding is a note: what a build says anyway, and what only somebody who asks wants to wait for.

mod allow;
mod content;
mod determinism;
mod fix;
mod sarif;
mod texts;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use proem_core::considered::Outcome;
use proem_core::limit::DOCUMENTS_BYTES_MAX;
use proem_core::note::{Code, Note, Severity};
use proem_core::source::Source;
use proem_core::stability::Stability;

pub(crate) use allow::AllowKeys;
pub use allow::{Allow, file_of};
pub use determinism::{Axis, Moved, determinism};
pub use fix::{Fixed, fix};
pub use sarif::sarif;

use crate::config::Config;
use crate::deliver::Options;
use crate::engine::{self, Build, Caller, Memory};
use crate::error::Error;
use crate::file::{Cap, ReadPolicy, read_utf8};
use crate::host::Host;
use crate::models::{Model, Models};
use crate::preview::breaks;
use crate::request::Request;
use crate::stats::stats;
use crate::tokens::Tokenizer;
use crate::workspace::Workspace;
use texts::Read;

const FILE: Cap = Cap { bytes_max: DOCUMENTS_BYTES_MAX, words: "1 MiB" };

/// What was found in a prompt.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// What was found, by file and line.
    pub findings: Vec<Note>,
    /// What was found and is allowed, with the reason.
    pub allowed: Vec<(Note, String)>,
    /// The profile that the prompt was built by.
    pub profile: String,
    /// How many files were read.
    pub files: usize,
    /// How many bytes the frozen prompt has.
    pub bytes: usize,
}

impl Report {
    /// How many findings matter at least so much.
    #[must_use]
    pub fn count(&self, severity: Severity) -> usize {
        self.findings.iter().filter(|note| note.severity == severity).count()
    }

    /// Everything counts as an error.
    pub fn make_strict(&mut self) {
        for note in &mut self.findings {
            note.severity = Severity::Error;
        }
    }

    /// Adds what else was found, unless it is allowed.
    pub fn add(&mut self, notes: Vec<Note>, request: &Request, caller: Caller) -> Result<(), Error> {
        self.findings.extend(notes);
        let allows =
            Config::load(&Host::of(request, caller)?, &Workspace::open(request.cwd.as_deref())?)?.allow;
        self.sort(&allows);
        Ok(())
    }

    fn sort(&mut self, allows: &[Allow]) {
        let (mut findings, mut used) = (Vec::new(), BTreeSet::new());
        for note in std::mem::take(&mut self.findings) {
            match allows.iter().position(|allow| allow.allows(&note)) {
                Some(index) => {
                    used.insert(index);
                    self.allowed.push((note, allows[index].reason.clone()));
                }
                None if !findings.contains(&note) => findings.push(note),
                None => {}
            }
        }
        let is_used = |index: usize, allow: &Allow| {
            used.contains(&index) || self.allowed.iter().any(|(note, _)| allow.allows(note))
        };
        let unused = allows.iter().enumerate().filter(|(index, allow)| !is_used(*index, allow));
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

/// Builds the prompt of a request and looks for what is wrong with it.
pub fn check(request: &Request, caller: Caller) -> Result<Report, Error> {
    let mut memory = Memory { lints: Some(Vec::new()), ..Memory::default() };
    let build = engine::build_with(request, caller, &[], &mut memory)?;
    let host = Host::of(request, caller)?;
    let workspace = Workspace::open(request.cwd.as_deref())?;
    let config = Config::load(&host, &workspace)?;
    let models = Models::load(request, caller)?;
    let model = request.model.as_deref().and_then(|name| models.find(name));

    let is_repeated = |note: &&Note| note.code == Code::VolatileInPrefix;
    let mut notes: Vec<Note> =
        build.frozen.notes().iter().filter(|note| !is_repeated(note)).cloned().collect();
    notes.extend(memory.lints.unwrap_or_default());
    notes.extend(volatile(&build, model));
    if request.model.is_some() {
        notes.extend(stats(&build, request, None, &models, &Options::default())?.1);
    }
    let policy = match caller {
        Caller::User => ReadPolicy::user(host.home().as_deref(), &config.files_allow.value),
        Caller::Remote => workspace.own_files(&host),
    };
    let files = files(&build, &policy);
    notes.extend(shadowed(&build, &files, &policy));
    for (path, text) in &files {
        let source = Source::File { path: path.clone(), place: None };
        notes.extend(Read { text, source, is_file: true }.lints());
    }
    notes.extend(
        values(&build)
            .iter()
            .flat_map(|(source, text)| Read { text, source: source.clone(), is_file: false }.lints()),
    );
    let tokenizer = model.map_or(Tokenizer::Estimate, Model::tokenizer);
    notes.extend(content::lints(build.frozen.body(), tokenizer));
    notes.extend(unordered(request));

    let bytes = build.frozen.body().carriers().map(|(_, text)| text.len()).sum();
    let mut report = Report {
        findings: notes,
        profile: build.frozen.profile().to_owned(),
        files: files.len(),
        bytes,
        ..Report::default()
    };
    report.sort(&config.allow);
    Ok(report)
}

/// Values that change more often than the frozen prompt may, with what that costs.
fn volatile(build: &Build, model: Option<&Model>) -> Vec<Note> {
    let found = breaks(build, model);
    let note = |found: &crate::preview::Break| {
        let severity = if found.stability == Stability::Turn { Severity::Warning } else { Severity::Info };
        let cost = found.usd.map_or_else(String::new, |usd| format!(" ({usd:.6} dollars each time)"));
        let message = format!(
            "{} stands at token {} and changes {}: a prompt built anew then takes {} tokens out of the cache{cost}",
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
    let considered = build.frozen.considered().iter().filter(|one| one.outcome == Outcome::Used);
    let mut paths: BTreeSet<&str> = considered.map(|one| one.path.as_str()).collect();
    for (carrier, _) in build.whole.carriers() {
        paths.extend(build.whole.spans(carrier).iter().filter_map(|span| file_of(&span.source)));
    }
    let read = |path: &str| Some((path.to_owned(), read_utf8(Path::new(path), policy, FILE).ok()?));
    paths.into_iter().filter_map(read).collect()
}

/// What is in the prompt and in no file: values, fields of the request, what hooks say.
fn values(build: &Build) -> Vec<(Source, String)> {
    let mut found: Vec<(Source, String)> = Vec::new();
    for (carrier, text) in build.whole.carriers() {
        for span in build.whole.spans(carrier) {
            let is_value = matches!(
                span.source,
                Source::Request { .. }
                    | Source::Variable { path: None, .. }
                    | Source::Pack { .. }
                    | Source::Hook { .. }
            );
            let own = text.get(span.bytes.clone()).unwrap_or_default();
            match found.last_mut() {
                Some((source, text)) if *source == span.source && is_value => text.push_str(own),
                _ if is_value => found.push((span.source.clone(), own.to_owned())),
                _ => {}
            }
        }
    }
    found
}

/// Instruction files that are not used because of others, and say something else.
fn shadowed(build: &Build, files: &BTreeMap<String, String>, policy: &ReadPolicy) -> Vec<Note> {
    let noted = |path: &str| {
        let mut notes = build.frozen.notes().iter().filter(|note| note.code == Code::Shadowed);
        notes.any(|note| note.source.as_ref().and_then(file_of) == Some(path))
    };
    let shadowed = build.frozen.considered().iter().filter(|one| one.outcome == Outcome::Shadowed);
    let shadowed = shadowed.filter(|one| !noted(&one.path));
    let note = |one: &proem_core::considered::Considered| {
        let text = read_utf8(Path::new(&one.path), policy, FILE).ok()?;
        let why = one.why.as_deref().unwrap_or_default();
        let is_same = files.values().any(|other| *other == text);
        let (severity, end) =
            if is_same { (Severity::Info, ", which says the same") } else { (Severity::Warning, "") };
        let message = format!("it is not in the prompt: its place is taken {why}{end}");
        let note = Note::new(Code::Shadowed, severity, message);
        let note = if is_same { note } else { note.with_hint("put what matters into the file that is used") };
        Some(note.with_source(Source::File { path: one.path.clone(), place: None }))
    };
    shadowed.filter_map(note).collect()
}

/// Lists of the request whose order is chance: whoever connects first comes first.
fn unordered(request: &Request) -> Vec<Note> {
    let tools: Vec<&str> = request.tools.iter().flatten().map(|tool| tool.name.as_str()).collect();
    let servers: Vec<&str> = request.mcp_servers.iter().flatten().map(String::as_str).collect();
    let note = |(field, names): (&str, Vec<&str>)| {
        let (before, after) = names.windows(2).map(|pair| (pair[0], pair[1])).find(|(a, b)| a > b)?;
        let message = format!(
            "`{field}` is not sorted: `{after}` stands behind `{before}`; a connection that comes back may change \
             the order, and with it the cached bytes"
        );
        let source = Source::Request { field: field.to_owned(), place: None };
        let note = Note::new(Code::Unordered, Severity::Info, message).with_source(source);
        Some(note.with_hint("sort it by name"))
    };
    [("tools", tools), ("mcp_servers", servers)].into_iter().filter_map(note).collect()
}
