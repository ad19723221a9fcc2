//! Foreign work on a thread of its own: a panic or a late answer is the handler's failure and not the build's.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use super::HookFailureReason;
use crate::observe::deadline;

/// The interval at which the build's deadline is checked while a handler runs.
const LOOK_TIME: Duration = Duration::from_millis(20);

/// Does `work` on a thread of its own, for at most `time_max`. A late thread goes on, and its answer is discarded.
pub(super) fn watched<A: Send + 'static>(
    time_max: Duration,
    work: impl FnOnce() -> Result<A, HookFailureReason> + Send + 'static,
) -> Result<A, HookFailureReason> {
    let (sender, receiver) = mpsc::channel();
    let build = deadline::inherited();
    let work = move || {
        let answer = build.within(|| catch_unwind(AssertUnwindSafe(work)));
        let answer = answer.unwrap_or_else(|_| Err(HookFailureReason::plain("it panicked")));
        // A late answer is ignored.
        let _ = sender.send(answer);
    };
    thread::Builder::new()
        .name("hook".to_owned())
        .spawn(work)
        .map_err(|error| HookFailureReason::plain(format!("cannot start a thread for it: {error}")))?;
    let started = Instant::now();
    loop {
        let left = time_max.saturating_sub(started.elapsed());
        match receiver.recv_timeout(left.min(LOOK_TIME)) {
            Ok(answer) => return answer,
            Err(RecvTimeoutError::Timeout) if !left.is_zero() => {
                deadline::check()
                    .map_err(|why| HookFailureReason::plain(format!("the build was stopped: {why}")))?;
            }
            Err(_) => {
                return Err(HookFailureReason::plain(format!(
                    "it took longer than {} ms",
                    time_max.as_millis()
                )));
            }
        }
    }
}
