//! Reports probable mistakes in a template and variables without a value, without changing the result.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::template::{Problem, ProblemKind, Step, Template, Then};
use super::{Policies, UnknownType};
use crate::did_you_mean::nearest;
use crate::fact::{Absence, Facts};
use crate::limit::DIAGNOSTICS_MAX;
use crate::note::{Code, Note, Severity};
use crate::source::Source;
use crate::text::Places;
use crate::variable::{self, Variable};

/// Returns a note for each unmatched tag, unknown type and unknown name, in the order of the text.
///
/// `origin` is the source of the template; `given` are the keys that the request provides, which are known regardless
/// of their type.
#[must_use]
pub fn diagnose(
    template: &Template<'_>,
    origin: &Source,
    given: &BTreeSet<&str>,
    policies: &Policies,
) -> Vec<Note> {
    let given = GivenKeys::new(given, policies.unknown_type);
    let mut found: Vec<(usize, Finding<'_>)> =
        template.problems.iter().map(|problem| (problem.start, Finding::Unmatched(*problem))).collect();
    for step in &template.steps {
        let Some((start, slot)) = asked(step) else { continue };
        let key = template.wanted()[slot];
        if let Some(code) = given.unknown(key) {
            let is_condition = matches!(step.then, Then::Test { .. });
            found.push((start, Finding::Unknown { key, code, is_condition }));
        }
    }
    found.sort_by_key(|(start, _)| *start);
    describe(template, origin, &found, |start, finding| finding.note(template, start, &given))
}

/// Returns a note for each known variable that has no value, at its first mention.
#[must_use]
pub fn absences(template: &Template<'_>, origin: &Source, facts: &Facts) -> Vec<Note> {
    let mut is_seen = Vec::new();
    is_seen.resize(template.wanted().len(), false);
    let mut found: Vec<(usize, (&str, &Absence))> = Vec::new();
    for step in &template.steps {
        let Some((start, slot)) = asked(step).filter(|(_, slot)| !is_seen[*slot]) else { continue };
        is_seen[slot] = true;
        let key = template.wanted()[slot];
        match facts.fact(key).map(|fact| &fact.value) {
            // Reported with a suggestion by `diagnose`.
            Some(Err(Absence::UnknownType | Absence::UnknownName) | Ok(_)) | None => {}
            Some(Err(why)) => found.push((start, (key, why))),
        }
    }
    describe(template, origin, &found, |_, (key, why)| {
        let note = Note::new(why.code(), why.severity(), format!("`[{key}]` is absent: {why}"));
        why.hint().into_iter().fold(note, Note::with_hint)
    })
}

/// Writes notes for the first findings, up to the limit, each with its place.
fn describe<F>(
    template: &Template<'_>,
    origin: &Source,
    found: &[(usize, F)],
    note: impl Fn(usize, &F) -> Note,
) -> Vec<Note> {
    let mut places = Places::new(template.source());
    let listed = found.iter().take(DIAGNOSTICS_MAX);
    let mut notes: Vec<Note> = listed
        .map(|(start, finding)| note(*start, finding).with_source(origin.at(places.at(*start))))
        .collect();
    if let Some(more) = found.len().checked_sub(DIAGNOSTICS_MAX).filter(|more| *more > 0) {
        let message = format!("{more} more notes about this template are not listed");
        notes.push(Note::new(Code::OverLimit, Severity::Warning, message).with_source(origin.clone()));
    }
    notes
}

/// A finding; formatted only if it is among the first ones.
enum Finding<'t> {
    Unmatched(Problem),
    Unknown { key: &'t str, code: Code, is_condition: bool },
}

impl Finding<'_> {
    fn note(&self, template: &Template<'_>, start: usize, given: &GivenKeys<'_>) -> Note {
        match self {
            Self::Unmatched(problem) => unmatched(template, problem),
            Self::Unknown { key, code, is_condition } => {
                let tag = template.tag_at(start);
                let note =
                    if *is_condition { never_true(key, *code, given) } else { unknown(key, *code, given) };
                match suggestion(key, given) {
                    Some(known) => note.with_fix(start..start + tag.len(), tag.replacen(key, &known, 1)),
                    None => note,
                }
            }
        }
    }
}

/// The variables that the request provides, by key and by type.
struct GivenKeys<'g> {
    keys: &'g BTreeSet<&'g str>,
    types: BTreeSet<&'g str>,
    unknown_type: UnknownType,
}

impl<'g> GivenKeys<'g> {
    fn new(keys: &'g BTreeSet<&'g str>, unknown_type: UnknownType) -> Self {
        Self { keys, types: keys.iter().map(|key| variable::split(key).0).collect(), unknown_type }
    }

    /// Returns the kind of mistake if `key` is unknown.
    fn unknown(&self, key: &str) -> Option<Code> {
        let (kind, _) = variable::split(key);
        if kind == variable::LITERAL || self.keys.contains(key) || variable::find(key).is_some() {
            return None;
        }
        let has_type = variable::is_known_type(kind) || self.types.contains(kind);
        Some(if has_type { Code::UnknownName } else { Code::UnknownType })
    }
}

/// Iterates over the tags that use a variable: the place of each, and the variable's slot.
const fn asked(step: &Step<'_>) -> Option<(usize, usize)> {
    match step.then {
        Then::Insert { start, slot } | Then::Test { start, slot, .. } => {
            Some((start as usize, slot as usize))
        }
        Then::Next | Then::Leave { .. } | Then::PlainElse { .. } => None,
    }
}

fn unmatched(template: &Template<'_>, problem: &Problem) -> Note {
    let tag = template.tag_at(problem.start);
    let (code, why, hint) = match problem.kind {
        ProblemKind::UnclosedIf => {
            (Code::UnclosedIf, "is never closed and stays as text", "add `[endif]` after its content")
        }
        ProblemKind::StrayElse => (
            Code::StrayTag,
            "belongs to no `[if]` and stays as text",
            "remove it, or open an `[if]` before it",
        ),
        ProblemKind::SecondElse => (
            Code::StrayTag,
            "is the second one of its `[if]` and stays as text",
            "remove it, or close the first block with `[endif]`",
        ),
        ProblemKind::StrayEndIf => {
            (Code::StrayTag, "closes no `[if]` and stays as text", "remove it, or open an `[if]` before it")
        }
    };
    let (fix, text) = match problem.kind {
        ProblemKind::UnclosedIf => (template.source().len()..template.source().len(), "[endif]"),
        ProblemKind::StrayElse | ProblemKind::SecondElse | ProblemKind::StrayEndIf => {
            (problem.start..problem.start + tag.len(), "")
        }
    };
    Note::new(code, Severity::Warning, format!("`{tag}` {why}")).with_hint(hint).with_fix(fix, text)
}

fn unknown(key: &str, code: Code, given: &GivenKeys<'_>) -> Note {
    let (kind, _) = variable::split(key);
    let message = match code {
        Code::UnknownName => format!("`[{key}]` names no variable of the type `{kind}`"),
        _ if given.unknown_type == UnknownType::Literal => {
            format!("`[{key}]` is of the unknown type `{kind}` and stays as text")
        }
        _ => format!("`[{key}]` is of the unknown type `{kind}` and inserts nothing"),
    };
    let hint = match (suggestion(key, given), code, given.unknown_type) {
        (Some(known), ..) => format!("did you mean `[{known}]`?"),
        (None, Code::UnknownType, UnknownType::Blank | UnknownType::Error) => {
            format!("for text that should stay, write `[literal:{key}]`")
        }
        (None, ..) => String::from("`proem vars` lists what there is"),
    };
    Note::new(code, Severity::Warning, message).with_hint(hint)
}

fn never_true(key: &str, code: Code, given: &GivenKeys<'_>) -> Note {
    let (kind, _) = variable::split(key);
    let what = match code {
        Code::UnknownName => format!("which is not a variable of the type `{kind}`"),
        _ => format!("and the type `{kind}` is unknown"),
    };
    let hint = suggestion(key, given).map_or_else(
        || String::from("`proem vars` lists what there is"),
        |known| format!("did you mean `{known}`?"),
    );
    let message = format!("a condition asks for `{key}`, {what}: it is always absent");
    Note::new(code, Severity::Warning, message).with_hint(hint)
}

fn suggestion(key: &str, given: &GivenKeys<'_>) -> Option<String> {
    let fixed = Variable::ALL.into_iter().filter(|variable| !variable.is_dynamic());
    let known: Vec<String> =
        fixed.map(|variable| format!("{}:{}", variable.kind(), variable.name())).collect();
    nearest(
        key,
        known.iter().map(String::as_str).chain(given.keys.iter().copied().filter(|key| key.contains(':'))),
    )
    .map(ToString::to_string)
}
