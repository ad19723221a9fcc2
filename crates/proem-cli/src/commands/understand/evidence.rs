//! `proem evidence`: compares the tokens that a provider read from its cache with the expected ones.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anstyle::{AnsiColor, Style};
use clap::{Args, ValueHint};
use proem::evidence::{Blame, Defaults, JudgedCall, KeptCall, NewCall, judge};
use proem::models::Models;
use proem::traffic::lines::{LineDefaults, call_of_line};
use proem::traffic::{Analyser, Call};
use proem::{Caller, Engine, Request};
use proem_core::limit::TURNS_BYTES_MAX;
use proem_core::text::Places;
use proem_store::{Conversations, is_conversation_id};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::arguments::store::open_known;
use crate::arguments::{Format, NameParser, Output, ServerFlags, StoreFlags};
use crate::failure::Failure;
use crate::input;
use crate::notes::print_warning;
use crate::remote::{Remote, encoded};
use crate::table::{Cell, Column, Table};
use crate::terminal::{output_columns, print, print_json, visible_line};

const DIM: Style = Style::new().dimmed();
const BOLD: Style = Style::new().bold();

/// Check a provider's cache reads, and find the cause of misses
///
/// Compares the tokens read from the cache with the tokens that should have been read, call by call. Exits with code 1 if there is a miss.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct EvidenceArguments {
    /// Calls, one per line: the provider's response, or `{"response": …, "at": …, "request": …}`; `-` reads standard input
    /// [default: the calls reported to the server]
    #[arg(value_name = "CALLS.jsonl", value_hint = ValueHint::FilePath, conflicts_with = "url")]
    file: Option<PathBuf>,
    /// Conversation of lines that name none
    #[arg(long, value_name = "CONVERSATION")]
    conversation: Option<String>,
    /// Provider of lines that name none [default: detected from the usage fields]
    #[arg(long, visible_alias = "for", value_name = "PROVIDER", value_parser = NameParser::caches())]
    provider: Option<String>,
    /// Model of lines that name none
    #[arg(long, value_name = "MODEL", value_parser = NameParser::models(), hide_possible_values = true)]
    model: Option<String>,
    #[command(flatten)]
    store: StoreFlags,
    #[command(flatten)]
    server: ServerFlags,
    #[command(flatten)]
    output: Output<Format>,
}

const EXAMPLES: &str = "\
Examples:
  proem evidence calls.jsonl --for anthropic   Judge the responses in a file
  proem evidence --conversation chat-1         Judge calls reported to a server";

pub(crate) fn run(arguments: &EvidenceArguments) -> Result<(), Failure> {
    let models = Models::load(&Request::default(), Caller::User)?;
    let conversations = match &arguments.server.url {
        Some(_) => None,
        None => open_known(&arguments.store)?.map(|store| Conversations::new(store.into(), Engine::new())),
    };
    let judged = match &arguments.file {
        None if arguments.server.url.is_some() => from_server(arguments)?,
        Some(path) => {
            let text = input::read(path, "file of calls", TURNS_BYTES_MAX)?;
            from_lines(&text, arguments, &models, conversations.as_ref())?
        }
        None => from_store(arguments, &models, conversations.as_ref())?,
    };
    match arguments.output.format() {
        Format::Json => print_json(&shape(&judged, &models))?,
        Format::Text => print(&text(&judged, &models))?,
    }
    let is_miss = |one: &JudgedCall| one.blame.is_some();
    if judged.values().flatten().any(is_miss) { Err(Failure::Findings) } else { Ok(()) }
}

type ByConversation = BTreeMap<String, Vec<JudgedCall>>;

/// Queries a server for its calls and its verdicts.
fn from_server(arguments: &EvidenceArguments) -> Result<ByConversation, Failure> {
    let (Some(url), Some(id)) = (&arguments.server.url, &arguments.conversation) else {
        return Err(Failure::Usage {
            message: "`--url` needs a conversation".into(),
            hint: "name it with `--conversation ID`".into(),
        });
    };
    let answer = Remote::new(url)?.get(&format!("/conversations/{}/calls", encoded(id)))?;
    let calls = serde_json::from_value(answer["calls"].clone()).map_err(|error| Failure::Server {
        message: format!("invalid response of the server: {error}"),
        hint: "use a server of the same version".into(),
    })?;
    Ok([(id.clone(), calls)].into())
}

/// Judges the calls of a conversation in the store.
fn from_store(
    arguments: &EvidenceArguments,
    models: &Models,
    conversations: Option<&Conversations>,
) -> Result<ByConversation, Failure> {
    let (Some(id), Some(conversations)) = (&arguments.conversation, conversations) else {
        return Err(Failure::Server {
            message: "no calls to judge: neither a file nor a conversation of a store".into(),
            hint: "name a file of JSON lines, or `--conversation` for calls reported to a server".into(),
        });
    };
    if conversations.current(id)?.is_none() {
        return Err(proem_store::ConversationError::NoConversation(id.clone()).into());
    }
    let calls = conversations.calls(id, models)?;
    Ok([(id.clone(), calls)].into())
}

/// A line with a call.
struct CallLine {
    call: Call,
    /// The numbers and digests of the line, where it has the shape of stored calls.
    fresh: Option<NewCall>,
}

/// Judges the calls of a file, by conversation. A line that is not a call leaves a warning.
fn from_lines(
    text: &str,
    arguments: &EvidenceArguments,
    models: &Models,
    conversations: Option<&Conversations>,
) -> Result<ByConversation, Failure> {
    let mut lines: BTreeMap<String, Vec<CallLine>> = BTreeMap::new();
    let (mut first, mut skipped) = (None, 0_usize);
    for (index, (number, value)) in values(text).into_iter().enumerate() {
        let read = value.and_then(|value| line_of(value, number, arguments, models));
        match read {
            Ok((id, line)) => lines.entry(id).or_default().push(line),
            Err(why) => {
                skipped += 1;
                let message = format!("cannot read call {}, from line {number} on: {why}", index + 1);
                first.get_or_insert(message);
            }
        }
    }
    if let (Some(message), true) = (&first, lines.is_empty()) {
        let hint =
            "write responses as the provider gives them, or {\"response\": …, \"at\": …, \"request\": …}";
        return Err(Failure::Usage { message: message.clone(), hint: hint.into() });
    }
    if let Some(message) = first {
        let more = if skipped > 1 { format!("; {} more are left out", skipped - 1) } else { String::new() };
        print_warning(&visible_line(&format!("{message}{more}")));
    }
    let mut judged = ByConversation::new();
    let mut analyser = Analyser::new(models.clone());
    for (id, mut lines) in lines {
        if lines.iter().all(|line| line.call.at.is_some()) {
            lines.sort_by_key(|line| line.call.at);
        }
        let known = conversations.filter(|_| is_conversation_id(&id));
        let calls = followed(lines, &id, (models, &mut analyser), known)?;
        let one = match known {
            Some(known) => known.judged(&id, &calls, models)?,
            None => judge(&calls, &[], models),
        };
        judged.insert(id, one);
    }
    Ok(judged)
}

/// Returns the JSON values of a text with their lines. After an error, reading goes on with the next line.
fn values(text: &str) -> Vec<(usize, Result<&str, String>)> {
    let (mut found, mut places, mut start) = (Vec::new(), Places::new(text), 0);
    while let Some(rest) = text.get(start..).filter(|rest| !rest.trim_start().is_empty()) {
        let begin = text.len() - rest.trim_start().len();
        let line = places.at(begin).line;
        let mut stream = serde_json::Deserializer::from_str(text.get(begin..).unwrap_or_default())
            .into_iter::<&RawValue>();
        match stream.next() {
            Some(Ok(value)) => {
                found.push((line, Ok(value.get())));
                start = begin + stream.byte_offset();
            }
            Some(Err(error)) => {
                found.push((line, Err(error.to_string())));
                let end = text.get(begin..).and_then(|rest| rest.find('\n'));
                start = end.map_or(text.len(), |end| begin + end + 1);
            }
            None => break,
        }
    }
    found
}

/// Reads one line, and the conversation that it belongs to.
fn line_of(
    value: &str,
    number: usize,
    arguments: &EvidenceArguments,
    models: &Models,
) -> Result<(String, CallLine), String> {
    let defaults = Defaults {
        conversation: arguments.conversation.clone(),
        provider: arguments.provider.clone(),
        model: arguments.model.clone(),
    };
    let line_defaults = LineDefaults {
        conversation: arguments.conversation.clone(),
        provider: arguments.provider.clone(),
        model: arguments.model.clone(),
        ..LineDefaults::default()
    };
    let call = call_of_line(value, number, &line_defaults)?;
    let fresh = KeptCall::read(value, &defaults, models);
    if call.usage.input().is_none() {
        // The error of the strict reader says which numbers are missing.
        fresh.as_ref().map_err(Clone::clone)?;
    }
    let named = fresh.as_ref().ok().and_then(|fresh| fresh.call.conversation.clone());
    let id = named.or_else(|| call.conversation.clone()).unwrap_or_default();
    Ok((id, CallLine { call, fresh: fresh.ok() }))
}

/// Compares each call with the earlier ones, and with its epoch.
fn followed(
    lines: Vec<CallLine>,
    id: &str,
    (models, analyser): (&Models, &mut Analyser),
    conversations: Option<&Conversations>,
) -> Result<Vec<KeptCall>, Failure> {
    let mut calls: Vec<KeptCall> = Vec::new();
    for CallLine { mut call, fresh } in lines {
        call.conversation = Some(id.to_owned());
        let (usage, at) = (call.usage, call.at);
        let verdict = analyser.take(call);
        let mut kept = match fresh {
            Some(mut one) => {
                if let (Some(conversations), Some(number)) = (conversations, one.call.epoch)
                    && let Some(kept) = conversations.epoch(id, number)?
                {
                    one.compare_prefix(kept.frozen.prefix());
                }
                one.follow(calls.last(), models);
                one.call
            }
            None => KeptCall::new(&verdict.provider, verdict.model.clone(), at, &usage),
        };
        kept.analysis = Some(Box::new(verdict));
        calls.push(kept);
    }
    Ok(calls)
}

fn shape(judged: &ByConversation, models: &Models) -> Value {
    let conversations: Vec<Value> =
        judged.iter().map(|(id, calls)| json!({ "conversation": id, "calls": calls })).collect();
    json!({ "rules_as_of": models.as_of, "conversations": conversations })
}

fn text(judged: &ByConversation, models: &Models) -> String {
    let mut shown = String::new();
    for (id, calls) in judged {
        let name = if id.is_empty() { "calls without a conversation" } else { id };
        shown.push_str(&format!("{BOLD}{}{BOLD:#}\n", visible_line(name)));
        shown.push_str(&table(calls));
        shown.push_str(&summary(calls));
    }
    shown + &format!("{DIM}rules of {}{DIM:#}\n", models.as_of)
}

fn table(calls: &[JudgedCall]) -> String {
    let columns = [
        Column::word("call"),
        Column::word("epoch"),
        Column::word("input"),
        Column::word("expected"),
        Column::word("read"),
        Column::word("verdict"),
        Column::text("why"),
    ];
    let row = |one: &JudgedCall| {
        let (side, style) = match one.blame {
            None => ("-", DIM),
            Some(Blame::Ours) => ("ours", AnsiColor::Red.on_default().bold()),
            Some(Blame::Provider) => ("the provider's", AnsiColor::Yellow.on_default().bold()),
            Some(Blame::Unknown) => ("unknown", Style::new().bold()),
        };
        let reason = one.reason.as_ref().map_or_else(String::new, |reason| format!("{reason}: "));
        vec![
            Cell::plain(one.call.to_string()),
            Cell::plain(one.epoch.map_or_else(|| "-".to_owned(), |epoch| epoch.to_string())),
            Cell::plain(one.input.to_string()),
            Cell::plain(one.expected.to_string()),
            Cell::plain(one.reported.to_string()),
            Cell::new(side, style),
            Cell::plain(visible_line(&format!("{reason}{}", one.why.as_deref().unwrap_or_default()))),
        ]
    };
    Table::new(columns).with(calls.iter().map(row)).print(output_columns())
}

fn summary(calls: &[JudgedCall]) -> String {
    let (expected, read): (u64, u64) = calls.iter().fold((0, 0), |(expected, read), one| {
        (expected + one.expected, read + one.reported.min(one.expected))
    });
    let count = |verdict: Blame| calls.iter().filter(|one| one.blame == Some(verdict)).count();
    format!(
        "{read} of {expected} expected tokens were read; misses: {} ours, {} the provider's, {} unknown\n\n",
        count(Blame::Ours),
        count(Blame::Provider),
        count(Blame::Unknown)
    )
}
