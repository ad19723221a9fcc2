//! Finds parts of a template without effect: conditions with a known result, and tags that can insert nothing.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::vec::Vec;

use super::scan::{Scanner, Tag};
use super::template::Template;
use crate::fact::{Absence, Facts};
use crate::limit::DIAGNOSTICS_MAX;
use crate::note::{Code, Note, Severity};
use crate::source::Source;
use crate::stability::Stability;
use crate::text::Places;
use crate::variable::{self, LITERAL, Variable};

/// Finds conditions that are always or never true, tags that never insert anything, and values that change every turn
/// and are absent now.
#[must_use]
pub fn lint(template: &Template<'_>, origin: &Source, facts: &Facts) -> Vec<Note> {
    let mut lint = Lint { facts, open: Vec::new(), asked: BTreeMap::new() };
    let mut places = Places::new(template.source());
    let mut notes = Vec::new();
    for found in Scanner::new(template.source()) {
        let note = lint.take(found.tag);
        notes.extend(note.map(|note| note.with_source(origin.at(places.at(found.bytes.start)))));
        if notes.len() == DIAGNOSTICS_MAX {
            break;
        }
    }
    notes
}

struct Lint<'l> {
    facts: &'l Facts,
    /// The conditions of the open blocks.
    open: Vec<&'l str>,
    /// For each variable, its presence as implied by the open branches, innermost last.
    asked: BTreeMap<&'l str, Vec<bool>>,
}

impl<'l> Lint<'l> {
    fn take<'t: 'l>(&mut self, tag: Tag<'t>) -> Option<Note> {
        match tag {
            Tag::Variable { key } => self.variable(key.text()),
            Tag::If { key, negated } => {
                let key = key.text();
                let note = self.condition(key, negated);
                self.open.push(key);
                self.asked.entry(key).or_default().push(!negated);
                note
            }
            Tag::Else => {
                let innermost = self.open.last().and_then(|key| self.asked.get_mut(key)?.last_mut());
                if let Some(is_present) = innermost {
                    *is_present = !*is_present;
                }
                None
            }
            Tag::EndIf => {
                let key = self.open.pop()?;
                self.asked.get_mut(key)?.pop();
                None
            }
        }
    }

    /// Returns the presence of a variable as implied by the open blocks.
    fn known(&self, key: &str) -> Option<bool> {
        self.asked.get(key)?.last().copied()
    }

    fn condition(&self, key: &str, negated: bool) -> Option<Note> {
        let (is_present, why) = match self.known(key) {
            Some(is_present) => (is_present, "a block around it asks the same"),
            None if is_always_present(key) => (true, "every build has this value"),
            None => return None,
        };
        let answer = if is_present == negated { "never" } else { "always" };
        let sign = if negated { "!" } else { "" };
        let message = format!("`[if {sign}{key}]` is {answer} true: {why}");
        let hint = "remove the condition, or the branch that is never taken";
        Some(Note::new(Code::AlwaysTrue, Severity::Warning, message).with_hint(hint))
    }

    fn variable(&self, key: &str) -> Option<Note> {
        if self.known(key) == Some(false) {
            let message = format!("`[{key}]` inserts nothing: this branch is taken when it is absent");
            let hint = "move it to the other branch, or remove it";
            return Some(Note::new(Code::NeverPresent, Severity::Warning, message).with_hint(hint));
        }
        let fact = self.facts.fact(key)?;
        let absence = fact.value.as_ref().err()?;
        if fact.stability == Stability::Turn
            && !matches!(absence, Absence::UnknownName | Absence::UnknownType)
        {
            let message =
                format!("[{key}] changes with every turn where it has a value; here it is absent: {absence}");
            let hint = "move it to a section on the `turn` carrier, or as far down as possible";
            return Some(Note::new(Code::VolatileInPrefix, Severity::Warning, message).with_hint(hint));
        }
        // A condition on the variable shows that its absence is expected.
        if !matches!(absence, Absence::NoSuchFile | Absence::EnvNotSet) || self.known(key) == Some(true) {
            return None;
        }
        let message = format!("`[{key}]` inserts nothing: {absence}");
        let hint = format!("correct the name, or put it into `[if {key}]…[endif]` if it may be missing");
        Some(Note::new(Code::NeverPresent, Severity::Warning, message).with_hint(hint))
    }
}

/// Tells whether every build has a value for a key.
fn is_always_present(key: &str) -> bool {
    variable::split(key).0 == LITERAL || variable::find(key).is_some_and(Variable::is_always_present)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fact::Fact;

    fn linted(text: &str) -> Vec<alloc::string::String> {
        let template = Template::parse(text);
        let mut facts = Facts::default();
        let missing = Fact { value: Err(Absence::NoSuchFile), stability: Stability::Project, path: None };
        facts.insert("file:gone.md", missing);
        let origin = Source::File { path: "t.md".into(), place: None };
        lint(&template, &origin, &facts).into_iter().map(|note| note.message).collect()
    }

    #[test]
    fn conditions_with_a_known_answer_are_named() {
        assert_eq!(linted("[if system:os]x[endif]").len(), 1);
        assert!(linted("[if !prompt:cwd]x[endif]")[0].contains("never true"));
        assert!(linted("[if a:b][if a:b]x[endif][endif]")[0].contains("a block around it"));
        assert!(linted("[if a:b]x[else][if a:b]y[endif][endif]")[0].contains("never true"));
        assert_eq!(linted("[if a:b]x[endif][if a:b]y[endif]"), [""; 0]);
    }

    #[test]
    fn a_missing_file_is_named_unless_a_condition_asks_for_it() {
        assert_eq!(linted("[file:gone.md]").len(), 1);
        assert_eq!(linted("[if file:gone.md][file:gone.md][endif]"), [""; 0]);
        assert_eq!(linted("[if file:gone.md]x[else][file:gone.md][endif]").len(), 1);
    }
}
