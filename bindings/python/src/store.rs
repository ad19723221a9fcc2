//! The classes `Store` and `Conversation`.

use std::sync::Arc;

use proem_api::{Callable, Failure, Store as AnyStore, Warning};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::convert::{answer, fields, loads, raised, value};
use crate::hook::PythonCallable;
use crate::prompt::{Turn, text_of};
use crate::running::detached;

/// A store of conversations.
#[pyclass(frozen, subclass, module = "proem")]
pub(crate) struct Store(Arc<AnyStore>);

/// Does work with a store without the lock, then tells what the caller should learn of.
fn worked<T: Send>(
    py: Python<'_>,
    store: &Arc<AnyStore>,
    work: impl FnOnce() -> Result<T, Failure> + Send,
) -> PyResult<T> {
    let done = detached(py, work);
    for Warning { kind, message } in store.take_warnings() {
        py.import("proem._errors")?.getattr("warn")?.call1((kind, message))?;
    }
    done
}

#[pymethods]
impl Store {
    #[new]
    fn new(py: Python<'_>, name: &Bound<'_, PyAny>) -> PyResult<Self> {
        let name = text_of("name", name)?;
        detached(py, || AnyStore::open(&name)).map(Self)
    }

    /// The name of the store, without a password.
    #[getter]
    fn name(&self) -> String {
        self.0.name()
    }

    /// A page of conversations, the one with the newest epoch first.
    #[pyo3(signature = (*, search=None, after=None, limit=None))]
    fn conversations<'py>(
        &self,
        py: Python<'py>,
        search: Option<String>,
        after: Option<String>,
        limit: Option<usize>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let json = worked(py, &self.0, || self.0.conversations(search, after, limit))?;
        answer(py, &json)
    }

    /// The stored template with its version; `None` if there is none.
    fn template<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let json = worked(py, &self.0, || self.0.template())?;
        loads(py, &json)
    }

    /// Stores a new version of the template.
    #[pyo3(signature = (template, *, author=None, expected_version=None))]
    fn put_template<'py>(
        &self,
        py: Python<'py>,
        template: &Bound<'_, PyAny>,
        author: Option<&Bound<'_, PyAny>>,
        expected_version: Option<u64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let template = text_of("template", template)?;
        let author = author.map(|author| text_of("author", author)).transpose()?;
        let json =
            worked(py, &self.0, || self.0.put_template(&template, author.as_deref(), expected_version))?;
        loads(py, &json)
    }

    /// Forgets a conversation; tells whether there was one.
    fn remove(&self, py: Python<'_>, id: &Bound<'_, PyAny>) -> PyResult<bool> {
        let id = text_of("id", id)?;
        worked(py, &self.0, || self.0.remove(&id))
    }

    /// Closes the store: later operations fail.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        detached(py, || {
            self.0.close();
            Ok(())
        })
    }

    fn __repr__(&self) -> String {
        format!("<proem.Store {:?}>", self.0.name())
    }
}

/// A conversation of a store. It exists from its first turn on.
#[pyclass(frozen, subclass, module = "proem")]
pub(crate) struct Conversation(proem_api::Conversation);

impl Conversation {
    /// Does an operation whose answer is JSON.
    fn answered<'py>(
        &self,
        py: Python<'py>,
        work: impl FnOnce(&proem_api::Conversation) -> Result<String, Failure> + Send,
    ) -> PyResult<Bound<'py, PyAny>> {
        let json = worked(py, self.0.store(), || work(&self.0))?;
        answer(py, &json)
    }
}

#[pymethods]
impl Conversation {
    #[new]
    #[pyo3(signature = (store, id, /, **request))]
    fn new(
        store: &Bound<'_, Store>,
        id: &Bound<'_, PyAny>,
        request: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let (id, request) = (text_of("id", id)?, fields(request)?);
        let made = proem_api::Conversation::new(&store.get().0, &id, &request);
        made.map(Self).map_err(|failure| raised(store.py(), &failure))
    }

    /// The id.
    #[getter]
    fn id(&self) -> &str {
        self.0.id()
    }

    /// Registers a callable for an event.
    fn _add_hook(&self, event: &str, name: &str, start: Py<PyAny>, function: Py<PyAny>) -> PyResult<()> {
        let callable: Arc<dyn Callable> = Arc::new(PythonCallable { start, function });
        let added = self.0.add_hook(event, name, callable);
        added.map_err(|failure| Python::attach(|py| raised(py, &failure)))
    }

    /// Answers one turn: the frozen prompt, and everything else that the model sees.
    #[pyo3(signature = (prompt=None, /, **call))]
    fn turn(
        &self,
        py: Python<'_>,
        prompt: Option<&Bound<'_, PyAny>>,
        call: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Turn> {
        let call = with_prompt(py, prompt, call)?;
        worked(py, self.0.store(), || self.0.turn(&call)).map(Turn)
    }

    /// Answers one turn for the JSON text of a request.
    fn turn_json(&self, py: Python<'_>, request: &Bound<'_, PyAny>) -> PyResult<Turn> {
        let request = text_of("request", request)?;
        worked(py, self.0.store(), || self.0.turn(&request)).map(Turn)
    }

    /// Builds the prompt again from the files as they are now.
    #[pyo3(signature = (**call))]
    fn reload<'py>(&self, py: Python<'py>, call: Option<&Bound<'_, PyDict>>) -> PyResult<Bound<'py, PyAny>> {
        let call = fields(call)?;
        self.answered(py, |conversation| conversation.reload(&call))
    }

    /// Searches for skills again; other files stay as they were read.
    fn reload_skills<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.answered(py, proem_api::Conversation::reload_skills)
    }

    /// Replaces all tools. Active ones stay active while they exist, and new ones become active.
    fn set_tool_registry<'py>(
        &self,
        py: Python<'py>,
        tools: &Bound<'_, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let tools = value("tools", tools)?;
        self.answered(py, |conversation| conversation.set_tool_registry(&tools))
    }

    /// Sets the active tools, by name.
    fn set_active_tools<'py>(
        &self,
        py: Python<'py>,
        names: &Bound<'_, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let names = value("names", names)?;
        let names: Vec<String> = serde_json::from_str(&names).map_err(|_| {
            let failure = Failure::bad_request("`names` is not a list of texts");
            raised(py, &failure.with_hint("give the names of tools"))
        })?;
        self.answered(py, |conversation| conversation.set_active_tools(&names))
    }

    /// Adds skills, packs and asset folders after the present ones.
    #[pyo3(signature = (**paths))]
    fn add_resources<'py>(
        &self,
        py: Python<'py>,
        paths: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let paths = fields(paths)?;
        self.answered(py, |conversation| conversation.add_resources(&paths))
    }

    /// Goes on with another profile.
    fn switch_profile<'py>(
        &self,
        py: Python<'py>,
        profile: &Bound<'_, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let profile = text_of("profile", profile)?;
        self.answered(py, |conversation| conversation.switch_profile(&profile))
    }

    /// Begins a compaction. The epoch in force stays in force until it is committed.
    #[pyo3(signature = (**call))]
    fn begin_compaction<'py>(
        &self,
        py: Python<'py>,
        call: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let call = fields(call)?;
        self.answered(py, |conversation| conversation.begin_compaction(&call))
    }

    /// Opens the epoch after a compaction.
    fn commit_compaction<'py>(
        &self,
        py: Python<'py>,
        token: &Bound<'_, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let token = text_of("token", token)?;
        self.answered(py, |conversation| conversation.commit_compaction(&token))
    }

    /// Ends a compaction without an epoch.
    fn abort_compaction(&self, py: Python<'_>, token: &Bound<'_, PyAny>) -> PyResult<()> {
        let token = text_of("token", token)?;
        worked(py, self.0.store(), || self.0.abort_compaction(&token))
    }

    /// Shows the changes that a reload would make. Nothing is changed.
    #[pyo3(signature = (**call))]
    fn plan<'py>(&self, py: Python<'py>, call: Option<&Bound<'_, PyDict>>) -> PyResult<Bound<'py, PyAny>> {
        let call = fields(call)?;
        self.answered(py, |conversation| conversation.plan(&call))
    }

    /// Shows the changes that other tools would make. Nothing is changed.
    fn plan_tools<'py>(&self, py: Python<'py>, tools: &Bound<'_, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let tools = value("tools", tools)?;
        self.answered(py, |conversation| conversation.plan_tools(&tools))
    }

    /// Compares the frozen prompt with one that is built now. Nothing is changed.
    fn drift<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.answered(py, |conversation| conversation.plan("{}"))
    }

    /// Compares two epochs.
    fn diff<'py>(&self, py: Python<'py>, before: u64, after: u64) -> PyResult<Bound<'py, PyAny>> {
        self.answered(py, |conversation| conversation.diff(before, after))
    }

    /// The frozen prompt, and all epochs.
    fn history<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.answered(py, proem_api::Conversation::history)
    }

    /// One epoch with the source of every byte, and the payload for a provider if one is named.
    #[pyo3(signature = (number, *, provider=None))]
    fn epoch<'py>(
        &self,
        py: Python<'py>,
        number: u64,
        provider: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let provider = provider.map(|provider| text_of("provider", provider)).transpose()?;
        self.answered(py, |conversation| conversation.epoch(number, provider.as_deref()))
    }

    /// The changes that wait for the next epoch.
    fn pending<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let json = worked(py, self.0.store(), || self.0.pending())?;
        loads(py, &json)
    }

    /// Begins a conversation with the prompt of this one.
    #[pyo3(signature = (id, *, role=None))]
    fn fork<'py>(
        &self,
        py: Python<'py>,
        id: &Bound<'_, PyAny>,
        role: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let id = text_of("id", id)?;
        let role = role.map(|role| text_of("role", role)).transpose()?;
        self.answered(py, |conversation| conversation.fork(&id, role.as_deref()))
    }

    /// Begins a conversation with a prompt of its own, from this one.
    #[pyo3(signature = (id, /, **call))]
    fn spawn<'py>(
        &self,
        py: Python<'py>,
        id: &Bound<'_, PyAny>,
        call: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (id, call) = (text_of("id", id)?, fields(call)?);
        self.answered(py, |conversation| conversation.spawn(&id, &call))
    }

    /// Forgets the conversation; tells whether there was one.
    fn remove(&self, py: Python<'_>) -> PyResult<bool> {
        worked(py, self.0.store(), || self.0.remove())
    }

    fn __repr__(&self) -> String {
        format!("<proem.Conversation {:?}>", self.0.id())
    }
}

/// Writes the fields of a call, with the prompt of the user.
fn with_prompt(
    py: Python<'_>,
    prompt: Option<&Bound<'_, PyAny>>,
    call: Option<&Bound<'_, PyDict>>,
) -> PyResult<String> {
    let Some(prompt) = prompt else { return fields(call) };
    let all = match call {
        None => PyDict::new(py),
        Some(call) if call.contains("prompt")? => {
            let failure = Failure::bad_request("`prompt` is given twice");
            return Err(raised(py, &failure.with_hint("give it first, or by its name")));
        }
        Some(call) => call.copy()?,
    };
    all.set_item("prompt", prompt)?;
    fields(Some(&all))
}
