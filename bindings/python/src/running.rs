//! Work without the interpreter's lock, and the end of the interpreter.
//!
//! A thread that asks for the lock of an interpreter that is ending is stopped on the spot, in the middle of this library.
//! So the interpreter waits for work that runs when it begins to end, and later work is refused.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use proem_api::Failure;
use pyo3::prelude::*;

use crate::convert::raised;

static RUNNING: AtomicUsize = AtomicUsize::new(0);
static IS_ENDING: AtomicBool = AtomicBool::new(false);

/// The longest time that the interpreter waits at its end, and the interval of its looks.
const WAIT_MAX: Duration = Duration::from_secs(10);
const LOOK_TIME: Duration = Duration::from_millis(2);

/// Counts work that will ask for the lock.
pub(crate) struct Work;

impl Work {
    /// Begins; `None` if the interpreter is ending.
    pub(crate) fn begin() -> Option<Self> {
        RUNNING.fetch_add(1, Ordering::SeqCst);
        let work = Self;
        (!IS_ENDING.load(Ordering::SeqCst)).then_some(work)
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        // After a fork the count begins again.
        let _ = RUNNING.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |count| count.checked_sub(1));
    }
}

/// Does work without the lock, so that other threads run.
pub(crate) fn detached<T: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<T, Failure> + Send,
) -> PyResult<T> {
    let Some(_running) = Work::begin() else {
        let failure = Failure::new("shutting_down", "the interpreter is shutting down")
            .with_hint("end threads that use proem before the program ends");
        return Err(raised(py, &failure));
    };
    py.detach(work).map_err(|failure| raised(py, &failure))
}

/// Refuses new work, and waits for that which runs. Called when the interpreter begins to end.
#[pyfunction]
pub(crate) fn end(py: Python<'_>) {
    IS_ENDING.store(true, Ordering::SeqCst);
    let until = Instant::now() + WAIT_MAX;
    while RUNNING.load(Ordering::SeqCst) > 0 && Instant::now() < until {
        py.detach(|| std::thread::sleep(LOOK_TIME));
    }
}

/// Forgets the work of threads that a fork left behind. Called in the child.
#[pyfunction]
pub(crate) fn forked() {
    RUNNING.store(0, Ordering::SeqCst);
}
