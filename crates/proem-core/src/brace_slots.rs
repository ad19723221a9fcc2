//! Templates that have only one kind of tag: a name in double braces, spelled exactly `{{name}}`.
//!
//! Each slot is filled in one pass over the whole text, in the order that the profile gives. Inserted text is visible
//! to later passes only.

use alloc::format;
use alloc::string::String;

use crate::rendered::{Origin, Rendered, Span};
use crate::source::Source;
use crate::stability::Stability;
use crate::text::{Place, slice};

/// A name and the text that replaces it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slot<'s> {
    /// The name between the braces.
    pub name: &'s str,
    /// The text that replaces the tag.
    pub value: String,
    /// The source of the value.
    pub source: Source,
    /// The lifetime of the value.
    pub stability: Stability,
}

/// Counts the slots of this name in a text.
#[must_use]
pub fn count(text: &str, name: &str) -> usize {
    text.matches(&tag(name)).count()
}

fn tag(name: &str) -> String {
    format!("{{{{{name}}}}}")
}

/// Creates a text from `origin`, before the first pass.
#[must_use]
pub fn begin(text: &str, origin: &Source, stability: Stability) -> Rendered {
    let mut rendered = Rendered::new();
    rendered.push(text, origin.at(Place { line: 1, column: 1 }), None, stability);
    rendered
}

/// Fills every slot of one name.
///
/// ```
/// use proem_core::brace_slots::{Slot, begin, fill};
/// use proem_core::{source::Source, stability::Stability};
///
/// let source = Source::Request { field: "backend".into(), place: None };
/// let text = begin("on {{backend}}, not {{ backend }}", &source, Stability::User);
/// let slot = Slot { name: "backend", value: "codex".into(), source, stability: Stability::Session };
/// assert_eq!(fill(&text, &slot).text(), "on codex, not {{ backend }}");
/// ```
#[must_use]
pub fn fill(text: &Rendered, slot: &Slot<'_>) -> Rendered {
    let tag = tag(slot.name);
    let mut starts = text.text().match_indices(&tag).map(|(at, _)| at).peekable();
    let mut filled = Rendered::new();
    // The end of the last tag, which may reach into the next span.
    let mut end_of_tag = 0;
    for span in text.spans() {
        let mut at = span.bytes.start.max(end_of_tag);
        let mut own = SpanPieces::new(text.text(), span);
        while let Some(start) = starts.next_if(|start| *start < span.bytes.end) {
            own.push(&mut filled, at, start);
            end_of_tag = start + tag.len();
            filled.push(&slot.value, slot.source.clone(), Some(own.source(start)), slot.stability);
            at = end_of_tag;
        }
        own.push(&mut filled, at, span.bytes.end);
    }
    filled
}

/// A span of the text before a pass, of which parts are kept.
struct SpanPieces<'t> {
    text: &'t str,
    span: &'t Span,
    /// The last byte with a known source, and that source. Tags are visited in order.
    known: (usize, Source),
}

impl<'t> SpanPieces<'t> {
    fn new(text: &'t str, span: &'t Span) -> Self {
        Self { text, span, known: (span.bytes.start, span.source.clone()) }
    }

    /// Returns the source of the byte at `at`.
    fn source(&mut self, at: usize) -> Source {
        let (from, source) = &self.known;
        self.known = (at, source.behind(slice(self.text, *from, at)));
        self.known.1.clone()
    }

    fn push(&mut self, filled: &mut Rendered, start: usize, end: usize) {
        if start < end {
            let source = self.source(start);
            let Span { template, included_from, stability, .. } = self.span.clone();
            let origin = Origin { source, template, included_from, stability };
            filled.push_from(slice(self.text, start, end), origin);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;
    use std::vec::Vec;

    fn filled(text: &str, backend: &str, servers: &str) -> Rendered {
        let source = |field: &str| Source::Request { field: field.into(), place: None };
        let slot = |name, value: &str| Slot {
            name,
            value: value.to_string(),
            source: source(name),
            stability: Stability::Session,
        };
        let begun = begin(text, &source("system"), Stability::User);
        fill(&fill(&begun, &slot("backend", backend)), &slot("servers", servers))
    }

    /// Mirrors JavaScript's `replace` with a global pattern and a literal replacement.
    fn expected(text: &str, backend: &str, servers: &str) -> String {
        text.replace("{{backend}}", backend).replace("{{servers}}", servers)
    }

    #[test]
    fn a_pass_sees_what_earlier_ones_inserted_also_across_its_ends() {
        for (text, backend, servers) in [
            ("{{backend}}{{servers}}", "{{servers}}", "{{backend}}"),
            ("{{backend}}ers}}", "{{serv", "x"),
            ("{{serv{{backend}}", "ers}}", "x"),
            ("a{{{backend}}}b", "c", "d"),
            ("{{{{backend}}}}", "servers", "x"),
            ("{{backend}", "a", "b"),
            ("", "a", "b"),
            ("{{backend}}", "", "b"),
        ] {
            let filled = filled(text, backend, servers);
            assert_eq!(filled.text(), expected(text, backend, servers), "{text}");
            let covered: usize = filled.spans().iter().map(|span| span.bytes.len()).sum();
            assert_eq!(covered, filled.len(), "{text}");
        }
    }

    #[test]
    fn text_behind_a_slot_knows_its_place() {
        let filled = filled("one\ntwo {{backend}} three\n", "x\ny", "");
        let places: Vec<_> = filled.spans().iter().map(|span| span.source.to_string()).collect();
        assert_eq!(
            places,
            ["request field `system`:1:1", "request field `backend`", "request field `system`:2:16"]
        );
        let template = filled.spans()[1].template.as_ref().map(ToString::to_string);
        assert_eq!(template.as_deref(), Some("request field `system`:2:5"));
    }
}
