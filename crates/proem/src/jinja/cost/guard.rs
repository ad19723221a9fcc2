//! Keeps a template from making values of any size, and from walking large ones in a single step: a few lines of `{%
//! set x = x ~ x %}` need more memory than any machine has, and a few of `{% set a = [a, a] %}` lead to a comparison
//! that never ends, long before the fuel is used up.
//!
//! Fuel counts steps, not bytes. So expressions whose cost grows with a value pass through functions that check its
//! size and return it unchanged; filters and tests are replaced by ones that check first; lazy values are evaluated at
//! once; and templates with long texts get less fuel.

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

/// The amounts that a render has used.
#[derive(Debug, Clone, Default)]
pub(crate) struct Budget(Arc<Usage>);

#[derive(Debug, Default)]
struct Usage {
    /// Chains with further operands to come: their bytes so far, and their value as a number.
    chains: Mutex<Vec<(usize, usize)>>,
    bytes: AtomicUsize,
}

/// The position of an operand in a chain.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Position {
    Inner,
    Last,
}

impl Budget {
    /// Charges `bytes` for a value that is about to be made.
    pub(crate) fn spend(&self, bytes: usize) -> Result<(), Error> {
        // Only one thread uses it, and the excess is refused afterwards.
        let used = self.0.bytes.load(Ordering::Relaxed).saturating_add(bytes);
        self.0.bytes.store(used, Ordering::Relaxed);
        charge_bytes(bytes.min(JINJA_BYTES_MAX))?;
        if bytes > JINJA_VALUE_BYTES_MAX || used > JINJA_BYTES_MAX { Err(too_large()) } else { Ok(()) }
    }

    /// Resets the budget for another render.
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

    /// Charges the chain up to this operand of `+` or `~`.
    fn plus(&self, value: &Value, position: Position) -> Result<(), Error> {
        let bytes = self.pop().0.saturating_add(size(value));
        self.go_on(bytes, 0, position)
    }

    /// Charges the chain up to this operand of `*`, if one of them is a text or a list.
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

/// Returns a number as a count; 0 for other values.
pub(crate) fn number(value: &Value) -> usize {
    value.as_i64().and_then(|number| usize::try_from(number).ok()).unwrap_or(0)
}

/// Returns the insertions that guard a template.
pub(crate) fn insertions(outline: &Outline) -> Vec<Insertion> {
    outline.wraps.iter().flat_map(around).collect()
}

/// Wraps an expression. At the same place, the longer expression opens first and closes last.
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

/// Returns the fuel for templates whose longest own text has `longest_text` bytes.
pub(crate) fn fuel(longest_text: usize) -> u64 {
    // The functions around expressions take steps, too: at most as many as the expressions.
    let steps = 2 * JINJA_FUEL_MAX as u64;
    let bytes = JINJA_BYTES_MAX as u64 * 4;
    steps.min(bytes / longest_text.max(1) as u64)
}

/// Adds the functions that check sizes.
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

/// Charges a walk over a value, in addition to weighing it.
pub(crate) fn walked(value: &Value) -> Result<(), Error> {
    charge(weigh(value)?.units())
}

/// Charges the lookup of an item by its index: texts and values without indexes are walked.
pub(crate) fn looked_into(value: &Value) -> Result<(), Error> {
    match value.kind() {
        ValueKind::String => charge_bytes(value.as_str().map_or(0, str::len)),
        ValueKind::Iterable => charge(1 + value.len().unwrap_or(0)),
        _ => charge(1),
    }
}

/// Charges the beginning of a loop.
fn begun(value: &Value) -> Result<(), Error> {
    charge_bytes(value.as_str().map_or(0, str::len))
}

/// Checks a value that becomes a field of a namespace. A value that holds the namespace would form a cycle, which is
/// never freed and has no end.
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
