//! Messages of neutral roles, which no provider knows: summaries, commands that the user ran, and messages of the agent.
//!
//! Each is converted once, when it is first delivered, to a message of the user. The history has the converted message,
//! so that another wording later changes nothing that was sent.

use std::path::PathBuf;

use proem_core::note::Note;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::Wording;
use crate::error::Error;
use crate::request::message::RawMessage;
use crate::request::raw_json::{Json, field, object};
use crate::request::strict_json::without_place;
use crate::request::{PerPrompt, Request};
use crate::settings::world::World;

/// A message of a neutral role.
#[derive(Deserialize)]
#[serde(tag = "role", rename_all = "snake_case", deny_unknown_fields)]
enum NeutralMessage {
    /// The summary that a compaction put in the place of messages.
    CompactionSummary { content: String },
    /// The summary of a branch that the conversation left.
    BranchSummary { content: String },
    /// A command that the user ran.
    BashExecution {
        command: String,
        #[serde(default)]
        output: String,
        #[serde(default)]
        exit_code: Option<i64>,
        #[serde(default)]
        exclude_from_context: bool,
    },
    /// A message of the agent's own.
    Custom { content: serde_json::Value },
}

/// The neutral roles, which are also the keys of their wording.
const ROLES: [&str; 4] = ["compaction_summary", "branch_summary", "bash_execution", "custom"];

/// The messages of a turn, as they are delivered.
#[derive(Debug, Default)]
pub(in crate::conversation) struct ConvertedMessages {
    /// The request's messages, all of roles that providers know; `None` if nothing is converted.
    pub(in crate::conversation) request: Option<Request>,
    /// Messages that stay in the history and are not sent, each with its index among all messages.
    pub(in crate::conversation) withheld: Vec<(usize, RawMessage)>,
    /// Notes about packs.
    pub(in crate::conversation) notes: Vec<Note>,
}

/// Checks the messages of a request before anything of it has an effect.
pub(in crate::conversation) fn check(request: &Request) -> Result<(), Error> {
    for (index, message) in request.messages.iter().flatten().enumerate() {
        parsed("messages", index, message)?;
    }
    for (index, message) in of_prompt(request).iter().enumerate() {
        if let Some(NeutralMessage::BashExecution { exclude_from_context: true, .. }) =
            parsed(PER_PROMPT, index, message)?
        {
            let why = "it is excluded from the context, and so has no place in one prompt";
            return Err(Error::request_with_hint(
                format!("`{PER_PROMPT}[{index}]`: {why}"),
                "give it with `messages`: it stays in the history",
            ));
        }
    }
    Ok(())
}

const PER_PROMPT: &str = "per_prompt.messages";

fn of_prompt(request: &Request) -> &[RawMessage] {
    request.per_prompt.as_ref().and_then(|own| own.messages.as_deref()).unwrap_or_default()
}

/// Tells whether a request has messages of neutral roles.
pub(in crate::conversation) fn are_in(request: &Request) -> bool {
    request.messages.iter().flatten().chain(of_prompt(request)).any(|message| role_of(message).is_some())
}

/// Returns the role of a message if it is a neutral one.
fn role_of(message: &RawMessage) -> Option<&'static str> {
    let fields = message.fields().ok()?;
    let role = field(&fields, "role").and_then(Json::text)?;
    ROLES.into_iter().find(|known| *known == role)
}

/// Parses a message of a neutral role; `None` for every other one.
fn parsed(list: &str, index: usize, message: &RawMessage) -> Result<Option<NeutralMessage>, Error> {
    let Some(role) = role_of(message) else { return Ok(None) };
    let refuse = |why: &str| {
        let hint = "docs/request.md describes the roles of messages";
        Error::request_with_hint(format!("`{list}[{index}]` of the role `{role}`: {why}"), hint)
    };
    let parsed: NeutralMessage =
        serde_json::from_str(message.get()).map_err(|error| refuse(&without_place(&error)))?;
    match &parsed {
        NeutralMessage::Custom { content } if !content.is_string() && !is_blocks(content) => {
            Err(refuse("its `content` is neither text nor a list of blocks"))
        }
        _ => Ok(Some(parsed)),
    }
}

fn is_blocks(content: &serde_json::Value) -> bool {
    content.as_array().is_some_and(|blocks| blocks.iter().all(serde_json::Value::is_object))
}

/// Converts the messages of a request. `of_hooks` are packs that hooks bring.
pub(in crate::conversation) fn convert(
    world: &World,
    request: &Request,
    of_hooks: &[PathBuf],
) -> Result<ConvertedMessages, Error> {
    let wording = Wording::load(world, request, of_hooks)?;
    let (mut messages, mut withheld) = (Vec::new(), Vec::new());
    for (index, message) in request.messages.iter().flatten().enumerate() {
        match converted("messages", (index, message), &wording)? {
            Some(message) => messages.push(message),
            None => withheld.push((index, message.clone())),
        }
    }
    let mut own = Vec::new();
    for (index, message) in of_prompt(request).iter().enumerate() {
        own.extend(converted(PER_PROMPT, (index, message), &wording)?);
    }
    let per_prompt = request
        .per_prompt
        .as_ref()
        .map(|given| PerPrompt { messages: given.messages.as_ref().map(|_| own), ..given.clone() });
    let messages = request.messages.as_ref().map(|_| messages);
    let notes = wording.notes().to_vec();
    Ok(ConvertedMessages {
        request: Some(Request { messages, per_prompt, ..request.clone() }),
        withheld,
        notes,
    })
}

/// Converts a message; `None` for one that is not sent.
fn converted(
    list: &str,
    (index, message): (usize, &RawMessage),
    wording: &Wording<'_>,
) -> Result<Option<RawMessage>, Error> {
    let text = match parsed(list, index, message)? {
        None => return Ok(Some(message.clone())),
        Some(NeutralMessage::BashExecution { exclude_from_context: true, .. }) => return Ok(None),
        Some(NeutralMessage::CompactionSummary { content }) => {
            wording.text("compaction_summary", &[("content", &content)])?
        }
        Some(NeutralMessage::BranchSummary { content }) => {
            wording.text("branch_summary", &[("content", &content)])?
        }
        Some(NeutralMessage::BashExecution { command, output, exit_code, .. }) => {
            let code = exit_code.map(|code| code.to_string()).unwrap_or_default();
            let output = output.trim_end_matches('\n');
            let values = [("command", command.as_str()), ("output", output), ("exit_code", &code)];
            wording.text("bash_execution", &values)?
        }
        Some(NeutralMessage::Custom { content }) => match content.as_str() {
            Some(content) => wording.text("custom", &[("content", content)])?,
            None => return with_own_content(message).map(Some),
        },
    };
    Ok(Some(RawMessage::from_user(&text)))
}

/// Makes a message of the user with the content of another one, in its spelling.
fn with_own_content(message: &RawMessage) -> Result<RawMessage, Error> {
    let unread = |error: serde_json::Error| Error::request(error.to_string());
    let fields = message.fields().map_err(unread)?;
    let content = field(&fields, "content").cloned().unwrap_or_else(|| Json::Raw(RawValue::NULL.to_owned()));
    let text = serde_json::to_string(&object([("role", "user".into()), ("content", content)]));
    serde_json::from_str(&text.map_err(unread)?).map_err(unread)
}
