//! A parsed template: a flat list of steps that borrow the source.

use alloc::vec::Vec;
use core::ops::Range;

use super::scan::{Scanner, Tag, TagSink};
use super::slot::Slots;
use super::{Policies, StandaloneTags};
use crate::text::slice;

/// A parsed bracket template.
///
/// ```
/// use proem_core::bracket::Template;
///
/// let template = Template::parse("[if git:branch]On [git:branch].[endif]");
/// assert_eq!(template.wanted(), ["git:branch"]);
/// ```
#[derive(Debug, Clone)]
pub struct Template<'s> {
    pub(super) source: &'s str,
    pub(super) steps: Vec<Step<'s>>,
    pub(super) problems: Vec<Problem>,
    slots: Slots<'s>,
}

/// One step of rendering: source text, possibly empty, and the action at its end.
///
/// Text and tag share a step because they alternate, which halves the number of steps.
#[derive(Debug, Clone, Copy)]
pub(super) struct Step<'s> {
    pub(super) text: &'s str,
    pub(super) then: Then,
}

/// The action after the text of a step. Offsets and targets have 32 bits, because a template has at most 1 MiB.
#[derive(Debug, Clone, Copy)]
pub(super) enum Then {
    /// Continues with the next step.
    Next,
    /// Inserts the value of a slot; `start` is the position of its tag.
    Insert { start: u32, slot: u32 },
    /// Continues if the slot has a value (or has none, if negated), else jumps to a step.
    Test { start: u32, slot: u32, otherwise: u32, negated: bool },
    /// Jumps over the other branch at the end of an active one.
    Leave { target: u32 },
    /// Writes the `[else]` of an unclosed block, whatever white space its tag has; `start` is the position of the tag.
    PlainElse { start: u32 },
}

/// A tag without its counterpart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Problem {
    pub(super) start: usize,
    pub(super) kind: ProblemKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProblemKind {
    UnclosedIf,
    StrayElse,
    SecondElse,
    StrayEndIf,
}

impl<'s> Template<'s> {
    /// Parses `source`, leaving white space as it is.
    ///
    /// # Panics
    ///
    /// Panics if `source` has 4 GiB or more. Builds reject far smaller templates.
    #[must_use]
    pub fn parse(source: &'s str) -> Self {
        Self::parse_with(source, &Policies::SEED)
    }

    /// Parses `source`; only the policy for standalone tags matters here.
    ///
    /// # Panics
    ///
    /// Panics if `source` has 4 GiB or more.
    #[must_use]
    pub fn parse_with(source: &'s str, policies: &Policies) -> Self {
        let mut parser = Parser::new(source, policies.standalone_tags);
        let mut tags = Scanner::new(source);
        while tags.give(&mut parser).is_some() {}
        parser.finish()
    }

    /// Returns the source text.
    #[must_use]
    pub const fn source(&self) -> &'s str {
        self.source
    }

    /// Returns the keys that the template mentions, by slot. Other variables need not be observed.
    #[must_use]
    pub fn wanted(&self) -> &[&'s str] {
        self.slots.keys()
    }

    /// Returns the length of all insertions together, in every branch, given the length of each slot's value.
    pub(super) fn inserted_bytes(&self, slot_bytes: impl Iterator<Item = usize>) -> usize {
        let each = slot_bytes.zip(self.slots.insertions());
        each.fold(0, |sum, (bytes, times)| sum.saturating_add(bytes.saturating_mul(times as usize)))
    }

    /// Returns the range of a piece of the source.
    pub(super) fn offset(&self, piece: &str) -> usize {
        offset(self.source, piece)
    }

    /// Returns the tag that opens at `start`, brackets included.
    pub(super) fn tag_at(&self, start: usize) -> &'s str {
        let rest = slice(self.source, start, self.source.len());
        slice(rest, 0, memchr::memchr(b']', rest.as_bytes()).map_or(0, |close| close + 1))
    }
}

/// The tag between two branches, as an unclosed block writes it.
pub(super) const PLAIN_ELSE: &str = "[else]";

/// An `[if]` without its `[endif]` so far: its step and that of its `[else]`, which become literal text if the `[endif]`
/// is missing.
struct Open {
    start: u32,
    test: TagStep,
    other: Option<ElseStep>,
}

/// The step of an `[else]`, and the position of its tag.
#[derive(Clone, Copy)]
struct ElseStep {
    step: u32,
    start: u32,
}

/// The step of a tag, and the end of its source text.
#[derive(Clone, Copy)]
struct TagStep {
    step: u32,
    end: u32,
}

struct Parser<'s> {
    template: Template<'s>,
    open: Vec<Open>,
    copied: usize,
    standalone_tags: StandaloneTags,
}

impl<'s> TagSink<'s> for Parser<'s> {
    #[expect(clippy::inline_always, reason = "a tag passed on in memory is read before it is written")]
    #[inline(always)]
    fn take(&mut self, bytes: Range<usize>, tag: Tag<'s>) {
        let start = narrow(bytes.start);
        match tag {
            Tag::Variable { key } => {
                let slot = self.template.slots.inserted(key);
                self.push(&bytes, Then::Insert { start, slot });
            }
            Tag::If { key, negated } => {
                let slot = self.template.slots.slot(key);
                let test = self.push_block(bytes, Then::Test { start, slot, otherwise: 0, negated });
                self.open.push(Open { start, test, other: None });
            }
            Tag::Else => self.take_else(bytes),
            Tag::EndIf => self.take_endif(bytes),
        }
    }
}

impl<'s> Parser<'s> {
    fn new(source: &'s str, standalone_tags: StandaloneTags) -> Self {
        assert!(u32::try_from(source.len()).is_ok(), "the limit table keeps templates far below 4 GiB");
        // Capacity for one tag per 64 bytes: few templates need more, and counting would cost more.
        let steps = Vec::with_capacity(source.len() / 64 + 4);
        let template = Template { source, steps, problems: Vec::new(), slots: Slots::new() };
        Self { template, open: Vec::new(), copied: 0, standalone_tags }
    }

    #[expect(clippy::inline_always, reason = "called from the one place that knows the tag")]
    #[inline(always)]
    fn take_else(&mut self, bytes: Range<usize>) {
        match self.open.last() {
            None => self.problem(bytes.start, ProblemKind::StrayElse),
            Some(Open { other: Some(_), .. }) => self.problem(bytes.start, ProblemKind::SecondElse),
            Some(Open { other: None, .. }) => {
                let start = narrow(bytes.start);
                let TagStep { step, .. } = self.push_block(bytes, Then::Leave { target: 0 });
                if let Some(open) = self.open.last_mut() {
                    open.other = Some(ElseStep { step, start });
                }
            }
        }
    }

    #[expect(clippy::inline_always, reason = "called from the one place that knows the tag")]
    #[inline(always)]
    fn take_endif(&mut self, bytes: Range<usize>) {
        let Some(open) = self.open.pop() else {
            self.problem(bytes.start, ProblemKind::StrayEndIf);
            return;
        };
        let end = self.push_block(bytes, Then::Next).step + 1;
        self.aim(open.test.step, open.other.map_or(end, |leave| leave.step + 1));
        if let Some(leave) = open.other {
            self.aim(leave.step, end);
        }
    }

    /// Sets the target of a jump.
    fn aim(&mut self, step: u32, to: u32) {
        match &mut self.template.steps[step as usize].then {
            Then::Test { otherwise: target, .. } | Then::Leave { target } => *target = to,
            Then::Next | Then::Insert { .. } | Then::PlainElse { .. } => {}
        }
    }

    /// Adds the text before a tag, and the tag.
    #[inline]
    fn push(&mut self, bytes: &Range<usize>, then: Then) {
        let text = slice(self.template.source, self.copied, bytes.start);
        self.template.steps.push(Step { text, then });
        self.copied = bytes.end;
    }

    /// Adds a block tag, which may include its whole line, depending on the policy.
    #[expect(clippy::inline_always, reason = "a step passed on in memory is read before it is written: 20 %")]
    #[inline(always)]
    fn push_block(&mut self, tag: Range<usize>, then: Then) -> TagStep {
        let bytes = match self.standalone_tags {
            StandaloneTags::Keep => tag,
            StandaloneTags::Trim => whole_line(self.template.source.as_bytes(), tag),
        };
        self.push(&bytes, then);
        TagStep { step: narrow(self.template.steps.len() - 1), end: narrow(bytes.end) }
    }

    /// Turns a tag back into literal text, which joins the text of its step.
    fn undo(&mut self, tag: TagStep) {
        let source = self.template.source;
        let step = &mut self.template.steps[tag.step as usize];
        let start = offset(source, step.text);
        *step = Step { text: slice(source, start, tag.end as usize), then: Then::Next };
    }

    /// Turns an `[else]` back into literal text without the white space inside of it. What a standalone tag took of its
    /// line goes back to the texts before and after it.
    fn undo_else(&mut self, tag: ElseStep) {
        let source = self.template.source;
        let (step, start) = (tag.step as usize, tag.start as usize);
        let after = start + self.template.tag_at(start).len();
        let own = &mut self.template.steps[step];
        let text = slice(source, offset(source, own.text), start);
        *own = Step { text, then: Then::PlainElse { start: tag.start } };
        // The last step is never a tag.
        let next = &mut self.template.steps[step + 1];
        next.text = slice(source, after, offset(source, next.text) + next.text.len());
    }

    fn problem(&mut self, start: usize, kind: ProblemKind) {
        self.template.problems.push(Problem { start, kind });
    }

    /// Adds the remaining text and turns unclosed tags back into literal text.
    fn finish(mut self) -> Template<'s> {
        let end = self.template.source.len();
        self.push(&(end..end), Then::Next);
        for open in core::mem::take(&mut self.open) {
            self.problem(open.start as usize, ProblemKind::UnclosedIf);
            self.undo(open.test);
            if let Some(tag) = open.other {
                self.undo_else(tag);
            }
        }
        self.template.problems.sort_by_key(|problem| problem.start);
        self.template
    }
}

/// Returns the bytes of a tag's line with its line break if nothing else is on it, like Mustache.
#[inline(never)]
fn whole_line(source: &[u8], tag: Range<usize>) -> Range<usize> {
    line_of_its_own(source, &tag).unwrap_or(tag)
}

fn line_of_its_own(source: &[u8], tag: &Range<usize>) -> Option<Range<usize>> {
    let is_blank = |byte: &&u8| matches!(byte, b' ' | b'\t');
    let start = tag.start - source.get(..tag.start)?.iter().rev().take_while(is_blank).count();
    if start > 0 && source.get(start - 1) != Some(&b'\n') {
        return None;
    }
    let after = source.get(tag.end..)?;
    let blanks = after.iter().take_while(is_blank).count();
    let line_break = match after.get(blanks..)? {
        [] => 0,
        [b'\n', ..] => 1,
        [b'\r', b'\n', ..] => 2,
        _ => return None,
    };
    Some(start..tag.end + blanks + line_break)
}

fn offset(source: &str, piece: &str) -> usize {
    piece.as_ptr().addr() - source.as_ptr().addr()
}

/// Returns an offset in 32 bits; [`Parser::new`] has checked that it fits.
#[expect(clippy::cast_possible_truncation, reason = "looked at once for the whole source, not for each tag")]
const fn narrow(offset: usize) -> u32 {
    offset as u32
}
