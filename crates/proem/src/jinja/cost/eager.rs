//! Evaluates the lazy values of minijinja's operators and filters at once.
//!
//! A lazy value holds the one that it was made of, so `{% set x = x[1:] %}` in a loop makes a value that is thousands
//! of levels deep: iterating over it, or dropping it, overflows the stack. A flat value holds its items and prints,
//! counts and compares like the lazy one.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use minijinja::Error;
use minijinja::value::{Enumerator, Object, ObjectRepr, Value, ValueKind};
use proem_core::limit::JINJA_VALUE_NODES_MAX;

use crate::jinja::cost::value_size::{charge, too_large, weigh};

/// Checks the size of a new value, and makes it flat.
pub(crate) fn made(value: Value) -> Result<Value, Error> {
    match value.kind() {
        ValueKind::Iterable if value.downcast_object_ref::<FlatItems>().is_none() => flat(&value),
        ValueKind::Seq | ValueKind::Map | ValueKind::Iterable => weigh(&value).map(|_| value),
        _ => Ok(value),
    }
}

fn flat(value: &Value) -> Result<Value, Error> {
    let is_sized = value.len().is_some();
    let flat = Value::from_object(FlatItems { items: items(value)?.into(), is_sized });
    weigh(&flat).map(|_| flat)
}

/// Returns the items of a value, unless it is too large.
fn items(value: &Value) -> Result<Vec<Value>, Error> {
    let mut items = Vec::new();
    for item in value.as_object().and_then(minijinja::value::DynObject::try_iter).into_iter().flatten() {
        if items.len() == JINJA_VALUE_NODES_MAX {
            return Err(too_large());
        }
        items.push(item);
        if items.len().is_multiple_of(1024) {
            charge(1024)?;
        }
    }
    Ok(items)
}

/// Checks the result of the filter `chain`, and makes it flat: a list of lists, a map of maps.
pub(crate) fn chained(value: Value, arguments: &[Value]) -> Result<Value, Error> {
    match value.kind() {
        ValueKind::Seq => made(Value::from(items(&value)?)),
        ValueKind::Map => merged(arguments),
        _ => made(value),
    }
}

/// Merges several maps; the last one with a key has priority.
fn merged(arguments: &[Value]) -> Result<Value, Error> {
    const PARTS_MAX: usize = 64;
    let mut parts: Vec<Value> = Vec::new();
    for argument in arguments {
        match argument.downcast_object_ref::<MergedMaps>() {
            Some(merged) => parts.extend(merged.parts.iter().cloned()),
            None => parts.push(argument.clone()),
        }
    }
    let mut joined: Vec<Value> = Vec::new();
    for part in parts {
        match joined.last_mut().filter(|last| is_plain(last) && is_plain(&part)) {
            Some(last) => *last = join(last, &part)?,
            None => joined.push(part),
        }
    }
    if joined.len() > PARTS_MAX {
        return Err(too_large());
    }
    let mut keys: BTreeSet<Value> = BTreeSet::new();
    for part in &joined {
        charge(weigh(part)?.units())?;
        keys.extend(part.try_iter().into_iter().flatten());
    }
    let value = Value::from_object(MergedMaps { parts: joined, keys: keys.into_iter().collect() });
    weigh(&value).map(|_| value)
}

/// Tells whether everything in a map can be enumerated.
fn is_plain(value: &Value) -> bool {
    value.as_object().is_some_and(|object| object.enumerator_len().is_some_and(|length| length > 0))
}

fn join(first: &Value, second: &Value) -> Result<Value, Error> {
    charge(weigh(first)?.units() + weigh(second)?.units())?;
    let pairs = |value: &Value| value.as_object().and_then(minijinja::value::DynObject::try_iter_pairs);
    let mut joined: BTreeMap<Value, Value> = pairs(first).into_iter().flatten().collect();
    joined.extend(pairs(second).into_iter().flatten().filter(|(_, value)| !value.is_undefined()));
    Ok(Value::from_object(joined))
}

/// Items that can be enumerated and not indexed, such as those of a slice.
struct FlatItems {
    items: Arc<[Value]>,
    is_sized: bool,
}

impl fmt::Debug for FlatItems {
    /// Prints the same as a lazy value.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("<iterator>").finish()
    }
}

impl Object for FlatItems {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Iterable
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Iter(Box::new(ItemIterator {
            items: Arc::clone(&self.items),
            next: 0,
            is_sized: self.is_sized,
        }))
    }
}

/// An iterator with or without a known length.
struct ItemIterator {
    items: Arc<[Value]>,
    next: usize,
    is_sized: bool,
}

impl Iterator for ItemIterator {
    type Item = Value;

    fn next(&mut self) -> Option<Value> {
        let item = self.items.get(self.next).cloned()?;
        self.next += 1;
        Some(item)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.items.len() - self.next;
        if self.is_sized { (left, Some(left)) } else { (0, None) }
    }
}

/// Maps of which some cannot be enumerated.
#[derive(Debug)]
struct MergedMaps {
    parts: Vec<Value>,
    /// The keys of those that can, in order. Each condition on the map uses them.
    keys: Arc<[Value]>,
}

impl Object for MergedMaps {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        let found = self.parts.iter().rev().filter_map(|part| part.get_item(key).ok());
        found.into_iter().find(|value| !value.is_undefined())
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Iter(Box::new(ItemIterator { items: Arc::clone(&self.keys), next: 0, is_sized: true }))
    }
}
