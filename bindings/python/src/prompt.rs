//! The classes `Prompt` and `Turn`.

use proem::Turn as EngineTurn;
use proem_api::{Side, messages_json, turn_json};
use proem_core::carrier::Carrier;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::convert::{answer, fields, loads, raised, value};
use crate::running::detached;

/// A prompt that was built for a request.
#[pyclass(frozen, subclass, module = "proem")]
pub(crate) struct Prompt(proem_api::Prompt);

#[pymethods]
impl Prompt {
    #[new]
    #[pyo3(signature = (**request))]
    fn new(py: Python<'_>, request: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let request = fields(request)?;
        detached(py, || proem_api::Prompt::build(&request)).map(Self)
    }

    /// The system prompt; `None` if it is empty.
    #[getter]
    fn system(&self) -> Option<&str> {
        self.0.system()
    }

    /// The text of each carrier; a carrier without text is missing.
    #[getter]
    fn carriers<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let carriers = PyDict::new(py);
        for (carrier, text) in self.0.built().whole().carriers() {
            carriers.set_item(carrier.word(), text)?;
        }
        Ok(carriers)
    }

    /// The notes: everything that was cut, skipped or defaulted, and other findings.
    #[getter]
    fn notes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.to_dict(py)?.get_item("notes")
    }

    /// The whole prompt: that of `proem build --format json`.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        loads(py, &self.json(py)?)
    }

    /// The part of the system prompt that must not change.
    #[getter]
    fn prefix(&self) -> &str {
        self.0.built().frozen().prefix()
    }

    /// The separator between the prefix and the rest.
    #[getter]
    fn boundary(&self) -> &str {
        self.0.built().suffix().boundary()
    }

    /// The part of the system prompt that belongs to this turn alone.
    #[getter]
    fn suffix(&self) -> String {
        self.0.built().suffix().text(Carrier::System)
    }

    /// The SHA-256 of the prefix, in hexadecimal.
    #[getter]
    fn digest(&self) -> String {
        self.0.built().frozen().digest().hex()
    }

    /// The profile that it was built by.
    #[getter]
    fn profile(&self) -> &str {
        self.0.built().frozen().profile()
    }

    /// The whole prompt as JSON text: that of `proem build --format json`.
    #[getter]
    fn json(&self, py: Python<'_>) -> PyResult<String> {
        self.0.to_json().map_err(|failure| raised(py, &failure))
    }

    /// Sections, files, notes and the source of every byte: that of `proem explain --format json`.
    fn explain<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let json = detached(py, || self.0.explain())?;
        answer(py, &json)
    }

    /// The source of a text; if the prompt does not have it, the files that do and why they were not used.
    fn why<'py>(&self, py: Python<'py>, text: &Bound<'_, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let text = text_of("text", text)?;
        let json = detached(py, || self.0.why(&text))?;
        answer(py, &json)
    }

    /// The fields of a provider's request body.
    #[pyo3(signature = (provider, **call))]
    fn payload<'py>(
        &self,
        py: Python<'py>,
        provider: &Bound<'_, PyAny>,
        call: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        loads(py, &self.payload_json(py, provider, call)?)
    }

    /// The fields of a provider's request body as JSON text, with the spelling of the messages.
    #[pyo3(signature = (provider, **call))]
    fn payload_json(
        &self,
        py: Python<'_>,
        provider: &Bound<'_, PyAny>,
        call: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<String> {
        let (provider, call) = (text_of("provider", provider)?, fields(call)?);
        let delivered = detached(py, || self.0.deliver(&provider, &call))?;
        Ok(delivered.payload.get().to_owned())
    }

    /// The messages to keep for the next call, as they are sent.
    #[pyo3(signature = (provider, **call))]
    fn history<'py>(
        &self,
        py: Python<'py>,
        provider: &Bound<'_, PyAny>,
        call: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        loads(py, &self.history_json(py, provider, call)?)
    }

    /// The messages to keep for the next call as JSON text, in their spelling.
    #[pyo3(signature = (provider, **call))]
    fn history_json(
        &self,
        py: Python<'_>,
        provider: &Bound<'_, PyAny>,
        call: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<String> {
        let (provider, call) = (text_of("provider", provider)?, fields(call)?);
        let delivered = detached(py, || self.0.deliver(&provider, &call))?;
        Ok(messages_json(&delivered.history))
    }

    fn __repr__(&self) -> String {
        format!("<proem.Prompt profile={:?} digest={:?}>", self.profile(), self.digest())
    }
}

/// Takes a text from Python; other values are refused with a hint.
pub(crate) fn text_of(what: &str, given: &Bound<'_, PyAny>) -> PyResult<String> {
    let json = value(what, given)?;
    serde_text(&json).ok_or_else(|| {
        let failure = proem_api::Failure::bad_request(format!("`{what}` is not a text"));
        raised(given.py(), &failure.with_hint("give a `str`"))
    })
}

fn serde_text(json: &str) -> Option<String> {
    serde_json::from_str(json).ok()
}

/// Compares two prompts: each a `Prompt`, or the JSON text of one.
#[pyfunction]
#[pyo3(signature = (a, b, *, model=None, provider=None))]
pub(crate) fn diff<'py>(
    py: Python<'py>,
    a: &Bound<'_, PyAny>,
    b: &Bound<'_, PyAny>,
    model: Option<&Bound<'_, PyAny>>,
    provider: Option<&Bound<'_, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let side = |what: &str, side: &Bound<'_, PyAny>| match side.cast::<Prompt>() {
        Ok(prompt) => Ok(Side::Prompt(Box::new(prompt.get().0.clone()))),
        Err(_) => text_of(what, side).map(Side::Saved),
    };
    let (a, b) = (side("a", a)?, side("b", b)?);
    let text =
        |what: &str, given: Option<&Bound<'_, PyAny>>| given.map(|given| text_of(what, given)).transpose();
    let (model, provider) = (text("model", model)?, text("provider", provider)?);
    let json = detached(py, || proem_api::diff(&a, &b, model.as_deref(), provider.as_deref()))?;
    answer(py, &json)
}

/// Everything that the model sees in one turn.
#[pyclass(frozen, module = "proem")]
pub(crate) struct Turn(pub(crate) EngineTurn);

impl Turn {
    /// Reads one field of the answer.
    fn field<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        loads(py, &self.json(py)?)?.get_item(name)
    }
}

#[pymethods]
impl Turn {
    /// The answer as JSON text: that of `POST /conversations/{id}/turn`.
    #[getter]
    fn json(&self, py: Python<'_>) -> PyResult<String> {
        turn_json(&self.0).map_err(|failure| raised(py, &failure))
    }

    /// The answer as a dictionary.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        loads(py, &self.json(py)?)
    }

    /// The version of this shape.
    #[getter]
    fn version<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.field(py, "version")
    }

    /// The id of the conversation.
    #[getter]
    fn conversation(&self) -> &str {
        &self.0.conversation
    }

    /// The profile that the prompt was built by.
    #[getter]
    fn profile(&self) -> &str {
        self.0.frozen.profile()
    }

    /// The number of the epoch in force, from 1.
    #[getter]
    fn epoch(&self) -> u64 {
        self.0.epoch
    }

    /// The reason for which the epoch was opened.
    #[getter]
    fn reason(&self) -> &str {
        &self.0.reason
    }

    /// True if the stored prompt was used, false if this turn built it.
    #[getter]
    fn reused(&self) -> bool {
        self.0.is_reused
    }

    /// The frozen text of each carrier.
    #[getter]
    fn carriers<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let carriers = PyDict::new(py);
        for (carrier, text) in self.0.frozen.body().carriers() {
            carriers.set_item(carrier.word(), text)?;
        }
        Ok(carriers)
    }

    /// The frozen text of the system carrier, before the boundary.
    #[getter]
    fn prefix<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.field(py, "prefix")
    }

    /// The line between the prefix and the part of this turn.
    #[getter]
    fn boundary<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.field(py, "boundary")
    }

    /// The text of this turn after the boundary, on the system carrier.
    #[getter]
    fn suffix<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.field(py, "suffix")
    }

    /// The text of this turn on the `turn` carrier.
    #[getter]
    fn turn<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.field(py, "turn")
    }

    /// The SHA-256 of the prefix, in hexadecimal.
    #[getter]
    fn digest(&self) -> String {
        self.0.frozen.digest().hex()
    }

    /// The digest of the prefix and the tools, on which a provider's cache depends.
    #[getter]
    fn fingerprint(&self) -> &str {
        &self.0.fingerprint
    }

    /// The properties that decide whether a running session may be used for this turn.
    #[getter]
    fn signature<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.field(py, "signature")
    }

    /// The system prompt that the model reads in this turn: after hooks.
    #[getter]
    fn system_prompt(&self) -> Option<&str> {
        Some(self.0.system_prompt.as_str()).filter(|text| !text.is_empty())
    }

    /// The messages of this call, in a neutral shape.
    #[getter]
    fn messages<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        loads(py, &self.messages_json())
    }

    /// The messages of this call as JSON text, in their spelling.
    #[getter]
    fn messages_json(&self) -> String {
        messages_json(&self.0.messages)
    }

    /// The definitions of the active tools.
    #[getter]
    fn tools<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.field(py, "tools")
    }

    /// The messages to keep and send with the next turn: in the provider's shape if one was named.
    #[getter]
    fn history<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        loads(py, &self.history_json())
    }

    /// The messages to keep as JSON text, in their spelling: the value of `messages` for the next turn.
    #[getter]
    fn history_json(&self) -> String {
        messages_json(&self.0.history)
    }

    /// The fields of the provider's request body, if a provider was named.
    #[getter]
    fn payload<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        loads(py, self.payload_json().unwrap_or("null"))
    }

    /// The fields of the provider's request body as JSON text, with the spelling of the messages.
    #[getter]
    fn payload_json(&self) -> Option<&str> {
        self.0.payload.as_deref().map(|payload| payload.get())
    }

    /// The changes that wait for the next epoch.
    #[getter]
    fn pending<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.field(py, "pending")
    }

    /// The changes of each hook in the frozen prompt, in order.
    #[getter]
    fn changes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.field(py, "changes")
    }

    /// The reason for an expected cache miss of the prefix in this turn.
    #[getter]
    fn expected_miss(&self) -> Option<&str> {
        self.0.expected_miss.as_deref()
    }

    /// Notes for the reader.
    #[getter]
    fn notes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.field(py, "notes")
    }

    fn __repr__(&self) -> String {
        format!(
            "<proem.Turn conversation={:?} epoch={} digest={:?}>",
            self.0.conversation,
            self.0.epoch,
            self.digest()
        )
    }
}
