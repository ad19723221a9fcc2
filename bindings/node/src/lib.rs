//! The native part of the Node package: operations on JSON text. The package itself is `index.js`.

mod convert;
mod hook;

use std::sync::Arc;

use napi::bindgen_prelude::AsyncTask;
use napi_derive::napi;
use proem_api::{CheckOptions, Failure, ReportOptions, Side, Store, messages_json, turn_json};
use proem_core::carrier::Carrier;

use crate::convert::{Work, promise, thrown};
use crate::hook::{JsCallable, Start};

/// The version of the package.
#[napi]
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// A prompt that was built for a request.
#[napi]
pub struct NativePrompt(proem_api::Prompt);

#[napi]
impl NativePrompt {
    /// The system prompt; `null` if it is empty.
    #[napi(getter)]
    pub fn system(&self) -> Option<&str> {
        self.0.system()
    }

    /// The part of the system prompt that must not change.
    #[napi(getter)]
    pub fn prefix(&self) -> &str {
        self.0.built().frozen().prefix()
    }

    /// The separator between the prefix and the rest.
    #[napi(getter)]
    pub fn boundary(&self) -> &str {
        self.0.built().suffix().boundary()
    }

    /// The part of the system prompt that belongs to this turn alone.
    #[napi(getter)]
    pub fn suffix(&self) -> String {
        self.0.built().suffix().text(Carrier::System)
    }

    /// The SHA-256 of the prefix, in hexadecimal.
    #[napi(getter)]
    pub fn digest(&self) -> String {
        self.0.built().frozen().digest().hex()
    }

    /// The profile that it was built by.
    #[napi(getter)]
    pub fn profile(&self) -> &str {
        self.0.built().frozen().profile()
    }

    /// The whole prompt as JSON.
    #[napi]
    pub fn json(&self) -> napi::Result<String> {
        self.0.to_json().map_err(|failure| thrown(&failure))
    }

    /// Sections, files, notes and sources as JSON.
    #[napi]
    pub fn explain(&self) -> napi::Result<String> {
        self.0.explain().map_err(|failure| thrown(&failure))
    }

    /// The source of a text as JSON.
    #[napi]
    pub fn why(&self, text: String) -> napi::Result<String> {
        self.0.why(&text).map_err(|failure| thrown(&failure))
    }

    /// The body of a provider's request as JSON.
    #[napi]
    pub fn payload(&self, provider: String, call: String) -> napi::Result<String> {
        let delivered = self.0.deliver(&provider, &call).map_err(|failure| thrown(&failure))?;
        Ok(delivered.payload.get().to_owned())
    }

    /// The messages to keep for the next call as JSON.
    #[napi]
    pub fn history(&self, provider: String, call: String) -> napi::Result<String> {
        let delivered = self.0.deliver(&provider, &call).map_err(|failure| thrown(&failure))?;
        Ok(messages_json(&delivered.history))
    }

    /// Compares it with another prompt.
    #[napi]
    pub fn diff(
        &self,
        other: &NativePrompt,
        model: Option<String>,
        provider: Option<String>,
    ) -> napi::Result<String> {
        let side = |prompt: &Self| Side::Prompt(Box::new(prompt.0.clone()));
        let found = proem_api::diff(&side(self), &side(other), model.as_deref(), provider.as_deref());
        found.map_err(|failure| thrown(&failure))
    }
}

/// Builds the prompt for a request.
#[napi(ts_return_type = "Promise<NativePrompt>")]
pub fn build(request: String) -> AsyncTask<Work<NativePrompt>> {
    promise(move || proem_api::Prompt::build(&request).map(NativePrompt))
}

/// Builds the prompt for a request, on this thread.
#[napi]
pub fn build_sync(request: String) -> napi::Result<NativePrompt> {
    proem_api::Prompt::build(&request).map(NativePrompt).map_err(|failure| thrown(&failure))
}

/// Compares two saved prompts.
#[napi(ts_return_type = "Promise<string>")]
pub fn diff(
    a: String,
    b: String,
    model: Option<String>,
    provider: Option<String>,
) -> AsyncTask<Work<String>> {
    promise(move || proem_api::diff(&Side::Saved(a), &Side::Saved(b), model.as_deref(), provider.as_deref()))
}

/// The form of a check.
#[napi(object)]
#[derive(Default)]
pub struct NativeCheckOptions {
    /// Every finding is an error.
    pub strict: Option<bool>,
    /// Builds with other clocks, homes and environments, too.
    pub determinism: Option<bool>,
    /// Also checks what these agents would read.
    pub agents: Option<Vec<String>>,
    /// Checks every instruction file and skill of the repository.
    pub all: Option<bool>,
}

/// Finds what wastes tokens, misleads the model or leaks secrets.
#[napi(ts_return_type = "Promise<string>")]
pub fn check(request: String, options: NativeCheckOptions) -> AsyncTask<Work<String>> {
    let NativeCheckOptions { strict, determinism, agents, all } = options;
    let options = CheckOptions {
        strict: strict.unwrap_or_default(),
        determinism: determinism.unwrap_or_default(),
        agents,
        all: all.unwrap_or_default(),
    };
    promise(move || proem_api::check(&request, &options))
}

/// Shows what each agent reads in a directory.
#[napi(ts_return_type = "Promise<string>")]
pub fn compat(request: String, agents: Vec<String>) -> AsyncTask<Work<String>> {
    promise(move || proem_api::compat(&request, &agents))
}

/// The recordings that a report reads.
#[napi(object)]
#[derive(Default)]
pub struct NativeReportOptions {
    /// The folder or file.
    pub path: Option<String>,
    /// The writer of the recordings.
    pub source: Option<String>,
    /// Only calls of the last days or hours.
    pub since: Option<String>,
    /// Only calls of this conversation.
    pub conversation: Option<String>,
    /// The provider of calls that name none.
    pub provider: Option<String>,
}

/// Tells why recorded calls missed the provider's cache.
#[napi(ts_return_type = "Promise<string>")]
pub fn report(options: NativeReportOptions) -> AsyncTask<Work<String>> {
    let NativeReportOptions { path, source, since, conversation, provider } = options;
    promise(move || proem_api::report(&ReportOptions { path, source, since, conversation, provider }))
}

/// A store of conversations.
#[napi]
pub struct NativeStore(Arc<Store>);

/// Opens a store.
#[napi(ts_return_type = "Promise<NativeStore>")]
pub fn open(name: String) -> AsyncTask<Work<NativeStore>> {
    promise(move || Store::open(&name).map(NativeStore))
}

#[napi]
impl NativeStore {
    /// The name, without a password.
    #[napi(getter)]
    pub fn name(&self) -> String {
        self.0.name()
    }

    /// Makes a handle of a conversation.
    #[napi]
    pub fn conversation(&self, id: String, request: String) -> napi::Result<NativeConversation> {
        let made = proem_api::Conversation::new(&self.0, &id, &request);
        made.map(|made| NativeConversation(Arc::new(made))).map_err(|failure| thrown(&failure))
    }

    /// A page of conversations.
    #[napi(ts_return_type = "Promise<string>")]
    pub fn conversations(
        &self,
        search: Option<String>,
        after: Option<String>,
        limit: Option<u32>,
    ) -> AsyncTask<Work<String>> {
        let store = Arc::clone(&self.0);
        promise(move || {
            store.conversations(search, after, limit.and_then(|limit| usize::try_from(limit).ok()))
        })
    }

    /// The stored template.
    #[napi(ts_return_type = "Promise<string>")]
    pub fn template(&self) -> AsyncTask<Work<String>> {
        let store = Arc::clone(&self.0);
        promise(move || store.template())
    }

    /// Stores a new version of the template.
    #[napi(ts_return_type = "Promise<string>")]
    pub fn put_template(
        &self,
        template: String,
        author: Option<String>,
        expected_version: Option<u32>,
    ) -> AsyncTask<Work<String>> {
        let store = Arc::clone(&self.0);
        promise(move || store.put_template(&template, author.as_deref(), expected_version.map(u64::from)))
    }

    /// Forgets a conversation.
    #[napi(ts_return_type = "Promise<boolean>")]
    pub fn remove(&self, id: String) -> AsyncTask<Work<bool>> {
        let store = Arc::clone(&self.0);
        promise(move || store.remove(&id))
    }

    /// Closes the store.
    #[napi(ts_return_type = "Promise<void>")]
    pub fn close(&self) -> AsyncTask<Work<()>> {
        let store = Arc::clone(&self.0);
        promise(move || {
            store.close();
            Ok(())
        })
    }

    /// Events since the last call: pairs of a kind and a message.
    #[napi]
    pub fn take_warnings(&self) -> Vec<Vec<String>> {
        let warnings = self.0.take_warnings().into_iter();
        warnings.map(|warning| vec![warning.kind.to_owned(), warning.message]).collect()
    }
}

/// A conversation of a store.
#[napi]
pub struct NativeConversation(Arc<proem_api::Conversation>);

#[napi]
impl NativeConversation {
    /// The id.
    #[napi(getter)]
    pub fn id(&self) -> &str {
        self.0.id()
    }

    /// Registers a callable for an event.
    #[napi(ts_args_type = "event: string, name: string, start: (call: number, event: string) => void")]
    pub fn add_hook(&self, event: String, name: String, start: Start) -> napi::Result<()> {
        let added = self.0.add_hook(&event, &name, Arc::new(JsCallable(start)));
        added.map_err(|failure| thrown(&failure))
    }

    /// Answers one turn.
    #[napi(ts_return_type = "Promise<NativeTurn>")]
    pub fn turn(&self, request: String) -> AsyncTask<Work<NativeTurn>> {
        let conversation = Arc::clone(&self.0);
        promise(move || conversation.turn(&request).map(NativeTurn))
    }

    /// Performs an operation with a text as its argument; the answer is JSON.
    #[napi(ts_return_type = "Promise<string>")]
    pub fn perform(&self, operation: String, argument: String) -> AsyncTask<Work<String>> {
        let conversation = Arc::clone(&self.0);
        promise(move || perform(&conversation, &operation, &argument))
    }

    /// Compares two epochs.
    #[napi(ts_return_type = "Promise<string>")]
    pub fn diff(&self, before: u32, after: u32) -> AsyncTask<Work<String>> {
        let conversation = Arc::clone(&self.0);
        promise(move || conversation.diff(u64::from(before), u64::from(after)))
    }

    /// Begins a conversation with the prompt of this one.
    #[napi(ts_return_type = "Promise<string>")]
    pub fn fork(&self, id: String, role: Option<String>) -> AsyncTask<Work<String>> {
        let conversation = Arc::clone(&self.0);
        promise(move || conversation.fork(&id, role.as_deref()))
    }

    /// Begins a conversation with a prompt of its own.
    #[napi(ts_return_type = "Promise<string>")]
    pub fn spawn(&self, id: String, request: String) -> AsyncTask<Work<String>> {
        let conversation = Arc::clone(&self.0);
        promise(move || conversation.spawn(&id, &request))
    }

    /// One epoch with the source of every byte.
    #[napi(ts_return_type = "Promise<string>")]
    pub fn epoch(&self, number: u32, provider: Option<String>) -> AsyncTask<Work<String>> {
        let conversation = Arc::clone(&self.0);
        promise(move || conversation.epoch(u64::from(number), provider.as_deref()))
    }
}

/// Performs the operation of a name.
fn perform(on: &proem_api::Conversation, operation: &str, argument: &str) -> Result<String, Failure> {
    match operation {
        "reload" => on.reload(argument),
        "reloadSkills" => on.reload_skills(),
        "setToolRegistry" => on.set_tool_registry(argument),
        "setActiveTools" => {
            let names: Result<Vec<String>, _> = serde_json::from_str(argument);
            let names = names.map_err(|_| Failure::bad_request("`names` is not a list of texts"))?;
            on.set_active_tools(&names)
        }
        "addResources" => on.add_resources(argument),
        "switchProfile" => on.switch_profile(argument),
        "beginCompaction" => on.begin_compaction(argument),
        "commitCompaction" => on.commit_compaction(argument),
        "abortCompaction" => on.abort_compaction(argument).map(|()| "null".to_owned()),
        "plan" => on.plan(argument),
        "planTools" => on.plan_tools(argument),
        "history" => on.history(),
        "pending" => on.pending(),
        "remove" => on.remove().map(|was_there| was_there.to_string()),
        _ => Err(Failure::bad_request(format!("unknown operation `{operation}`"))),
    }
}

/// Everything that the model sees in one turn.
#[napi]
pub struct NativeTurn(proem::Turn);

#[napi]
impl NativeTurn {
    /// The answer as JSON.
    #[napi]
    pub fn json(&self) -> napi::Result<String> {
        turn_json(&self.0).map_err(|failure| thrown(&failure))
    }

    /// The fields of the provider's request body as JSON.
    #[napi]
    pub fn payload_json(&self) -> Option<&str> {
        self.0.payload.as_deref().map(|payload| payload.get())
    }

    /// The messages to keep as JSON.
    #[napi]
    pub fn history_json(&self) -> String {
        messages_json(&self.0.history)
    }

    /// The messages of this call as JSON.
    #[napi]
    pub fn messages_json(&self) -> String {
        messages_json(&self.0.messages)
    }

    /// The SHA-256 of the prefix, in hexadecimal.
    #[napi(getter)]
    pub fn digest(&self) -> String {
        self.0.frozen.digest().hex()
    }

    /// The system prompt that the model reads in this turn.
    #[napi(getter)]
    pub fn system_prompt(&self) -> &str {
        &self.0.system_prompt
    }

    /// The number of the epoch in force, from 1.
    #[napi(getter)]
    pub fn epoch(&self) -> i64 {
        i64::try_from(self.0.epoch).unwrap_or(i64::MAX)
    }

    /// True if the stored prompt was used.
    #[napi(getter)]
    pub fn reused(&self) -> bool {
        self.0.is_reused
    }
}
