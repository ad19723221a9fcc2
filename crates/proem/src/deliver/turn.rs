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

/// The user's input for one turn.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct UserInput {
    /// The text; `None` when the turn goes on without the user, as after the result of a tool.
    pub text: Option<String>,
    /// Images beside it, in the caller's shape.
    pub images: Vec<Value>,
    /// The conversation so far.
    pub messages: Vec<Message>,
}

impl UserInput {
    /// Takes the input from the fields of a request.
    #[must_use]
    pub fn from_request(request: &Request) -> Self {
        Self {
            text: request.prompt.clone(),
            images: request.images.clone().unwrap_or_default(),
            messages: request.messages.iter().flatten().filter_map(|message| message.to_map().ok()).collect(),
        }
    }
}

/// Everything that the model sees, and the part of it to store.
#[derive(Debug, Clone, PartialEq)]
pub struct Turn {
    /// The system prompt of this turn: the frozen one, unless a hook changed it.
    pub system_prompt: String,
    /// The messages of this call, after the hooks for `context`.
    pub messages: Vec<Message>,
    /// The messages to store: without the changes of the hooks for `context`.
    pub history: Vec<Message>,
    /// The definitions of the active tools.
    pub tools: Vec<ToolDefinition>,
    /// The changes of each hook in the frozen prompt, in order.
    pub changes: Vec<PrefixChange>,
    /// Notes for the reader.
    pub notes: Vec<Note>,
    /// The reason for an expected cache miss of the prefix in this turn: that of a new epoch.
    pub expected_miss: Option<String>,
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrefixChange {
    /// The hook's name.
    pub hook: String,
    /// The position of the change, and its cost.
    pub change: CacheLoss,
}

/// The input of a turn besides the user's.
pub(crate) struct TurnInput<'s> {
    /// The frozen prompt followed by the text for this turn, as of now.
    pub(crate) whole: &'s Body,
    pub(crate) tools: &'s [Tool],
    pub(crate) model: Option<&'s str>,
    pub(crate) cwd: &'s str,
    pub(crate) handlers: &'s [Handler],
    /// The reader of the notes.
    pub(crate) caller: Caller,
}

/// Makes a turn of a finished prompt.
pub(crate) fn turn(input: &TurnInput<'_>, prompt: &UserInput) -> Turn {
    let Start { system_prompt, messages: injected, changes, mut notes } = start(input, prompt);
    let history = history(input, prompt, injected);
    let (messages, more) = hooks::context(input.handlers, &history, input.cwd, input.caller);
    notes.extend(more);
    notes.extend(unsent_note(input, prompt));
    let changes = changes.into_iter().map(|(hook, change)| PrefixChange { hook, change }).collect();
    let tools = distinct_tools(input.tools).into_iter().map(definition).collect();
    Turn { system_prompt, messages, history, tools, changes, notes, expected_miss: None }
}

/// Notes that the text of the `turn` carrier is not sent: it accompanies the user's text, and there is none.
fn unsent_note(input: &TurnInput<'_>, prompt: &UserInput) -> Option<Note> {
    if prompt.text.is_some() || input.whole.text(Carrier::Turn).is_none_or(str::is_empty) {
        return None;
    }
    let message = "the user says nothing in this turn, so nothing of the `turn` carrier is sent";
    // A conversation that continues by itself is usual; one that begins without text is probably an oversight.
    let severity = if prompt.messages.is_empty() { Severity::Warning } else { Severity::Info };
    let hint = "say what the user says with `--prompt`, or `prompt` in the request";
    Some(Note::new(Code::LeftOut, severity, message).with_hint(hint))
}

/// Lets hooks change the frozen prompt, if the user sent text.
fn start(input: &TurnInput<'_>, prompt: &UserInput) -> Start {
    let system_prompt = input.whole.text(Carrier::System).unwrap_or_default().to_owned();
    let Some(text) = &prompt.text else { return Start { system_prompt, ..Start::default() } };
    let event = BeforeAgentStart {
        prompt: text.clone(),
        images: prompt.images.clone(),
        system_prompt,
        cwd: input.cwd.to_owned(),
        model: input.model.map(str::to_owned),
    };
    hooks::start(input.handlers, event, input.caller)
}

/// Returns the conversation followed by this turn's messages. Text on other carriers than the system prompt is placed
/// where a provider reads it, and stays there: messages that were sent are never rewritten.
fn history(input: &TurnInput<'_>, prompt: &UserInput, injected: Vec<Message>) -> Vec<Message> {
    let whole = input.whole;
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
