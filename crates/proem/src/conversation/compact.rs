//! Compaction in two steps: a summarising call, then a new epoch.

use std::sync::Arc;

use proem_core::carrier::Carrier;
use proem_core::frozen::Body;
use proem_core::profile::{Compaction as Way, Reason};

use super::answer::ConversationError;
use super::change::{Rebuilt, next_request};
use super::conversations::{Conversations, LoadedEpoch, NewEpoch, check_id};
use super::prompt_policy::{PromptPolicy, compaction_instructions};
use crate::conversation::store::record::now;
use crate::conversation::store::{CompactionRecord, StoreError};
use crate::hooks::DiscoverReason;
use crate::request::caller::Caller;
use crate::request::update::without_call;
use crate::request::{Request, RequestUpdate};

/// The longest that a compaction may take, in milliseconds.
pub const TIME_OF_COMPACTION: i64 = 15 * 60 * 1000;

/// A compaction that was begun.
#[derive(Debug)]
pub struct StartedCompaction {
    /// Its token.
    pub token: String,
    /// The policy of the summarising call.
    pub way: Way,
    /// The epoch that it starts from.
    pub from: u64,
    /// The prompt of the summarising call.
    pub body: Body,
    /// The instructions to the model. With [`Way::Append`] it stands at the end of the system prompt already; with
    /// [`Way::Aligned`] it is the last message of the user.
    pub instructions: String,
}

impl StartedCompaction {
    /// The text of a carrier in the summarising call.
    #[must_use]
    pub fn text(&self, carrier: Carrier) -> Option<String> {
        let text = self.body.text(carrier).map(str::to_owned);
        match (self.way, carrier) {
            (Way::Append, Carrier::System) => {
                Some(format!("{}\n\n{}", text.unwrap_or_default(), self.instructions))
            }
            _ => text,
        }
    }
}

impl Conversations {
    /// Begins a compaction. The epoch in force stays in force until the compaction is committed; a request, if
    /// given, is the one for the prompt behind it.
    pub fn begin_compaction(
        &self,
        id: &str,
        update: Option<&RequestUpdate>,
        caller: Caller,
    ) -> Result<StartedCompaction, ConversationError> {
        let kept = self.known(id)?;
        let next = next_request(&kept, update);
        let policy = PromptPolicy::from_request(&kept.request, caller)?;
        if !policy.rebuild.contains(&Reason::Compaction) && policy.compaction == Way::Append {
            return Err(ConversationError::NotAllowed { reason: "compaction", profile: policy.profile });
        }
        let instructions = compaction_instructions(&next, caller)?;
        let (rebuilt, body) = match policy.compaction {
            Way::Aligned => (None, kept.frozen.body().clone()),
            Way::Append => {
                let build = self.build_for(DiscoverReason::Reload, &next, caller)?;
                let number = kept.head.number + 1;
                let opening = NewEpoch { id, number, reason: "compaction", request: &next, caller };
                let rebuilt = opening.epoch(&build)?;
                (Some(rebuilt), build.frozen().body().clone())
            }
        };
        let token = token()?;
        self.store.begin_compaction(&CompactionRecord {
            token: token.clone(),
            conversation: id.to_owned(),
            from: kept.head.number,
            rebuilt,
            request: without_call(&next).to_json()?,
            expires_at: now() + TIME_OF_COMPACTION,
            opened: None,
        })?;
        Ok(StartedCompaction { token, way: policy.compaction, from: kept.head.number, body, instructions })
    }

    /// Opens the epoch behind a compaction. Of two that were begun from one epoch the first opens it, and the
    /// other gets that one. Asked again, a compaction that was committed gives the epoch that it opened, until its
    /// time is over: an answer may have been lost on its way.
    pub fn commit_compaction(
        &self,
        id: &str,
        token: &str,
        caller: Caller,
    ) -> Result<Arc<LoadedEpoch>, ConversationError> {
        let CompactionRecord { from, rebuilt, request, opened, .. } = self.begun(id, token)?;
        if let Some(number) = opened {
            let known = self.epoch(id, number)?.ok_or(ConversationError::NoCompaction)?;
            return Ok(Arc::new(known));
        }
        let opened = match rebuilt {
            Some(rebuilt) => self.remember(self.store_epoch(&rebuilt)?)?,
            None => self.open_aligned(id, from, &request, caller)?,
        };
        // Another caller may have opened an epoch for another reason meanwhile.
        if opened.head.reason != "compaction" {
            self.store.end_compaction(token, None)?;
            return Err(StoreError::Conflict { current: self.store.current_number(id)? }.into());
        }
        self.store.end_compaction(token, Some(opened.head.number))?;
        Ok(opened)
    }

    fn open_aligned(
        &self,
        id: &str,
        from: u64,
        request: &str,
        caller: Caller,
    ) -> Result<Arc<LoadedEpoch>, ConversationError> {
        let request = Request::from_json(request)?;
        let kept = self.known(id)?;
        // The epoch after `from` decides which compaction was first, not the current one.
        if kept.head.number != from {
            let behind = self.store.epoch(id, from + 1)?.ok_or(ConversationError::NoCompaction)?;
            return Ok(Arc::new(LoadedEpoch::from_stored(behind)?));
        }
        let policy = PromptPolicy::from_request(&kept.request, caller)?;
        // A profile that keeps its prompt through compactions goes on with the very same bytes.
        if !policy.rebuild.contains(&Reason::Compaction) {
            let same = self.store.epoch(id, from)?.ok_or(ConversationError::NoCompaction)?;
            let mut next = same;
            next.head.number = from + 1;
            next.head.reason = "compaction".into();
            next.head.opened_at = now();
            return self.remember(self.store_epoch(&next)?);
        }
        match self.rebuild(&kept, &request, Reason::Compaction, caller)? {
            Rebuilt::Opened(opened) | Rebuilt::Unchanged(opened) => Ok(opened),
        }
    }

    /// Ends a compaction without an epoch.
    pub fn abort_compaction(&self, id: &str, token: &str) -> Result<(), ConversationError> {
        if self.begun(id, token)?.opened.is_some() {
            return Err(ConversationError::NoCompaction);
        }
        self.store.end_compaction(token, None)?;
        Ok(())
    }

    /// A compaction of this conversation that is still open.
    fn begun(&self, id: &str, token: &str) -> Result<CompactionRecord, ConversationError> {
        check_id(id)?;
        // No token has one, and not every store can be asked for it.
        if token.contains('\0') {
            return Err(ConversationError::NoCompaction);
        }
        let found = self.store.compaction(token)?;
        let is_open = |begun: &CompactionRecord| begun.conversation == id && begun.expires_at >= now();
        found.filter(is_open).ok_or(ConversationError::NoCompaction)
    }
}

/// 128 random bits, in hexadecimal.
fn token() -> Result<String, StoreError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| StoreError::Unavailable {
        place: "the system's random numbers".into(),
        why: error.to_string().into(),
    })?;
    Ok(format!("{:032x}", u128::from_be_bytes(bytes)))
}
