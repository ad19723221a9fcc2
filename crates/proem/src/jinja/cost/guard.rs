//! Keeps a template from making values of any size, and from walking large ones in a single step: a few lines of
//! `{% set x = x ~ x %}` ask for more memory than any machine has, and a few of `{% set a = [a, a] %}` for a comparison
//! that never ends, long before fuel runs out.
//!
//! Fuel counts steps, not bytes. So expressions whose cost grows with a value pass through functions that look at its
//! size and hand it on unchanged; filters and tests are replaced by ones that look first; what is made lazily is made at
//! once; and fuel shrinks where a template's own text is long.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use minijinja::value::{Rest, Value, ValueKind};
use minijinja::{Environment, Error, ErrorKind};
use proem_core::limit::{JINJA_BYTES_MAX, JINJA_FUEL_MAX, JINJA_VALUE_BYTES_MAX};

use crate::jinja::cost::eager::made;
use crate::jinja::cost::expensive::{
    BASE, CUT, FIELD, LAST_PLUS, LAST_TIMES, LEFT, LOOP, MADE, PLUS, TIMES, WEIGH, Wrap,
};
use crate::jinja::cost::value_size::{charge, charge_bytes, holds, size, too_large, weigh, weigh_below};
use crate::jinja::edit::Insertion;
use crate::jinja::syntax::Outline;

/// What a render has used up.
#[derive(Debug, Clone, Default)]
pub(crate) struct Budget(Arc<Used>);

#[derive(Debug, Default)]
struct Used {
    /// Chains whose next operands are still to come: their bytes so far, and their value as a number.
    chains: Mutex<Vec<(usize, usize)>>,
    bytes: AtomicUsize,
}

/// Where in a chain an operand stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Position {
    Inner,
    Last,
}

impl Budget {
    /// Takes `bytes` for a value that is about to be made.
    pub(crate) fn spend(&self, bytes: usize) -> Result<(), Error> {
        // One thread at a time has it, and is told when it has taken too much.
        let used = self.0.bytes.load(Ordering::Relaxed).saturating_add(bytes);
        self.0.bytes.store(used, Ordering::Relaxed);
        charge_bytes(bytes.min(JINJA_BYTES_MAX))?;
        if bytes > JINJA_VALUE_BYTES_MAX || used > JINJA_BYTES_MAX { Err(too_large()) } else { Ok(()) }
    }

    /// Begins anew, for another render.
    pub(crate) fn refill(&self) {
        self.0.bytes.store(0, Ordering::Relaxed);
        self.chains().clear();
    }

    fn chains(&self) -> MutexGuard<'_, Vec<(usize, usize)>> {
        self.0.chains.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self, value: &Value) {
        self.push(size(value), number(value));
    }

    fn push(&self, bytes: usize, number: usize) {
        self.chains().push((bytes, number));
    }

    fn pop(&self) -> (usize, usize) {
        self.chains().pop().unwrap_or_default()
    }

    /// Takes what the chain up to this operand of `+` or `~` needs.
    fn plus(&self, value: &Value, position: Position) -> Result<(), Error> {
        let bytes = self.pop().0.saturating_add(size(value));
        self.go_on(bytes, 0, position)
    }

    /// Takes what the chain up to this operand of `*` needs, where one of them is a text or a list.
    fn times(&self, value: &Value, position: Position) -> Result<(), Error> {
        let (bytes, count) = self.pop();
        let product = bytes.saturating_mul(number(value)).max(size(value).saturating_mul(count));
        self.go_on(product, count.saturating_mul(number(value)), position)
    }

    fn go_on(&self, bytes: usize, number: usize, position: Position) -> Result<(), Error> {
        if position == Position::Inner {
            self.push(bytes, number);
        }
        self.spend(bytes)
    }
}

/// A number as a count; anything else counts as none.
pub(crate) fn number(value: &Value) -> usize {
    value.as_i64().and_then(|number| usize::try_from(number).ok()).unwrap_or(0)
}

/// The insertions that guard a template.
pub(crate) fn insertions(outline: &Outline) -> Vec<Insertion> {
    outline.wraps.iter().flat_map(around).collect()
}

/// At one place the longer expression opens first and closes last.
fn around(wrap: &Wrap) -> [Insertion; 2] {
    let length = isize::try_from(wrap.end.saturating_sub(wrap.start)).unwrap_or(isize::MAX / 4);
    // Of two around the same expression, the one with more arguments is outside.
    let rank = 2 * length + isize::from(!wrap.more.is_empty());
    let more: Vec<String> = wrap.more.iter().map(|written| format!(", ({written})")).collect();
    let more = more.concat();
    [
        Insertion { offset: wrap.start, rank: -rank, text: format!(" {}((", wrap.function) },
        Insertion { offset: wrap.end, rank, text: format!("){more})") },
    ]
}

/// Fuel for templates whose longest own text has so many bytes.
pub(crate) fn fuel(longest_text: usize) -> u64 {
    // What is put around expressions takes steps, too: at most as many as there are.
    let steps = 2 * JINJA_FUEL_MAX as u64;
    let bytes = JINJA_BYTES_MAX as u64 * 4;
    steps.min(bytes / longest_text.max(1) as u64)
}

/// Adds the functions that look at sizes.
pub(crate) fn install(environment: &mut Environment<'_>, budget: &Budget) {
    let own = budget.clone();
    environment.add_function(LEFT, move |value: Value| {
        own.begin(&value);
        value
    });
    let own = budget.clone();
    environment.add_function(CUT, move |value: Value| own.spend(size(&value)).map(|()| value));
    for (name, position) in [(PLUS, Position::Inner), (LAST_PLUS, Position::Last)] {
        let own = budget.clone();
        environment.add_function(name, move |value: Value| own.plus(&value, position).map(|()| value));
    }
    for (name, position) in [(TIMES, Position::Inner), (LAST_TIMES, Position::Last)] {
        let own = budget.clone();
        environment.add_function(name, move |value: Value| own.times(&value, position).map(|()| value));
    }
    environment.add_function(MADE, made);
    environment.add_function(WEIGH, |value: Value| walked(&value).map(|()| value));
    environment.add_function(BASE, |value: Value| looked_into(&value).map(|()| value));
    environment.add_function(LOOP, |value: Value| begun(&value).map(|()| value));
    environment.add_function(FIELD, |value: Value, namespaces: Rest<Value>| field(value, &namespaces));
}

/// Pays for walking a value once more than it takes to weigh it.
pub(crate) fn walked(value: &Value) -> Result<(), Error> {
    charge(weigh(value)?.units())
}

/// Pays for finding an item by its number: texts and what has no numbers are walked.
pub(crate) fn looked_into(value: &Value) -> Result<(), Error> {
    match value.kind() {
        ValueKind::String => charge_bytes(value.as_str().map_or(0, str::len)),
        ValueKind::Iterable => charge(1 + value.len().unwrap_or(0)),
        _ => charge(1),
    }
}

/// Pays for beginning a loop.
fn begun(value: &Value) -> Result<(), Error> {
    charge_bytes(value.as_str().map_or(0, str::len))
}

/// Checks a value that becomes a field of a namespace. One that holds the namespace would never be let go, nor walked to
/// its end.
fn field(value: Value, namespaces: &[Value]) -> Result<Value, Error> {
    let value = made(value)?;
    // The namespace is one level more, and another namespace may hold it.
    weigh_below(&value, 1)?;
    for namespace in namespaces {
        if holds(&value, namespace)? {
            let message = "a namespace cannot hold itself";
            return Err(Error::new(ErrorKind::InvalidOperation, message));
        }
    }
    Ok(value)
}
