//! Rebuilds of a prompt: permitted reasons, changes and their cost.

use std::sync::Arc;

use proem_core::cache_loss::CacheLoss;
use proem_core::frozen::Frozen;
use proem_core::note::{Code, Note, Severity};
use proem_core::profile::Reason;
use proem_core::source::Source;

use super::answer::ConversationError;
use super::conversations::{Conversations, LoadedEpoch, NewEpoch};
use super::pending::Pending;
use super::prompt_policy::PromptPolicy;
use crate::build::Build;
use crate::conversation::store::StoreError;
use crate::hooks::DiscoverReason;
use crate::request::caller::Caller;
use crate::request::update::differences;
use crate::request::{Request, RequestUpdate, Tool};

/// The outcome of a rebuild.
#[derive(Debug)]
pub enum Rebuilt {
    /// The prompt would be the same: nothing was opened.
    Unchanged(Arc<LoadedEpoch>),
    /// There is a new epoch.
    Opened(Arc<LoadedEpoch>),
}

impl Rebuilt {
    /// The epoch in force.
    #[must_use]
    pub const fn kept(&self) -> &Arc<LoadedEpoch> {
        match self {
            Self::Unchanged(kept) | Self::Opened(kept) => kept,
        }
    }
}

/// The effect that a rebuild would have.
#[derive(Debug)]
pub struct Plan {
    /// The epoch in force.
    pub kept: Arc<LoadedEpoch>,
    /// The prompt that would be built.
    pub next: Frozen,
    /// The differences.
    pub pending: Pending,
    /// `true` if the profile allows it.
    pub is_allowed: bool,
}

/// A frozen prompt against what would be built now.
pub type Drift = Plan;

impl Conversations {
    /// A later turn: the stored prompt, unless the request names a change that the profile follows.
    pub(super) fn follow(
        &self,
        kept: Arc<LoadedEpoch>,
        update: &RequestUpdate,
        caller: Caller,
    ) -> Result<(Arc<LoadedEpoch>, bool, Vec<Note>), ConversationError> {
        let changes = changes(&kept, update);
        let frozen_only = frozen_only(&kept, update);
        if changes.is_empty() && frozen_only.is_empty() {
            return Ok((kept, true, Vec::new()));
        }
        let policy = PromptPolicy::from_request(&kept.request, caller)?;
        let (followed, waits): (Vec<Reason>, Vec<Reason>) =
            changes.into_iter().partition(|reason| policy.rebuild.contains(reason));
        let Some(&reason) = followed.first() else {
            let waits = waits.into_iter().map(Reason::word).chain(frozen_only);
            let notes = waits.map(|field| waiting(field, &policy)).collect();
            return Ok((kept, true, notes));
        };
        // The new epoch has everything that this turn gives.
        let (next, notes) = (update.apply_to(&kept.request), Vec::new());
        let rebuilt = self.rebuild(&kept, &next, reason, caller)?;
        let is_reused = matches!(rebuilt, Rebuilt::Unchanged(_));
        Ok((Arc::clone(rebuilt.kept()), is_reused, notes))
    }

    /// Builds the prompt again from the files as they are now. An update, if given, is merged into the stored request.
    pub fn reload(
        &self,
        id: &str,
        update: Option<&RequestUpdate>,
        caller: Caller,
    ) -> Result<Rebuilt, ConversationError> {
        let kept = self.known(id)?;
        let next = next_request(&kept, update);
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
        // Another caller may have opened an epoch for another reason meanwhile.
        if !has_same_tools(&rebuilt.kept().request, tools) {
            return Err(StoreError::Conflict { current: rebuilt.kept().head.number }.into());
        }
        Ok(rebuilt)
    }

    /// Plans a reload. Nothing is stored.
    pub fn plan_reload(
        &self,
        id: &str,
        update: Option<&RequestUpdate>,
        caller: Caller,
    ) -> Result<Plan, ConversationError> {
        let kept = self.known(id)?;
        let next = next_request(&kept, update);
        self.plan(kept, &next, Reason::Reload, caller)
    }

    /// Plans a change of tools. Nothing is stored.
    pub fn plan_tools(&self, id: &str, tools: &[Tool], caller: Caller) -> Result<Plan, ConversationError> {
        let kept = self.known(id)?;
        let next = Request { tools: Some(tools.to_vec()), ..kept.request.clone() };
        self.plan(kept, &next, Reason::Tools, caller)
    }

    fn plan(
        &self,
        kept: Arc<LoadedEpoch>,
        next: &Request,
        reason: Reason,
        caller: Caller,
    ) -> Result<Plan, ConversationError> {
        let build = self.build(next, caller)?;
        let pending = pending(&kept, &build);
        let is_allowed = PromptPolicy::from_request(&kept.request, caller)?.rebuild.contains(&reason);
        Ok(Plan { kept, next: build.frozen().clone(), pending, is_allowed })
    }

    pub(super) fn rebuild(
        &self,
        kept: &Arc<LoadedEpoch>,
        next: &Request,
        reason: Reason,
        caller: Caller,
    ) -> Result<Rebuilt, ConversationError> {
        let policy = PromptPolicy::from_request(&kept.request, caller)?;
        if !policy.rebuild.contains(&reason) {
            return Err(ConversationError::NotAllowed { reason: reason.word(), profile: policy.profile });
        }
        let build = self.build_for(DiscoverReason::Reload, next, caller)?;
        let is_same = pending(kept, &build).is_empty() && kept.head.profile == build.frozen().profile();
        if is_same && reason != Reason::Compaction {
            return Ok(Rebuilt::Unchanged(Arc::clone(kept)));
        }
        let id = &kept.head.conversation;
        let opening =
            NewEpoch { id, number: kept.head.number + 1, reason: reason.word(), request: next, caller };
        let (opened, _) = self.open(&opening, &build)?;
        Ok(Rebuilt::Opened(opened))
    }
}

fn pending(kept: &LoadedEpoch, build: &Build) -> Pending {
    Pending::between((&kept.frozen, &kept.fingerprint()), (build.frozen(), build.fingerprint()))
}

impl Plan {
    /// Returns what the cache loses.
    #[must_use]
    pub const fn cost(&self) -> Option<CacheLoss> {
        self.pending.change
    }
}

/// Tells whether a request names no change.
pub(super) fn is_followed(kept: &LoadedEpoch, update: &RequestUpdate) -> bool {
    changes(kept, update).is_empty() && frozen_only(kept, update).is_empty()
}

/// Returns the request that the next epoch is built from.
pub(super) fn next_request(kept: &LoadedEpoch, update: Option<&RequestUpdate>) -> Request {
    let conversation = kept.request.conversation.clone();
    match update {
        Some(update) => Request { conversation, ..update.apply_to(&kept.request) },
        None => kept.request.clone(),
    }
}

/// Returns the reasons of the changes that an update makes.
fn changes(kept: &LoadedEpoch, update: &RequestUpdate) -> Vec<Reason> {
    let Request { profile, cwd, tools, .. } = update.given();
    let own = &kept.request;
    let is_other_cwd = |cwd: &String| Some(cwd) != own.cwd.as_ref() && *cwd != kept.head.cwd;
    let named = [
        (Reason::Profile, profile.as_ref().is_some_and(|profile| *profile != kept.head.profile)),
        (Reason::Cwd, cwd.as_ref().is_some_and(is_other_cwd)),
        (Reason::Tools, tools.as_ref().is_some_and(|tools| !has_same_tools(own, tools))),
    ];
    named.into_iter().filter(|(_, is_changed)| *is_changed).map(|(reason, _)| reason).collect()
}

/// Returns the fields of an update that only the frozen text could show, and that it does not have.
fn frozen_only(kept: &LoadedEpoch, update: &RequestUpdate) -> Vec<&'static str> {
    const FIELDS: [&str; 11] = [
        "system",
        "template",
        "instruction",
        "append",
        "language",
        "backend",
        "mcp_servers",
        "scope",
        "packs",
        "residents",
        "model",
    ];
    if update.is_empty() {
        return Vec::new();
    }
    let changed = differences(&update.apply_to(&kept.request), &kept.request);
    let is_given = |field: &&str| update.names(field) || update.removes(field);
    let is_frozen = |field: &&str| *field != "model" || has_variable(kept, "prompt:model");
    FIELDS.into_iter().filter(|field| changed.contains(field)).filter(is_given).filter(is_frozen).collect()
}

/// Tells whether the frozen text has the value of a variable.
fn has_variable(kept: &LoadedEpoch, key: &str) -> bool {
    let is_value = |source: &Source| matches!(source, Source::Variable { key: own, .. } if **own == *key);
    let body = kept.frozen.body();
    body.carriers().any(|(carrier, _)| body.spans(carrier).iter().any(|span| is_value(&span.source)))
}

/// Tells whether a request has these tools, in whatever order.
fn has_same_tools(request: &Request, tools: &[Tool]) -> bool {
    let own = request.tools.as_deref().unwrap_or_default();
    tools.iter().all(|tool| own.contains(tool)) && own.iter().all(|tool| tools.contains(tool))
}

/// Notes a change that the frozen prompt does not have, with the operation that applies it.
fn waiting(field: &str, policy: &PromptPolicy) -> Note {
    let PromptPolicy { profile, rebuild, .. } = policy;
    let message =
        format!("the change of `{field}` does not take effect: the profile `{profile}` keeps its prompt");
    let hint = if rebuild.contains(&Reason::Reload) {
        format!("reload the conversation with `{field}` in the body")
    } else if rebuild.contains(&Reason::Compaction) {
        format!("give `{field}` to the next compaction, or begin another conversation")
    } else {
        "begin another conversation".to_owned()
    };
    Note::new(Code::PendingChange, Severity::Info, message).with_hint(hint)
}
