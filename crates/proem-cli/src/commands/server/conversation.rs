//! `proem conversation`: lists, shows and changes the conversations of a store or a server.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueHint};
use hyper::Method;
use proem::deliver::ProviderName;
use proem::request::RequestUpdate;
use proem::{Caller, Engine, Request, Tool};
use proem_core::carrier::Carrier;
use proem_core::limit::REQUEST_BYTES_MAX;
use proem_store::{Changed, Conversations, LoadedEpoch, Query};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::arguments::request::update;
use crate::arguments::store::open;
use crate::arguments::{Format, Output, Providers, ServerFlags, StoreFlags};
use crate::commands::prompt::bundle::send_with_files;
use crate::commands::understand::comparison::prices;
use crate::failure::Failure;
use crate::input;
use crate::notes::print_hook_failure;
use crate::remote::{Remote, encoded};
use crate::table::{Cell, Column, Table, one_line};
use crate::terminal::{output_columns, print, print_json, print_raw, visible, visible_line};

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
    /// Compact a conversation: print the summarising call, then open a new epoch
    ///
    /// Without `--begin`, `--commit` or `--abort` both steps are done at once.
    Compact {
        /// Conversation to change
        id: String,
        #[command(flatten)]
        flags: ConversationFlags,
        /// Only begin: print the call that summarises, and a token
        #[arg(long, conflicts_with_all = ["commit", "abort"])]
        begin: bool,
        /// Open the epoch of a compaction that was begun
        #[arg(long, value_name = "TOKEN", conflicts_with = "abort")]
        commit: Option<String>,
        /// End a compaction without a new epoch
        #[arg(long, value_name = "TOKEN")]
        abort: Option<String>,
        /// Add the body of the summarising call for this provider to the JSON
        #[arg(long = "for", value_name = "PROVIDER", value_parser = Providers, conflicts_with_all = ["commit", "abort"])]
        provider: Option<&'static ProviderName>,
        /// JSON file with fields of the request to change, and `messages` of the call
        #[arg(long, value_name = "FILE", conflicts_with_all = ["commit", "abort"])]
        request: Option<PathBuf>,
    },
    /// Replace the tools of a conversation
    Tools {
        /// Conversation to change
        id: String,
        /// JSON file with a list of tools; `-` reads standard input
        #[arg(long, value_name = "FILE")]
        file: PathBuf,
        #[command(flatten)]
        flags: ConversationFlags,
    },
    /// Go on with another profile
    Profile {
        /// Conversation to change
        id: String,
        /// Profile to go on with
        name: String,
        #[command(flatten)]
        flags: ConversationFlags,
    },
    /// Begin a conversation with the prompt of another one
    ///
    /// The fork has the frozen prompt, the tools and the notices of its parent, and its cache. Send the messages of the
    /// parent with its turns.
    Fork {
        /// Conversation to begin from
        id: String,
        /// Id of the fork
        new: String,
        #[command(flatten)]
        flags: ConversationFlags,
        /// Role of the fork, delivered before its first prompt
        #[arg(long, value_name = "TEXT")]
        role: Option<String>,
    },
    /// Begin a conversation with a prompt of its own
    ///
    /// Children with the same profile and sources share one prompt. The answer says which one to send first.
    Spawn {
        /// Conversation to begin from
        id: String,
        /// Id of the child
        new: String,
        #[command(flatten)]
        flags: ConversationFlags,
        /// Profile of the child
        #[arg(long, value_name = "NAME", required_unless_present = "request")]
        profile: Option<String>,
        /// JSON file with fields of its request
        #[arg(long, value_name = "FILE")]
        request: Option<PathBuf>,
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
        /// Search for skills again, and keep other files as they were read
        #[arg(long, value_name = "WHAT", value_parser = ["skills"], conflicts_with_all = ["plan", "request"])]
        only: Option<String>,
        /// Working directory to go on in; its files are sent to a server that does not have it
        #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with_all = ["plan", "only"])]
        cwd: Option<String>,
        /// JSON file with fields of the request to change
        #[arg(long, value_name = "FILE")]
        request: Option<PathBuf>,
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
    show(command, &serde_json::from_str(answer.get()).unwrap_or(Value::Null))
}

/// Writes an answer as JSON. Messages keep their spelling.
fn written(answer: &impl Serialize) -> Result<Box<RawValue>, Failure> {
    serde_json::value::to_raw_value(answer).map_err(|error| Failure::Output(error.into()))
}

/// The place of the conversations.
enum Backend {
    Store(Box<Conversations>),
    Remote(Remote),
}

impl Backend {
    fn run(&self, command: &ConversationCommand) -> Result<Box<RawValue>, Failure> {
        match self {
            Self::Store(conversations) => from_store(conversations, command),
            Self::Remote(remote) => from_server(remote, command),
        }
    }
}

fn from_server(remote: &Remote, command: &ConversationCommand) -> Result<Box<RawValue>, Failure> {
    match command {
        ConversationCommand::List { search, .. } => {
            let search =
                search.as_ref().map_or_else(String::new, |text| format!("&search={}", encoded(text)));
            written(&remote.get(&format!("/conversations?limit=200{search}"))?)
        }
        ConversationCommand::Show { id, .. } | ConversationCommand::History { id, .. } => {
            written(&remote.get(&format!("/conversations/{}", encoded(id)))?)
        }
        ConversationCommand::Reload { id, cwd: Some(cwd), request, .. } => {
            let update = update(request.as_deref())?.with_cwd(cwd.clone());
            raw(send_with_files(remote, (id, "reload"), update)?)
        }
        ConversationCommand::Reload { id, plan, only, request, .. } => {
            let only = only.as_ref().map_or_else(String::new, |what| format!("&only={what}"));
            let path = format!("/conversations/{}/reload?plan={plan}{only}", encoded(id));
            written(&remote.send_body(Method::POST, &path, body(request.as_deref())?)?)
        }
        ConversationCommand::Compact { id, begin, commit, abort, provider, request, .. } => {
            let path = format!("/conversations/{}/compaction", encoded(id));
            match (commit, abort) {
                (Some(token), _) => written(&remote.post(&format!("{path}/{}/commit", encoded(token)))?),
                (None, Some(token)) => {
                    remote.delete(&format!("{path}/{}", encoded(token)))?;
                    written(&json!({ "aborted": token }))
                }
                (None, None) => {
                    let path = if *begin { path } else { format!("{path}?commit=true") };
                    let update = compaction_update(request.as_deref(), *provider)?;
                    raw(remote.answer(Method::POST, &path, update.to_json()?)?)
                }
            }
        }
        ConversationCommand::Tools { id, file, .. } => {
            let path = format!("/conversations/{}/tools", encoded(id));
            let body = json!({ "tools": tools(file)? }).to_string();
            written(&remote.send_body(Method::PUT, &path, body)?)
        }
        ConversationCommand::Profile { id, name, .. } => {
            let path = format!("/conversations/{}/profile", encoded(id));
            written(&remote.send_body(Method::PUT, &path, json!({ "profile": name }).to_string())?)
        }
        ConversationCommand::Fork { id, new, role, .. } => {
            let path = format!("/conversations/{}/fork", encoded(id));
            written(&remote.send_body(Method::POST, &path, json!({ "id": new, "role": role }).to_string())?)
        }
        ConversationCommand::Spawn { id, new, profile, request, .. } => {
            let path = format!("/conversations/{}/spawn", encoded(id));
            let update = spawned(profile.as_deref(), request.as_deref())?;
            let mut body: Value = serde_json::from_str(&update.to_json()?).unwrap_or(Value::Null);
            body["id"] = json!(new);
            written(&remote.send_body(Method::POST, &path, body.to_string())?)
        }
        ConversationCommand::Rm { id, .. } => {
            remote.delete(&format!("/conversations/{}", encoded(id)))?;
            written(&json!({ "removed": id }))
        }
    }
}

fn from_store(
    conversations: &Conversations,
    command: &ConversationCommand,
) -> Result<Box<RawValue>, Failure> {
    let store = conversations.store();
    match command {
        ConversationCommand::List { search, .. } => {
            let page = store.conversations(&Query { search: search.clone(), after: None, most: 200 })?;
            written(&json!({ "conversations": page.items, "next": page.next }))
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
            let branches = conversations.branches(id)?;
            written(&json!({
                "conversation": id, "epoch": kept.head.number, "carriers": carriers, "epochs": epochs,
                "parents": branches.parents, "children": branches.children,
            }))
        }
        ConversationCommand::Reload { id, plan: true, request, .. } => {
            let plan = conversations.plan_reload(id, update(request.as_deref())?, Caller::User)?;
            let sections: Vec<&str> =
                plan.pending.sections.iter().map(|section| section.id.as_str()).collect();
            let sections: Vec<Value> = sections.into_iter().map(|id| json!({ "id": id })).collect();
            let lost = plan.cost().map(|change| change.lost_tokens());
            written(&json!({ "epoch": plan.kept.head.number, "opened": false, "plan": {
                "allowed": plan.is_allowed, "changed": !plan.pending.is_empty(), "tools_changed": plan.pending.tools,
                "sections": sections, "lost_tokens_estimate": lost,
            }, "notice": plan.notice, "rebuild": plan.rebuild }))
        }
        ConversationCommand::Reload { id, only: Some(_), .. } => {
            written(&conversations.reload_skills(id, Caller::User)?.shape())
        }
        ConversationCommand::Reload { id, cwd, request, .. } => {
            let update = cwd.iter().cloned().fold(update(request.as_deref())?, RequestUpdate::with_cwd);
            written(&conversations.reload(id, update, Caller::User)?.shape())
        }
        ConversationCommand::Compact { id, begin, commit, abort, provider, request, .. } => {
            let compaction = Compaction { begin: *begin, commit: commit.as_deref(), abort: abort.as_deref() };
            let update = || compaction_update(request.as_deref(), *provider);
            compact(conversations, id, &compaction, update)
        }
        ConversationCommand::Tools { id, file, .. } => {
            written(&conversations.set_tool_registry(id, &tools(file)?, Caller::User)?.shape())
        }
        ConversationCommand::Profile { id, name, .. } => {
            written(&conversations.switch_profile(id, name, Caller::User)?.shape())
        }
        ConversationCommand::Fork { id, new, role, .. } => {
            written(&conversations.fork(id, new, role.as_deref(), Caller::User)?.shape())
        }
        ConversationCommand::Spawn { id, new, profile, request, .. } => {
            let update = spawned(profile.as_deref(), request.as_deref())?;
            written(&conversations.spawn(id, new, update, Caller::User)?.shape())
        }
        ConversationCommand::Rm { id, .. } => {
            // A damaged conversation can be removed, too.
            if !store.remove(id)? {
                current_epoch(conversations, id)?;
            }
            written(&json!({ "removed": id }))
        }
    }
}

/// Returns the fields of a child's request.
fn spawned(profile: Option<&str>, request: Option<&Path>) -> Result<RequestUpdate, Failure> {
    let update = update(request)?;
    let Some(profile) = profile else { return Ok(update) };
    let given = Request { profile: Some(profile.to_owned()), ..update.given().clone() };
    Ok(update.with_given(given))
}

/// The step of a compaction that the flags choose.
struct Compaction<'c> {
    begin: bool,
    commit: Option<&'c str>,
    abort: Option<&'c str>,
}

fn compact(
    conversations: &Conversations,
    id: &str,
    compaction: &Compaction<'_>,
    update: impl Fn() -> Result<RequestUpdate, Failure>,
) -> Result<Box<RawValue>, Failure> {
    if let Some(token) = compaction.commit {
        let epoch = conversations.commit_compaction(id, token, Caller::User)?;
        let pending = conversations.pending(id)?;
        return written(&Changed { epoch, is_opened: true, pending, notes: Vec::new() }.shape());
    }
    if let Some(token) = compaction.abort {
        conversations.abort_compaction(id, token)?;
        return written(&json!({ "aborted": token }));
    }
    let begun = conversations.begin_compaction(id, update()?, Caller::User)?;
    let mut shape = begun.shape();
    if !compaction.begin {
        shape.epoch = conversations.commit_compaction(id, &begun.token, Caller::User)?.head.number;
    }
    written(&shape)
}

/// Builds the update of a compaction.
fn compaction_update(
    file: Option<&Path>,
    provider: Option<&'static ProviderName>,
) -> Result<RequestUpdate, Failure> {
    let mut update = update(file)?;
    if let Some(provider) = provider {
        update.given_mut().provider = Some(provider.word.to_owned());
    }
    Ok(update)
}

/// Takes the answer of a server as it is.
fn raw(answer: String) -> Result<Box<RawValue>, Failure> {
    RawValue::from_string(answer).map_err(|error| Failure::Output(error.into()))
}

/// Reads a list of tools from a file.
fn tools(file: &Path) -> Result<Vec<Tool>, Failure> {
    let text = input::read(file, "list of tools", REQUEST_BYTES_MAX)?;
    serde_json::from_str(&text).map_err(|error| Failure::Usage {
        message: format!("cannot read the list of tools: {error}"),
        hint: "write a JSON list such as [{\"name\": \"read\"}]".into(),
    })
}

/// Returns the body of a request to a server.
fn body(file: Option<&Path>) -> Result<String, Failure> {
    Ok(update(file)?.to_json()?)
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
            print(&(rows(&answer["epochs"], columns) + &relatives(answer)))
        }
        ConversationCommand::Show { .. } => {
            print_raw(answer["carriers"]["system"].as_str().unwrap_or_default())
        }
        ConversationCommand::Reload { plan: true, .. } => {
            print(&(plan(&answer["plan"]) + &prices(&answer["notice"], &answer["rebuild"])))
        }
        ConversationCommand::Fork { .. } | ConversationCommand::Spawn { .. } => print(&branch(answer)),
        ConversationCommand::Compact { begin: true, .. } => print(&format!(
            "begun: send the instructions to the model, then run `proem conversation compact {} --commit {}`\n\n{}\n",
            visible_line(command.id()),
            visible_line(answer["token"].as_str().unwrap_or_default()),
            visible(answer["instructions"].as_str().unwrap_or_default())
        )),
        ConversationCommand::Compact { abort: Some(_), .. } => print("aborted: the epoch stays in force\n"),
        ConversationCommand::Compact { .. } => print(&format!("epoch {} is in force\n", answer["epoch"])),
        ConversationCommand::Reload { .. }
        | ConversationCommand::Tools { .. }
        | ConversationCommand::Profile { .. } => print(&changed(answer)),
        ConversationCommand::Rm { id, .. } => print(&format!("removed {}\n", visible_line(id))),
    }
}

/// Formats a conversation that began from another one.
fn branch(answer: &Value) -> String {
    let text = |key: &str| visible_line(answer[key].as_str().unwrap_or_default());
    let prime = if answer["prime"] == json!(true) {
        "; send one request with it first: the others read its cache"
    } else {
        ""
    };
    format!("{} begins from {}{prime}\n", text("conversation"), text("parent"))
}

/// Formats the relatives of a conversation.
fn relatives(answer: &Value) -> String {
    let list = |key: &str| answer[key].as_array().cloned().unwrap_or_default();
    let line = |word: &str, one: &Value| {
        let text = |key: &str| visible_line(one[key].as_str().unwrap_or_default());
        format!("{word} {} ({})\n", text("conversation"), text("kind"))
    };
    let parents = list("parents").iter().map(|one| line("parent", one)).collect::<String>();
    parents + &list("children").iter().map(|one| line("child", one)).collect::<String>()
}

/// Formats the outcome of a change.
fn changed(answer: &Value) -> String {
    if answer["opened"] == json!(true) {
        return format!("epoch {} is in force\n", answer["epoch"]);
    }
    let pending = answer["pending"].as_array().into_iter().flatten();
    let pending: Vec<&str> = pending.filter_map(|field| field["field"].as_str()).collect();
    let waits = if pending.is_empty() {
        String::new()
    } else {
        format!("; waiting for the next epoch: {}", pending.join(", "))
    };
    format!("unchanged: epoch {} stays in force{waits}\n", answer["epoch"])
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
    /// Returns the conversation of a command; the list has none.
    fn id(&self) -> &str {
        match self {
            Self::List { .. } => "",
            Self::Show { id, .. }
            | Self::History { id, .. }
            | Self::Compact { id, .. }
            | Self::Tools { id, .. }
            | Self::Profile { id, .. }
            | Self::Fork { id, .. }
            | Self::Spawn { id, .. }
            | Self::Reload { id, .. }
            | Self::Rm { id, .. } => id,
        }
    }

    const fn flags(&self) -> &ConversationFlags {
        match self {
            Self::List { flags, .. }
            | Self::Show { flags, .. }
            | Self::History { flags, .. }
            | Self::Compact { flags, .. }
            | Self::Tools { flags, .. }
            | Self::Profile { flags, .. }
            | Self::Fork { flags, .. }
            | Self::Spawn { flags, .. }
            | Self::Reload { flags, .. }
            | Self::Rm { flags, .. } => flags,
        }
    }
}
