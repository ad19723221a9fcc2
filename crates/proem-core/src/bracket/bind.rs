//! Binds every slot of a template to its value, following the profile's policies.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use super::render::visit;
use super::template::{Template, Then};
use super::{AbsentVariable, Policies, UnknownType};
use crate::fact::{Absence, Fact, Facts};
use crate::text::{Place, Places};

/// The values of a template's slots.
#[derive(Debug, Clone)]
pub struct Bindings<'f> {
    pub(super) values: Vec<Value<'f>>,
    /// The length of all inserted values together, in every branch.
    pub(super) bytes: usize,
}

/// The value of one slot.
#[derive(Debug, Clone, Copy)]
pub(super) enum Value<'f> {
    Present(&'f str, &'f Fact),
    Absent,
    /// The tag stays as written; a condition treats it as absent.
    AsWritten,
}

impl Value<'_> {
    pub(super) const fn exists(self) -> bool {
        matches!(self, Self::Present(..))
    }

    const fn bytes(&self) -> usize {
        match self {
            Self::Present(text, _) => text.len(),
            // A tag that stays as written is part of the source already.
            Self::Absent | Self::AsWritten => 0,
        }
    }
}

/// A variable that a policy rejects.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PolicyError {
    /// The variable's key.
    pub key: String,
    /// The place of its tag.
    pub place: Place,
    /// The reason for its absence.
    pub why: Absence,
}

impl fmt::Display for PolicyError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Place { line, column } = self.place;
        write!(formatter, "`[{}]` at line {line}, column {column} has no value: {}", self.key, self.why)
    }
}

impl core::error::Error for PolicyError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        Some(&self.why)
    }
}

/// Looks up every slot of `template` in `facts`.
///
/// Fails only if a policy is `error`, and then for the first tag that inserts; conditions on absent variables are
/// always allowed.
pub fn bind<'f>(
    template: &Template<'_>,
    facts: &'f Facts,
    policies: &Policies,
) -> Result<Bindings<'f>, PolicyError> {
    let values: Vec<Value<'_>> =
        template.wanted().iter().map(|key| value(facts.fact(key), policies)).collect();
    let bytes = template.inserted_bytes(values.iter().map(Value::bytes));
    let bound = Bindings { values, bytes };
    match refused(template, &bound, facts, policies) {
        Some(error) => Err(error),
        None => Ok(bound),
    }
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

/// Returns the first tag in the active branches that a policy rejects.
fn refused(
    template: &Template<'_>,
    bound: &Bindings<'_>,
    facts: &Facts,
    policies: &Policies,
) -> Option<PolicyError> {
    if policies.unknown_type != UnknownType::Error && policies.absent != AbsentVariable::Error {
        return None;
    }
    let mut first: Option<(u32, u32)> = None;
    visit(template, bound, |step| match step.then {
        Then::Insert { start, slot } if first.is_none() && is_refused(template, slot, facts, policies) => {
            first = Some((start, slot));
        }
        _ => {}
    });
    let (start, slot) = first?;
    let key = template.wanted()[slot as usize];
    let why =
        facts.fact(key).and_then(|fact| fact.value.as_ref().err().cloned()).unwrap_or(Absence::UnknownType);
    Some(PolicyError { key: key.into(), place: Places::new(template.source).at(start as usize), why })
}

fn is_refused(template: &Template<'_>, slot: u32, facts: &Facts, policies: &Policies) -> bool {
    match facts.fact(template.wanted()[slot as usize]).map(|fact| &fact.value) {
        Some(Ok(_)) => false,
        Some(Err(Absence::UnknownType)) | None => policies.unknown_type == UnknownType::Error,
        Some(Err(_)) => policies.absent == AbsentVariable::Error,
    }
}
