//! What waits for the server for too long is cancelled. A transaction says how long it may take; a single statement
//! cannot, unless something is kept in the session.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use postgres::{CancelToken, Client};

/// How long a statement may take.
const TIME_MAX: Duration = Duration::from_secs(8);

/// How often somebody looks.
const TICK: Duration = Duration::from_secs(1);

pub(super) struct Patience {
    waiting: Arc<Mutex<Waiting>>,
}

#[derive(Default)]
struct Waiting {
    statements: BTreeMap<u64, (Instant, CancelToken)>,
    last: u64,
}

/// A statement that is waited for.
pub(super) struct Waited<'p> {
    patience: &'p Patience,
    number: u64,
}

impl Patience {
    /// Looks after statements until it is dropped; `cancel` ends one.
    pub(super) fn new(cancel: impl Fn(&CancelToken) + Send + 'static) -> Self {
        let waiting = Arc::default();
        let watched = Arc::downgrade(&waiting);
        std::thread::spawn(move || watch(&watched, cancel));
        Self { waiting }
    }

    /// Looks after the statement that is sent next.
    pub(super) fn begin(&self, client: &Client) -> Waited<'_> {
        let token = client.cancel_token();
        let mut waiting = locked(&self.waiting);
        waiting.last += 1;
        let number = waiting.last;
        waiting.statements.insert(number, (Instant::now(), token));
        Waited { patience: self, number }
    }
}

impl Waited<'_> {
    /// Ends the wait; tells whether it was too long. What cancels it may come late, and must not meet another
    /// statement: then the connection is not to be used again.
    pub(super) fn was_too_long(self) -> bool {
        locked(&self.patience.waiting).statements.remove(&self.number).is_none()
    }
}

fn watch(waiting: &Weak<Mutex<Waiting>>, cancel: impl Fn(&CancelToken)) {
    loop {
        std::thread::park_timeout(TICK);
        let Some(waiting) = waiting.upgrade() else { return };
        let is_over = |_: &u64, (begun, _): &mut (Instant, CancelToken)| begun.elapsed() > TIME_MAX;
        let over: Vec<_> = locked(&waiting).statements.extract_if(.., is_over).collect();
        drop(waiting);
        for (_, (_, token)) in over {
            cancel(&token);
        }
    }
}

/// Nobody leaves it half changed.
fn locked(waiting: &Mutex<Waiting>) -> MutexGuard<'_, Waiting> {
    waiting.lock().unwrap_or_else(PoisonError::into_inner)
}
