//! Gives every slot of a template its value, by the profile's policies.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use super::template::{Action, Template};
use super::{AbsentVariable, Policies, UnknownType};
use crate::fact::{Absence, Fact, Facts};
use crate::text::{Place, Places};

/// The values of a template's slots.
#[derive(Debug, Clone)]
pub struct Bound<'f> {
    pub(super) values: Vec<Value<'f>>,
}

/// What stands in one slot.
#[derive(Debug, Clone, Copy)]
pub(super) enum Value<'f> {
    Present(&'f str, &'f Fact),
    Absent,
    /// The tag stays as written; for a condition this is as good as absent.
    AsWritten,
}

impl Value<'_> {
    pub(super) const fn exists(self) -> bool {
        matches!(self, Self::Present(..))
    }
}

/// A variable that a policy does not let pass.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PolicyError {
    /// The variable's key.
    pub key: String,
    /// Where its tag stands.
    pub place: Place,
    /// Why it has no value.
    pub why: Absence,
}

impl fmt::Display for PolicyError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Place { line, column } = self.place;
        write!(formatter, "`[{}]` at line {line}, column {column} has no value: {}", self.key, self.why)
    }
}

impl core::error::Error for PolicyError {}

/// Looks up every slot of `template` in `facts`.
///
/// Fails only where a policy says `error`, and then for the first tag that inserts: a condition may
/// always ask.
pub fn bind<'f>(
    template: &Template<'_>,
    facts: &'f Facts,
    policies: &Policies,
) -> Result<Bound<'f>, PolicyError> {
    let bound =
        Bound { values: template.wanted().iter().map(|key| value(facts.fact(key), policies)).collect() };
    if policies.unknown_type == UnknownType::Error || policies.absent == AbsentVariable::Error {
        refuse(template, facts, policies)?;
    }
    Ok(bound)
}

fn value<'f>(fact: Option<&'f Fact>, policies: &Policies) -> Value<'f> {
    match fact {
        Some(fact @ Fact { value: Ok(text), .. }) => Value::Present(text, fact),
        Some(Fact { value: Err(Absence::UnknownType), .. }) | None
            if policies.unknown_type == UnknownType::Literal =>
        {
            Value::AsWritten
        }
        _ => Value::Absent,
    }
}

fn refuse(template: &Template<'_>, facts: &Facts, policies: &Policies) -> Result<(), PolicyError> {
    for step in &template.steps {
        let Action::Insert(slot) = step.action else { continue };
        let key = template.wanted()[slot as usize];
        let why = match facts.fact(key) {
            Some(Fact { value: Ok(_), .. }) => continue,
            Some(Fact { value: Err(why), .. }) => why.clone(),
            None => Absence::UnknownType,
        };
        let is_refused = match why {
            Absence::UnknownType => policies.unknown_type == UnknownType::Error,
            _ => policies.absent == AbsentVariable::Error,
        };
        if is_refused {
            let place = Places::new(template.source).at(step.start);
            return Err(PolicyError { key: key.into(), place, why });
        }
    }
    Ok(())
}
