//! The size of a template's values: every part counts as often as it occurs, because comparing, printing or sorting a
//! value walks it that often.
//!
//! Walking is work of the build and is charged as it goes on. A value that is too large or too deep is refused, never
//! taken for a small one.

use minijinja::Error;
use minijinja::value::{Value, ValueKind};
use proem_core::limit::{JINJA_BYTES_MAX, JINJA_VALUE_DEPTH_MAX, JINJA_VALUE_NODES_MAX};

use crate::error::StopReason;
use crate::jinja::ending::Ending;
use crate::observe::deadline;

/// Most bytes in the texts of one value. A text that a template makes has a lower limit.
pub(crate) const TEXT_BYTES_MAX: usize = JINJA_BYTES_MAX / 4;
/// Bytes that cost as much as one part.
const BYTES_PER_UNIT: usize = 16;
/// Parts that are charged at once.
const PARTS_AT_ONCE: usize = 1 << 10;

/// The size of a value.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Weight {
    /// The number of parts: the value itself, and everything in it.
    pub(crate) parts: usize,
    /// The parts of values that are neither lists nor maps but can be walked, such as a range: they take no memory.
    loose: usize,
    /// The bytes of all texts.
    pub(crate) bytes: usize,
}

impl Weight {
    /// Returns the work of walking the value once.
    pub(crate) const fn units(self) -> usize {
        self.parts + self.bytes / BYTES_PER_UNIT
    }

    /// Returns the approximate memory of a copy.
    const fn size(self) -> usize {
        const PART_BYTES: usize = 24;
        const LOOSE_BYTES: usize = 8;
        self.bytes + self.loose * LOOSE_BYTES + (self.parts - 1 - self.loose) * PART_BYTES
    }
}

/// Weighs a value.
pub(crate) fn weigh(value: &Value) -> Result<Weight, Error> {
    weigh_below(value, 0)
}

/// Weighs a value that is to become part of another one, at some depth.
pub(crate) fn weigh_below(value: &Value, depth: usize) -> Result<Weight, Error> {
    let mut walk = Walk { weight: Weight::default(), unpaid: 0 };
    let walked = walk.add(value, depth, &mut |_| false);
    walk.pay()?;
    walked.map(|_| walk.weight)
}

/// Tells whether a value is `wanted` or holds it.
pub(crate) fn holds(value: &Value, wanted: &Value) -> Result<bool, Error> {
    let mut walk = Walk { weight: Weight::default(), unpaid: 0 };
    let walked = walk.add(value, 0, &mut |part| minijinja::tests::is_sameas(part, wanted));
    walk.pay()?;
    walked
}

/// Returns the approximate memory of a value; more than any limit if it is too large.
pub(crate) fn size(value: &Value) -> usize {
    weigh(value).map_or(usize::MAX, Weight::size)
}

/// Charges some work.
pub(crate) fn charge(units: usize) -> Result<(), Error> {
    deadline::charge(units as u64).map_err(stopped)
}

/// Charges work on `bytes` bytes.
pub(crate) fn charge_bytes(bytes: usize) -> Result<(), Error> {
    charge(1 + bytes / BYTES_PER_UNIT)
}

/// Makes the error of a build that has to end.
pub(crate) fn stopped(_: StopReason) -> Error {
    Ending::Stopped.into()
}

/// Makes the error about a value that is too large.
pub(crate) fn too_large() -> Error {
    Ending::LargeValue.into()
}

struct Walk {
    weight: Weight,
    unpaid: usize,
}

impl Walk {
    /// Adds a value and its parts, until `is_found` returns true for one of them.
    fn add(
        &mut self,
        value: &Value,
        depth: usize,
        is_found: &mut impl FnMut(&Value) -> bool,
    ) -> Result<bool, Error> {
        self.count()?;
        let kind = value.kind();
        match kind {
            ValueKind::String => self.weight.bytes += value.as_str().map_or(0, str::len),
            ValueKind::Bytes => self.weight.bytes += value.as_bytes().map_or(0, <[u8]>::len),
            ValueKind::Seq | ValueKind::Map | ValueKind::Iterable => {
                if depth >= JINJA_VALUE_DEPTH_MAX {
                    return Err(too_large());
                }
                return Ok(is_found(value) || self.add_parts(value, kind, depth + 1, is_found)?);
            }
            _ => {}
        }
        if self.weight.bytes > TEXT_BYTES_MAX { Err(too_large()) } else { Ok(false) }
    }

    fn add_parts(
        &mut self,
        value: &Value,
        kind: ValueKind,
        depth: usize,
        is_found: &mut impl FnMut(&Value) -> bool,
    ) -> Result<bool, Error> {
        let Some(object) = value.as_object() else { return Ok(false) };
        if kind == ValueKind::Map {
            for (key, item) in object.try_iter_pairs().into_iter().flatten() {
                if self.add(&key, depth, is_found)? || self.add(&item, depth, is_found)? {
                    return Ok(true);
                }
            }
            return Ok(false);
        }
        for item in object.try_iter().into_iter().flatten() {
            self.weight.loose += usize::from(kind == ValueKind::Iterable);
            if self.add(&item, depth, is_found)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn count(&mut self) -> Result<(), Error> {
        self.weight.parts += 1;
        self.unpaid += 1;
        if self.weight.parts > JINJA_VALUE_NODES_MAX {
            return Err(too_large());
        }
        if self.unpaid >= PARTS_AT_ONCE { self.pay() } else { Ok(()) }
    }

    fn pay(&mut self) -> Result<(), Error> {
        charge(std::mem::take(&mut self.unpaid))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn doubled(times: usize) -> Value {
        (0..times).fold(Value::from("leaf"), |value, _| Value::from(vec![value.clone(), value]))
    }

    #[test]
    fn shared_parts_count_each_time() {
        let weight = weigh(&doubled(3)).unwrap();
        assert_eq!((weight.parts, weight.bytes, weight.size()), (15, 32, 32 + 14 * 24));
        assert_eq!(weigh(&Value::from("leaf")).unwrap().size(), 4);
        let map = Value::from_pairs([("key", Value::from("value")), ("k", Value::from(1))]);
        assert_eq!((weigh(&map).unwrap().parts, weigh(&map).unwrap().bytes), (5, 9));
    }

    fn ending(error: &Error) -> Option<Ending> {
        Ending::from_error(error).cloned()
    }

    #[test]
    fn what_is_too_large_or_too_deep_is_refused_and_not_walked_to_its_end() {
        assert!(weigh(&doubled(16)).is_ok(), "control");
        for value in [doubled(17), doubled(60)] {
            assert_eq!(weigh(&value).err().as_ref().and_then(ending), Some(Ending::LargeValue));
        }
        let nested = |depth| (0..depth).fold(Value::from(1), |value, _| Value::from(vec![value]));
        assert!(weigh(&nested(JINJA_VALUE_DEPTH_MAX)).is_ok(), "control");
        assert_eq!(
            weigh(&nested(JINJA_VALUE_DEPTH_MAX + 1)).err().as_ref().and_then(ending),
            Some(Ending::LargeValue)
        );
        assert_eq!(size(&nested(JINJA_VALUE_DEPTH_MAX + 1)), usize::MAX);
        let text = Value::from("x".repeat(TEXT_BYTES_MAX / 2));
        assert!(weigh(&Value::from(vec![text.clone(), text.clone()])).is_ok(), "control");
        assert!(weigh(&Value::from(vec![text.clone(), text, Value::from("x")])).is_err());
    }

    #[test]
    fn a_value_is_found_wherever_it_is() {
        let wanted = Value::from(vec![1, 2]);
        let other = Value::from(vec![1, 2]);
        let inside = Value::from(vec![Value::from_pairs([("key", wanted.clone())])]);
        assert!(holds(&inside, &wanted).unwrap() && holds(&wanted, &wanted).unwrap());
        assert!(!holds(&inside, &other).unwrap(), "an equal one is another one");
    }
}
