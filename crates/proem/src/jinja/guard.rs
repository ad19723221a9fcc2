//! Keeps a template from making values of any size: a few lines of `{% set x = x ~ x %}` ask for more
//! memory than any machine has, long before fuel runs out.
//!
//! Fuel counts steps, not bytes. So the operands of `~`, `+` and `*` pass through two functions that look
//! at their size and hand them on unchanged; filters that make new texts are
//! replaced by ones that look first; and fuel shrinks where a template's own text is long.

use std::sync::{Arc, Mutex, PoisonError};

use minijinja::value::{Kwargs, Rest, Value, ValueKind};
use minijinja::{Environment, Error, ErrorKind, State};
use proem_core::limit::{JINJA_BYTES_MAX, JINJA_FUEL_MAX, JINJA_VALUE_BYTES_MAX};

use super::edit::Insertion;
use super::syntax::Outline;

const LEFT: &str = "__proem_left";
const RIGHT: &str = "__proem_right";
const TIMES: &str = "__proem_times";
/// The words of the error, by which it is recognised.
pub(super) const TOO_LARGE: &str = "a value is too large";

/// What a render has used up.
#[derive(Debug, Clone, Default)]
pub(super) struct Budget(Arc<Mutex<Used>>);

#[derive(Debug, Default)]
struct Used {
    /// Left operands whose right ones are still to come: their bytes, and their value as a number.
    waiting: Vec<(usize, usize)>,
    bytes: usize,
}

impl Budget {
    /// Takes `bytes` for a value that is about to be made.
    pub(super) fn spend(&self, bytes: usize) -> Result<(), Error> {
        let mut used = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        used.bytes = used.bytes.saturating_add(bytes);
        if bytes > JINJA_VALUE_BYTES_MAX || used.bytes > JINJA_BYTES_MAX {
            return Err(Error::new(ErrorKind::InvalidOperation, TOO_LARGE));
        }
        Ok(())
    }

    fn left(&self, value: &Value) {
        let mut used = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        used.waiting.push((size(value), number(value)));
    }

    fn waiting(&self) -> (usize, usize) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).waiting.pop().unwrap_or_default()
    }

    /// Takes what `left + right` or `left ~ right` needs.
    fn right(&self, value: &Value) -> Result<(), Error> {
        let (left, _) = self.waiting();
        self.spend(left.saturating_add(size(value)))
    }

    /// Takes what `left * right` needs, where one of them is a text or a list.
    fn times(&self, value: &Value) -> Result<(), Error> {
        let (left, count) = self.waiting();
        let product = left.saturating_mul(number(value)).max(size(value).saturating_mul(count));
        self.spend(product)
    }
}

/// A number as a count; anything else counts as none.
fn number(value: &Value) -> usize {
    value.as_i64().and_then(|number| usize::try_from(number).ok()).unwrap_or(0)
}

/// The insertions that guard the operators of a template.
pub(super) fn insertions(outline: &Outline) -> Vec<Insertion> {
    let mut insertions = Vec::new();
    for sum in &outline.sums {
        let length = isize::try_from(sum.end - sum.start).unwrap_or(isize::MAX);
        let mut insert = |offset, rank, text: &str| {
            insertions.push(Insertion { offset, rank, text: text.to_owned() });
        };
        // At one place the longer expression opens first and closes last.
        insert(sum.start, -length, &format!("{LEFT}(("));
        insert(sum.operator, isize::MIN, "))");
        let right = if sum.is_product { TIMES } else { RIGHT };
        insert(sum.operator + 1, isize::MAX, &format!(" {right}(("));
        insert(sum.end, length, "))");
    }
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
        own.left(&value);
        value
    });
    let own = budget.clone();
    environment.add_function(RIGHT, move |value: Value| own.right(&value).map(|()| value));
    let own = budget.clone();
    environment.add_function(TIMES, move |value: Value| own.times(&value).map(|()| value));
    environment.add_filter("__proem_replace", minijinja::filters::replace);
    environment.add_filter("__proem_join", minijinja::filters::join);
    environment.add_filter("__proem_indent", minijinja::filters::indent);
    environment.add_filter("__proem_upper", minijinja::filters::upper);
    environment.add_filter("__proem_lower", minijinja::filters::lower);
    environment.add_filter("__proem_title", minijinja::filters::title);
    environment.add_filter("__proem_capitalize", minijinja::filters::capitalize);
    environment.add_filter("__proem_trim", minijinja::filters::trim);
    environment.add_filter("__proem_reverse", minijinja::filters::reverse);
    environment.add_filter("__proem_split", minijinja::filters::split);
    environment.add_filter("__proem_lines", minijinja::filters::lines);
    environment.add_filter("__proem_list", minijinja::filters::list);
    environment.add_filter("__proem_sort", minijinja::filters::sort);
    environment.add_filter("__proem_unique", minijinja::filters::unique);
    for name in [
        "upper",
        "lower",
        "title",
        "capitalize",
        "trim",
        "reverse",
        "split",
        "lines",
        "list",
        "sort",
        "unique",
    ] {
        guard(environment, budget, name, |arguments| arguments.first().map_or(0, size));
    }
    guard(environment, budget, "replace", replaced_bytes);
    guard(environment, budget, "join", joined_bytes);
    environment.add_filter("__proem_format", minijinja::filters::format);
    guard(environment, budget, "indent", indented_bytes);
    guard(environment, budget, "format", formatted_bytes);
}

/// Puts a filter that looks at its arguments before the one that does the work.
fn guard(
    environment: &mut Environment<'_>,
    budget: &Budget,
    name: &'static str,
    bytes: fn(&[Value]) -> usize,
) {
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

/// The bytes of a text, and of the texts in a list.
fn size(value: &Value) -> usize {
    match value.kind() {
        ValueKind::String => value.as_str().map_or(0, str::len),
        ValueKind::Bytes => value.as_bytes().map_or(0, <[u8]>::len),
        ValueKind::Seq | ValueKind::Iterable | ValueKind::Map => {
            let items = value.try_iter().into_iter().flatten();
            items.map(|item| 24 + item.as_str().map_or(0, str::len)).fold(0, usize::saturating_add)
        }
        _ => 24,
    }
}
