//! Checks the files that other agents would read in a directory: their problems, the parts an agent leaves out, and
//! differences between agents.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use proem_core::file_outcome::Outcome;
use proem_core::note::{Code, Note, Severity};
use proem_core::source::Source;
use proem_core::text::Place;

use super::{FILE, Report, check, choices, file_of, references, without_git};
use crate::discover::SearchRoots;
use crate::discover::roster::Agent;
use crate::error::Error;
use crate::inspect::compat::{AgentView, all_files, look};
use crate::observe::file::{ReadPolicy, canonical, read_utf8};
use crate::observe::host::Host;
use crate::observe::workspace::Workspace;
use crate::request::Request;
use crate::request::caller::Caller;
use crate::sections::text_findings::ScannedText;
use crate::sections::text_policy::is_of_treatment;
use crate::settings::config::Config;

/// Checks the prompt of a request, and the files that the named agents would read in its directory; all agents if
/// none is named.
///
/// A problem of a file is one finding, however many agents read it.
pub fn check_as(request: &Request, names: &[String]) -> Result<Report, Error> {
    let mut report = check(request, Caller::User)?;
    let seen = look(&without_git(request), names, Caller::User)?;
    let host = Host::observe(request, Caller::User)?;
    let workspace = Workspace::find(&host, request.cwd.as_deref())?;
    let (config, places) = (Config::load(&host, &workspace)?, SearchRoots::new(&host, &workspace));
    let policy = ReadPolicy::user(host.home().as_deref(), &config.files_allow.value).fenced(places.fence());
    let text = |path: &str| Some((path.to_owned(), read_utf8(Path::new(path), &policy, FILE).ok()?));
    let texts: BTreeMap<String, String> = all_files(&seen).into_iter().filter_map(text).collect();

    let mut notes = grouped(&seen, &report);
    let agents: Vec<Agent> = seen.iter().map(|one| one.rules.clone()).collect();
    let real = |path: &String| canonical(Path::new(path)).unwrap_or_else(|_| PathBuf::from(path));
    let mut known: BTreeSet<PathBuf> = report.files.iter().map(real).collect();
    for (path, text) in &texts {
        // A link to a file that was already examined adds nothing.
        let is_new = report.files.contains(path) || known.insert(real(path));
        if !is_new || !seen.iter().any(|one| is_read(one, path)) {
            continue;
        }
        report.files.insert(path.clone());
        let source = Source::File { path: path.as_str().into(), place: None };
        notes.extend(ScannedText { text, source, is_file: true }.lints());
        let paths = [PathBuf::from(path)];
        notes.extend(references::dangling(&paths, text, &agents, places.project()));
        notes.extend(references::half_imported(&paths, text, &agents, places.project()));
        notes.extend(front_matter(&seen, path, text));
    }
    let of_project = texts.iter().filter(|(path, _)| Path::new(path).starts_with(places.project()));
    let of_project: choices::FileTexts<'_> =
        of_project.map(|(path, text)| (PathBuf::from(path), text.as_str())).collect();
    notes.extend(choices::differences(&agents, &of_project, places.project()));
    report.add(notes, request, Caller::User)?;
    Ok(report)
}

/// Tells whether an agent gets a file, always or at times.
fn is_read(one: &AgentView, path: &str) -> bool {
    one.files.get(path).is_some_and(|file| matches!(file.outcome, Outcome::Used | Outcome::Hidden))
}

/// Returns warnings of the agents' builds, each once, with the agents that it concerns. Problems of a text are left
/// out, as are imports that are not followed: the file itself is checked for both, and has exact lines.
fn grouped(seen: &[AgentView], report: &Report) -> Vec<Note> {
    let mut groups: Vec<(Note, Vec<&str>)> = Vec::new();
    for one in seen {
        for note in one.warnings() {
            // A note about a file that is used, and cannot be read, is about one that it names.
            let is_of_import = note.code == Code::Unreadable
                && note.source.as_ref().and_then(file_of).is_some_and(|path| is_read(one, path));
            if is_of_import
                || is_of_treatment(note.code)
                || note.code == Code::GitFailed
                || is_known(report, note)
            {
                continue;
            }
            match groups.iter_mut().find(|(known, _)| known == note) {
                Some((_, titles)) => titles.push(&one.agent.title),
                None => groups.push((note.clone(), vec![&one.agent.title])),
            }
        }
    }
    let named = |(note, titles): (Note, Vec<&str>)| {
        let message = format!("for {}: {}", titles.join(", "), note.message);
        Note { message, fix: None, ..note }
    };
    groups.into_iter().map(named).collect()
}

/// Tells whether the prompt's own check reports the same.
fn is_known(report: &Report, note: &Note) -> bool {
    let allowed = report.allowed.iter().map(|allowed| &allowed.note);
    let mut all = report.findings.iter().chain(allowed);
    all.any(|known| known.code == note.code && known.message == note.message && known.source == note.source)
}

/// Front matter that decides something for some agents, and is text to others.
fn front_matter(seen: &[AgentView], path: &str, text: &str) -> Option<Note> {
    let text = Some(text).filter(|text| text.starts_with("---\n"))?;
    let head = text.get(..text.get(4..)?.find("\n---")? + 4)?;
    let is_used = |one: &AgentView| one.files.get(path).is_some_and(|file| file.outcome == Outcome::Used);
    let keeps = |one: &AgentView| is_used(one) && one.text_of(path).starts_with(head);
    let obeys = |one: &AgentView| one.files.contains_key(path) && !keeps(one);
    let titles = |test: &dyn Fn(&AgentView) -> bool| -> Vec<&str> {
        seen.iter().filter(|one| test(one)).map(|one| one.agent.title.as_str()).collect()
    };
    let (some, others) = (titles(&keeps), titles(&obeys));
    if some.is_empty() || others.is_empty() {
        return None;
    }
    let message = format!(
        "its front matter is only text to {}, and decides something for {}",
        some.join(", "),
        others.join(", ")
    );
    let source = Source::File { path: path.into(), place: Some(Place { line: 1, column: 1 }) };
    Some(Note::new(Code::AgentsDiffer, Severity::Info, message).with_source(source))
}
