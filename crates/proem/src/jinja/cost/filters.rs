//! The filters, tests and functions of minijinja, each with a check of the size of its arguments and its result.

use minijinja::functions;
use minijinja::tests;
use minijinja::value::{Kwargs, Rest, Value, ValueKind};
use minijinja::{Environment, Error, ErrorKind, State, filters};

use crate::jinja::cost::eager::{chained, made};
use crate::jinja::cost::guard::{Budget, looked_into, number, walked};
use crate::jinja::cost::value_size::{TEXT_BYTES_MAX, charge, charge_bytes, size, too_large, weigh};
use crate::jinja::syntax::RESERVED;

/// The work of a filter, depending on its arguments.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Work {
    /// It uses one value, or one part of it.
    Light,
    /// It searches its first argument.
    Lookup,
    /// It walks its arguments.
    Whole,
    /// It walks its first argument, and uses the others for each item.
    Each,
    /// It compares the items with each other.
    Sorted,
    /// It adds up the items one by one, and makes a new sum each time.
    Sum,
}

/// Returns the most bytes that a filter makes of its arguments.
type Estimate = fn(&[Value]) -> usize;

/// Replaces all functions, filters and tests that a template can call.
pub(crate) fn install(environment: &mut Environment<'_>, budget: &Budget) {
    install_texts(environment, budget);
    install_lists(environment, budget);
    install_tests(environment);
    // The size of a range has a limit of its own, and its items are made one by one.
    for (name, function) in [
        ("dict", Value::from_function(functions::dict)),
        ("namespace", Value::from_function(functions::namespace)),
    ] {
        environment.add_function(name, move |state: &mut State<'_, '_>, own: Rest<Value>, named: Kwargs| {
            made(function.call(state, &all(&own, named))?)
        });
    }
}

fn install_texts(environment: &mut Environment<'_>, budget: &Budget) {
    let mut add = |name, filter, work, bytes: Estimate| {
        guard(environment, budget, GuardedFilter { name, filter, work, bytes });
    };
    let none: Estimate = |_| 0;
    add("abs", Value::from_function(filters::abs), Work::Light, none);
    add("bool", Value::from_function(filters::bool), Work::Light, none);
    add("capitalize", Value::from_function(filters::capitalize), Work::Whole, first);
    add("e", Value::from_function(filters::escape), Work::Whole, first);
    add("escape", Value::from_function(filters::escape), Work::Whole, first);
    add("float", Value::from_function(filters::float), Work::Whole, none);
    add("format", Value::from_function(filters::format), Work::Whole, formatted_bytes);
    add("indent", Value::from_function(filters::indent), Work::Whole, indented_bytes);
    add("int", Value::from_function(filters::int), Work::Whole, none);
    add("lines", Value::from_function(filters::lines), Work::Whole, first);
    add("lower", Value::from_function(filters::lower), Work::Whole, first);
    add("pprint", Value::from_function(filters::pprint), Work::Whole, first);
    add("replace", Value::from_function(filters::replace), Work::Whole, replaced_bytes);
    add("round", Value::from_function(filters::round), Work::Light, none);
    add("safe", Value::from_function(filters::safe), Work::Whole, first);
    add("split", Value::from_function(filters::split), Work::Whole, first);
    add("string", Value::from_function(filters::string), Work::Whole, first);
    add("title", Value::from_function(filters::title), Work::Whole, first);
    add("trim", Value::from_function(filters::trim), Work::Each, first);
    add("upper", Value::from_function(filters::upper), Work::Whole, first);
}

fn install_lists(environment: &mut Environment<'_>, budget: &Budget) {
    let mut add = |name, filter, work, bytes: Estimate| {
        guard(environment, budget, GuardedFilter { name, filter, work, bytes });
    };
    let none: Estimate = |_| 0;
    add("attr", Value::from_function(filters::attr), Work::Lookup, none);
    add("batch", Value::from_function(filters::batch), Work::Whole, cut_bytes);
    add("chain", Value::from_function(filters::chain), Work::Whole, none);
    add("count", Value::from_function(filters::length), Work::Lookup, none);
    add("d", Value::from_function(filters::default), Work::Light, none);
    add("default", Value::from_function(filters::default), Work::Light, none);
    add("dictsort", Value::from_function(filters::dictsort), Work::Sorted, none);
    add("first", Value::from_function(filters::first), Work::Light, none);
    add("groupby", Value::from_function(filters::groupby), Work::Sorted, none);
    add("items", Value::from_function(filters::items), Work::Whole, none);
    add("join", Value::from_function(filters::join), Work::Each, joined_bytes);
    add("last", Value::from_function(filters::last), Work::Lookup, none);
    add("length", Value::from_function(filters::length), Work::Lookup, none);
    add("list", Value::from_function(filters::list), Work::Whole, first);
    add("map", Value::from_function(filters::map), Work::Each, first);
    add("max", Value::from_function(filters::max), Work::Each, none);
    add("min", Value::from_function(filters::min), Work::Each, none);
    add("reject", Value::from_function(filters::reject), Work::Each, none);
    add("rejectattr", Value::from_function(filters::rejectattr), Work::Each, none);
    add("reverse", Value::from_function(filters::reverse), Work::Whole, first);
    add("select", Value::from_function(filters::select), Work::Each, none);
    add("selectattr", Value::from_function(filters::selectattr), Work::Each, none);
    add("slice", Value::from_function(filters::slice), Work::Whole, cut_bytes);
    add("sort", Value::from_function(filters::sort), Work::Sorted, first);
    add("sum", Value::from_function(filters::sum), Work::Sum, first);
    add("unique", Value::from_function(filters::unique), Work::Sorted, first);
    add("zip", Value::from_function(filters::zip), Work::Whole, none);
}

/// A filter and its cost.
struct GuardedFilter {
    name: &'static str,
    filter: Value,
    work: Work,
    bytes: Estimate,
}

/// Replaces a filter by one that checks its arguments first. The original is stored without a name: `map` could call it
/// otherwise.
fn guard(environment: &mut Environment<'_>, budget: &Budget, guarded: GuardedFilter) {
    let own = budget.clone();
    let GuardedFilter { name, filter, work, bytes } = guarded;
    environment.add_filter(name, move |state: &mut State<'_, '_>, given: Rest<Value>, named: Kwargs| {
        let arguments = all(&given, named);
        pay(work, &arguments)?;
        if matches!(name, "map" | "select" | "reject") {
            refuse_reserved(&arguments)?;
        }
        own.spend(bytes(&arguments))?;
        let value = filter.call(state, &arguments)?;
        check_text(&value)?;
        match work {
            Work::Light | Work::Lookup => Ok(value),
            _ if name == "chain" => chained(value, &arguments),
            _ => made(value),
        }
    });
}

/// Charges a text that a filter made, which may come from fields that were not charged before.
fn check_text(value: &Value) -> Result<(), Error> {
    let bytes = value.as_str().map_or(0, str::len);
    charge_bytes(bytes)?;
    if bytes > TEXT_BYTES_MAX { Err(too_large()) } else { Ok(()) }
}

/// Returns all arguments of a call in one list.
fn all(given: &[Value], named: Kwargs) -> Vec<Value> {
    let mut arguments = given.to_vec();
    if named.args().next().is_some() {
        arguments.push(Value::from(named));
    }
    arguments
}

/// Refuses reserved filter names that are given as text.
fn refuse_reserved(arguments: &[Value]) -> Result<(), Error> {
    match arguments.get(1).and_then(Value::as_str) {
        Some(name) if name.starts_with(RESERVED) => {
            let message = format!("names that begin with `{RESERVED}` are proem's own");
            Err(Error::new(ErrorKind::InvalidOperation, message))
        }
        _ => Ok(()),
    }
}

fn pay(work: Work, arguments: &[Value]) -> Result<(), Error> {
    let Some((first, others)) = arguments.split_first() else { return Ok(()) };
    match work {
        Work::Light => charge(1),
        Work::Lookup => {
            looked_into(first)?;
            others.iter().try_for_each(walked)
        }
        Work::Whole => arguments.iter().try_for_each(walked),
        Work::Each => charge(each(first, others)?),
        Work::Sorted => {
            let items = items(first);
            // Some comparisons copy both texts, so each may cost as much as the longest item.
            let widest = widest(first)?;
            let rounds = usize::try_from(items.max(1).ilog2()).unwrap_or(0) + 1;
            charge(each(first, others)?.saturating_add(items.saturating_mul(rounds).saturating_mul(widest)))
        }
        Work::Sum => {
            let weight = weigh(first)?;
            // Numbers are added in place; for texts and lists, each sum is a copy.
            let copied = if weight.parts == items(first) + 1 { weight.bytes / 16 } else { weight.units() };
            charge(each(first, others)?.saturating_add(items(first).saturating_mul(copied)))
        }
    }
}

/// Returns the work of walking a value while the other arguments, such as the path of a field, are read for each item.
fn each(first: &Value, others: &[Value]) -> Result<usize, Error> {
    let mut bytes = 0;
    for other in others {
        bytes += weigh(other)?.bytes;
    }
    Ok(weigh(first)?.units().saturating_add(items(first).saturating_mul(1 + bytes / 2)))
}

/// Counts the items of a value, or the characters of a text.
fn items(value: &Value) -> usize {
    match value.kind() {
        ValueKind::String => value.as_str().map_or(0, str::len),
        _ => value.len().unwrap_or(1),
    }
}

/// Returns the work of walking the largest item of a value.
fn widest(value: &Value) -> Result<usize, Error> {
    let Some(object) = value.as_object() else { return Ok(1) };
    let mut widest = 1;
    if value.kind() == ValueKind::Map {
        for (key, item) in object.try_iter_pairs().into_iter().flatten() {
            widest = widest.max(weigh(&key)?.units()).max(weigh(&item)?.units());
        }
        return Ok(widest);
    }
    for item in object.try_iter().into_iter().flatten() {
        widest = widest.max(weigh(&item)?.units());
    }
    Ok(widest)
}

/// Replaces the tests whose cost grows with their arguments.
fn install_tests(environment: &mut Environment<'_>) {
    for (names, test) in [
        (&["eq", "equalto", "=="][..], Value::from_function(tests::is_eq)),
        (&["ne", "!="], Value::from_function(tests::is_ne)),
        (&["lt", "lessthan", "<"], Value::from_function(tests::is_lt)),
        (&["le", "<="], Value::from_function(tests::is_le)),
        (&["gt", "greaterthan", ">"], Value::from_function(tests::is_gt)),
        (&["ge", ">="], Value::from_function(tests::is_ge)),
        (&["in"], Value::from_function(tests::is_in)),
        (&["startingwith"], Value::from_function(tests::is_startingwith)),
        (&["endingwith"], Value::from_function(tests::is_endingwith)),
        (&["lower"], Value::from_function(tests::is_lower)),
        (&["upper"], Value::from_function(tests::is_upper)),
        (&["sameas"], Value::from_function(tests::is_sameas)),
    ] {
        for name in names {
            let own = test.clone();
            environment.add_test(
                *name,
                move |state: &mut State<'_, '_>, given: Rest<Value>, named: Kwargs| {
                    given.iter().try_for_each(walked)?;
                    own.call(state, &all(&given, named)).map(|value| value.is_true())
                },
            );
        }
    }
    environment.add_test("divisibleby", |value: &Value, divisor: &Value| {
        // minijinja panics here.
        if divisor.as_i64() == Some(0) {
            return Err(Error::new(ErrorKind::InvalidOperation, "nothing is divisible by 0"));
        }
        Ok(tests::is_divisibleby(value, divisor))
    });
}

fn first(arguments: &[Value]) -> usize {
    arguments.first().map_or(0, size)
}

fn replaced_bytes(arguments: &[Value]) -> usize {
    let [text, from, to, ..] = arguments else { return 0 };
    // Printing a value that is not a text may take more room than there is.
    if size(text).max(size(from)) == usize::MAX {
        return usize::MAX;
    }
    let (text, from) = (text.to_string(), from.to_string());
    text.len().saturating_add(text.matches(from.as_str()).count().saturating_mul(size(to)))
}

/// Estimates `batch` and `slice`, which fill up missing items.
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

/// Estimates a format by the numbers in it, which are its widths and precisions.
fn formatted_bytes(arguments: &[Value]) -> usize {
    let Some(format) = arguments.first().and_then(Value::as_str) else { return 0 };
    let numbers =
        format.split(|character: char| !character.is_ascii_digit()).filter(|digits| !digits.is_empty());
    let widths = numbers.map(|digits| digits.parse().unwrap_or(usize::MAX)).fold(0, usize::saturating_add);
    let texts = arguments.iter().map(size).fold(0, usize::saturating_add);
    // A named argument may be printed any number of times.
    let texts = texts.saturating_mul(1 + format.matches("%(").count());
    // A width may also be an argument.
    let stars =
        if format.contains('*') { arguments.iter().filter_map(Value::as_i64).max().unwrap_or(0) } else { 0 };
    widths.saturating_add(texts).saturating_add(usize::try_from(stars).unwrap_or(0))
}

fn indented_bytes(arguments: &[Value]) -> usize {
    let Some(text) = arguments.first() else { return 0 };
    // The white space is made even if there is no line to indent.
    let lines = 1 + text.as_str().map_or(0, |text| text.lines().count());
    let width = |value: &Value| usize::try_from(value.as_i64().unwrap_or(0)).unwrap_or(0);
    let named = arguments.last().and_then(|last| last.get_attr("width").ok());
    let width = arguments.get(1).map_or(0, width).max(named.as_ref().map_or(0, width));
    size(text).saturating_add(width.saturating_mul(lines))
}
