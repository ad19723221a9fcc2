//! The line at which the cached part ends.
//!
//! The position of the cut is known from the sections and never searched for. A text that contains the same line
//! would mislead readers who do search for it, so that line is changed.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::draft::Section;
use crate::note::{Code, Note, Severity};
use crate::profile::{Part, Profile};
use crate::rendered::Span;
use crate::source::Source;
use crate::stability::Stability;
use crate::text::slice;

/// Prefix for a line of text that equals the boundary.
const MARK: &str = "\\";

/// Changes every line before the boundary that equals it, and notes each section that had one.
pub(crate) fn neutralise(profile: &Profile, sections: &mut [Section]) -> Vec<Note> {
    let Some(boundary) = sections.iter().find(|section| section.part == Part::Boundary) else {
        return Vec::new();
    };
    let (carrier, line) = (boundary.carrier, String::from(boundary.rendered.text().trim_matches('\n')));
    let key = format!("section.{}.boundary", boundary.id);
    let source = Source::Profile { profile: profile.name.as_str().into(), key: key.into() };
    let mut notes = Vec::new();
    if line.is_empty() {
        return notes;
    }
    let mut before = String::new();
    for section in sections.iter_mut().filter(|section| section.carrier == carrier) {
        match section.part {
            Part::Boundary => {}
            Part::Prefix => {
                let first = section.rendered.text().split('\n').take_while(|own| *own != line);
                let place = place(section, first.map(|own| own.len() + 1).sum());
                let marked = mark_lines(section, &mut before, &line, &source);
                notes.extend(
                    (marked > 0).then(|| note(section, marked, "and was changed").with_source(place)),
                );
            }
            Part::Suffix => {
                let found = section.rendered.text().lines().filter(|own| *own == line).count();
                let note = || note(section, found, "and comes after it").with_source(section.source.clone());
                notes.extend((found > 0).then(note));
            }
        }
    }
    notes
}

/// Marks the lines of a section that equal `line`. `before` is the text in front of the section, without trailing
/// line breaks that do not matter any more.
fn mark_lines(section: &mut Section, before: &mut String, line: &str, source: &Source) -> usize {
    let mut marked = 0;
    let open = before.rsplit('\n').next().unwrap_or_default();
    let begins = open.is_empty();
    let mut start = 0;
    let mut starts = Vec::new();
    for own in section.rendered.text().split('\n') {
        if own == line && (start > 0 || begins) {
            starts.push(start);
        }
        start += own.len() + 1;
    }
    for at in starts.into_iter().rev() {
        section.rendered.insert(at, MARK, source, Stability::User);
        marked += 1;
    }
    before.push_str(section.rendered.text());
    let keep = before.rfind('\n').map_or(0, |at| at + 1);
    *before = before.split_off(keep);
    marked
}

fn note(section: &Section, count: usize, what: &str) -> Note {
    let lines = if count == 1 { "a line".into() } else { format!("{count} lines") };
    let message = format!("the section `{}` has {lines} equal to the boundary, {what}", section.id);
    Note::new(Code::BoundaryInText, Severity::Warning, message)
        .with_hint("remove it from the text that the section is made of")
}

/// Returns the source of one byte of a section.
fn place(section: &Section, byte: usize) -> Source {
    let holds = |span: &&Span| span.bytes.contains(&byte);
    match section.rendered.spans().iter().find(holds) {
        Some(span) => span.source.behind(slice(section.rendered.text(), span.bytes.start, byte)),
        None => section.source.clone(),
    }
}
