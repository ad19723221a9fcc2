//! Compaction in two steps: a call that summarises, and the new epoch behind it.

use std::sync::Arc;

use proem::{Caller, PromptPolicy, Request, compaction_instructions};
use proem_core::carrier::Carrier;
use proem_core::frozen::Body;
use proem_core::profile::{Compaction as Way, Reason};

use super::{ConversationError, Conversations, Kept, Opening, Rebuilt};
use crate::StoreError;
use crate::record::{Compaction, now};

/// How long a compaction may take, in milliseconds.
pub const TIME_OF_COMPACTION: i64 = 15 * 60 * 1000;

/// A compaction that was begun.
#[derive(Debug)]
pub struct Begun {
    /// What names it.
    pub token: String,
    /// How the summarising call is made.
    pub way: Way,
    /// The epoch that it starts from.
    pub from: u64,
    /// What the summarising call reads.
    pub body: Body,
    /// What the model is told. With [`Way::Append`] it stands at the end of the system prompt already; with
    /// [`Way::Aligned`] it is the last message of the user.
    pub instructions: String,
}

impl Begun {
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
        request: Option<&Request>,
        caller: Caller,
    ) -> Result<Begun, ConversationError> {
        let kept = self.known(id)?;
        let next = request.cloned().unwrap_or_else(|| kept.request.clone());
        let policy = PromptPolicy::from_request(&kept.request, caller)?;
        if !policy.rebuild.contains(&Reason::Compaction) && policy.compaction == Way::Append {
            return Err(ConversationError::NotAllowed { reason: "compaction", profile: policy.profile });
        }
        let instructions = compaction_instructions(&next, caller)?;
        let (rebuilt, body) = match policy.compaction {
            Way::Aligned => (None, kept.frozen.body().clone()),
            Way::Append => {
                let build = self.build(&next, caller)?;
                let number = kept.head.number + 1;
                let opening = Opening { id, number, reason: "compaction", request: &next, caller };
                let rebuilt = opening.epoch(&build)?;
                (Some(rebuilt), build.frozen().body().clone())
            }
        };
        let token = token()?;
        self.store.begin_compaction(&Compaction {
            token: token.clone(),
            conversation: id.to_owned(),
            from: kept.head.number,
            rebuilt,
            request: super::without_turn(&next).to_json()?,
            expires_at: now() + TIME_OF_COMPACTION,
            opened: None,
        })?;
        Ok(Begun { token, way: policy.compaction, from: kept.head.number, body, instructions })
    }

    /// Opens the epoch behind a compaction. Of two that were begun from one epoch the first opens it, and the
    /// other gets that one. Asked again, a compaction that was committed gives the epoch that it opened, until its
    /// time is over: an answer may have been lost on its way.
    pub fn commit_compaction(
        &self,
        id: &str,
        token: &str,
        caller: Caller,
    ) -> Result<Arc<Kept>, ConversationError> {
        let Compaction { from, rebuilt, request, opened, .. } = self.begun(id, token)?;
        if let Some(number) = opened {
            let known = self.epoch(id, number)?.ok_or(ConversationError::NoCompaction)?;
            return Ok(Arc::new(known));
        }
        let opened = match rebuilt {
            Some(rebuilt) => self.remember(self.store_epoch(&rebuilt)?)?,
            None => self.open_aligned(id, from, &request, caller)?,
        };
        // Somebody may have opened an epoch for another reason meanwhile.
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
    ) -> Result<Arc<Kept>, ConversationError> {
        let request = Request::from_json(request)?;
        let kept = self.known(id)?;
        // The epoch behind this one tells who was first, not the one that is current now.
        if kept.head.number != from {
            let behind = self.store.epoch(id, from + 1)?.ok_or(ConversationError::NoCompaction)?;
            return Ok(Arc::new(Kept::of(behind)?));
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
    fn begun(&self, id: &str, token: &str) -> Result<Compaction, ConversationError> {
        super::check_id(id)?;
        // No token has one, and not every store can be asked for it.
        if token.contains('\0') {
            return Err(ConversationError::NoCompaction);
        }
        let found = self.store.compaction(token)?;
        let is_open = |begun: &Compaction| begun.conversation == id && begun.expires_at >= now();
        found.filter(is_open).ok_or(ConversationError::NoCompaction)
    }
}

/// 128 random bits, in hexadecimal.
fn token() -> Result<String, StoreError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| StoreError::Unavailable {
        place: "the system's random numbers".into(),
        why: error.to_string(),
    })?;
    Ok(format!("{:032x}", u128::from_be_bytes(bytes)))
}
