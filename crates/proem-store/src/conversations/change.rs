//! Prompts that are built anew: what may be a reason, what would change, and what it would cost.

use std::sync::Arc;

use proem::{Build, Caller, Pending, Policy, Request, Tool};
use proem_core::change::Change;
use proem_core::note::{Code, Note, Severity};
use proem_core::profile::Reason;

use super::{ConversationError, Conversations, Kept, Opening};

/// What became of a wish to build anew.
#[derive(Debug)]
pub enum Rebuilt {
    /// The prompt would be the same: nothing was opened.
    Unchanged(Arc<Kept>),
    /// There is a new epoch.
    Opened(Arc<Kept>),
}

impl Rebuilt {
    /// The epoch in force.
    #[must_use]
    pub const fn kept(&self) -> &Arc<Kept> {
        match self {
            Self::Unchanged(kept) | Self::Opened(kept) => kept,
        }
    }
}

/// What building anew would change.
#[derive(Debug)]
pub struct Plan {
    /// The epoch in force.
    pub kept: Arc<Kept>,
    /// What would be different.
    pub pending: Pending,
    /// Whether the profile allows it.
    pub is_allowed: bool,
}

/// A frozen prompt against what would be built now.
pub type Drift = Plan;

/// The word of a reason.
const fn word(reason: Reason) -> &'static str {
    match reason {
        Reason::Compaction => "compaction",
        Reason::Tools => "tools",
        Reason::Cwd => "cwd",
        Reason::Reload => "reload",
        Reason::Resources => "resources",
        Reason::Profile => "profile",
    }
}

impl Conversations {
    /// A later turn: the stored prompt, unless the request names a change that the profile follows.
    pub(super) fn follow(
        &self,
        kept: Arc<Kept>,
        request: &Request,
        caller: Caller,
    ) -> Result<(Arc<Kept>, bool, Vec<Note>), ConversationError> {
        let Some((reason, next)) = change(&kept, request) else { return Ok((kept, true, Vec::new())) };
        let policy = Policy::of(&kept.request, caller)?;
        if !policy.rebuild.contains(&reason) {
            let note = waiting(word(reason), &kept.head.profile);
            return Ok((kept, true, vec![note]));
        }
        let rebuilt = self.rebuild(&kept, &next, reason, caller)?;
        let is_reused = matches!(rebuilt, Rebuilt::Unchanged(_));
        Ok((Arc::clone(rebuilt.kept()), is_reused, Vec::new()))
    }

    /// Builds the prompt anew from the files as they are now. A request, if given, takes the place of the stored
    /// one.
    pub fn reload(
        &self,
        id: &str,
        request: Option<&Request>,
        caller: Caller,
    ) -> Result<Rebuilt, ConversationError> {
        let kept = self.known(id)?;
        let next = request.cloned().unwrap_or_else(|| kept.request.clone());
        self.rebuild(&kept, &next, Reason::Reload, caller)
    }

    /// Gives a conversation other tools.
    pub fn set_tools(
        &self,
        id: &str,
        tools: Vec<Tool>,
        caller: Caller,
    ) -> Result<Rebuilt, ConversationError> {
        let kept = self.known(id)?;
        if has_same_tools(&kept.request, &tools) {
            return Ok(Rebuilt::Unchanged(kept));
        }
        let next = Request { tools: Some(tools), ..kept.request.clone() };
        self.rebuild(&kept, &next, Reason::Tools, caller)
    }

    /// What a reload would change. Nothing is stored.
    pub fn plan_reload(
        &self,
        id: &str,
        request: Option<&Request>,
        caller: Caller,
    ) -> Result<Plan, ConversationError> {
        let kept = self.known(id)?;
        let next = request.cloned().unwrap_or_else(|| kept.request.clone());
        self.plan(kept, &next, Reason::Reload, caller)
    }

    /// What other tools would change. Nothing is stored.
    pub fn plan_tools(&self, id: &str, tools: Vec<Tool>, caller: Caller) -> Result<Plan, ConversationError> {
        let kept = self.known(id)?;
        let next = Request { tools: Some(tools), ..kept.request.clone() };
        self.plan(kept, &next, Reason::Tools, caller)
    }

    fn plan(
        &self,
        kept: Arc<Kept>,
        next: &Request,
        reason: Reason,
        caller: Caller,
    ) -> Result<Plan, ConversationError> {
        let build = self.engine.build(next, caller)?;
        let pending = pending(&kept, &build);
        let is_allowed = Policy::of(&kept.request, caller)?.rebuild.contains(&reason);
        Ok(Plan { kept, pending, is_allowed })
    }

    pub(super) fn rebuild(
        &self,
        kept: &Arc<Kept>,
        next: &Request,
        reason: Reason,
        caller: Caller,
    ) -> Result<Rebuilt, ConversationError> {
        let policy = Policy::of(&kept.request, caller)?;
        if !policy.rebuild.contains(&reason) {
            return Err(ConversationError::NotAllowed { reason: word(reason), profile: policy.profile });
        }
        let build = self.engine.build(next, caller)?;
        let is_same = pending(kept, &build).is_empty() && kept.head.profile == build.frozen.profile();
        if is_same && reason != Reason::Compaction {
            return Ok(Rebuilt::Unchanged(Arc::clone(kept)));
        }
        let id = &kept.head.conversation;
        let opening =
            Opening { id, number: kept.head.number + 1, reason: word(reason), request: next, caller };
        let (opened, _) = self.open(&opening, &build)?;
        Ok(Rebuilt::Opened(opened))
    }
}

fn pending(kept: &Kept, build: &Build) -> Pending {
    Pending::between((&kept.frozen, &kept.fingerprint()), (&build.frozen, &build.fingerprint))
}

impl Plan {
    /// What the cache loses.
    #[must_use]
    pub const fn cost(&self) -> Option<Change> {
        self.pending.change
    }
}

/// The first change that a request names, and the request for the prompt that follows it. What it does not
/// mention stays.
fn change(kept: &Kept, request: &Request) -> Option<(Reason, Request)> {
    let base = super::without_turn(request);
    let tools = base.tools.clone().or_else(|| kept.request.tools.clone());
    let profile = base.profile.clone().or_else(|| kept.request.profile.clone());
    let cwd = base.cwd.clone().or_else(|| kept.request.cwd.clone());
    let next = Request { tools, profile, cwd, ..base };
    if request.profile.as_ref().is_some_and(|profile| *profile != kept.head.profile) {
        return Some((Reason::Profile, next));
    }
    if request.cwd.as_ref().is_some_and(|cwd| Some(cwd) != kept.request.cwd.as_ref() && *cwd != kept.head.cwd)
    {
        return Some((Reason::Cwd, next));
    }
    if request.tools.as_ref().is_some_and(|tools| !has_same_tools(&kept.request, tools)) {
        return Some((Reason::Tools, next));
    }
    None
}

/// Tells whether a request has these tools, in whatever order.
fn has_same_tools(request: &Request, tools: &[Tool]) -> bool {
    let own = request.tools.as_deref().unwrap_or_default();
    own.len() == tools.len() && tools.iter().all(|tool| own.contains(tool))
}

fn waiting(reason: &str, profile: &str) -> Note {
    let message = format!(
        "the change of `{reason}` waits: the profile `{profile}` does not build its prompt anew for it"
    );
    Note::new(Code::PendingChange, Severity::Info, message)
        .with_hint("reload the conversation, or begin another one")
}
