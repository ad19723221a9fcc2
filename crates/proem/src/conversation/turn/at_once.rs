//! Turns that only repeat the stored prompt: nothing is built, observed, written or waited for.

use std::sync::{Arc, PoisonError};

use proem_core::carrier::Carrier;
use proem_core::frozen::Suffix;

use super::{notes, signature};
use crate::build::PendingField;
use crate::conversation::conversations::{Conversations, Loaded, LoadedEpoch, check_id};
use crate::conversation::error::ConversationError;
use crate::conversation::notices::thaws;
use crate::deliver::turn::Turn;
use crate::request::update::without_call;
use crate::request::{Request, RequestUpdate};
use crate::sections::tools::duplicates;

impl Conversations {
    /// Returns the current epoch if a turn needs nothing else: nothing is built, observed, written or waited for. `None`
    /// for every other turn, which [`turn`](Self::turn) answers.
    pub fn turn_at_once(&self, id: &str, update: &RequestUpdate) -> Result<Option<Turn>, ConversationError> {
        check_id(id)?;
        let given = update.given();
        // Fields of one call have an effect or a note, and so do tools with one name.
        let is_of_call =
            *given != Request { conversation: given.conversation.clone(), ..without_call(given) };
        if !self.store.is_near()
            || is_of_call
            || !duplicates(given.tools.as_deref().unwrap_or_default())?.is_empty()
        {
            return Ok(None);
        }
        let is_system_alone = |epoch: &LoadedEpoch| {
            !epoch.head.has_turn
                && epoch.frozen.body().carriers().all(|(carrier, _)| carrier == Carrier::System)
        };
        let Some(loaded) = self.load(id)?.filter(|loaded| is_system_alone(&loaded.epoch)) else {
            return Ok(None);
        };
        let memory = self.recent.memory(id);
        // The prompt that hooks changed goes on.
        if loaded.state.hooked.is_some() || thaws(&loaded) {
            return Ok(None);
        }
        let has_hooks = memory
            .handlers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .as_ref()
            .is_none_or(|handlers| !handlers.is_empty());
        let is_delivered = loaded.state.is_delivered(&loaded.epoch.head.digest);
        if has_hooks || !is_delivered || loaded.state.merge(update) != loaded.state {
            return Ok(None);
        }
        let pending = loaded.pending();
        let is_noted = pending.iter().any(|field| update.names(field.field) || update.removes(field.field))
            || notes::unused(&loaded, update).next().is_some();
        if is_noted {
            return Ok(None);
        }
        Ok(Some(self.plain_turn(&loaded, pending)))
    }

    /// Makes the answer to a turn without messages in an epoch without a part for one turn.
    fn plain_turn(&self, loaded: &Loaded, pending: Vec<PendingField>) -> Turn {
        let epoch = &loaded.epoch;
        let request = self.turn_request(loaded, &RequestUpdate::default());
        Turn {
            conversation: epoch.head.conversation.clone(),
            epoch: epoch.head.number,
            reason: epoch.head.reason.clone(),
            is_reused: true,
            frozen: Arc::clone(&epoch.frozen),
            suffix: Suffix::default(),
            fingerprint: epoch.head.fingerprint.clone(),
            signature: signature(loaded, &request),
            system_prompt: epoch.frozen.prefix().to_owned(),
            messages: Vec::new(),
            history: Vec::new(),
            tools: crate::deliver::turn::definitions(&request, loaded.epoch.build().policy()),
            payload: None,
            pending,
            changes: Vec::new(),
            expected_miss: None,
            notices: Vec::new(),
            notes: Vec::new(),
        }
    }
}
