//! The calls of one thread, with their chains.

use std::collections::VecDeque;

use super::call::{Call, Purpose};
use super::chain::Chain;

/// The calls of a thread that are kept. A predecessor further back is not found.
pub(super) const CALLS_KEPT: usize = 256;

/// A call that later ones are compared with.
#[derive(Debug, Clone)]
pub(super) struct Past {
    /// Its number among the calls of the thread.
    pub(super) index: u64,
    /// The call; its body is removed when memory is needed.
    pub(super) call: Call,
    pub(super) model: String,
    pub(super) chain: Option<Chain>,
}

/// A thread of a conversation.
#[derive(Debug, Default)]
pub(super) struct Thread {
    pub(super) calls: VecDeque<Past>,
    pub(super) count: u64,
    /// The index of the last call whose chain was stored in full.
    pub(super) full: u64,
    /// The largest number of a call in a store.
    pub(super) newest: u64,
    /// The number of the last call in the order of all threads.
    pub(super) used: u64,
}

impl Thread {
    /// Returns the earlier call with the longest common chain; among equals, the newest that is not a compaction.
    pub(super) fn predecessor(&self, chain: &Chain) -> Option<(&Past, &Chain)> {
        let known = self.calls.iter().filter_map(|past| Some((past, past.chain.as_ref()?)));
        known.max_by_key(|(past, earlier)| {
            (chain.common(earlier), past.call.purpose != Purpose::Compaction, past.index)
        })
    }

    /// Adds a call; chains share their equal links. `is_full` tells if its chain is stored in full.
    pub(super) fn push(&mut self, call: Call, model: String, mut chain: Option<Chain>, is_full: bool) {
        if let Some(chain) = &mut chain
            && let Some(last) = self.calls.iter().rev().find_map(|past| past.chain.as_ref())
        {
            chain.share(last);
        }
        self.count += 1;
        if is_full {
            self.full = self.count;
        }
        self.calls.push_back(Past { index: self.count, call, model, chain });
        if self.calls.len() > CALLS_KEPT {
            self.calls.pop_front();
        }
    }
}
