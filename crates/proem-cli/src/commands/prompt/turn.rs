//! `proem turn`: shows everything the model sees in one turn.

use anstyle::Style;
use clap::Args;
use proem::build_shape::{TurnShape, notes_of_turn};
use proem::hooks::Message;
use proem::{Caller, Engine, ToolDefinition, Turn, UserInput};
use proem_core::note::Note;
use serde_json::Value;

use crate::arguments::request::prompt_request;
use crate::arguments::{Format, NoteFlags, Output, PromptFlags};
use crate::failure::Failure;
use crate::terminal::{print, print_json, visible, visible_line};

const TITLE: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();

/// Show everything the model sees in one turn
///
/// Prints the system prompt, the messages and the tools.
#[derive(Debug, Args)]
pub(crate) struct TurnArguments {
    #[command(flatten)]
    prompt: PromptFlags,
    /// Message of the user; without it, the turn continues on its own
    #[arg(long, visible_alias = "prompt", value_name = "TEXT")]
    prompt_text: Option<String>,
    #[command(flatten)]
    output: Output<Format>,
    #[command(flatten)]
    notes: NoteFlags,
}

pub(crate) fn run(arguments: &TurnArguments) -> Result<(), Failure> {
    let mut request = prompt_request(&arguments.prompt)?;
    if arguments.prompt_text.is_some() {
        request.prompt.clone_from(&arguments.prompt_text);
    }
    let prompt = UserInput::from_request(&request);
    let session = Engine::new().start(request, Caller::User)?;
    let turn = session.turn(&prompt);
    if arguments.output.format() == Format::Json {
        return print_json(&TurnShape::new(session.build(), &turn));
    }
    let notes: Vec<Note> = notes_of_turn(session.build(), &turn).cloned().collect();
    arguments.notes.print(&notes);
    print(&page(&turn))
}

/// Formats the system prompt, the messages and the tools.
fn page(turn: &Turn) -> String {
    let mut page = title(
        "System prompt",
        &match turn.system_prompt.len() {
            1 => "1 byte".to_owned(),
            bytes => format!("{bytes} bytes"),
        },
    );
    page.push_str(&block(&turn.system_prompt));
    page.push_str(&title("Messages", &turn.messages.len().to_string()));
    for message in &turn.messages {
        let role = message.get("role").and_then(Value::as_str).unwrap_or_default();
        page.push_str(&format!("{DIM}[{}]{DIM:#}\n{}", visible_line(role), block(&content(message))));
    }
    page.push_str(&title("Tools", &turn.tools.len().to_string()));
    for tool in &turn.tools {
        page.push_str(&definition(tool));
    }
    page
}

fn title(text: &str, detail: &str) -> String {
    format!("{TITLE}== {text}{TITLE:#} {DIM}({detail}){DIM:#}\n")
}

/// Ends a text with a line break.
fn block(text: &str) -> String {
    let text = visible(text);
    if text.is_empty() || text.ends_with('\n') { text } else { text + "\n" }
}

/// Returns the content of a message: its text, or its JSON if it is not text.
fn content(message: &Message) -> String {
    match message.get("content") {
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => Value::Object(message.clone()).to_string(),
    }
}

fn definition(tool: &ToolDefinition) -> String {
    let description =
        tool.description.as_ref().map_or_else(String::new, |text| format!(": {}", visible_line(text)));
    let schema = tool
        .input_schema
        .as_ref()
        .map_or_else(String::new, |schema| format!("{DIM}  {}{DIM:#}\n", visible_line(&schema.to_string())));
    format!("{}{description}\n{schema}", visible_line(&tool.name))
}
