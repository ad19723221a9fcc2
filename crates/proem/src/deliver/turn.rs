//! One turn: everything that the model sees, in one place.

use std::sync::Arc;

use proem_core::cache_loss::CacheLoss;
use proem_core::carrier::Carrier;
use proem_core::frozen::{Body, Frozen, Suffix};
use proem_core::note::{Code, Note, Severity};
use proem_core::source::Source;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::notice::add_neutral;
use super::{
    DeliverOptions, HookedCall, Lifetime, Notice, NoticePlace, Provider, ProviderName, deliver_hooked,
};
use crate::build::{Build, PendingField, PromptPolicy, Signature};
use crate::error::Error;
use crate::hooks::{self, BeforeAgentStart, Handler, HookFailure, Start, StartChange};
use crate::request::caller::Caller;
use crate::request::message::{Message, RawMessage, message};
use crate::request::{Request, Tool, Ttl, distinct_tools};
use crate::settings::models::Models;

/// Everything that the model sees in one turn, and the part of it to store.
#[derive(Debug, Clone)]
pub struct Turn {
    /// The conversation.
    pub conversation: String,
    /// The number of the epoch in force, from 1.
    pub epoch: u64,
    /// The reason for which it was opened.
    pub reason: String,
    /// True if the prompt was stored before this turn.
    pub is_reused: bool,
    /// The frozen prompt.
    pub frozen: Arc<Frozen>,
    /// The boundary, and the text of this turn after it.
    pub suffix: Suffix,
    /// The digest of prefix and tools, in hexadecimal.
    pub fingerprint: String,
    /// The properties that decide whether a running session may be used for this turn.
    pub signature: Signature,
    /// The system prompt of this turn: the frozen one and the text of this turn, unless a hook changed it.
    pub system_prompt: String,
    /// The messages of this call, after the hooks for `context`. Those that hooks rewrote are in the provider's shape if the
    /// turn names one.
    pub messages: Vec<RawMessage>,
    /// The messages to store: without the changes of the hooks for `context`.
    pub history: Vec<RawMessage>,
    /// The definitions of the active tools.
    pub tools: Vec<ToolDefinition>,
    /// The body of the provider's request, if the turn names a provider.
    pub payload: Option<Box<RawValue>>,
    /// The changes that wait for the next epoch.
    pub pending: Vec<PendingField>,
    /// The changes of each hook in the frozen prompt, in order.
    pub changes: Vec<PrefixChange>,
    /// The reason for an expected cache miss of the prefix in this turn: that of a new epoch.
    pub expected_miss: Option<String>,
    /// The notices that this turn delivers, in order: they are in its messages.
    pub notices: Vec<Notice>,
    /// Notes for the reader.
    pub notes: Vec<Note>,
}

impl Turn {
    /// Returns the frozen text of a carrier.
    #[must_use]
    pub fn text(&self, carrier: Carrier) -> Option<&str> {
        self.frozen.body().text(carrier)
    }
}

/// A tool as providers get it.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolDefinition {
    /// The name.
    pub name: String,
    /// The description for the model.
    pub description: Option<String>,
    /// The JSON schema of the input.
    pub input_schema: Option<Value>,
}

/// A hook's change in the frozen prompt.
#[derive(Debug, Clone, PartialEq)]
pub struct PrefixChange {
    /// The hook's name; `per_prompt` for a change of the caller's own.
    pub hook: String,
    /// The position of the change, and its cost.
    pub change: CacheLoss,
    /// The extra dollars of the lost tokens, if the model has prices.
    pub lost_dollars: Option<f64>,
}

/// The input of a call to the model.
pub(crate) struct CallInput<'c> {
    /// The frozen prompt followed by the text for this turn.
    pub(crate) build: &'c Build,
    /// The request of the turn: messages, prompt, images, tools, model and provider.
    pub(crate) request: &'c Request,
    pub(crate) handlers: &'c [Handler],
    /// Messages that stay in the history and are not sent, each with its index among all messages.
    pub(crate) withheld: &'c [(usize, RawMessage)],
    /// The system prompt that hooks made for the prompt of the user that this turn continues.
    pub(crate) continued: Option<String>,
    /// The texts of the notices that this turn delivers.
    pub(crate) notices: &'c [&'c str],
    /// The conversation whose cache serves this one, if that is another one.
    pub(crate) cache_of: Option<&'c str>,
    /// The reader of the notes.
    pub(crate) caller: Caller,
}

/// A call to the model.
pub(crate) struct Call {
    pub(crate) system_prompt: String,
    pub(crate) messages: Vec<RawMessage>,
    pub(crate) history: Vec<RawMessage>,
    pub(crate) tools: Vec<ToolDefinition>,
    pub(crate) payload: Option<Box<RawValue>>,
    pub(crate) changes: Vec<PrefixChange>,
    pub(crate) notes: Vec<Note>,
    pub(crate) failures: Vec<HookFailure>,
}

/// Makes the call of a turn: runs the hooks, and assembles the messages and the provider's request.
pub(crate) fn call(input: &CallInput<'_>, caller: Caller) -> Result<Call, Error> {
    let CallInput { build, request, handlers, .. } = input;
    let Start { system_prompt, messages: injected, changes, mut notes, mut failures } = start(input);
    let mut injected: Vec<RawMessage> = injected.iter().map(RawMessage::from_map).collect();
    injected.extend(request.per_prompt.iter().flat_map(|own| own.messages.iter().flatten().cloned()));
    let is_hooked = !changes.is_empty() || input.continued.is_some();
    let provider = provider_of(request)?;
    let models =
        if provider.is_some() || !changes.is_empty() { Some(Models::load(request, caller)?) } else { None };
    let changes = priced(changes, request, models.as_ref(), &mut notes);
    let place = match &models {
        Some(models) => NoticePlace::of_call(request, models)?,
        None => NoticePlace::of_words(request),
    };
    let neutral = history(build.whole(), request, &injected, (input.notices, place));
    let mut context = Context {
        handlers,
        cwd: &build.policy().cwd,
        caller: input.caller,
        notes: Vec::new(),
        failures: Vec::new(),
    };
    let (messages, mut kept, payload) = match provider.zip(models) {
        None => {
            notes.extend(unused_notes(request));
            notes.extend(unsent_note(build.whole(), request));
            (context.apply(neutral.clone()), neutral, None)
        }
        Some((provider, models)) => {
            let lifetime = if request.ttl == Some(Ttl::Hour) { Lifetime::Hour } else { Lifetime::Short };
            let options = DeliverOptions { lifetime, cached_content: request.cached_content.clone() };
            let hooked = HookedCall {
                system_prompt: is_hooked.then_some(system_prompt.as_str()),
                injected: &injected,
                notices: (input.notices, Some(place)),
                cache_of: input.cache_of,
                context: (!handlers.is_empty()).then_some(&mut context),
            };
            let (delivered, rewritten) =
                deliver_hooked(provider, build, request, (&models, &options), hooked)?;
            notes.extend(delivered.notes);
            (rewritten.unwrap_or(neutral), delivered.history, Some(delivered.payload))
        }
    };
    notes.append(&mut context.notes);
    failures.append(&mut context.failures);
    for (index, message) in input.withheld {
        kept.insert((*index).min(kept.len()), message.clone());
    }
    let tools = definitions(request, build.policy());
    Ok(Call { system_prompt, messages, history: kept, tools, payload, changes, notes, failures })
}

/// Returns the provider that a request names.
pub(crate) fn provider_of(request: &Request) -> Result<Option<Provider>, Error> {
    let find = |word: &String| {
        let found = ProviderName::find(word).map(|name| name.provider);
        found.map_err(|unknown| Error::unknown_provider(&unknown, unknown.hint()))
    };
    request.provider.as_ref().map(find).transpose()
}

/// The hooks for `context`, and their notes.
pub(crate) struct Context<'c> {
    handlers: &'c [Handler],
    cwd: &'c str,
    caller: Caller,
    notes: Vec<Note>,
    failures: Vec<HookFailure>,
}

impl Context<'_> {
    /// Lets the hooks rewrite the messages of a call. A message that they leave as it is keeps its spelling.
    pub(crate) fn apply(&mut self, messages: Vec<RawMessage>) -> Vec<RawMessage> {
        if self.handlers.is_empty() {
            return messages;
        }
        let maps: Vec<Message> = messages.iter().filter_map(|message| message.to_map().ok()).collect();
        let (changed, failures) = hooks::context(self.handlers, &maps, self.cwd);
        self.notes.extend(failures.iter().map(|failure| failure.note(self.caller)));
        self.failures.extend(failures);
        if changed == maps {
            return messages;
        }
        let spelt = |message: &Message| {
            let known = maps.iter().position(|map| map == message).and_then(|index| messages.get(index));
            known.cloned().unwrap_or_else(|| RawMessage::from_map(message))
        };
        changed.iter().map(spelt).collect()
    }
}

/// Returns the definitions of the tools of a request, or else those of its profile.
pub(crate) fn definitions(request: &Request, policy: &PromptPolicy) -> Vec<ToolDefinition> {
    let tools = request.tools.clone().unwrap_or_else(|| policy.tools());
    distinct_tools(&tools).into_iter().map(definition).collect()
}

/// Notes fields of a delivery in a turn that names no provider.
fn unused_notes(request: &Request) -> Vec<Note> {
    let given = [("ttl", request.ttl.is_some()), ("cached_content", request.cached_content.is_some())];
    let unused = given.into_iter().filter(|(_, is_given)| *is_given);
    let note = |(field, _): (&str, bool)| {
        let message = format!("the request's `{field}` is not used: it names no `provider`");
        Note::new(Code::UnusedField, Severity::Warning, message)
    };
    let mut notes: Vec<Note> = unused.map(note).collect();
    notes.extend(super::images_note(request));
    notes
}

/// Notes that the text of the `turn` carrier is not sent: it accompanies the user's text, and there is none.
fn unsent_note(whole: &Body, request: &Request) -> Option<Note> {
    if request.prompt.is_some() || whole.text(Carrier::Turn).is_none_or(str::is_empty) {
        return None;
    }
    let message = "the user says nothing in this turn, so nothing of the `turn` carrier is sent";
    // A conversation that continues by itself is usual; one that begins without text is probably an oversight.
    let is_empty = request.messages.as_ref().is_none_or(Vec::is_empty);
    let severity = if is_empty { Severity::Warning } else { Severity::Info };
    let hint = "say what the user says with `--prompt`, or `prompt` in the request";
    Some(Note::new(Code::LeftOut, severity, message).with_hint(hint))
}

/// Lets hooks change the frozen prompt, if the user sent text, and then the caller.
fn start(input: &CallInput<'_>) -> Start {
    let CallInput { build, request, handlers, caller, .. } = input;
    let own = request.per_prompt.as_ref().and_then(|own| own.system_prompt.as_deref());
    let whole = build.whole().text(Carrier::System).unwrap_or_default();
    let (system_prompt, handlers) = match &request.prompt {
        Some(_) => (whole.to_owned(), *handlers),
        // The prompt of the user goes on, and so does what hooks made of the system prompt.
        None => (input.continued.clone().unwrap_or_else(|| whole.to_owned()), &[][..]),
    };
    if handlers.is_empty() && own.is_none() {
        return Start { system_prompt, ..Start::default() };
    }
    let event = BeforeAgentStart {
        prompt: request.prompt.clone().unwrap_or_default(),
        images: request.images.clone().unwrap_or_default(),
        system_prompt,
        cwd: build.policy().cwd.clone(),
        model: request.model.clone(),
    };
    hooks::start(handlers, event, *caller, own)
}

/// Adds the price to each change of the prompt, and a note about it.
fn priced(
    changes: Vec<StartChange>,
    request: &Request,
    models: Option<&Models>,
    notes: &mut Vec<Note>,
) -> Vec<PrefixChange> {
    let model = request.model.as_deref().zip(models).and_then(|(name, models)| models.find(name));
    let price = |StartChange { hook, is_own, loss }| {
        let lost_dollars = model.and_then(|model| model.cost_of_missing(loss.lost_tokens()));
        let change = PrefixChange { hook, change: loss, lost_dollars };
        notes.push(changed_prefix(&change, is_own));
        change
    };
    changes.into_iter().map(price).collect()
}

fn changed_prefix(change: &PrefixChange, is_own: bool) -> Note {
    let PrefixChange { hook, change, lost_dollars } = change;
    let who = if is_own { format!("`{hook}`") } else { format!("the hook `{hook}`") };
    let price = match lost_dollars {
        Some(dollars) if *dollars > 0.0 => format!("; about ${dollars:.4} more for the prompt"),
        _ => String::new(),
    };
    let (field, source) = if is_own {
        ("messages", Source::Request { field: hook.as_str().into(), place: None })
    } else {
        ("message", Source::Hook { name: hook.as_str().into() })
    };
    let message = format!("{who} changed the system prompt {change}{price}");
    Note::new(Code::PrefixChanged, Severity::Warning, message)
        .with_hint(format!("return a `{field}` instead: it follows everything that is cached"))
        .with_source(source)
}

/// Returns the conversation followed by this turn's messages, in a neutral shape. Text on other carriers than the system
/// prompt is placed where a provider reads it, and stays there: messages that were sent are never rewritten.
fn history(
    whole: &Body,
    request: &Request,
    injected: &[RawMessage],
    (notices, place): (&[&str], NoticePlace),
) -> Vec<RawMessage> {
    let mut history = request.messages.clone().unwrap_or_default();
    let is_of_user = |message: &RawMessage| {
        message.to_map().is_ok_and(|map| map.get("role").and_then(Value::as_str) == Some("user"))
    };
    if !history.iter().any(is_of_user) {
        let plain = |role: &'static str| move |text: &str| RawMessage::plain(role, text);
        history.extend(whole.text(Carrier::Developer).map(plain("developer")));
        history.extend(whole.text(Carrier::FirstUser).map(plain("user")));
    }
    let Some(text) = &request.prompt else {
        let words = history.len().saturating_sub(1);
        history.extend(injected.iter().cloned());
        add_neutral(&mut history, notices, place, words);
        return history;
    };
    let words = history.len();
    history.push(user_message(text, request.images.as_deref().unwrap_or_default()));
    history.extend(injected.iter().cloned());
    history.extend(whole.text(Carrier::Turn).map(RawMessage::from_user));
    add_neutral(&mut history, notices, place, words);
    history
}

/// Makes the user's message; with images its content is a list of blocks.
fn user_message(text: &str, images: &[Value]) -> RawMessage {
    if images.is_empty() {
        return RawMessage::from_user(text);
    }
    let text = json!({ "type": "text", "text": text });
    let content = Value::Array(std::iter::once(text).chain(images.iter().cloned()).collect());
    RawMessage::from_map(&message("user", content))
}

fn definition(tool: &Tool) -> ToolDefinition {
    ToolDefinition {
        name: tool.name.clone(),
        description: tool.description.clone(),
        input_schema: tool.input_schema.clone(),
    }
}
