//! One turn: everything that the model sees, in one place.

use proem_core::cache_loss::CacheLoss;
use proem_core::carrier::Carrier;
use proem_core::frozen::Body;
use proem_core::note::{Code, Note, Severity};
use serde_json::{Value, json};

use crate::hooks::{self, BeforeAgentStart, Handler, Start};
use crate::request::caller::Caller;
use crate::request::message::{Message, message};
use crate::request::{Request, Tool, distinct_tools};

/// What the user says in this turn.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Prompt {
    /// The text; `None` when the turn goes on without the user, as after the result of a tool.
    pub text: Option<String>,
    /// Images beside it, in the caller's shape.
    pub images: Vec<Value>,
    /// The conversation so far.
    pub messages: Vec<Message>,
}

impl Prompt {
    /// What a request says about its turn.
    #[must_use]
    pub fn of(request: &Request) -> Self {
        Self {
            text: request.prompt.clone(),
            images: request.images.clone().unwrap_or_default(),
            messages: request.messages.iter().flatten().filter_map(|message| message.to_map().ok()).collect(),
        }
    }
}

/// Everything that the model sees, and what to keep of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Turn {
    /// The system prompt of this turn: the frozen one, unless a hook changed it.
    pub system_prompt: String,
    /// The messages of this call, after the hooks for `context`.
    pub messages: Vec<Message>,
    /// The messages to keep: without what `context` made of them.
    pub history: Vec<Message>,
    /// The definitions of the active tools.
    pub tools: Vec<ToolDefinition>,
    /// What each hook changed in the frozen prompt, in order.
    pub changes: Vec<PrefixChange>,
    /// What a reader should know about this turn.
    pub notes: Vec<Note>,
    /// Why the cache is expected to miss the prefix in this turn: the reason of a new epoch.
    pub expected_miss: Option<String>,
}

/// A tool as providers get it.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolDefinition {
    /// The name.
    pub name: String,
    /// What it does.
    pub description: Option<String>,
    /// The JSON schema of the input.
    pub input_schema: Option<Value>,
}

/// What a hook changed in the frozen prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrefixChange {
    /// The hook's name.
    pub hook: String,
    /// Where, and what it costs.
    pub change: CacheLoss,
}

/// What a turn is made of, besides what the user says.
pub(crate) struct Scene<'s> {
    /// What is frozen, and behind it what belongs to this turn, as of now.
    pub(crate) whole: &'s Body,
    pub(crate) tools: &'s [Tool],
    pub(crate) model: Option<&'s str>,
    pub(crate) cwd: &'s str,
    pub(crate) handlers: &'s [Handler],
    /// For whom the notes are.
    pub(crate) caller: Caller,
}

/// Makes a turn of a finished prompt.
pub(crate) fn turn(scene: &Scene<'_>, prompt: &Prompt) -> Turn {
    let Start { system_prompt, messages: injected, changes, mut notes } = start(scene, prompt);
    let history = history(scene, prompt, injected);
    let (messages, more) = hooks::context(scene.handlers, &history, scene.cwd, scene.caller);
    notes.extend(more);
    notes.extend(unsent_note(scene, prompt));
    let changes = changes.into_iter().map(|(hook, change)| PrefixChange { hook, change }).collect();
    let tools = distinct_tools(scene.tools).into_iter().map(definition).collect();
    Turn { system_prompt, messages, history, tools, changes, notes, expected_miss: None }
}

/// Notes that the text of the `turn` carrier is not sent: it rides with what the user says.
fn unsent_note(scene: &Scene<'_>, prompt: &Prompt) -> Option<Note> {
    if prompt.text.is_some() || scene.whole.text(Carrier::Turn).is_none_or(str::is_empty) {
        return None;
    }
    let message = "the user says nothing in this turn, so nothing of the `turn` carrier is sent";
    // A conversation that goes on by itself is usual; one that begins without words is probably an oversight.
    let severity = if prompt.messages.is_empty() { Severity::Warning } else { Severity::Info };
    let hint = "say what the user says with `--prompt`, or `prompt` in the request";
    Some(Note::new(Code::LeftOut, severity, message).with_hint(hint))
}

/// Lets hooks change the frozen prompt, if the user said something.
fn start(scene: &Scene<'_>, prompt: &Prompt) -> Start {
    let system_prompt = scene.whole.text(Carrier::System).unwrap_or_default().to_owned();
    let Some(text) = &prompt.text else { return Start { system_prompt, ..Start::default() } };
    let event = BeforeAgentStart {
        prompt: text.clone(),
        images: prompt.images.clone(),
        system_prompt,
        cwd: scene.cwd.to_owned(),
        model: scene.model.map(str::to_owned),
    };
    hooks::start(scene.handlers, event, scene.caller)
}

/// The conversation with this turn's messages behind it. What rides on other carriers than the system
/// prompt stands where a provider reads it, and stays there: nothing that was sent is made anew.
fn history(scene: &Scene<'_>, prompt: &Prompt, injected: Vec<Message>) -> Vec<Message> {
    let whole = scene.whole;
    let mut history = prompt.messages.clone();
    let is_of_user = |message: &Message| message.get("role").and_then(Value::as_str) == Some("user");
    if !history.iter().any(is_of_user) {
        history.extend(whole.text(Carrier::Developer).map(|text| message("developer", text)));
        history.extend(whole.text(Carrier::FirstUser).map(|text| message("user", text)));
    }
    let Some(text) = &prompt.text else { return history };
    history.push(message("user", content(text, &prompt.images)));
    history.extend(injected);
    history.extend(whole.text(Carrier::Turn).map(|text| message("user", text)));
    history
}

/// The user's text; with images a list of blocks.
fn content(text: &str, images: &[Value]) -> Value {
    if images.is_empty() {
        return text.into();
    }
    let text = json!({ "type": "text", "text": text });
    Value::Array(std::iter::once(text).chain(images.iter().cloned()).collect())
}

fn definition(tool: &Tool) -> ToolDefinition {
    ToolDefinition {
        name: tool.name.clone(),
        description: tool.description.clone(),
        input_schema: tool.input_schema.clone(),
    }
}
