//! A parsed template: a flat list of steps that borrow the source.

use alloc::vec::Vec;

use super::scan::{Found, Scanner, Tag};
use super::slot::Slots;
use super::standalone;
use super::{Policies, StandaloneTags};

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
    pub(super) steps: Vec<Step>,
    pub(super) problems: Vec<Problem>,
    slots: Slots<'s>,
}

/// One step of rendering, and the source bytes that it stands for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Step {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) action: Action,
}

/// What a step does. Targets are indices into the steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    /// Copies its source bytes.
    Copy,
    /// Inserts the value of a slot.
    Insert(u32),
    /// Goes on if the slot has a value (or has none, when negated), else jumps.
    Test { slot: u32, negated: bool, otherwise: u32 },
    /// Jumps over the other branch: the end of a taken one.
    Leave { target: u32 },
    /// Does nothing: an `[endif]`.
    End,
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

/// An `[if]` that waits for its `[endif]`.
struct Open {
    test: usize,
    leave: Option<usize>,
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
        let mut parser = Parser::new(source);
        for found in Scanner::new(source) {
            parser.take(&found);
        }
        let mut template = parser.finish();
        if policies.standalone_tags == StandaloneTags::Trim {
            standalone::trim(source, &mut template.steps);
        }
        template
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
}

struct Parser<'s> {
    template: Template<'s>,
    open: Vec<Open>,
    copied: usize,
}

impl<'s> Parser<'s> {
    const fn new(source: &'s str) -> Self {
        let template = Template { source, steps: Vec::new(), problems: Vec::new(), slots: Slots::new() };
        Self { template, open: Vec::new(), copied: 0 }
    }

    fn take(&mut self, found: &Found<'s>) {
        match found.tag {
            Tag::Variable { key } => {
                let slot = self.template.slots.slot(key);
                self.step(found, Action::Insert(slot));
            }
            Tag::If { key, negated } => {
                let slot = self.template.slots.slot(key);
                let test = self.step(found, Action::Test { slot, negated, otherwise: 0 });
                self.open.push(Open { test, leave: None });
            }
            Tag::Else => self.take_else(found),
            Tag::EndIf => self.take_endif(found),
        }
    }

    fn take_else(&mut self, found: &Found<'s>) {
        match self.open.last() {
            Some(Open { leave: None, .. }) => {
                let leave = self.step(found, Action::Leave { target: 0 });
                if let Some(open) = self.open.last_mut() {
                    open.leave = Some(leave);
                }
            }
            Some(_) => self.problem(found.bytes.start, ProblemKind::SecondElse),
            None => self.problem(found.bytes.start, ProblemKind::StrayElse),
        }
    }

    fn take_endif(&mut self, found: &Found<'s>) {
        let Some(open) = self.open.pop() else {
            self.problem(found.bytes.start, ProblemKind::StrayEndIf);
            return;
        };
        let end = self.step(found, Action::End);
        let otherwise = open.leave.map_or(end, |leave| leave + 1);
        self.aim(open.test, otherwise);
        if let Some(leave) = open.leave {
            self.aim(leave, end);
        }
    }

    /// Sets where a step jumps to.
    fn aim(&mut self, step: usize, to: usize) {
        let to = u32::try_from(to).expect("a template has fewer steps than bytes, and at most 4 GiB");
        match &mut self.template.steps[step].action {
            Action::Test { otherwise, .. } => *otherwise = to,
            Action::Leave { target } => *target = to,
            Action::Copy | Action::Insert(_) | Action::End => {}
        }
    }

    /// Adds the text before a tag and the tag's own step; returns the latter's index.
    fn step(&mut self, found: &Found<'s>, action: Action) -> usize {
        self.copy_up_to(found.bytes.start);
        self.copied = found.bytes.end;
        self.template.steps.push(Step { start: found.bytes.start, end: found.bytes.end, action });
        self.template.steps.len() - 1
    }

    fn copy_up_to(&mut self, end: usize) {
        if end > self.copied {
            self.template.steps.push(Step { start: self.copied, end, action: Action::Copy });
        }
    }

    fn problem(&mut self, start: usize, kind: ProblemKind) {
        self.template.problems.push(Problem { start, kind });
    }

    /// Ends the text and turns what was never closed back into text.
    fn finish(mut self) -> Template<'s> {
        self.copy_up_to(self.template.source.len());
        for open in core::mem::take(&mut self.open) {
            let start = self.template.steps[open.test].start;
            self.problem(start, ProblemKind::UnclosedIf);
            self.template.steps[open.test].action = Action::Copy;
            if let Some(leave) = open.leave {
                self.template.steps[leave].action = Action::Copy;
            }
        }
        self.template.problems.sort_by_key(|problem| problem.start);
        self.template
    }
}
