//! Renders a bound template: one walk over the steps, no scanning, no recursion.

use alloc::string::String;
use alloc::vec::Vec;

use super::bind::{Bound, Value};
use super::template::{Action, Step, Template};
use crate::rendered::Rendered;
use crate::source::Source;
use crate::stability::Stability;
use crate::text::{Places, slice};

/// Renders the text alone.
///
/// Inserted values are copied, never scanned: a value that holds `[a:b]` stays `[a:b]`.
#[must_use]
pub fn render(template: &Template<'_>, bound: &Bound<'_>) -> String {
    let mut output = String::with_capacity(rendered_bytes(template, bound));
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
    let mut pieces: Vec<(Step, &str)> = Vec::new();
    walk(template, bound, |step, text| pieces.push((*step, text)));
    let mut rendered = Rendered::new();
    rendered.reserve(pieces.iter().map(|(_, text)| text.len()).sum());
    let mut places = Places::new(template.source);
    for (step, text) in pieces {
        let written = origin.at(places.at(step.start));
        match inserted(template, bound, &step) {
            Some((key, Value::Present(_, fact))) => {
                let source = Source::Variable { key: key.into(), path: fact.path.clone() };
                rendered.push(text, source, Some(written), fact.stability);
            }
            _ => rendered.push(text, written, None, stability),
        }
    }
    rendered
}

fn inserted<'t, 'f>(
    template: &'t Template<'_>,
    bound: &Bound<'f>,
    step: &Step,
) -> Option<(&'t str, Value<'f>)> {
    match step.action {
        Action::Insert(slot) => Some((template.wanted()[slot as usize], bound.values[slot as usize])),
        _ => None,
    }
}

/// Visits what the template prints, in order.
#[inline]
fn walk<'a>(template: &'a Template<'_>, bound: &Bound<'a>, mut print: impl FnMut(&Step, &'a str)) {
    let mut next = 0;
    while let Some(step) = template.steps.get(next) {
        next += 1;
        match step.action {
            Action::Copy => print(step, slice(template.source, step.start, step.end)),
            Action::Insert(slot) => match bound.values[slot as usize] {
                Value::Present(text, _) => print(step, text),
                Value::AsWritten => print(step, slice(template.source, step.start, step.end)),
                Value::Absent => {}
            },
            Action::Test { slot, negated, otherwise } => {
                if bound.values[slot as usize].exists() == negated {
                    next = otherwise as usize;
                }
            }
            Action::Leave { target } => next = target as usize,
            Action::End => {}
        }
    }
}
