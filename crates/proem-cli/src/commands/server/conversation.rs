//! `proem conversation`: lists, shows and changes the conversations of a store or a server.

use clap::{Args, Subcommand};
use proem::hooks::HookFailure;
use proem::{Caller, Engine};
use proem_core::carrier::Carrier;
use proem_store::{Conversations, LoadedEpoch, Query, Rebuilt};
use serde_json::{Value, json};

use crate::arguments::store::open;
use crate::arguments::{Format, Output, ServerFlags, StoreFlags};
use crate::failure::Failure;
use crate::notes::print_warning;
use crate::remote::{Remote, encoded};
use crate::table::{Cell, Column, Table, one_line};
use crate::terminal::{output_columns, print, print_json, print_raw, visible_line};

/// List, show and change the conversations of a store or a server
#[derive(Debug, Subcommand)]
pub(crate) enum ConversationCommand {
    /// List conversations, the one with the newest epoch first
    List {
        #[command(flatten)]
        flags: ConversationFlags,
        /// Part of the name or of the working directory
        #[arg(long, value_name = "TEXT")]
        search: Option<String>,
    },
    /// Print the frozen prompt byte for byte
    Show {
        /// Conversation to print
        id: String,
        #[command(flatten)]
        flags: ConversationFlags,
    },
    /// List the epochs, and why each was opened
    History {
        /// Conversation to list
        id: String,
        #[command(flatten)]
        flags: ConversationFlags,
    },
    /// Open a new epoch after a compaction
    Compact {
        /// Conversation to change
        id: String,
        #[command(flatten)]
        flags: ConversationFlags,
    },
    /// Rebuild the prompt from the present files and settings
    Reload {
        /// Conversation to change
        id: String,
        #[command(flatten)]
        flags: ConversationFlags,
        /// Only show what would change
        #[arg(long)]
        plan: bool,
    },
    /// Remove a conversation
    Rm {
        /// Conversation to remove
        id: String,
        #[command(flatten)]
        flags: ConversationFlags,
    },
}

/// Flags of every command about conversations.
#[derive(Debug, Args)]
pub(crate) struct ConversationFlags {
    #[command(flatten)]
    store: StoreFlags,
    #[command(flatten)]
    server: ServerFlags,
    #[command(flatten)]
    output: Output<Format>,
}

pub(crate) fn run(command: &ConversationCommand) -> Result<(), Failure> {
    let flags = command.flags();
    let backend = if let Some(url) = &flags.server.url {
        Backend::Remote(Remote::new(url)?)
    } else {
        let engine = Engine::new().on_hook_failure(print_hook_failure);
        Backend::Store(Box::new(Conversations::new(open(&flags.store)?.into(), engine)))
    };
    let answer = backend.run(command)?;
    if flags.output.format() == Format::Json {
        return print_json(&answer);
    }
    show(command, &answer)
}

/// Prints why a hook failed. The notes of a stored prompt leave that out, because other clients of the store read them.
fn print_hook_failure(failure: &HookFailure) {
    let (hook, event, why) = (failure.hook(), failure.event().word(), failure.why());
    print_warning(&visible_line(&format!("the hook `{hook}` failed at `{event}`: {why}")));
}

/// The place of the conversations.
enum Backend {
    Store(Box<Conversations>),
    Remote(Remote),
}

impl Backend {
    fn run(&self, command: &ConversationCommand) -> Result<Value, Failure> {
        match self {
            Self::Store(conversations) => from_store(conversations, command),
            Self::Remote(remote) => from_server(remote, command),
        }
    }
}

fn from_server(remote: &Remote, command: &ConversationCommand) -> Result<Value, Failure> {
    match command {
        ConversationCommand::List { search, .. } => {
            let search =
                search.as_ref().map_or_else(String::new, |text| format!("&search={}", encoded(text)));
            remote.get(&format!("/conversations?limit=200{search}"))
        }
        ConversationCommand::Show { id, .. } | ConversationCommand::History { id, .. } => {
            remote.get(&format!("/conversations/{}", encoded(id)))
        }
        ConversationCommand::Reload { id, plan, .. } => {
            remote.post(&format!("/conversations/{}/reload?plan={plan}", encoded(id)))
        }
        ConversationCommand::Compact { id, .. } => {
            remote.post(&format!("/conversations/{}/compaction?commit=true", encoded(id)))
        }
        ConversationCommand::Rm { id, .. } => {
            remote.delete(&format!("/conversations/{}", encoded(id)))?;
            Ok(json!({ "removed": id }))
        }
    }
}

fn from_store(conversations: &Conversations, command: &ConversationCommand) -> Result<Value, Failure> {
    let store = conversations.store();
    match command {
        ConversationCommand::List { search, .. } => {
            let page = store.conversations(&Query { search: search.clone(), after: None, most: 200 })?;
            Ok(json!({ "conversations": page.items, "next": page.next }))
        }
        ConversationCommand::Show { id, .. } | ConversationCommand::History { id, .. } => {
            let kept = current_epoch(conversations, id)?;
            let carriers = Carrier::ALL.into_iter().filter_map(|carrier| {
                Some((carrier.word().to_owned(), kept.frozen.body().text(carrier)?.into()))
            });
            let carriers: serde_json::Map<String, Value> = carriers.collect();
            let epochs: Vec<Value> = store
                .epochs(id)?
                .iter()
                .map(|head| {
                    let mut head = json!(head);
                    head["epoch"] = head["number"].take();
                    head
                })
                .collect();
            Ok(
                json!({ "conversation": id, "epoch": kept.head.number, "carriers": carriers, "epochs": epochs }),
            )
        }
        ConversationCommand::Reload { id, plan: true, .. } => {
            let plan = conversations.plan_reload(id, None, Caller::User)?;
            let sections: Vec<&str> =
                plan.pending.sections.iter().map(|section| section.id.as_str()).collect();
            let sections: Vec<Value> = sections.into_iter().map(|id| json!({ "id": id })).collect();
            let lost = plan.cost().map(|change| change.lost_tokens());
            Ok(json!({ "epoch": plan.kept.head.number, "opened": false, "plan": {
                "allowed": plan.is_allowed, "changed": !plan.pending.is_empty(), "tools_changed": plan.pending.tools,
                "sections": sections, "lost_tokens_estimate": lost,
            }}))
        }
        ConversationCommand::Reload { id, .. } => {
            let rebuilt = conversations.reload(id, None, Caller::User)?;
            let opened = matches!(rebuilt, Rebuilt::Opened(_));
            Ok(json!({ "epoch": rebuilt.kept().head.number, "opened": opened }))
        }
        ConversationCommand::Compact { id, .. } => {
            let begun = conversations.begin_compaction(id, None, Caller::User)?;
            let opened = conversations.commit_compaction(id, &begun.token, Caller::User)?;
            Ok(json!({ "epoch": opened.head.number, "instructions": begun.instructions }))
        }
        ConversationCommand::Rm { id, .. } => {
            current_epoch(conversations, id)?;
            store.remove(id)?;
            Ok(json!({ "removed": id }))
        }
    }
}

fn current_epoch(conversations: &Conversations, id: &str) -> Result<std::sync::Arc<LoadedEpoch>, Failure> {
    let found = conversations.current(id)?;
    found.ok_or_else(|| proem_store::ConversationError::NoConversation(id.to_owned()).into())
}

/// Prints the result for people.
fn show(command: &ConversationCommand, answer: &Value) -> Result<(), Failure> {
    match command {
        ConversationCommand::List { .. } => {
            let columns = [
                Column::text("conversation"),
                Column::number("epoch"),
                Column::word("reason"),
                Column::word("profile"),
                Column::text("model").dispensable(1),
                Column::text("cwd"),
            ];
            print(&rows(&answer["conversations"], columns))
        }
        ConversationCommand::History { .. } => {
            let columns = [
                Column::number("epoch"),
                Column::word("reason"),
                Column::word("digest").dispensable(2),
                Column::word("profile"),
                Column::word("engine").dispensable(1),
                Column::word("opened_at"),
            ];
            print(&rows(&answer["epochs"], columns))
        }
        ConversationCommand::Show { .. } => {
            print_raw(answer["carriers"]["system"].as_str().unwrap_or_default())
        }
        ConversationCommand::Reload { plan: true, .. } => print(&plan(&answer["plan"])),
        ConversationCommand::Reload { .. } if answer["opened"] == json!(false) => {
            print(&format!("unchanged: epoch {} stays in force\n", answer["epoch"]))
        }
        ConversationCommand::Reload { .. } | ConversationCommand::Compact { .. } => {
            print(&format!("epoch {} is in force\n", answer["epoch"]))
        }
        ConversationCommand::Rm { id, .. } => print(&format!("removed {}\n", visible_line(id))),
    }
}

fn plan(plan: &Value) -> String {
    if plan["changed"] == json!(false) {
        return "a reload would change nothing\n".into();
    }
    let sections: Vec<&str> = plan["sections"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|section| section["id"].as_str())
        .collect();
    let tools = if plan["tools_changed"] == json!(true) { ", and the tools" } else { "" };
    let lost = plan["lost_tokens_estimate"].as_u64().unwrap_or(0);
    let allowed = if plan["allowed"] == json!(true) { "" } else { "; the profile does not allow it" };
    format!(
        "a reload would change: {}{tools}; about {lost} tokens of the prefix are lost to the cache{allowed}\n",
        sections.join(", ")
    )
}

/// Formats a table of the fields that the columns name.
fn rows<const N: usize>(list: &Value, columns: [Column; N]) -> String {
    let names: Vec<String> = columns.iter().map(|column| column.title().to_owned()).collect();
    let row = |item: &Value| names.iter().map(|name| cell(&item[name.as_str()], name)).collect();
    let rows = list.as_array().into_iter().flatten().map(row);
    Table::new(columns).with(rows).print(output_columns())
}

fn cell(value: &Value, name: &str) -> Cell {
    match value {
        // The first digits distinguish digests.
        Value::String(text) if name == "digest" => Cell::plain(one_line(text, DIGEST_CHARACTERS_MAX)),
        Value::String(text) => Cell::plain(visible_line(text)),
        Value::Null => Cell::plain(""),
        other if name == "opened_at" => Cell::plain(time(other)),
        other => Cell::plain(other.to_string()).right(),
    }
}

/// Maximum number of characters of a digest that are shown.
const DIGEST_CHARACTERS_MAX: usize = 13;

/// Formats a time in milliseconds since 1970, to the second.
fn time(milliseconds: &Value) -> String {
    let time = milliseconds.as_i64().and_then(|number| jiff::Timestamp::from_second(number / 1000).ok());
    time.map_or_else(|| milliseconds.to_string(), |time| time.to_string())
}

impl ConversationCommand {
    const fn flags(&self) -> &ConversationFlags {
        match self {
            Self::List { flags, .. }
            | Self::Show { flags, .. }
            | Self::History { flags, .. }
            | Self::Compact { flags, .. }
            | Self::Reload { flags, .. }
            | Self::Rm { flags, .. } => flags,
        }
    }
}
