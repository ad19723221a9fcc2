//! Finds directories in which agents read different files, so that they get different instructions.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use proem_core::note::{Code, Note, Severity};
use proem_core::profile::RulesRecipe;
use proem_core::profile::rules::{RulePlace, RuleTake, RuleWalk};
use proem_core::source::Source;

use super::references::{SHARED_NAMES, are_related};
use crate::discover::roster::Agent;

/// Most headings that are named in one finding.
const HEADINGS_LISTED_MAX: usize = 3;

/// Files by path, with their text.
pub(super) type FileTexts<'t> = BTreeMap<PathBuf, &'t str>;

/// A file that is read, and the files beside it that it shadows.
type Choice = (PathBuf, Vec<PathBuf>);

/// Finds directories in which another file takes the place of `AGENTS.md` for some agents, although the two are different
/// texts and neither names the other: one finding for each directory. A file that is named for one agent is not missed by
/// the others.
pub(super) fn differences(agents: &[Agent], texts: &FileTexts<'_>, root: &Path) -> Vec<Note> {
    let folders = folders(agents, texts);
    folders.iter().filter_map(|folder| difference(agents, texts, folder, folder == root)).collect()
}

/// The directories that hold a file of an agent.
fn folders(agents: &[Agent], texts: &FileTexts<'_>) -> BTreeSet<PathBuf> {
    let names: BTreeSet<&str> = agents
        .iter()
        .flat_map(Agent::rules)
        .flat_map(|recipe| recipe.places.iter().filter(|place| place.walk.is_some()))
        .flat_map(|place| place.files.iter().map(|file| file.name.as_str()))
        .filter(|name| !name.contains('*'))
        .collect();
    let folder = |path: &Path, name: &str| {
        let depth = Path::new(name).components().count();
        path.ends_with(name).then(|| path.ancestors().nth(depth).map(Path::to_owned)).flatten()
    };
    texts.keys().flat_map(|path| names.iter().filter_map(|name| folder(path, name))).collect()
}

fn difference(agents: &[Agent], texts: &FileTexts<'_>, folder: &Path, is_root: bool) -> Option<Note> {
    let mut readers: BTreeMap<Choice, Vec<&str>> = BTreeMap::new();
    for agent in agents {
        for choice in agent.rules().flat_map(|recipe| choices(recipe, texts, folder, is_root)) {
            let titles = readers.entry(choice).or_default();
            if !titles.contains(&agent.title.as_str()) {
                titles.push(&agent.title);
            }
        }
    }
    let first = readers.keys().next()?.0.clone();
    let name = |path: &Path| path.strip_prefix(folder).unwrap_or(path).display().to_string();
    let said: Vec<String> = readers
        .iter()
        .map(|((taken, left), titles)| {
            let left: Vec<String> = left.iter().map(|path| name(path)).collect();
            let verb = if titles.len() == 1 { "reads" } else { "read" };
            format!("{} {verb} {} and not {}", titles.join(", "), name(taken), left.join(", "))
        })
        .collect();
    let headings = headings(readers.keys(), texts);
    let (severity, end) = if headings.is_empty() {
        (Severity::Info, String::new())
    } else {
        (Severity::Warning, format!("; they differ below {}", headings.join(", ")))
    };
    let note = Note::new(Code::AgentsDiffer, severity, format!("{}{end}", said.join("; ")));
    let note = note.with_hint("say the same in both files, or let one of them import or name the other");
    Some(note.with_source(Source::File { path: first.to_string_lossy().into(), place: None }))
}

/// The files of a directory that an agent takes, each with those that it leaves out because of it.
fn choices(recipe: &RulesRecipe, texts: &FileTexts<'_>, folder: &Path, is_root: bool) -> Vec<Choice> {
    let mut found = Vec::new();
    for place in &recipe.places {
        let is_meant = match place.walk {
            None => false,
            Some(RuleWalk::Root) => is_root,
            Some(_) => true,
        };
        if !is_meant {
            continue;
        }
        found.extend(taken_first(place, texts, folder));
        for file in place.files.iter().filter(|file| !file.unless.is_empty()) {
            let path = folder.join(&file.name);
            let by = file.unless.iter().map(|name| folder.join(name)).find(|path| has_text(texts, path));
            if let Some(by) = by.filter(|by| is_other(texts, by, &path)) {
                found.push((by, vec![path]));
            }
        }
    }
    found
}

/// The file that a place gives, where a directory gives one alone, and the files that it keeps out.
fn taken_first(place: &RulePlace, texts: &FileTexts<'_>, folder: &Path) -> Option<Choice> {
    if place.take == RuleTake::All {
        return None;
    }
    let is_there = |path: &PathBuf| match place.take {
        RuleTake::FirstText => has_text(texts, path),
        _ => texts.contains_key(path),
    };
    let mut present = place.files.iter().map(|file| folder.join(&file.name)).filter(is_there);
    let taken = present.next()?;
    let left: Vec<PathBuf> = present.filter(|path| is_other(texts, &taken, path)).collect();
    (!left.is_empty()).then_some((taken, left))
}

fn has_text(texts: &FileTexts<'_>, path: &Path) -> bool {
    texts.get(path).is_some_and(|text| !text.trim().is_empty())
}

/// Tells whether a file is another text than the one that takes its place, without a word about it.
fn is_other(texts: &FileTexts<'_>, taken: &Path, left: &Path) -> bool {
    let (Some(own), Some(other)) = (texts.get(taken), texts.get(left)) else { return false };
    // `AGENTS.override.md` is there to take the place of `AGENTS.md`.
    let is_shared = SHARED_NAMES.iter().any(|name| left.ends_with(name));
    let stem =
        |path: &Path| path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let is_override = stem(taken).strip_prefix(&stem(left)).is_some_and(|rest| rest.starts_with('.'));
    is_shared && !is_override && !are_related((taken, own), (left, other))
}

/// Headings that two of the files share, with other text below each.
fn headings<'c>(choices: impl Iterator<Item = &'c Choice>, texts: &FileTexts<'_>) -> Vec<String> {
    let mut found = BTreeSet::new();
    for (taken, left) in choices {
        let own = sections(texts.get(taken).copied().unwrap_or_default());
        for other in left.iter().filter_map(|path| texts.get(path)) {
            let others = sections(other);
            let differ =
                own.iter().filter(|(heading, body)| others.get(*heading).is_some_and(|other| other != *body));
            found.extend(differ.map(|(heading, _)| format!("`{heading}`")));
        }
    }
    let more = found.len().saturating_sub(HEADINGS_LISTED_MAX);
    let mut listed: Vec<String> = found.into_iter().take(HEADINGS_LISTED_MAX).collect();
    listed.extend((more > 0).then(|| format!("{more} more headings")));
    listed
}

/// Headings below the title, in lower case, and the text below each.
fn sections(text: &str) -> BTreeMap<String, String> {
    let (mut found, mut current, mut is_code) = (BTreeMap::<String, String>::new(), None, false);
    for line in text.lines() {
        is_code ^= line.trim_start().starts_with("```");
        let title = line.trim_start_matches('#');
        if !is_code && title.len() < line.len() && title.starts_with(' ') {
            let heading = title.trim().to_lowercase();
            found.entry(heading.clone()).or_default();
            current = Some(heading);
        } else if let Some(body) = current.as_ref().and_then(|heading| found.get_mut(heading)) {
            body.push_str(line.trim());
            body.push('\n');
        }
    }
    // A heading without a line of its own has no content.
    for body in found.values_mut() {
        *body = body.trim().to_owned();
    }
    found.retain(|_, body| !body.is_empty());
    found
}
