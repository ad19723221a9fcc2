//! Prompts that are built anew: what may be a reason, what would change, and what it would cost.

use std::sync::Arc;

use proem::{Build, Caller, HostPins, Pending, PromptPolicy, Request, Tool};
use proem_core::cache_loss::CacheLoss;
use proem_core::frozen::Frozen;
use proem_core::note::{Code, Note, Severity};
use proem_core::profile::Reason;

use super::{ConversationError, Conversations, Kept, Opening};
use crate::StoreError;

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
    /// What would be built.
    pub next: Frozen,
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
        let changes = changes(&kept, request);
        if changes.is_empty() {
            return Ok((kept, true, Vec::new()));
        }
        let policy = PromptPolicy::from_request(&kept.request, caller)?;
        let (followed, waits): (Vec<Reason>, Vec<Reason>) =
            changes.into_iter().partition(|reason| policy.rebuild.contains(reason));
        let notes = waits.iter().map(|reason| waiting(word(*reason), &kept.head.profile)).collect();
        let Some(&reason) = followed.first() else { return Ok((kept, true, notes)) };
        let next = next(&kept.request, request, &waits);
        let rebuilt = self.rebuild(&kept, &next, reason, caller)?;
        let is_reused = matches!(rebuilt, Rebuilt::Unchanged(_));
        Ok((Arc::clone(rebuilt.kept()), is_reused, notes))
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
    pub fn set_tools(&self, id: &str, tools: &[Tool], caller: Caller) -> Result<Rebuilt, ConversationError> {
        let kept = self.known(id)?;
        if has_same_tools(&kept.request, tools) {
            return Ok(Rebuilt::Unchanged(kept));
        }
        let next = Request { tools: Some(tools.to_vec()), ..kept.request.clone() };
        let rebuilt = self.rebuild(&kept, &next, Reason::Tools, caller)?;
        // Somebody may have opened an epoch for another reason meanwhile.
        if !has_same_tools(&rebuilt.kept().request, tools) {
            return Err(StoreError::Conflict { current: rebuilt.kept().head.number }.into());
        }
        Ok(rebuilt)
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
    pub fn plan_tools(&self, id: &str, tools: &[Tool], caller: Caller) -> Result<Plan, ConversationError> {
        let kept = self.known(id)?;
        let next = Request { tools: Some(tools.to_vec()), ..kept.request.clone() };
        self.plan(kept, &next, Reason::Tools, caller)
    }

    fn plan(
        &self,
        kept: Arc<Kept>,
        next: &Request,
        reason: Reason,
        caller: Caller,
    ) -> Result<Plan, ConversationError> {
        let build = self.build(next, caller)?;
        let pending = pending(&kept, &build);
        let is_allowed = PromptPolicy::from_request(&kept.request, caller)?.rebuild.contains(&reason);
        Ok(Plan { kept, next: build.into_parts().0, pending, is_allowed })
    }

    pub(super) fn rebuild(
        &self,
        kept: &Arc<Kept>,
        next: &Request,
        reason: Reason,
        caller: Caller,
    ) -> Result<Rebuilt, ConversationError> {
        let policy = PromptPolicy::from_request(&kept.request, caller)?;
        if !policy.rebuild.contains(&reason) {
            return Err(ConversationError::NotAllowed { reason: word(reason), profile: policy.profile });
        }
        let build = self.build(next, caller)?;
        let is_same = pending(kept, &build).is_empty() && kept.head.profile == build.frozen().profile();
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
    Pending::between((&kept.frozen, &kept.fingerprint()), (build.frozen(), build.fingerprint()))
}

impl Plan {
    /// What the cache loses.
    #[must_use]
    pub const fn cost(&self) -> Option<CacheLoss> {
        self.pending.change
    }
}

/// Tells whether a request names no change.
pub(super) fn is_followed(kept: &Kept, request: &Request) -> bool {
    changes(kept, request).is_empty()
}

/// The changes that a request names.
fn changes(kept: &Kept, request: &Request) -> Vec<Reason> {
    let Request { profile, cwd, tools, .. } = request;
    let own = &kept.request;
    let is_other_cwd = |cwd: &String| Some(cwd) != own.cwd.as_ref() && *cwd != kept.head.cwd;
    let named = [
        (Reason::Profile, profile.as_ref().is_some_and(|profile| *profile != kept.head.profile)),
        (Reason::Cwd, cwd.as_ref().is_some_and(is_other_cwd)),
        (Reason::Tools, tools.as_ref().is_some_and(|tools| !has_same_tools(own, tools))),
    ];
    named.into_iter().filter(|(_, is_changed)| *is_changed).map(|(reason, _)| reason).collect()
}

/// The request for the prompt that follows. What the new one does not mention stays, and so does what waits.
fn next(kept: &Request, request: &Request, waits: &[Reason]) -> Request {
    let (kept, new) = (kept.clone(), super::without_turn(request));
    // These three say the same thing: who mentions one of them has mentioned all.
    let has_base = new.system.is_some() || new.template.is_some() || new.instruction.is_some();
    let base = if has_base { new.clone() } else { kept.clone() };
    let unless = |reason: Reason| !waits.contains(&reason);
    Request {
        profile: new.profile.filter(|_| unless(Reason::Profile)).or(kept.profile),
        cwd: new.cwd.filter(|_| unless(Reason::Cwd)).or(kept.cwd),
        tools: new.tools.filter(|_| unless(Reason::Tools)).or(kept.tools),
        conversation: new.conversation.or(kept.conversation),
        workspace_id: new.workspace_id.or(kept.workspace_id),
        model: new.model.or(kept.model),
        language: new.language.or(kept.language),
        scope: new.scope.or(kept.scope),
        packs: new.packs.or(kept.packs),
        backend: new.backend.or(kept.backend),
        mcp_servers: new.mcp_servers.or(kept.mcp_servers),
        append: new.append.or(kept.append),
        system: base.system,
        template: base.template,
        template_path: base.template_path,
        instruction: base.instruction,
        residents: new.residents.or(kept.residents),
        project: new.project.or(kept.project),
        first_user_text: new.first_user_text.or(kept.first_user_text),
        variables: if new.variables.is_empty() { kept.variables } else { new.variables },
        host: if new.host == HostPins::default() { kept.host } else { new.host },
        recalled: None,
        prompt: None,
        images: None,
        messages: None,
    }
}

/// Tells whether a request has these tools, in whatever order.
fn has_same_tools(request: &Request, tools: &[Tool]) -> bool {
    let own = request.tools.as_deref().unwrap_or_default();
    tools.iter().all(|tool| own.contains(tool)) && own.iter().all(|tool| tools.contains(tool))
}

fn waiting(reason: &str, profile: &str) -> Note {
    let message =
        format!("the change of `{reason}` waits: the profile `{profile}` does not rebuild its prompt for it");
    Note::new(Code::PendingChange, Severity::Info, message)
        .with_hint("reload the conversation, or begin another one")
}
