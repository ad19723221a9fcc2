//! Finds the origin of a text of the prompt; for one that is missing, the file that contains it and the reason why it
//! was not used.

use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use proem_core::carrier::Carrier;
use proem_core::file_outcome::{FileOutcome, Outcome};
use proem_core::frozen::Body;
use proem_core::limit::FILE_BYTES_MAX;
use proem_core::rendered::Span;
use proem_core::source::Source;
use proem_core::text::Places;

use crate::build::Build;
use crate::observe::file::{Cap, ReadPolicy, canonical, read_utf8};
use crate::settings::allow::file_of;

/// The most places that are reported.
pub const FOUND_MAX: usize = 100;

/// Files that agents read and that a profile may not.
const ELSEWHERE: [&str; 9] = [
    "AGENTS.md",
    "AGENTS.override.md",
    "CLAUDE.md",
    "CLAUDE.local.md",
    "GEMINI.md",
    ".cursorrules",
    ".github/copilot-instructions.md",
    ".goosehints",
    ".rules",
];

/// Most of a file that is searched.
const FILE: Cap = Cap::new(FILE_BYTES_MAX);

/// A query about the prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Question<'q> {
    /// A text.
    Text(&'q str),
    /// A byte of a carrier.
    Byte(Carrier, usize),
    /// A line of a carrier, from 1.
    Line(Carrier, usize),
}

/// Bytes of the prompt that match a query.
#[derive(Debug)]
pub struct PromptPlace<'b> {
    /// The carrier.
    pub carrier: Carrier,
    /// The bytes in the carrier's text.
    pub bytes: Range<usize>,
    /// The line that they begin in, from 1.
    pub line: usize,
    /// The section.
    pub section: Option<&'b str>,
    /// Their origin, in order.
    pub spans: Vec<&'b Span>,
    /// True if they are frozen.
    pub is_frozen: bool,
}

/// A file that has a text which the prompt has not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Elsewhere {
    /// The file.
    pub path: String,
    /// The line, from 1.
    pub line: usize,
    /// The reason why it is not in the prompt.
    pub why: String,
}

/// Finds the places in a prompt that match a query.
#[must_use]
pub fn places<'b>(build: &'b Build, question: &Question<'_>) -> Vec<PromptPlace<'b>> {
    let mut found = Vec::new();
    for (carrier, text) in build.whole().carriers() {
        let left = FOUND_MAX - found.len();
        let ranges: Vec<Range<usize>> = match question {
            Question::Text("") => Vec::new(),
            Question::Text(wanted) => {
                text.match_indices(wanted).take(left).map(|(at, wanted)| at..at + wanted.len()).collect()
            }
            Question::Byte(own, byte) if *own == carrier => {
                Some(*byte..*byte + 1).filter(|_| *byte < text.len()).into_iter().collect()
            }
            Question::Line(own, line) if *own == carrier => line_of(text, *line).into_iter().collect(),
            Question::Byte(..) | Question::Line(..) => Vec::new(),
        };
        let mut places = Places::new(text);
        let place = |bytes: Range<usize>| place(build, carrier, places.at(bytes.start).line, bytes);
        found.extend(ranges.into_iter().take(left).map(place));
    }
    found
}

/// The bytes of the prompt that come from a file, and the outcome of the file.
#[derive(Debug)]
pub struct FileAnswer<'b> {
    /// The runs of bytes that the file gave, in order.
    pub places: Vec<PromptPlace<'b>>,
    /// The entry of the file in the list of examined files.
    pub considered: Option<&'b FileOutcome>,
}

/// Returns the outcome of a file, by any path that leads to it.
#[must_use]
pub fn file<'b>(build: &'b Build, path: &Path) -> FileAnswer<'b> {
    let real = canonical(path).ok();
    let mut known: HashMap<&str, bool> = HashMap::new();
    let mut is_it = |other: &'b str| {
        let is_same =
            || Path::new(other) == path || real.is_some() && canonical(Path::new(other)).ok() == real;
        *known.entry(other).or_insert_with(is_same)
    };
    let considered = build.frozen().considered();
    // A file may be looked up under several names: the one under which it was used is reported.
    let mut named: Vec<&FileOutcome> = considered.iter().filter(|file| is_it(&file.path)).collect();
    named.sort_by_key(|file| file.outcome != Outcome::Used);
    let mut found = runs(build, &mut |source| content_file(source).is_some_and(&mut is_it));
    if found.is_empty() {
        // Of a skill, only names and paths are in the prompt.
        found = runs(build, &mut |source| file_of(source).is_some_and(&mut is_it));
    }
    FileAnswer { places: found, considered: named.first().copied() }
}

/// Returns the runs of bytes whose sources are wanted.
fn runs<'b>(build: &'b Build, is_wanted: &mut dyn FnMut(&'b Source) -> bool) -> Vec<PromptPlace<'b>> {
    let mut found: Vec<PromptPlace<'b>> = Vec::new();
    for (carrier, text) in build.whole().carriers() {
        let mut places = Places::new(text);
        let mut runs: Vec<Range<usize>> = Vec::new();
        for span in build.whole().spans(carrier).iter().filter(|span| !span.bytes.is_empty()) {
            if is_wanted(&span.source) {
                match runs.last_mut().filter(|run| run.end == span.bytes.start) {
                    Some(run) => run.end = span.bytes.end,
                    None => runs.push(span.bytes.clone()),
                }
            }
        }
        let left = FOUND_MAX - found.len();
        let place = |bytes: Range<usize>| place(build, carrier, places.at(bytes.start).line, bytes);
        found.extend(runs.into_iter().take(left).map(place));
    }
    found
}

/// The file that a text was taken from. A path in a heading names a file and has no place in it.
fn content_file(source: &Source) -> Option<&str> {
    let has_text = source.place().is_some() || matches!(source, Source::Variable { .. });
    file_of(source).filter(|_| has_text)
}

fn line_of(text: &str, wanted: usize) -> Option<Range<usize>> {
    let mut start = 0;
    for (index, line) in text.split_inclusive('\n').enumerate() {
        if index + 1 == wanted {
            return Some(start..start + line.trim_end_matches('\n').len().max(1).min(line.len()));
        }
        start += line.len();
    }
    None
}

fn place(build: &Build, carrier: Carrier, line: usize, bytes: Range<usize>) -> PromptPlace<'_> {
    let body: &Body = build.whole();
    let section = body.sections().iter().find(|section| {
        section.carrier == carrier && section.bytes.start <= bytes.start && bytes.start < section.bytes.end
    });
    // Spans cover the text in order: earlier ones end before the bytes, later ones begin after them.
    let spans = body.spans(carrier);
    let first = spans.partition_point(|span| span.bytes.end <= bytes.start);
    let is_part = |span: &&Span| span.bytes.start < bytes.end;
    let frozen = build.frozen().body().text(carrier).map_or(0, str::len);
    PromptPlace {
        carrier,
        line,
        section: section.map(|section| section.id.as_str()),
        spans: spans[first..].iter().take_while(is_part).collect(),
        is_frozen: bytes.start < frozen,
        bytes,
    }
}

/// Searches for a text that is not in the prompt in the examined files, and in the files that other agents read.
#[must_use]
pub fn elsewhere(build: &Build, cwd: &Path, home: Option<&Path>, text: &str) -> Vec<Elsewhere> {
    let policy = ReadPolicy::user(home, &[]);
    let considered = build.frozen().considered();
    let mut found: Vec<Elsewhere> = Vec::new();
    for file in considered {
        let lines = lines_with(Path::new(&file.path), &policy, text);
        found.extend(lines.map(|line| Elsewhere { path: file.path.clone(), line, why: why_not(file) }));
    }
    let is_known = |path: &Path| considered.iter().any(|file| Path::new(&file.path) == path);
    let folders = cwd.ancestors().take(64);
    let others = folders.flat_map(|folder| ELSEWHERE.iter().map(|name| folder.join(name)));
    for path in others.filter(|path| !is_known(path)).collect::<Vec<PathBuf>>() {
        let why = || format!("the profile `{}` does not read it", build.frozen().profile());
        let lines = lines_with(&path, &policy, text);
        found.extend(lines.map(|line| Elsewhere { path: path.display().to_string(), line, why: why() }));
    }
    found.truncate(FOUND_MAX);
    found
}

/// The first line of a file that has the text.
fn lines_with(path: &Path, policy: &ReadPolicy, text: &str) -> impl Iterator<Item = usize> {
    let found = read_utf8(path, policy, FILE).ok().and_then(|content| {
        let at = content.find(text).filter(|_| !text.is_empty())?;
        Some(content.get(..at)?.matches('\n').count() + 1)
    });
    found.into_iter()
}

/// Returns the reason why an examined file did not bring the text.
fn why_not(file: &FileOutcome) -> String {
    let why = file.why.as_ref().map_or_else(String::new, |why| format!(": {why}"));
    match file.outcome {
        Outcome::Used => {
            "the file is used, and this part of it is not: it is cut, stripped, or in a branch that does \
                          not apply"
                .to_owned()
        }
        outcome => format!("the file is not used ({}){why}", outcome.word()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::build;
    use crate::request::Request;
    use crate::request::caller::Caller;

    #[test]
    fn places_know_their_lines_and_sources() {
        let json = serde_json::json!({
            "profile": "template", "template": "a é a\n[system:os] a\n\na", "cwd": "/",
            "host": { "home": "/nowhere", "config_dir": "/nowhere/proem", "env": {} },
        });
        let request = Request::from_json(&json.to_string()).expect("the request is well-formed");
        let built = build(&request, Caller::User).expect("it can be built");
        let text = built.whole().text(Carrier::System).expect("it has text");
        let found = |question: &Question<'_>| {
            let line = |place: &PromptPlace<'_>| (place.line, place.bytes.start, place.spans.len());
            places(&built, question).iter().map(line).collect::<Vec<_>>()
        };
        let last = text.len() - 1;
        assert_eq!(found(&Question::Text("a")), [(1, 0, 1), (1, 5, 1), (2, last - 3, 1), (4, last, 1)]);
        // The middle of a character is on its line, too.
        assert_eq!(found(&Question::Byte(Carrier::System, 3)), [(1, 3, 1)]);
        assert_eq!(found(&Question::Line(Carrier::System, 2)), [(2, 7, 2)]);
        assert_eq!(found(&Question::Text("a\n")).len(), 2);
    }
}
