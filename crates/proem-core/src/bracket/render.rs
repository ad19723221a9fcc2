//! Renders a bound template: one walk over the steps, no scanning, no recursion.

use alloc::string::String;
use alloc::vec::Vec;

use super::bind::{Bound, Value};
use super::template::{Step, Template};
use crate::limit::OUTPUT_BYTES_MAX;
use crate::rendered::Rendered;
use crate::source::Source;
use crate::stability::Stability;
use crate::text::Places;

/// Renders the text alone.
///
/// Inserted values are copied, never scanned: a value that holds `[a:b]` stays `[a:b]`.
#[must_use]
pub fn render(template: &Template<'_>, bound: &Bound<'_>) -> String {
    // Room for every branch at once: more than enough, and no second walk to find out.
    let room = template.source.len() + bound.bytes;
    let mut output = String::with_capacity(room.min(OUTPUT_BYTES_MAX));
    walk(template, bound, |_, text| output.push_str(text));
    output
}

/// The length that [`render`] will have, without rendering.
#[must_use]
pub fn rendered_bytes(template: &Template<'_>, bound: &Bound<'_>) -> usize {
    let mut bytes = 0;
    walk(template, bound, |_, text| bytes += text.len());
    bytes
}

/// Renders the text with the origin of every byte.
///
/// `origin` is where the template itself comes from, and `stability` how long it stays the same.
#[must_use]
pub fn render_with_spans(
    template: &Template<'_>,
    bound: &Bound<'_>,
    origin: &Source,
    stability: Stability,
) -> Rendered {
    let mut pieces: Vec<(&Step<'_>, &str)> = Vec::new();
    walk(template, bound, |step, text| pieces.push((step, text)));
    let mut rendered = Rendered::new();
    rendered.reserve(pieces.iter().map(|(_, text)| text.len()).sum());
    let mut places = Places::new(template.source);
    for (step, text) in pieces {
        let (start, value) = match step {
            Step::Insert { start, slot } => (*start as usize, Some(*slot as usize)),
            _ => (template.offset(text), None),
        };
        let written = origin.at(places.at(start));
        match value.map(|slot| (template.wanted()[slot], bound.values[slot])) {
            Some((key, Value::Present(_, fact))) => {
                let source = Source::Variable { key: key.into(), path: fact.path.clone() };
                rendered.push(text, source, Some(written), fact.stability);
            }
            _ => rendered.push(text, written, None, stability),
        }
    }
    rendered
}

/// Visits what the template prints, in order.
#[inline]
fn walk<'a>(template: &'a Template<'_>, bound: &Bound<'a>, mut print: impl FnMut(&'a Step<'_>, &'a str)) {
    visit(template, bound, |step| match *step {
        Step::Copy(text) => print(step, text),
        Step::Insert { slot, start } => match bound.values[slot as usize] {
            Value::Present(text, _) => print(step, text),
            Value::AsWritten => print(step, template.tag_at(start as usize)),
            Value::Absent => {}
        },
        Step::Test { .. } | Step::Leave { .. } => {}
    });
}

/// Visits the steps of the branches that apply, in order.
#[inline]
pub(super) fn visit<'a, 's>(
    template: &'a Template<'s>,
    bound: &Bound<'_>,
    mut each: impl FnMut(&'a Step<'s>),
) {
    let mut next = 0;
    while let Some(step) = template.steps.get(next) {
        next += 1;
        match *step {
            Step::Copy(_) | Step::Insert { .. } => each(step),
            Step::Test { slot, negated, otherwise, .. } => {
                if bound.values[slot as usize].exists() == negated {
                    next = otherwise as usize;
                }
            }
            Step::Leave { target } => next = target as usize,
        }
    }
}
