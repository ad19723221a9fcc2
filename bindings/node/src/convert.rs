//! Work on a thread of its own as a promise, and errors as exceptions. Requests and answers are JSON text here: `index.js`
//! writes and reads it.

use std::panic::{AssertUnwindSafe, catch_unwind};

use napi::bindgen_prelude::{AsyncTask, ToNapiValue, TypeName};
use napi::{Env, Error, Status, Task};
use proem_api::Failure;

use crate::hook::is_ending;

/// Work that a thread of Node's pool does.
pub struct Work<T>(Option<Box<dyn FnOnce() -> Result<T, Failure> + Send>>);

/// Makes a promise of work.
pub(crate) fn promise<T>(work: impl FnOnce() -> Result<T, Failure> + Send + 'static) -> AsyncTask<Work<T>>
where
    T: Send + ToNapiValue + TypeName + 'static,
{
    AsyncTask::new(Work(Some(Box::new(work))))
}

/// Makes an exception of an error: its message is the error as JSON, of which `index.js` makes a `ProemError`.
pub(crate) fn thrown(failure: &Failure) -> Error {
    Error::new(Status::GenericFailure, failure.to_json())
}

impl<T: Send + ToNapiValue + TypeName + 'static> Task for Work<T> {
    type Output = T;
    type JsValue = T;

    fn compute(&mut self) -> napi::Result<T> {
        let internal = || Failure::new("internal", "this is a defect of proem: the work panicked");
        if is_ending() {
            let failure = Failure::new("shutting_down", "the process is ending");
            return Err(thrown(&failure.with_hint("await what was begun before the process exits")));
        }
        let work = self.0.take().ok_or_else(|| thrown(&internal()))?;
        let done = catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| Err(internal()));
        done.map_err(|failure| thrown(&failure))
    }

    fn resolve(&mut self, _: Env, output: T) -> napi::Result<T> {
        Ok(output)
    }
}
