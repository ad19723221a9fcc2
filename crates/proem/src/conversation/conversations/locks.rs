//! One lock for each conversation that is being changed, so that concurrent changes in one process do not build twice.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Locks by conversation. A lock exists while a change holds or awaits it.
#[derive(Default)]
pub(in crate::conversation) struct ConversationLocks {
    locks: Mutex<HashMap<String, Weak<Mutex<()>>>>,
}

impl ConversationLocks {
    /// Runs `work` while no other change of this conversation runs in this process.
    pub(in crate::conversation) fn hold<R>(&self, conversation: &str, work: impl FnOnce() -> R) -> R {
        let lock = self.lock(conversation);
        let _guard = lock.lock().unwrap_or_else(PoisonError::into_inner);
        work()
    }

    fn lock(&self, conversation: &str) -> Arc<Mutex<()>> {
        let mut locks = self.locks.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = locks.get(conversation).and_then(Weak::upgrade) {
            return known;
        }
        locks.retain(|_, lock| lock.strong_count() > 0);
        let lock = Arc::new(Mutex::new(()));
        locks.insert(conversation.to_owned(), Arc::downgrade(&lock));
        lock
    }
}
