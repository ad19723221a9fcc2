//! A parsed template: a flat list of steps that borrow the source.

use alloc::vec::Vec;
use core::ops::Range;

use super::scan::{Found, Scanner, Tag};
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

/// One step of rendering. Offsets and targets have 32 bits: a template has at most 1 MiB.
#[derive(Debug, Clone, Copy)]
pub(super) enum Step<'s> {
    /// Copies text of the source.
    Copy(&'s str),
    /// Inserts the value of a slot; `start` is where its tag stands.
    Insert { start: u32, slot: u32 },
    /// Goes on if the slot has a value (or has none, when negated), else jumps to a step.
    Test { start: u32, slot: u32, otherwise: u32, negated: bool },
    /// Jumps over the other branch: the end of a taken one.
    Leave { target: u32 },
}

/// A tag that is not what it looks like.
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
    #[must_use]
    pub fn parse(source: &'s str) -> Self {
        Self::parse_with(source, &Policies::SEED)
    }

    /// Parses `source`; of the policies only the one about standalone tags matters here.
    #[must_use]
    pub fn parse_with(source: &'s str, policies: &Policies) -> Self {
        let mut parser = Parser::new(source, policies.standalone_tags);
        for found in Scanner::new(source) {
            parser.take(found);
        }
        parser.finish()
    }

    /// The source text.
    #[must_use]
    pub const fn source(&self) -> &'s str {
        self.source
    }

    /// The keys that the template mentions, by slot; what nobody mentions need not be observed.
    #[must_use]
    pub fn wanted(&self) -> &[&'s str] {
        self.slots.keys()
    }

    /// Where a piece of the source stands in it.
    pub(super) fn offset(&self, piece: &str) -> usize {
        piece.as_ptr().addr() - self.source.as_ptr().addr()
    }

    /// The tag that opens at `start`, brackets included.
    pub(super) fn tag_at(&self, start: usize) -> &'s str {
        let rest = slice(self.source, start, self.source.len());
        slice(rest, 0, memchr::memchr(b']', rest.as_bytes()).map_or(0, |close| close + 1))
    }
}

/// An `[if]` that waits for its `[endif]`: its step, that of its `[else]`, and the bytes that they
/// took, which become text again should the `[endif]` never come.
struct Open {
    start: usize,
    test: usize,
    bytes: Range<usize>,
    other: Option<(usize, Range<usize>)>,
}

struct Parser<'s> {
    template: Template<'s>,
    open: Vec<Open>,
    copied: usize,
    standalone_tags: StandaloneTags,
}

impl<'s> Parser<'s> {
    fn new(source: &'s str, standalone_tags: StandaloneTags) -> Self {
        // A tag takes at most two steps, itself and the text before it. The second bound keeps a hostile
        // template, all brackets, from asking for more memory than its size.
        let tags = memchr::memchr_iter(b'[', source.as_bytes()).count();
        let steps = Vec::with_capacity((2 * tags + 1).min(source.len() / 16 + 16));
        let template = Template { source, steps, problems: Vec::new(), slots: Slots::new() };
        Self { template, open: Vec::new(), copied: 0, standalone_tags }
    }

    fn take(&mut self, found: Found<'s>) {
        let start = found.bytes.start;
        match found.tag {
            Tag::Variable { key } => {
                self.copy_before(&found.bytes);
                let slot = self.template.slots.slot(key);
                self.template.steps.push(Step::Insert { start: narrow(start), slot });
            }
            Tag::If { key, negated } => {
                let bytes = self.copy_before_block(found.bytes);
                let slot = self.template.slots.slot(key);
                self.open.push(Open { start, test: self.template.steps.len(), bytes, other: None });
                self.template.steps.push(Step::Test { start: narrow(start), slot, otherwise: 0, negated });
            }
            Tag::Else => self.take_else(found.bytes),
            Tag::EndIf => self.take_endif(found.bytes),
        }
    }

    fn take_else(&mut self, bytes: Range<usize>) {
        match self.open.last() {
            None => self.problem(bytes.start, ProblemKind::StrayElse),
            Some(Open { other: Some(_), .. }) => self.problem(bytes.start, ProblemKind::SecondElse),
            Some(Open { other: None, .. }) => {
                let bytes = self.copy_before_block(bytes);
                let leave = self.template.steps.len();
                self.template.steps.push(Step::Leave { target: 0 });
                if let Some(open) = self.open.last_mut() {
                    open.other = Some((leave, bytes));
                }
            }
        }
    }

    fn take_endif(&mut self, bytes: Range<usize>) {
        let Some(open) = self.open.pop() else {
            self.problem(bytes.start, ProblemKind::StrayEndIf);
            return;
        };
        self.copy_before_block(bytes);
        let end = self.template.steps.len();
        self.aim(open.test, open.other.as_ref().map_or(end, |(leave, _)| leave + 1));
        if let Some((leave, _)) = open.other {
            self.aim(leave, end);
        }
    }

    /// Sets where a step jumps to.
    fn aim(&mut self, step: usize, to: usize) {
        match &mut self.template.steps[step] {
            Step::Test { otherwise: target, .. } | Step::Leave { target } => *target = narrow(to),
            Step::Copy(_) | Step::Insert { .. } => {}
        }
    }

    /// Adds the text before a tag.
    fn copy_before(&mut self, bytes: &Range<usize>) {
        if bytes.start > self.copied {
            let text = slice(self.template.source, self.copied, bytes.start);
            self.template.steps.push(Step::Copy(text));
        }
        self.copied = bytes.end;
    }

    /// Adds the text before a block tag; returns the bytes that the tag takes, which by the policy
    /// may be its whole line.
    fn copy_before_block(&mut self, tag: Range<usize>) -> Range<usize> {
        let bytes = match self.standalone_tags {
            StandaloneTags::Keep => tag,
            StandaloneTags::Trim => whole_line(self.template.source.as_bytes(), &tag).unwrap_or(tag),
        };
        self.copy_before(&bytes);
        bytes
    }

    fn problem(&mut self, start: usize, kind: ProblemKind) {
        self.template.problems.push(Problem { start, kind });
    }

    /// Ends the text and turns what was never closed back into text.
    fn finish(mut self) -> Template<'s> {
        let end = self.template.source.len();
        self.copy_before(&(end..end));
        for open in core::mem::take(&mut self.open) {
            self.problem(open.start, ProblemKind::UnclosedIf);
            let text = |bytes: Range<usize>| Step::Copy(slice(self.template.source, bytes.start, bytes.end));
            self.template.steps[open.test] = text(open.bytes);
            if let Some((leave, bytes)) = open.other {
                self.template.steps[leave] = text(bytes);
            }
        }
        self.template.problems.sort_by_key(|problem| problem.start);
        self.template
    }
}

/// Returns the bytes of a tag's line with its line break, if nothing else is on it, as Mustache does.
fn whole_line(source: &[u8], tag: &Range<usize>) -> Option<Range<usize>> {
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

fn narrow(offset: usize) -> u32 {
    u32::try_from(offset).expect("the limit table keeps templates far below 4 GiB")
}
