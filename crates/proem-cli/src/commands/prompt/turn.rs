//! `proem turn`: shows everything the model sees in one turn.

use std::sync::Arc;

use anstyle::Style;
use clap::Args;
use proem::deliver::ProviderName;
use proem::request::RequestUpdate;
use proem::turn_shape::TurnShape;
use proem::{Caller, Conversation, Engine, Ttl, Turn};
use proem_store::{Conversations, Store};
use serde_json::Value;

use crate::arguments::Providers;
use crate::arguments::request::prompt_update;
use crate::arguments::store::place;
use crate::arguments::{Format, NoteFlags, Output, PromptFlags, ServerFlags, StoreFlags};
use crate::commands::prompt::build::TtlFlag;
use crate::commands::prompt::bundle::send_with_files;
use crate::failure::Failure;
use crate::notes::{print_hook_failure, print_warning};
use crate::remote::{Remote, encoded};
use crate::terminal::{print, print_json, print_raw, visible, visible_line};

const TITLE: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();

/// Show everything the model sees in one turn
///
/// Prints the system prompt, the messages and the tools. With `--conversation`, the turn belongs to a conversation in a
/// store or on a server: its first turn freezes the prompt, and later ones get the same bytes.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct TurnArguments {
    #[command(flatten)]
    prompt: PromptFlags,
    /// Message of the user; without it, the turn continues on its own
    #[arg(long, visible_alias = "prompt", value_name = "TEXT")]
    prompt_text: Option<String>,
    /// Add the request body for this provider to the JSON
    #[arg(long = "for", value_name = "PROVIDER", value_parser = Providers)]
    provider: Option<&'static ProviderName>,
    /// Lifetime of the frozen part in the provider's cache [default: 5m]
    #[arg(long, value_enum)]
    ttl: Option<TtlFlag>,
    /// Path that the agent has touched: instruction files that apply to it are announced
    #[arg(long, value_name = "PATH")]
    touched: Vec<String>,
    /// Conversation that the turn belongs to
    #[arg(long, value_name = "ID")]
    conversation: Option<String>,
    #[command(flatten)]
    store: StoreFlags,
    #[command(flatten)]
    server: ServerFlags,
    #[command(flatten)]
    output: Output<Format>,
    #[command(flatten)]
    notes: NoteFlags,
}

const EXAMPLES: &str = "\
Examples:
  proem turn --prompt 'Fix the tests'
                               Show a turn that is not stored
  proem turn --conversation demo --prompt 'Fix the tests' --for anthropic --format json
                               Take a turn of a stored conversation, with the request body
  proem turn --conversation demo --url http://127.0.0.1:7717
                               Take a turn of a conversation on a server";

pub(crate) fn run(arguments: &TurnArguments) -> Result<(), Failure> {
    let mut update = prompt_update(&arguments.prompt)?;
    let given = update.given_mut();
    if arguments.prompt_text.is_some() {
        given.prompt.clone_from(&arguments.prompt_text);
    }
    if !arguments.touched.is_empty() {
        given.touched.get_or_insert_default().extend(arguments.touched.iter().cloned());
    }
    if let Some(provider) = arguments.provider {
        given.provider = Some(provider.word.to_owned());
    }
    if let Some(ttl) = arguments.ttl {
        given.ttl = Some(match ttl {
            TtlFlag::Short => Ttl::FiveMinutes,
            TtlFlag::Hour => Ttl::Hour,
        });
    }
    let named = arguments.conversation.clone().or_else(|| update.given().conversation.clone());
    let is_stored = arguments.store.store.is_some() || arguments.server.url.is_some();
    match &named {
        Some(id) if is_stored || arguments.conversation.is_some() => match &arguments.server.url {
            Some(url) => show_remote(arguments, &remote_turn(&Remote::new(url)?, id, update)?),
            None => show(arguments, &stored_turn(arguments, id, update)?),
        },
        None if is_stored => Err(Failure::Usage {
            message: "no conversation is named".into(),
            hint: "name one with `--conversation ID`; the first turn creates it".into(),
        }),
        _ => show(arguments, &Engine::new().turn(update, Caller::User)?),
    }
}

/// Prints a turn.
fn show(arguments: &TurnArguments, turn: &Turn) -> Result<(), Failure> {
    let shape = TurnShape::new(turn);
    if arguments.output.format() == Format::Json {
        return print_json(&shape);
    }
    arguments.notes.print(&turn.notes);
    let shape = serde_json::to_value(&shape).unwrap_or(Value::Null);
    print(&page(&shape))
}

/// Prints the answer of a server.
fn show_remote(arguments: &TurnArguments, text: &str) -> Result<(), Failure> {
    if arguments.output.format() == Format::Json {
        return print_raw(&format!("{text}\n"));
    }
    let turn: Value = serde_json::from_str(text).unwrap_or(Value::Null);
    for note in turn["notes"].as_array().into_iter().flatten() {
        if note["severity"] != "info" {
            print_warning(&visible_line(note["message"].as_str().unwrap_or_default()));
        }
    }
    print(&page(&turn))
}

/// Takes a turn of a conversation in a store, which is created if there is none.
fn stored_turn(arguments: &TurnArguments, id: &str, update: RequestUpdate) -> Result<Turn, Failure> {
    let store: Arc<dyn Store> = place(arguments.store.store.as_deref())?.open()?.into();
    let engine = Engine::new().on_hook_failure(print_hook_failure);
    let conversations = Arc::new(Conversations::new(store, engine));
    Ok(Conversation::new(conversations, id, Caller::User).turn(update)?)
}

/// Takes a turn of a conversation on a server. A first turn is one in this directory.
fn remote_turn(remote: &Remote, id: &str, mut update: RequestUpdate) -> Result<String, Failure> {
    let path = format!("/conversations/{}", encoded(id));
    if update.given().cwd.is_none() && remote.get(&path).is_err() {
        let cwd = std::env::current_dir().ok().and_then(|cwd| cwd.to_str().map(str::to_owned));
        update = cwd.into_iter().fold(update, RequestUpdate::with_cwd);
    }
    send_with_files(remote, (id, "turn"), update)
}

/// Formats the system prompt, the messages and the tools.
fn page(turn: &Value) -> String {
    let system_prompt = turn["system_prompt"].as_str().unwrap_or_default();
    let list = |key: &str| turn[key].as_array().cloned().unwrap_or_default();
    let (messages, tools) = (list("messages"), list("tools"));
    let mut page = title(
        "System prompt",
        &match system_prompt.len() {
            1 => "1 byte".to_owned(),
            bytes => format!("{bytes} bytes"),
        },
    );
    page.push_str(&block(system_prompt));
    page.push_str(&title("Messages", &messages.len().to_string()));
    for message in &messages {
        let role = message["role"].as_str().unwrap_or_default();
        page.push_str(&format!("{DIM}[{}]{DIM:#}\n{}", visible_line(role), block(&content(message))));
    }
    page.push_str(&title("Tools", &tools.len().to_string()));
    for tool in &tools {
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
fn content(message: &Value) -> String {
    match message.get("content") {
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => message.to_string(),
    }
}

fn definition(tool: &Value) -> String {
    let description =
        tool["description"].as_str().map_or_else(String::new, |text| format!(": {}", visible_line(text)));
    let schema = tool
        .get("input_schema")
        .map_or_else(String::new, |schema| format!("{DIM}  {}{DIM:#}\n", visible_line(&schema.to_string())));
    let name = tool["name"].as_str().unwrap_or_default();
    format!("{}{description}\n{schema}", visible_line(name))
}
