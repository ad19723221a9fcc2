//! The structure of a template, for editors: its tags, the blocks that they form, and the inactive branches.

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::ops::Range;

use super::bind::Bindings;
use super::scan::{Scanner, Tag};
use super::template::Template;

/// The structure of a template.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outline {
    /// The tags, in order.
    pub tags: Vec<OutlineTag>,
    /// The bytes of inactive branches, in order and disjoint.
    pub unused: Vec<Range<usize>>,
}

/// A tag at its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutlineTag {
    /// The bytes, brackets included.
    pub bytes: Range<usize>,
    /// The role of the tag.
    pub kind: TagKind,
    /// The variable that it names.
    pub key: Option<String>,
    /// The number of its block, from 0, shared by all tags of the block. A block tag without a number is literal
    /// text.
    pub group: Option<usize>,
}

/// The role of a tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TagKind {
    /// Inserts a value.
    Variable,
    /// Opens a block.
    If {
        /// Set if the condition is negated.
        negated: bool,
    },
    /// Starts the other branch of a block.
    Else,
    /// Ends a block.
    EndIf,
}

impl OutlineTag {
    /// Tells whether it looks like a block tag and belongs to no block.
    #[must_use]
    pub const fn stays_text(&self) -> bool {
        self.group.is_none() && !matches!(self.kind, TagKind::Variable)
    }
}

/// Describes a template with bound slots.
#[must_use]
pub fn outline(template: &Template<'_>, bound: &Bindings<'_>) -> Outline {
    let exists: BTreeMap<&str, bool> =
        template.wanted().iter().zip(&bound.values).map(|(key, value)| (*key, value.exists())).collect();
    let mut sketch = Sketch::default();
    for found in Scanner::new(template.source()) {
        sketch.take(found.bytes, found.tag, &exists);
    }
    sketch.finish()
}

/// An `[if]` without its `[endif]` so far, by the indexes of its tags.
struct Open {
    opening: usize,
    other: Option<usize>,
    applies: bool,
}

#[derive(Default)]
struct Sketch {
    outline: Outline,
    open: Vec<Open>,
    groups: usize,
}

impl Sketch {
    fn take(&mut self, bytes: Range<usize>, tag: Tag<'_>, exists: &BTreeMap<&str, bool>) {
        let place = self.outline.tags.len();
        let (kind, key) = match tag {
            Tag::Variable { key } => (TagKind::Variable, Some(key.text())),
            Tag::If { key, negated } => {
                let key = key.text();
                let applies = exists.get(key).copied().unwrap_or_default() != negated;
                self.open.push(Open { opening: place, other: None, applies });
                (TagKind::If { negated }, Some(key))
            }
            Tag::Else => (TagKind::Else, None),
            Tag::EndIf => (TagKind::EndIf, None),
        };
        self.outline.tags.push(OutlineTag { bytes, kind, key: key.map(ToString::to_string), group: None });
        match kind {
            TagKind::Else => {
                if let Some(open) = self.open.last_mut().filter(|open| open.other.is_none()) {
                    open.other = Some(place);
                }
            }
            TagKind::EndIf => self.close(place),
            TagKind::Variable | TagKind::If { .. } => {}
        }
    }

    fn close(&mut self, closing: usize) {
        let Some(Open { opening, other, applies }) = self.open.pop() else { return };
        let tags = &mut self.outline.tags;
        for place in [Some(opening), other, Some(closing)].into_iter().flatten() {
            tags[place].group = Some(self.groups);
        }
        self.groups += 1;
        let last = other.unwrap_or(closing);
        let unused = match (applies, other) {
            (true, None) => return,
            (true, Some(other)) => tags[other].bytes.end..tags[closing].bytes.start,
            (false, _) => tags[opening].bytes.end..tags[last].bytes.start,
        };
        if !unused.is_empty() {
            self.outline.unused.push(unused);
        }
    }

    fn finish(mut self) -> Outline {
        let unused = &mut self.outline.unused;
        unused.sort_by_key(|range| range.start);
        // Text inside an inactive branch is covered by that branch.
        let mut end = 0;
        unused.retain(|range| {
            let is_apart = range.start >= end;
            end = end.max(range.end);
            is_apart
        });
        self.outline
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;
    use crate::bracket::{Policies, bind};
    use crate::fact::{Fact, Facts};
    use crate::stability::Stability;

    fn outlined(source: &str) -> Outline {
        let template = Template::parse(source);
        let mut facts = Facts::default();
        facts.insert("a:yes", Fact::given("x", Stability::Session));
        outline(
            &template,
            &bind(&template, &facts, &Policies::SEED).expect("the seed's policies refuse nothing"),
        )
    }

    fn unused(source: &str) -> Vec<&str> {
        outlined(source).unused.into_iter().map(|range| &source[range]).collect()
    }

    #[test]
    fn what_does_not_apply_is_listed_once() {
        for (source, expected) in [
            ("[if a:yes]A[else]B[endif]", vec!["B"]),
            ("[if a:no]A[else]B[endif]", vec!["A"]),
            ("[if !a:yes]A[endif]", vec!["A"]),
            ("[if a:yes]A[endif]", vec![]),
            ("[if a:no]A[if a:no]B[endif]C[endif]D[if a:no]E[endif]", vec!["A[if a:no]B[endif]C", "E"]),
            ("[if a:no]A[else][if a:no]B[endif]C[endif]", vec!["A", "B"]),
            ("[if a:no]never closed", vec![]),
            ("[if a:no][endif]", vec![]),
        ] {
            assert_eq!(unused(source), expected, "{source}");
        }
    }

    #[test]
    fn tags_of_a_block_share_a_number() {
        let groups = |source| outlined(source).tags.iter().map(|tag| tag.group).collect::<Vec<_>>();
        assert_eq!(
            groups("[if a:b][if c:d][endif][else][endif]"),
            [Some(1), Some(0), Some(0), Some(1), Some(1)]
        );
        assert_eq!(groups("[endif][if a:b][else][else][a:b]"), [None; 5]);
        assert!(outlined("[endif]").tags[0].stays_text());
        assert!(!outlined("[a:b]").tags[0].stays_text());
    }
}
