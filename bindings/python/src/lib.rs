//! The native module `proem._proem` of the Python package. It converts values and calls `proem-api`; the package itself is
//! in `python/proem`.

mod convert;
mod hook;
mod prompt;
mod running;
mod store;

use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::convert::{answer, fields, value};
use crate::prompt::text_of;
use crate::running::detached;

/// Finds what wastes tokens, misleads the model or leaks secrets in the prompt of a request.
#[pyfunction]
#[pyo3(signature = (*, strict=false, determinism=false, agents=None, all=false, **request))]
fn check<'py>(
    py: Python<'py>,
    strict: bool,
    determinism: bool,
    agents: Option<&Bound<'_, PyAny>>,
    all: bool,
    request: Option<&Bound<'_, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let request = fields(request)?;
    let options = proem_api::CheckOptions { strict, determinism, agents: names(agents)?, all };
    let json = detached(py, || proem_api::check(&request, &options))?;
    answer(py, &json)
}

/// Shows the instruction files and skills that each agent reads in a directory.
#[pyfunction]
#[pyo3(signature = (*, agents=None, **request))]
fn compat<'py>(
    py: Python<'py>,
    agents: Option<&Bound<'_, PyAny>>,
    request: Option<&Bound<'_, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let (request, agents) = (fields(request)?, names(agents)?.unwrap_or_default());
    let json = detached(py, || proem_api::compat(&request, &agents))?;
    answer(py, &json)
}

/// Tells why recorded calls missed the provider's cache, and what that cost.
#[pyfunction]
#[pyo3(signature = (path=None, *, source=None, since=None, conversation=None, provider=None))]
fn report<'py>(
    py: Python<'py>,
    path: Option<&Bound<'_, PyAny>>,
    source: Option<&Bound<'_, PyAny>>,
    since: Option<&Bound<'_, PyAny>>,
    conversation: Option<&Bound<'_, PyAny>>,
    provider: Option<&Bound<'_, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let text =
        |what: &str, given: Option<&Bound<'_, PyAny>>| given.map(|given| text_of(what, given)).transpose();
    let options = proem_api::ReportOptions {
        path: text("path", path)?,
        source: text("source", source)?,
        since: text("since", since)?,
        conversation: text("conversation", conversation)?,
        provider: text("provider", provider)?,
    };
    let json = detached(py, || proem_api::report(&options))?;
    answer(py, &json)
}

/// Takes a list of names, or one name.
fn names(given: Option<&Bound<'_, PyAny>>) -> PyResult<Option<Vec<String>>> {
    let Some(given) = given else { return Ok(None) };
    let json = value("agents", given)?;
    let one = serde_json::from_str::<String>(&json).map(|name| vec![name]);
    let all = one.or_else(|_| serde_json::from_str(&json));
    all.map(Some).map_err(|_| {
        let failure = proem_api::Failure::bad_request("`agents` is not a list of names");
        convert::raised(given.py(), &failure.with_hint("give the names of agents"))
    })
}

/// The native part of the package `proem`.
#[pymodule]
mod _proem {
    #[pymodule_export]
    use super::convert::raw_field;
    #[pymodule_export]
    use super::hook::Job;
    #[pymodule_export]
    use super::prompt::{Prompt, Turn, diff};
    #[pymodule_export]
    use super::running::{end, forked};
    #[pymodule_export]
    use super::store::{Conversation, Store};
    #[pymodule_export]
    use super::{check, compat, report};

    /// The version of the package.
    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");
}
