//! Finds the lines of a file that the value of an expression was copied from.
//!
//! A format may write a document whole, trimmed, escaped or line by line. The source of a value names a line of the
//! file only if the written text is found there: otherwise the source is the file as a whole.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

use proem_core::line_map::LineMap;
use proem_core::rendered::{Origin, Span};
use proem_core::text::{Offsets, Place, Places};

use crate::jinja::items::xml;

/// A text of a file that a value may have been copied from.
pub(crate) struct CopySource<'s> {
    pub(crate) text: &'s str,
    pub(crate) line_map: Cow<'s, LineMap>,
}

/// The progress in the texts of a render, by their addresses.
#[derive(Default)]
pub(crate) struct CopyLocator<'s>(BTreeMap<usize, Progress<'s>>);

struct Progress<'s> {
    places: Places<'s>,
    /// The byte after the last written part.
    next: usize,
    /// True if a written part could not be found: then the search ends.
    is_lost: bool,
}

impl<'s> CopyLocator<'s> {
    /// Adds the spans of a value that begins at the end of the last span: one for each run of lines that are adjacent
    /// in the file.
    pub(crate) fn put(
        &mut self,
        from: &CopySource<'s>,
        written: &str,
        origin: &Origin,
        spans: &mut Vec<Span>,
    ) {
        let start = spans.last().map_or(0, |span| span.bytes.end);
        let unknown = || Origin { source: origin.source.without_place(), ..origin.clone() };
        let Some((first, own)) = self.find(from, written) else {
            return push(start..start + written.len(), unknown(), spans);
        };
        let copied = written.get(..own).unwrap_or(written);
        let lines = memchr::memchr_iter(b'\n', copied.as_bytes()).count();
        let part = from.line_map.part(first, Place { line: first.line + lines, column: 1 });
        let (mut begin, mut place) = (0, Place { line: 1, column: 1 });
        let mut offsets = Offsets::new(copied);
        for next in part.breaks().map(Some).chain([None]) {
            let end = next.map_or(Some(copied.len()), |next| offsets.at(next));
            let Some(end) = end.filter(|end| *end >= begin) else { continue };
            let source = part.source_at(&origin.source, place);
            push(start + begin..start + end, Origin { source, ..origin.clone() }, spans);
            (begin, place) = (end, next.unwrap_or(place));
        }
        push(start + copied.len()..start + written.len(), unknown(), spans);
    }

    /// Returns the place in the text at which the written value begins, and the number of its bytes that are in the
    /// file.
    fn find(&mut self, from: &CopySource<'s>, written: &str) -> Option<(Place, usize)> {
        let fresh = || Progress { places: Places::new(from.text), next: 0, is_lost: false };
        let progress = self.0.entry(from.text.as_ptr().addr()).or_insert_with(fresh);
        if progress.is_lost {
            return None;
        }
        let added = from.line_map.added();
        let behind = from.text.get(progress.next..).and_then(|rest| rest.find(written));
        let found = behind.map(|at| progress.next + at);
        // A format may write a text twice.
        let found = found.or_else(|| from.text.find(written).filter(|_| progress.next > 0));
        if let Some(at) = found {
            progress.next = at + written.len();
            let own = (from.text.len() - added).saturating_sub(at).min(written.len());
            return Some((progress.places.at(at), own));
        }
        let line = aligned(from.text, written).filter(|_| added == 0);
        progress.is_lost = line.is_none();
        line.map(|line| (Place { line, column: 1 }, written.len()))
    }
}

fn push(bytes: Range<usize>, origin: Origin, spans: &mut Vec<Span>) {
    if !bytes.is_empty() {
        let Origin { source, template, included_from, stability } = origin;
        spans.push(Span { bytes, source, template, included_from, stability });
    }
}

/// Returns the line of `text`, from 1, that is the first line of `written`, if both have the same lines except for
/// white space at the ends of lines and of the texts, and for characters that are escaped as in XML.
fn aligned(text: &str, written: &str) -> Option<usize> {
    let is_blank = |line: &str| line.trim().is_empty();
    let first = text.lines().position(|line| !is_blank(line))?;
    let own = written.lines().position(|line| !is_blank(line))?;
    let is_same = |line: &str, of_text: &str| {
        let (line, of_text) = (line.trim(), of_text.trim());
        line == of_text || line == xml(of_text)
    };
    let mut lines = text.lines().skip(first);
    let are_same = written.lines().skip(own).all(|line| match lines.next() {
        Some(of_text) => is_same(line, of_text),
        None => is_blank(line),
    });
    (first + 1).checked_sub(own).filter(|line| are_same && *line > 0)
}

#[cfg(test)]
mod tests {
    use proem_core::source::Source;
    use proem_core::stability::Stability;

    use super::*;

    /// Returns the first lines in the file of some written values, with the text of each.
    fn located(text: &str, line_map: &LineMap, written: &[&str]) -> Vec<(String, Option<usize>)> {
        let (mut located, mut spans) = (CopyLocator::default(), Vec::new());
        let source = Source::File { path: "f".into(), place: Some(Place { line: 1, column: 1 }) };
        let origin =
            Origin { source, template: None, included_from: Vec::new(), stability: Stability::Project };
        for value in written {
            located.put(&CopySource { text, line_map: Cow::Borrowed(line_map) }, value, &origin, &mut spans);
        }
        let whole = written.concat();
        let shown = |span: &Span| {
            (
                whole.get(span.bytes.clone()).unwrap_or_default().to_owned(),
                span.source.place().map(|at| at.line),
            )
        };
        spans.iter().map(shown).collect()
    }

    #[test]
    fn values_are_found_where_they_stand() {
        let whole = LineMap::whole();
        for (text, written, expected) in [
            ("\n\na\nb\n", vec!["a\nb"], vec![("a\nb", Some(3))]),
            ("a\nb\n", vec!["a\nb\n", "a\nb\n"], vec![("a\nb\n", Some(1)), ("a\nb\n", Some(1))]),
            ("x\ny\nx\n", vec!["x", "y", "x"], vec![("x", Some(1)), ("y", Some(2)), ("x", Some(3))]),
            ("\na & b\nc\n", vec!["  a &amp; b\n  c"], vec![("  a &amp; b\n  c", Some(2))]),
            ("a\nb\n", vec!["B\nA"], vec![("B\nA", None)]),
            ("a\nb\n", vec!["nothing of it", "b"], vec![("nothing of it", None), ("b", None)]),
        ] {
            let expected: Vec<_> = expected.into_iter().map(|(text, line)| (text.to_owned(), line)).collect();
            assert_eq!(located(text, &whole, &written), expected, "{text:?}");
        }
    }

    #[test]
    fn a_value_is_split_where_the_file_goes_on_elsewhere() {
        let file = "a\n<!-- gone -->\nb\n<!-- gone -->\nc\n";
        let kept: Vec<Range<usize>> =
            ["a\n", "b\n", "c\n"].iter().filter_map(|part| file.find(part).map(|at| at..at + 2)).collect();
        let line_map = LineMap::from_kept(file, &kept);
        let expected = |texts: &[(&str, usize)]| -> Vec<(String, Option<usize>)> {
            texts.iter().map(|(text, line)| ((*text).to_owned(), Some(*line))).collect()
        };
        assert_eq!(
            located("a\nb\nc\n", &line_map, &["a\nb\nc\n"]),
            expected(&[("a\n", 1), ("b\n", 3), ("c\n", 5)])
        );
        assert_eq!(located("a\nb\nc\n", &line_map, &["b\nc"]), expected(&[("b\n", 3), ("c", 5)]));
    }

    #[test]
    fn a_marker_behind_a_cut_is_at_no_line() {
        let marker = "\n... [truncated]";
        let line_map = LineMap::whole().with_added(marker.len());
        let text = format!("a{marker}");
        let expected = vec![("a".to_owned(), Some(1)), (marker.to_owned(), None)];
        assert_eq!(located(&text, &line_map, &[&text]), expected);
        let end = marker.trim_start();
        assert_eq!(located(&text, &line_map, &[end]), [(end.to_owned(), None)]);
    }
}
