//! A handle of a store, for a process that may fork, share the files with another SQLite, or close the handle.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use proem::Engine;
use proem::hooks::HookFailure;
use proem::store::traffic::ListQuery;
use proem_core::limit::TEMPLATE_BYTES_MAX;
use proem_store::{ConversationError, Conversations, StoreLocation, TemplateVersion, is_page_key};
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::hook::CallableHook;
use crate::shapes::ConversationsAnswer;
use crate::sqlite_calls::{self, StoreFiles};

/// The largest and the default number of conversations on one page.
const PAGE_MAX: usize = 200;
const PAGE: usize = 50;

/// The most warnings that wait for the caller.
const WARNINGS_MAX: usize = 1000;

/// A store of conversations.
pub struct Store {
    location: StoreLocation,
    opened: Mutex<Option<Arc<Opened>>>,
    warnings: Arc<Warnings>,
}

/// A store as one process has it.
pub(crate) struct Opened {
    process: u32,
    files: Option<StoreFiles>,
    store: Arc<dyn proem_store::Store>,
    plain: Arc<Conversations>,
    /// The conversations of handles with callables, by handle: with the number of callables.
    hooked: Mutex<HashMap<u64, (usize, Arc<Conversations>)>>,
    warnings: Arc<Warnings>,
}

/// An event that the caller should learn of, although the operation succeeded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// The kind of event: `fork` or `hook`.
    pub kind: &'static str,
    /// The event, in words.
    pub message: String,
}

#[derive(Debug, Default)]
struct Warnings {
    any: AtomicBool,
    all: Mutex<Vec<Warning>>,
}

impl Warnings {
    fn add(&self, kind: &'static str, message: String) {
        let mut all = locked(&self.all);
        if all.len() < WARNINGS_MAX {
            all.push(Warning { kind, message });
        }
        self.any.store(true, Ordering::Release);
    }

    fn take(&self) -> Vec<Warning> {
        if self.any.swap(false, Ordering::AcqRel) {
            std::mem::take(&mut *locked(&self.all))
        } else {
            Vec::new()
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Opened {
    fn new(location: &StoreLocation, warnings: &Arc<Warnings>) -> Result<Self, Failure> {
        sqlite_calls::install();
        // A second descriptor that is closed while the store is opened would drop its first locks.
        if let Some(path) = location.path() {
            StoreFiles::find(path).check()?;
        }
        let store: Arc<dyn proem_store::Store> = location.open()?.into();
        let files = location.path().map(StoreFiles::find);
        let plain = Conversations::new(Arc::clone(&store), engine(warnings));
        Ok(Self {
            process: std::process::id(),
            files,
            store,
            plain: Arc::new(plain),
            hooked: Mutex::default(),
            warnings: Arc::clone(warnings),
        })
    }

    /// Returns the conversations of a handle with these callables.
    pub(crate) fn conversations(&self, handle: u64, hooks: &[CallableHook]) -> Arc<Conversations> {
        if hooks.is_empty() {
            return Arc::clone(&self.plain);
        }
        let mut all = locked(&self.hooked);
        match all.get(&handle) {
            Some((count, known)) if *count == hooks.len() => Arc::clone(known),
            _ => {
                let engine = hooks.iter().cloned().fold(engine(&self.warnings), Engine::with_hook);
                let made = Arc::new(Conversations::new(Arc::clone(&self.store), engine));
                all.insert(handle, (hooks.len(), Arc::clone(&made)));
                made
            }
        }
    }

    pub(crate) fn forget(&self, handle: u64) {
        locked(&self.hooked).remove(&handle);
    }
}

fn engine(warnings: &Arc<Warnings>) -> Engine {
    let warnings = Arc::clone(warnings);
    Engine::new().on_hook_failure(move |failure: &HookFailure| {
        let (hook, event, why) = (failure.hook(), failure.event().word(), failure.why());
        warnings.add("hook", format!("the hook `{hook}` failed at `{event}` and was skipped: {why}"));
    })
}

/// Keeps what another process has opened: its connections are not closed here, because they belong to that process.
fn leave(opened: Option<Arc<Opened>>) {
    if let Some(opened) = opened {
        if opened.process == std::process::id() {
            drop(opened);
        } else {
            std::mem::forget(opened);
        }
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        leave(locked(&self.opened).take());
    }
}

impl Store {
    /// Opens the store of a name: a path, `sqlite:PATH`, `memory:`, or the URL of a PostgreSQL database.
    pub fn open(name: &str) -> Result<Arc<Self>, Failure> {
        let location = StoreLocation::parse(name)?;
        let warnings = Arc::default();
        let opened = Opened::new(&location, &warnings)?;
        Ok(Arc::new(Self { location, opened: Mutex::new(Some(Arc::new(opened))), warnings }))
    }

    /// Returns the name, without a password.
    #[must_use]
    pub fn name(&self) -> String {
        self.location.to_string()
    }

    /// Closes the store. Operations that run go on; later ones fail.
    pub fn close(&self) {
        leave(locked(&self.opened).take());
    }

    /// Returns the events since the last call that the caller should learn of.
    #[must_use]
    pub fn take_warnings(&self) -> Vec<Warning> {
        self.warnings.take()
    }

    /// Forgets the callables of a handle.
    pub(crate) fn forget(&self, handle: u64) {
        let opened = locked(&self.opened).clone();
        match opened {
            Some(opened) if opened.process == std::process::id() => opened.forget(handle),
            other => leave(other),
        }
    }

    /// Returns the store of this process. A child that was forked opens its own, and says so.
    pub(crate) fn current(&self) -> Result<Arc<Opened>, Failure> {
        let mut opened = locked(&self.opened);
        let known = opened.clone().ok_or_else(|| {
            Failure::new("store_closed", format!("the store {} was closed", self.location))
                .with_hint("open it again")
        })?;
        if known.process == std::process::id() {
            drop(opened);
            if let Some(files) = &known.files {
                files.check()?;
            }
            return Ok(known);
        }
        let fresh = Arc::new(Opened::new(&self.location, &self.warnings)?);
        std::mem::forget(known);
        leave(opened.replace(Arc::clone(&fresh)));
        let rest = match self.location {
            StoreLocation::Memory => {
                "; a store in memory stays in the process that opened it, and this one is empty"
            }
            _ => "",
        };
        let message = format!(
            "the store {} was opened before a fork, and was opened again in this process{rest}",
            self.location
        );
        self.warnings.add("fork", message);
        Ok(fresh)
    }

    /// Returns a page of conversations as JSON, the one with the newest epoch first: as `GET /conversations` does.
    pub fn conversations(
        &self,
        search: Option<String>,
        after: Option<String>,
        limit: Option<usize>,
    ) -> Result<String, Failure> {
        if after.as_deref().is_some_and(|after| !is_page_key(after)) {
            return Err(Failure::bad_request("`after` is not a place in the list")
                .with_hint("take it from `next` of the page before"));
        }
        let most = limit.unwrap_or(PAGE).clamp(1, PAGE_MAX);
        let query = ListQuery { search, after, most, ..ListQuery::default() };
        let page = self.current()?.store.list_conversations(&query)?;
        Ok(serde_json::to_string(&ConversationsAnswer::from(page))?)
    }

    /// Returns the stored template as JSON; `null` if there is none.
    pub fn template(&self) -> Result<String, Failure> {
        let found = self.current()?.store.template()?;
        let shape = |one: TemplateVersion| json!({ "template": one.text, "version": one.version });
        Ok(found.map_or(Value::Null, shape).to_string())
    }

    /// Stores a new version of the template, and returns it as JSON. If `expected_version` is given and is not the current
    /// one, nothing is stored.
    pub fn put_template(
        &self,
        text: &str,
        author: Option<&str>,
        expected_version: Option<u64>,
    ) -> Result<String, Failure> {
        if text.len() > TEMPLATE_BYTES_MAX {
            let bytes = text.len();
            let message = format!("the template has {bytes} bytes, and {TEMPLATE_BYTES_MAX} are allowed");
            return Err(Failure::new("too_large", message));
        }
        TemplateVersion::check(text, author).map_err(Failure::bad_request)?;
        let stored = self.current()?.store.put_template(text, author, expected_version)?;
        Ok(json!({ "template": stored.text, "version": stored.version }).to_string())
    }

    /// Forgets a conversation; tells whether there was one.
    pub fn remove(&self, id: &str) -> Result<bool, Failure> {
        if !proem_store::is_conversation_id(id) {
            return Err(ConversationError::BadId.into());
        }
        Ok(self.current()?.store.remove(id)?)
    }
}
