//! Keeps a template from making values of any size: a few lines of `{% set x = x ~ x %}` ask for more
//! memory than any machine has, long before fuel runs out.
//!
//! Fuel counts steps, not bytes. So the operands of `~`, `+` and `*` pass through two functions that look
//! at their size and hand them on unchanged; filters that make new texts are
//! replaced by ones that look first; and fuel shrinks where a template's own text is long.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use minijinja::value::{Kwargs, Rest, Value, ValueKind};
use minijinja::{Environment, Error, ErrorKind, State};
use proem_core::limit::{JINJA_BYTES_MAX, JINJA_FUEL_MAX, JINJA_VALUE_BYTES_MAX};

use super::edit::Insertion;
use super::syntax::{Chain, Outline};

const LEFT: &str = "__proem_left";
/// Around what is cut by `[a:b]`, which walks it character by character.
const CUT: &str = "__proem_cut";
const PLUS: &str = "__proem_plus";
const TIMES: &str = "__proem_times";
/// The last operand of a chain also forgets it.
const LAST_PLUS: &str = "__proem_last_plus";
const LAST_TIMES: &str = "__proem_last_times";
/// The words of the error, by which it is recognised.
pub(super) const TOO_LARGE: &str = "a value is too large";

/// What a render has used up.
#[derive(Debug, Clone, Default)]
pub(super) struct Budget(Arc<Used>);

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
    pub(super) fn spend(&self, bytes: usize) -> Result<(), Error> {
        // One thread at a time has it, and is told when it has taken too much.
        let used = self.0.bytes.load(Ordering::Relaxed).saturating_add(bytes);
        self.0.bytes.store(used, Ordering::Relaxed);
        if bytes > JINJA_VALUE_BYTES_MAX || used > JINJA_BYTES_MAX {
            return Err(Error::new(ErrorKind::InvalidOperation, TOO_LARGE));
        }
        Ok(())
    }

    /// Begins anew, for another render.
    pub(super) fn refill(&self) {
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
fn number(value: &Value) -> usize {
    value.as_i64().and_then(|number| usize::try_from(number).ok()).unwrap_or(0)
}

/// The insertions that guard the operators of a template.
pub(super) fn insertions(outline: &Outline) -> Vec<Insertion> {
    let cuts = outline.cuts.iter().flat_map(|(start, bracket)| {
        let length = isize::try_from(bracket - start).unwrap_or(isize::MAX);
        [
            Insertion { offset: *start, rank: -length, text: format!("{CUT}((") },
            Insertion { offset: *bracket, rank: length, text: "))".to_owned() },
        ]
    });
    outline.chains.iter().flat_map(guarded).chain(cuts).collect()
}

fn guarded(chain: &Chain) -> Vec<Insertion> {
    let length = isize::try_from(chain.end - chain.start).unwrap_or(isize::MAX);
    let insert = |offset, rank, text: String| Insertion { offset, rank, text };
    let (inner, last) = if chain.is_product { (TIMES, LAST_TIMES) } else { (PLUS, LAST_PLUS) };
    // At one place the longer expression opens first and closes last.
    let mut insertions = vec![insert(chain.start, -length, format!("{LEFT}(("))];
    for (index, operator) in chain.operators.iter().enumerate() {
        let function = if index + 1 == chain.operators.len() { last } else { inner };
        insertions.push(insert(*operator, isize::MIN, "))".to_owned()));
        insertions.push(insert(operator + 1, isize::MAX, format!(" {function}((")));
    }
    insertions.push(insert(chain.end, length, "))".to_owned()));
    insertions
}

/// Fuel for templates whose longest own text has so many bytes.
pub(super) fn fuel(longest_text: usize) -> u64 {
    let bytes = JINJA_BYTES_MAX as u64 * 4;
    (JINJA_FUEL_MAX as u64).min(bytes / longest_text.max(1) as u64)
}

/// Adds the functions and filters that look at sizes.
pub(super) fn install(environment: &mut Environment<'_>, budget: &Budget) {
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
    let first: Estimate = |arguments| arguments.first().map_or(0, size);
    guard_filters!(environment, budget,
        batch: cut_bytes, capitalize: first, format: formatted_bytes, indent: indented_bytes, join: joined_bytes,
        lines: first, list: first, lower: first, map: first, pprint: first, replace: replaced_bytes, reverse: first,
        slice: cut_bytes, sort: first, split: first, string: first, sum: first, title: first, trim: first,
        unique: first, upper: first,
    );
}

/// How many bytes a filter will make of its arguments, at most.
type Estimate = fn(&[Value]) -> usize;

/// Registers each filter once more under a name of our own, and puts a guard in its place.
macro_rules! guard_filters {
    ($environment:ident, $budget:ident, $($name:ident: $bytes:expr,)*) => {
        $(
            $environment.add_filter(concat!("__proem_", stringify!($name)), minijinja::filters::$name);
            guard($environment, $budget, stringify!($name), $bytes);
        )*
    };
}
use guard_filters;

/// Puts a filter that looks at its arguments before the one that does the work.
fn guard(environment: &mut Environment<'_>, budget: &Budget, name: &'static str, bytes: Estimate) {
    let (own, original) = (budget.clone(), format!("__proem_{name}"));
    environment.add_filter(name, move |state: &mut State<'_, '_>, arguments: Rest<Value>, named: Kwargs| {
        let mut arguments: Vec<Value> = arguments.iter().cloned().collect();
        if named.args().next().is_some() {
            arguments.push(Value::from(named));
        }
        own.spend(bytes(&arguments))?;
        state.apply_filter(&original, &arguments)
    });
}

fn replaced_bytes(arguments: &[Value]) -> usize {
    let [text, from, to, ..] = arguments else { return 0 };
    let (text, from) = (text.to_string(), from.to_string());
    text.len().saturating_add(text.matches(from.as_str()).count().saturating_mul(size(to)))
}

/// `batch` and `slice` fill up what is missing.
fn cut_bytes(arguments: &[Value]) -> usize {
    let fill = arguments.get(2).map_or(24, |fill| size(fill).max(24));
    let count = arguments.get(1).map_or(0, number);
    arguments.first().map_or(0, size).saturating_add(count.saturating_mul(fill))
}

fn joined_bytes(arguments: &[Value]) -> usize {
    let Some(items) = arguments.first() else { return 0 };
    let count = items.len().unwrap_or_else(|| items.as_str().map_or(0, str::len));
    let between = arguments.get(1).map_or(0, size);
    size(items).saturating_add(between.saturating_mul(count))
}

/// The widths and precisions in a format are its numbers.
fn formatted_bytes(arguments: &[Value]) -> usize {
    let Some(format) = arguments.first().and_then(Value::as_str) else { return 0 };
    let numbers =
        format.split(|character: char| !character.is_ascii_digit()).filter(|digits| !digits.is_empty());
    let widths = numbers.map(|digits| digits.parse().unwrap_or(usize::MAX)).fold(0, usize::saturating_add);
    let texts = arguments.iter().map(size).fold(0, usize::saturating_add);
    // A width may also be an argument.
    let stars =
        if format.contains('*') { arguments.iter().filter_map(Value::as_i64).max().unwrap_or(0) } else { 0 };
    widths.saturating_add(texts).saturating_add(usize::try_from(stars).unwrap_or(0))
}

fn indented_bytes(arguments: &[Value]) -> usize {
    let Some(text) = arguments.first() else { return 0 };
    let lines = text.as_str().map_or(0, |text| text.lines().count());
    let width = |value: &Value| usize::try_from(value.as_i64().unwrap_or(0)).unwrap_or(0);
    let named = arguments.last().and_then(|last| last.get_attr("width").ok());
    let width = arguments.get(1).map_or(0, width).max(named.as_ref().map_or(0, width));
    size(text).saturating_add(width.saturating_mul(lines))
}

/// The bytes of a text, and of everything in a list; no further than it takes to know that it is too
/// much.
pub(super) fn size(value: &Value) -> usize {
    let mut bytes = 0;
    add_size(value, 0, &mut bytes);
    bytes
}

fn add_size(value: &Value, depth: usize, bytes: &mut usize) {
    const DEPTH_MAX: usize = 32;
    const ITEM_BYTES: usize = 24;
    match value.kind() {
        ValueKind::String => *bytes = bytes.saturating_add(value.as_str().map_or(0, str::len)),
        ValueKind::Bytes => *bytes = bytes.saturating_add(value.as_bytes().map_or(0, <[u8]>::len)),
        ValueKind::Seq | ValueKind::Map if depth < DEPTH_MAX => {
            for item in value.try_iter().into_iter().flatten() {
                if *bytes > JINJA_BYTES_MAX {
                    return;
                }
                *bytes = bytes.saturating_add(ITEM_BYTES);
                add_size(&item, depth + 1, bytes);
            }
        }
        _ => {}
    }
}
