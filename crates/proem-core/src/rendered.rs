//! Text that knows where each of its bytes comes from.

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
    /// Where they come from.
    pub source: Source,
    /// The place in the template that put them here, when that is not the source itself.
    pub template: Option<Source>,
    /// The places that include that template, the nearest first.
    pub included_from: Vec<Source>,
    /// How long they stay the same.
    pub stability: Stability,
}

/// Where a piece of text comes from, in every respect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// Where the bytes come from.
    pub source: Source,
    /// The place in the template that put them here, when that is not the source itself.
    pub template: Option<Source>,
    /// The places that include that template, the nearest first.
    pub included_from: Vec<Source>,
    /// How long the bytes stay the same.
    pub stability: Stability,
}

/// A text and the spans that cover it, in order, without gap or overlap.
///
/// The fields are private so that this holds by construction: text enters only together with its
/// origin.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rendered {
    text: String,
    spans: Vec<Span>,
}

impl Rendered {
    /// Makes an empty text.
    #[must_use]
    pub const fn new() -> Self {
        Self { text: String::new(), spans: Vec::new() }
    }

    /// Puts a text and its spans together again; `None` when the spans do not cover the text.
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

    /// Makes room for `bytes` more bytes.
    pub fn reserve(&mut self, bytes: usize) {
        self.text.reserve(bytes);
    }

    /// Adds `text`. Empty text leaves a span only if it is a variable's value: it may have one next time.
    pub fn push(&mut self, text: &str, source: Source, template: Option<Source>, stability: Stability) {
        self.push_from(text, Origin { source, template, included_from: Vec::new(), stability });
    }

    /// Adds `text` with everything that is known about it; empty text as in [`push`](Self::push).
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

    /// Puts `text` in front, unless it is empty.
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

    /// Adds another text behind this one, keeping its spans.
    pub fn append(&mut self, mut other: Self) {
        let shift = self.text.len();
        if shift > 0 {
            other.shift(shift);
        }
        // The larger of the two keeps its room in memory: a long list need not be copied behind a short beginning.
        if self.room() < other.room() {
            other.text.insert_str(0, &self.text);
            other.spans.splice(0..0, self.spans.drain(..));
            *self = other;
        } else {
            self.text.push_str(&other.text);
            self.spans.append(&mut other.spans);
        }
    }

    /// About how much memory it takes.
    const fn room(&self) -> usize {
        self.text.len() + self.spans.len() * size_of::<Span>()
    }

    /// Counts the bytes of all spans on by `bytes`.
    fn shift(&mut self, bytes: usize) {
        for span in &mut self.spans {
            span.bytes = span.bytes.start + bytes..span.bytes.end + bytes;
        }
    }

    /// Puts `text` in at a byte, which must be the start of a character. A span around it is cut in two.
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

    /// Removes every one of `characters` from the end.
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

    /// The text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The spans, in the order of the text.
    #[must_use]
    pub fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// Tells whether there is no text.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// The length of the text in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.text.len()
    }

    /// The stability of the least stable byte; nothing at all is as stable as a release.
    #[must_use]
    pub fn stability(&self) -> Stability {
        self.spans.iter().map(|span| span.stability).max().unwrap_or(Stability::Release)
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::*;

    /// A text of so many spans, the first of which is empty.
    fn rendered(name: &str, spans: usize) -> Rendered {
        let mut rendered = Rendered::new();
        for index in 0..spans {
            let source = Source::Variable { key: format!("{name}:{index}").into(), path: None };
            rendered.push(&name.repeat(index), source, None, Stability::Session);
        }
        rendered
    }

    /// Whichever of the two is the larger.
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
