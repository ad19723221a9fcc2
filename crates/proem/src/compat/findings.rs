//! What is wrong for some of the agents and not for others.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::LazyLock;

use proem_core::considered::Outcome;
use proem_core::limit::TEMPLATE_BYTES_MAX;
use proem_core::note::{Code, Note, Severity};
use proem_core::source::Source;
use proem_core::text::Place;
use regex::Regex;

use super::{Seen, all_files};
use crate::file::{Cap, read_utf8, without_dots};

/// No agent reads more of one file.
const FILE: Cap = Cap { bytes_max: TEMPLATE_BYTES_MAX, words: "1 MiB" };

/// What most agents that import take for the name of a file.
static REFERENCE: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"(?:^|\s)@([\w./-]+\.\w+)").ok());

/// What is wrong for some of the agents: their own warnings, files that some get and others do not, imports that some do not
/// follow, front matter that is text to some, and headings below which two agents are told something else.
#[must_use]
pub fn findings(seen: &[Seen]) -> Vec<Note> {
    let mut notes = Vec::new();
    for one in seen {
        notes.extend(one.warnings().map(|note| {
            let message = format!("for {}: {}", one.agent.title, note.message);
            Note { message, fix: None, ..note.clone() }
        }));
    }
    for path in all_files(seen) {
        notes.extend(only_some(seen, path));
        notes.extend(imports(seen, path));
        notes.extend(front_matter(seen, path));
    }
    notes.extend(opposites(seen));
    notes
}

fn at(path: &str, line: usize) -> Source {
    Source::File { path: path.into(), place: Some(Place { line, column: 1 }) }
}

/// The agents that a test holds for, by title.
fn titles(seen: &[Seen], test: impl Fn(&Seen) -> bool) -> Vec<&str> {
    seen.iter().filter(|one| test(one)).map(|one| one.agent.title.as_str()).collect()
}

fn is_used(one: &Seen, path: &str) -> bool {
    one.files.get(path).is_some_and(|file| file.outcome == Outcome::Used)
}

/// A file that some agents read and others look for and do not use.
fn only_some(seen: &[Seen], path: &str) -> Option<Note> {
    let is_shadowed = |one: &Seen| one.files.get(path).is_some_and(|file| file.outcome == Outcome::Shadowed);
    let (readers, others) = (titles(seen, |one| is_used(one, path)), titles(seen, is_shadowed));
    if readers.is_empty() || others.is_empty() || is_told_otherwise(seen, path) {
        return None;
    }
    let (readers, others) = (readers.join(", "), others.join(", "));
    let message = format!("it is read by {readers}; for {others} another file takes its place");
    let note = Note::new(Code::AgentsDiffer, Severity::Info, message);
    let note = note.with_hint("say the same in both files, or let one of them import the other");
    Some(note.with_source(Source::File { path: path.into(), place: None }))
}

/// Reads a file that no agent may have read yet, by the policy of instruction files: it may be a FIFO, or a link out of
/// the project.
fn text_of(seen: &[Seen], path: &str) -> Option<String> {
    read_utf8(Path::new(path), &seen.first()?.policy, FILE).ok()
}

/// Tells whether everybody who does not read a file gets the same text from another one, such as a link to it.
fn is_told_otherwise(seen: &[Seen], path: &str) -> bool {
    let Some(text) = text_of(seen, path) else { return false };
    let has = |one: &Seen| one.build.whole.carriers().any(|(_, whole)| whole.contains(text.trim()));
    let is_shadowed = |one: &&Seen| one.files.get(path).is_some_and(|file| file.outcome == Outcome::Shadowed);
    !text.trim().is_empty() && seen.iter().filter(is_shadowed).all(has)
}

/// Files that a file names and that only some of its readers bring in.
fn imports(seen: &[Seen], path: &str) -> Vec<Note> {
    let text = seen.iter().find(|one| is_used(one, path)).map(|one| one.text_of(path)).unwrap_or_default();
    let folder = Path::new(path).parent().unwrap_or_else(|| Path::new("/"));
    let mut notes = Vec::new();
    for found in REFERENCE.iter().flat_map(|reference| reference.captures_iter(&text)) {
        let Some(named) = found.get(1) else { continue };
        let target = without_dots(&folder.join(named.as_str()));
        let Some(target) = target.to_str().filter(|target| Path::new(target).is_file()) else { continue };
        let follows = |one: &Seen| is_used(one, path) && is_used(one, target);
        let (some, others) =
            (titles(seen, follows), titles(seen, |one| is_used(one, path) && !is_used(one, target)));
        if !some.is_empty() && !others.is_empty() {
            let message = format!(
                "`@{}` is brought in by {}, and is only text to {}",
                named.as_str(),
                some.join(", "),
                others.join(", ")
            );
            let line = text.get(..named.start()).map_or(1, |before| before.matches('\n').count() + 1);
            let note = Note::new(Code::AgentsDiffer, Severity::Warning, message).with_source(at(path, line));
            notes.push(
                note.with_hint("put what matters into the file itself, or into one that everybody reads"),
            );
        }
    }
    notes
}

/// Front matter that decides something for some agents, and is text to others.
fn front_matter(seen: &[Seen], path: &str) -> Option<Note> {
    let text = text_of(seen, path).filter(|text| text.starts_with("---\n"))?;
    let head = text.get(..text.get(4..)?.find("\n---")? + 4)?;
    let keeps = |one: &Seen| is_used(one, path) && one.text_of(path).starts_with(head);
    let obeys = |one: &Seen| one.files.contains_key(path) && !keeps(one);
    let (some, others) = (titles(seen, keeps), titles(seen, obeys));
    if some.is_empty() || others.is_empty() {
        return None;
    }
    let message = format!(
        "its front matter is only text to {}, and decides something for {}",
        some.join(", "),
        others.join(", ")
    );
    let note = Note::new(Code::AgentsDiffer, Severity::Info, message);
    Some(note.with_source(at(path, 1)))
}

/// Headings below which two agents are told something else, each by a file that the other one does not read.
fn opposites(seen: &[Seen]) -> Vec<Note> {
    let mut first: BTreeMap<String, (&str, usize, String)> = BTreeMap::new();
    let mut notes = Vec::new();
    for path in all_files(seen) {
        let Some(reader) = seen.iter().find(|one| is_used(one, path)) else { continue };
        for (heading, line, body) in sections(&reader.text_of(path)) {
            let Some((there, _, other)) = first.get(&heading) else {
                first.insert(heading, (path, line, body));
                continue;
            };
            let only = |own: &str, not: &str| titles(seen, |one| is_used(one, own) && !is_used(one, not));
            let (here, elsewhere) = (only(path, there), only(there, path));
            if *other != body && !here.is_empty() && !elsewhere.is_empty() {
                let message = format!(
                    "`{heading}` says something else than in {there}: {} read this, {} that",
                    here.join(", "),
                    elsewhere.join(", ")
                );
                let note = Note::new(Code::AgentsDiffer, Severity::Warning, message);
                let note = note.with_hint("say the same in both, or keep it in one file that both read");
                notes.push(note.with_source(at(path, line)));
            }
        }
    }
    notes
}

/// Headings in lower case, their lines, and the text below each.
fn sections(text: &str) -> Vec<(String, usize, String)> {
    let mut found: Vec<(String, usize, String)> = Vec::new();
    let mut is_code = false;
    for (index, line) in text.lines().enumerate() {
        is_code ^= line.trim_start().starts_with("```");
        let title = line.trim_start_matches('#');
        if !is_code && title.len() < line.len() && title.starts_with(' ') {
            found.push((title.trim().to_lowercase(), index + 1, String::new()));
        } else if let Some((_, _, body)) = found.last_mut() {
            body.push_str(line.trim());
            body.push('\n');
        }
    }
    found.into_iter().map(|(heading, line, body)| (heading, line, body.trim().to_owned())).collect()
}
