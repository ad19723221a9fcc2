//! Text with the source of each of its bytes.

use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

use crate::profile::Trim;
use crate::source::Source;
use crate::stability::Stability;

use crate::text::{is_javascript_space, slice};

/// A run of bytes with one origin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// The bytes, counted in the text that the span belongs to.
    pub bytes: Range<usize>,
    /// The source of the bytes.
    pub source: Source,
    /// The place in the template that inserted them, if that differs from the source.
    pub template: Option<Source>,
    /// The places that include that template, innermost first.
    pub included_from: Vec<Source>,
    /// The stability of the bytes.
    pub stability: Stability,
}

/// The complete origin of a piece of text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// The source of the bytes.
    pub source: Source,
    /// The place in the template that inserted them, if that differs from the source.
    pub template: Option<Source>,
    /// The places that include that template, innermost first.
    pub included_from: Vec<Source>,
    /// The stability of the bytes.
    pub stability: Stability,
}

/// A text and the spans that cover it, in order, without gap or overlap.
///
/// The fields are private so that this holds by construction: text is added only together with its origin.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rendered {
    text: String,
    spans: Vec<Span>,
}

impl Rendered {
    /// Creates an empty text.
    #[must_use]
    pub const fn new() -> Self {
        Self { text: String::new(), spans: Vec::new() }
    }

    /// Restores a text from its spans; `None` if the spans do not cover the text.
    #[must_use]
    pub fn restore(text: String, spans: Vec<Span>) -> Option<Self> {
        let mut next = 0;
        for span in &spans {
            let is_next = span.bytes.start == next && span.bytes.end >= next;
            text.get(span.bytes.clone()).filter(|_| is_next)?;
            next = span.bytes.end;
        }
        (next == text.len()).then_some(Self { text, spans })
    }

    /// Reserves space for `bytes` more bytes.
    pub fn reserve(&mut self, bytes: usize) {
        self.text.reserve(bytes);
    }

    /// Appends `text`. Empty text gets a span only if it is the value of a variable, which may have text next time.
    pub fn push(&mut self, text: &str, source: Source, template: Option<Source>, stability: Stability) {
        self.push_from(text, Origin { source, template, included_from: Vec::new(), stability });
    }

    /// Appends `text` with its complete origin; handles empty text like [`push`](Self::push).
    pub fn push_from(&mut self, text: &str, origin: Origin) {
        let Origin { source, template, included_from, stability } = origin;
        if text.is_empty() && !matches!(source, Source::Variable { .. }) {
            return;
        }
        let start = self.text.len();
        self.text.push_str(text);
        let bytes = start..self.text.len();
        self.spans.push(Span { bytes, source, template, included_from, stability });
    }

    /// Prepends `text`, unless it is empty.
    pub(crate) fn prepend(&mut self, text: &str, source: Source, stability: Stability) {
        if text.is_empty() {
            return;
        }
        self.text.insert_str(0, text);
        self.shift(text.len());
        let first =
            Span { bytes: 0..text.len(), source, template: None, included_from: Vec::new(), stability };
        self.spans.insert(0, first);
    }

    /// Appends another text with its spans.
    pub fn append(&mut self, mut other: Self) {
        let shift = self.text.len();
        if shift > 0 {
            other.shift(shift);
        }
        // Reuse the larger allocation, so that a long list is not copied behind a short start.
        if self.room() < other.room() {
            other.text.insert_str(0, &self.text);
            other.spans.splice(0..0, self.spans.drain(..));
            *self = other;
        } else {
            self.text.push_str(&other.text);
            self.spans.append(&mut other.spans);
        }
    }

    /// Estimates the memory that it uses.
    const fn room(&self) -> usize {
        self.text.len() + self.spans.len() * size_of::<Span>()
    }

    /// Moves all spans back by `bytes`.
    fn shift(&mut self, bytes: usize) {
        for span in &mut self.spans {
            span.bytes = span.bytes.start + bytes..span.bytes.end + bytes;
        }
    }

    /// Inserts `text` at a byte, which must be a character boundary. A span around it is split.
    pub fn insert(&mut self, at: usize, text: &str, source: &Source, stability: Stability) {
        let mut whole = Self::new();
        let mut is_in = false;
        let mut put = |whole: &mut Self| {
            if !core::mem::replace(&mut is_in, true) {
                whole.push(text, source.clone(), None, stability);
            }
        };
        for span in &self.spans {
            let Span { bytes, source, template, included_from, stability } = span.clone();
            let origin = Origin { source, template, included_from, stability };
            if bytes.start >= at {
                put(&mut whole);
            }
            let cut = at.clamp(bytes.start, bytes.end);
            whole.push_from(slice(&self.text, bytes.start, cut), origin.clone());
            if cut < bytes.end {
                put(&mut whole);
                let source = origin.source.behind(slice(&self.text, bytes.start, cut));
                whole.push_from(slice(&self.text, cut, bytes.end), Origin { source, ..origin });
            }
        }
        put(&mut whole);
        *self = whole;
    }

    /// Removes all of `characters` from the end.
    pub fn trim_end(&mut self, characters: &[char]) {
        self.truncate(self.text.trim_end_matches(characters).len());
    }

    /// Removes white space from the start.
    pub(crate) fn trim_start(&mut self, trim: Trim) {
        let Trim::Javascript = trim;
        let kept = self.text.trim_start_matches(is_javascript_space).len();
        self.remove_start(self.text.len() - kept);
    }

    /// Removes white space from both ends.
    pub fn trim(&mut self, trim: Trim) {
        self.trim_start(trim);
        self.trim_end_as(trim);
    }

    /// Removes white space from the end.
    pub(crate) fn trim_end_as(&mut self, trim: Trim) {
        let Trim::Javascript = trim;
        self.truncate(self.text.trim_end_matches(is_javascript_space).len());
    }

    fn remove_start(&mut self, bytes: usize) {
        if bytes == 0 {
            return;
        }
        let mut rest = Self::new();
        for span in &self.spans {
            let Span { bytes: own, source, template, included_from, stability } = span.clone();
            let origin = Origin { source, template, included_from, stability };
            let kept = own.start.max(bytes).min(own.end);
            let source = origin.source.behind(slice(&self.text, own.start, kept));
            rest.push_from(slice(&self.text, kept, own.end), Origin { source, ..origin });
        }
        *self = rest;
    }

    /// Keeps the first `bytes` bytes.
    pub(crate) fn truncate(&mut self, bytes: usize) {
        self.text.truncate(bytes);
        self.spans.retain(|span| span.bytes.start < bytes || span.bytes.is_empty());
        for span in &mut self.spans {
            span.bytes = span.bytes.start.min(bytes)..span.bytes.end.min(bytes);
        }
    }

    /// Returns the text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the spans, in the order of the text.
    #[must_use]
    pub fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// Tells whether there is no text.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Returns the length of the text in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.text.len()
    }

    /// Returns the stability of the least stable byte; an empty text is as stable as a release.
    #[must_use]
    pub fn stability(&self) -> Stability {
        self.spans.iter().map(|span| span.stability).max().unwrap_or(Stability::Release)
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::*;

    /// Creates a text with `spans` spans, the first of which is empty.
    fn rendered(name: &str, spans: usize) -> Rendered {
        let mut rendered = Rendered::new();
        for index in 0..spans {
            let source = Source::Variable { key: format!("{name}:{index}").into(), path: None };
            rendered.push(&name.repeat(index), source, None, Stability::Session);
        }
        rendered
    }

    /// Covers both cases: either text may be the larger one.
    #[test]
    fn what_is_appended_stands_behind_with_its_spans() {
        for (first, second) in [(0, 0), (0, 1), (1, 0), (1, 1), (2, 9), (9, 2), (1, 5), (5, 5), (0, 4)] {
            let (before, behind) = (rendered("é", first), rendered("ab", second));
            let mut expected = Rendered::new();
            for part in [&before, &behind] {
                for Span { bytes, source, stability, .. } in part.spans() {
                    let text = slice(part.text(), bytes.start, bytes.end);
                    expected.push(text, source.clone(), None, *stability);
                }
            }
            let mut whole = before;
            whole.append(behind);
            assert_eq!(whole, expected, "{first} {second}");
            assert_eq!(Rendered::restore(whole.text.clone(), whole.spans.clone()), Some(whole));
        }
    }
}
