//! Callables of Python as hooks. Each call runs on a thread that Python started: it may be stopped at the interpreter's end.

use std::sync::mpsc::{SyncSender, sync_channel};

use proem_api::Callable;
use pyo3::prelude::*;

use crate::convert::{loads, value};
use crate::running::Work;

/// A callable, and the function of `proem._hooks` that starts a thread for it.
pub(crate) struct PythonCallable {
    pub(crate) start: Py<PyAny>,
    pub(crate) function: Py<PyAny>,
}

impl Callable for PythonCallable {
    fn call(&self, event: String) -> Result<String, String> {
        let ending = || "the interpreter is shutting down".to_owned();
        let (sender, receiver) = sync_channel(1);
        {
            let _running = Work::begin().ok_or_else(ending)?;
            let job = Job { event, sender };
            let started = Python::try_attach(|py| self.start.call1(py, (&self.function, job)).map(drop));
            started.ok_or_else(ending)?.map_err(|error| error.to_string())?;
        }
        receiver.recv().unwrap_or_else(|_| Err("it gave no answer".to_owned()))
    }
}

/// One call of a callable.
#[pyclass(frozen)]
pub(crate) struct Job {
    event: String,
    sender: SyncSender<Result<String, String>>,
}

#[pymethods]
impl Job {
    /// Returns the event.
    fn event<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        loads(py, &self.event)
    }

    /// Gives the answer of the callable.
    fn answer(&self, answer: &Bound<'_, PyAny>) -> PyResult<()> {
        let answer = value("answer", answer)?;
        // A late answer is ignored.
        let _ = self.sender.try_send(Ok(answer));
        Ok(())
    }

    /// Tells what the callable raised.
    fn fail(&self, why: String) {
        let _ = self.sender.try_send(Err(why));
    }
}
