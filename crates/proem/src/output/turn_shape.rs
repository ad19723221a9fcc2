//! The shape of a turn: the same in Rust, over HTTP and in `--format json`.

use std::collections::BTreeMap;

use proem_core::carrier::Carrier;
use proem_core::note::Note;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::build_shape::{NoteShape, VERSION};
use crate::build::{PendingField, Signature};
use crate::deliver::Notice;
use crate::deliver::RawMessage;
use crate::deliver::turn::{PrefixChange, ToolDefinition, Turn};

/// Everything that the model sees in one turn. Every key is always there: `null` or an empty list where there is nothing.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "proem turn")]
pub struct TurnShape<'b> {
    /// The version of this shape.
    pub version: u32,
    /// The id of the conversation.
    pub conversation: &'b str,
    /// The profile that the prompt was built by.
    pub profile: &'b str,
    /// The number of the epoch in force, from 1.
    pub epoch: u64,
    /// The reason for which the epoch was opened.
    pub reason: &'b str,
    /// True if the stored prompt was used, false if this turn built it.
    pub reused: bool,
    /// The frozen text of each carrier; a carrier without text is missing.
    pub carriers: BTreeMap<&'static str, &'b str>,
    /// The frozen text of the system carrier, before the boundary.
    pub prefix: Option<&'b str>,
    /// The line between the prefix and the part of this turn.
    pub boundary: Option<&'b str>,
    /// The text of this turn after the boundary, on the system carrier.
    pub suffix: Option<String>,
    /// The text of this turn on the `turn` carrier, which goes with the newest message of the user.
    pub turn: Option<String>,
    /// The SHA-256 of the prefix, in hexadecimal.
    pub digest: String,
    /// The digest of the prefix and the tools, on which a provider's cache depends.
    pub fingerprint: &'b str,
    /// The properties that decide whether a running session may be used for this turn.
    pub signature: &'b Signature,
    /// The system prompt that the model reads in this turn: after hooks.
    pub system_prompt: Option<&'b str>,
    /// The messages of this call, in a neutral shape.
    #[schemars(with = "Vec<serde_json::Map<String, Value>>")]
    pub messages: &'b [RawMessage],
    /// The definitions of the active tools.
    pub tools: Vec<ToolShape<'b>>,
    /// The messages to store and send with the next turn: in the provider's shape if one was named.
    #[schemars(with = "Vec<serde_json::Map<String, Value>>")]
    pub history: &'b [RawMessage],
    /// The fields of the provider's request body, if a provider was named.
    #[schemars(with = "Option<Value>")]
    pub payload: Option<&'b RawValue>,
    /// The changes that wait for the next epoch.
    pub pending: &'b [PendingField],
    /// The changes of each hook in the frozen prompt, in order.
    pub changes: Vec<ChangeShape<'b>>,
    /// The reason for an expected cache miss of the prefix in this turn.
    pub expected_miss: Option<&'b str>,
    /// The notices that this turn delivers, in order: they are in its messages.
    pub notices: &'b [Notice],
    /// Notes for the reader.
    pub notes: Vec<NoteShape<'b>>,
}

/// The outcome of a change of a conversation.
#[derive(Debug, Serialize, JsonSchema)]
pub struct EpochChangeShape {
    /// The number of the epoch in force.
    pub epoch: u64,
    /// True if this change opened it.
    pub opened: bool,
    /// The reason for which the epoch in force was opened.
    pub reason: String,
    /// The SHA-256 of its prefix, in hexadecimal.
    pub digest: String,
    /// The changes that wait for the next epoch.
    pub pending: Vec<PendingField>,
    /// Notes for the reader.
    pub notes: Vec<OwnedNoteShape>,
}

/// A note that is kept without the prompt that it is about.
#[derive(Debug, Serialize, JsonSchema)]
pub struct OwnedNoteShape {
    /// Its subject, as a stable word.
    pub code: &'static str,
    /// `info`, `warning` or `error`.
    pub severity: &'static str,
    /// The event or problem, in words.
    pub message: String,
    /// A way to fix it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl From<&Note> for OwnedNoteShape {
    fn from(note: &Note) -> Self {
        let NoteShape { code, severity, message, hint, .. } = NoteShape::new(note);
        Self { code, severity, message: message.to_owned(), hint: hint.map(str::to_owned) }
    }
}

/// The summarising call of a compaction.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CompactionShape {
    /// The token with which the compaction is committed or aborted.
    pub token: String,
    /// `append`: the instructions are at the end of the system carrier. `aligned`: send them as the last message of the
    /// user.
    pub policy: &'static str,
    /// The text of each carrier in the call that summarises.
    pub carriers: BTreeMap<&'static str, String>,
    /// The instructions to the model.
    pub instructions: String,
    /// The current epoch; the new one if the compaction was committed at once.
    pub epoch: u64,
    /// The messages of the call that summarises, in a neutral shape.
    #[schemars(with = "Vec<serde_json::Map<String, Value>>")]
    pub messages: Vec<RawMessage>,
    /// The fields of the provider's request body for that call, if a provider was named.
    #[schemars(with = "Option<Value>")]
    pub payload: Option<Box<RawValue>>,
    /// Notes for the reader.
    pub notes: Vec<OwnedNoteShape>,
}

/// A tool as providers get it.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ToolShape<'b> {
    /// The name.
    pub name: &'b str,
    /// The description for the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<&'b str>,
    /// The JSON schema of the input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_schema: Option<&'b Value>,
}

/// A hook's change in the frozen prompt.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ChangeShape<'b> {
    /// The hook's name; `per_prompt` for a change of the caller's own.
    pub hook: &'b str,
    /// The first byte that differs.
    pub first_byte: usize,
    /// The number of bytes of the frozen prompt that the cache loses.
    pub lost_bytes: usize,
    /// About how many tokens that is: an estimate, at 2.7 bytes each.
    pub lost_tokens_estimate: usize,
    /// About how many dollars these tokens cost more than from the cache; `null` if the model has no known prices.
    pub lost_dollars_estimate: Option<f64>,
}

impl<'b> TurnShape<'b> {
    /// Puts a turn into this shape.
    #[must_use]
    pub fn new(turn: &'b Turn) -> Self {
        let Turn { frozen, suffix, .. } = turn;
        let some = |text: &'b str| Some(text).filter(|text| !text.is_empty());
        let own = |carrier: Carrier| Some(suffix.text(carrier)).filter(|text| !text.is_empty());
        Self {
            version: VERSION,
            conversation: &turn.conversation,
            profile: frozen.profile(),
            epoch: turn.epoch,
            reason: &turn.reason,
            reused: turn.is_reused,
            carriers: frozen.body().carriers().map(|(carrier, text)| (carrier.word(), text)).collect(),
            prefix: some(frozen.prefix()),
            boundary: some(suffix.boundary()),
            suffix: own(Carrier::System),
            turn: own(Carrier::Turn),
            digest: frozen.digest().hex(),
            fingerprint: &turn.fingerprint,
            signature: &turn.signature,
            system_prompt: some(&turn.system_prompt),
            messages: &turn.messages,
            tools: turn.tools.iter().map(tool).collect(),
            history: &turn.history,
            payload: turn.payload.as_deref(),
            pending: &turn.pending,
            changes: turn.changes.iter().map(change).collect(),
            expected_miss: turn.expected_miss.as_deref(),
            notices: &turn.notices,
            notes: turn.notes.iter().map(NoteShape::new).collect(),
        }
    }
}

fn tool(tool: &ToolDefinition) -> ToolShape<'_> {
    ToolShape {
        name: &tool.name,
        description: tool.description.as_deref(),
        input_schema: tool.input_schema.as_ref(),
    }
}

fn change(change: &PrefixChange) -> ChangeShape<'_> {
    ChangeShape {
        hook: &change.hook,
        first_byte: change.change.first_byte,
        lost_bytes: change.change.lost_bytes,
        lost_tokens_estimate: change.change.lost_tokens(),
        lost_dollars_estimate: change.lost_dollars,
    }
}
