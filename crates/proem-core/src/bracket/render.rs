//! Renders a bound template: one walk over the steps, no scanning, no recursion.

use alloc::string::String;
use alloc::vec::Vec;

use super::bind::{Bindings, Value};
use super::template::{PLAIN_ELSE, Step, Template, Then};
use crate::limit::OUTPUT_BYTES_MAX;
use crate::rendered::Rendered;
use crate::source::Source;
use crate::stability::Stability;
use crate::text::Places;

/// Renders the text alone.
///
/// Inserted values are copied, never scanned: a value that contains `[a:b]` stays `[a:b]`.
#[must_use]
pub fn render(template: &Template<'_>, bound: &Bindings<'_>) -> String {
    // Capacity for all branches at once avoids a second walk.
    let room = template.source.len() + bound.bytes;
    let mut output = String::with_capacity(room.min(OUTPUT_BYTES_MAX));
    walk(template, bound, |text| output.push_str(text));
    output
}

/// Returns the length of the result of [`render`], without rendering.
#[must_use]
pub fn rendered_bytes(template: &Template<'_>, bound: &Bindings<'_>) -> usize {
    let mut bytes = 0;
    walk(template, bound, |text| bytes += text.len());
    bytes
}

/// Renders the text with the source of every byte.
///
/// `origin` is the source of the template and `stability` its lifetime.
#[must_use]
pub fn render_with_spans(
    template: &Template<'_>,
    bound: &Bindings<'_>,
    origin: &Source,
    stability: Stability,
) -> Rendered {
    // The text, the position of its tag unless it is a piece of the template, and the slot of a tag that inserts a value.
    let mut pieces: Vec<(&str, Option<u32>, Option<u32>)> = Vec::new();
    visit(template, bound, |step| {
        if !step.text.is_empty() {
            pieces.push((step.text, None, None));
        }
        match step.then {
            // An empty value gets a span too: it may have text next time.
            Then::Insert { start, slot } if !matches!(bound.values[slot as usize], Value::Absent) => {
                pieces.push((inserted(template, bound, slot, start), Some(start), Some(slot)));
            }
            Then::PlainElse { start } => pieces.push((PLAIN_ELSE, Some(start), None)),
            _ => {}
        }
    });
    let mut rendered = Rendered::new();
    rendered.reserve(pieces.iter().map(|(text, ..)| text.len()).sum());
    let mut places = Places::new(template.source);
    for (text, tag, slot) in pieces {
        let start = tag.map_or_else(|| template.offset(text), |start| start as usize);
        let written = origin.at(places.at(start));
        match slot.map(|slot| slot as usize).map(|slot| (template.wanted()[slot], bound.values[slot])) {
            Some((key, Value::Present(_, fact))) => {
                let source = Source::Variable { key: key.into(), path: fact.path.clone() };
                rendered.push(text, source, Some(written), fact.stability);
            }
            _ => rendered.push(text, written, None, stability),
        }
    }
    rendered
}

/// Prints the pieces of the result.
#[inline]
fn walk<'a>(template: &'a Template<'_>, bound: &Bindings<'a>, mut print: impl FnMut(&'a str)) {
    visit(template, bound, |step| {
        print(step.text);
        match step.then {
            Then::Insert { start, slot } => print(inserted(template, bound, slot, start)),
            Then::PlainElse { .. } => print(PLAIN_ELSE),
            Then::Next | Then::Test { .. } | Then::Leave { .. } => {}
        }
    });
}

#[inline]
fn inserted<'a>(template: &Template<'a>, bound: &Bindings<'a>, slot: u32, start: u32) -> &'a str {
    match bound.values[slot as usize] {
        Value::Present(text, _) => text,
        Value::AsWritten => template.tag_at(start as usize),
        Value::Absent => "",
    }
}

/// Visits the steps of the active branches, in order.
#[inline]
pub(super) fn visit<'a, 's>(
    template: &'a Template<'s>,
    bound: &Bindings<'_>,
    mut each: impl FnMut(&'a Step<'s>),
) {
    let mut rest = template.steps.iter();
    while let Some(step) = rest.next() {
        each(step);
        let next = match step.then {
            Then::Next | Then::Insert { .. } | Then::PlainElse { .. } => continue,
            Then::Test { slot, negated, .. } if bound.values[slot as usize].exists() != negated => continue,
            Then::Test { otherwise, .. } => otherwise,
            Then::Leave { target } => target,
        };
        rest = template.steps.get(next as usize..).unwrap_or_default().iter();
    }
}
