//! The views of agents, in JSON.

use proem_core::carrier::Carrier;
use proem_core::profile::AgentRecipe;
use schemars::JsonSchema;
use serde::Serialize;

use super::{AgentView, FileView};

/// The views of agents, for programs.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "proem compat")]
pub struct CompatShape {
    /// The agents.
    pub agents: Vec<AgentShape>,
}

/// The view of one agent.
#[derive(Debug, Serialize, JsonSchema)]
pub struct AgentShape {
    /// The profile that imitates it.
    pub profile: String,
    /// The agent's name.
    pub title: String,
    /// The version whose rules are imitated.
    pub version: String,
    /// The day on which they were verified.
    pub as_of: String,
    /// The way they were verified: `run`, `code` or `documentation`.
    pub known_by: &'static str,
    /// The part of the way to the model that was seen: `prompt`, or `client`, the message to the vendor's server.
    pub seen: &'static str,
    /// The carriers that have text.
    pub carriers: Vec<CarrierSize>,
    /// The outcome of each file.
    pub files: Vec<FileShape>,
    /// The number of names that could not be looked up for a remote caller: the user's own files, and those above the
    /// workspace.
    pub out_of_reach: usize,
    /// Notes about files that were cut, left out, or not imported.
    pub notes: Vec<String>,
}

/// The size of a carrier's text.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CarrierSize {
    /// The carrier.
    pub carrier: &'static str,
    /// In bytes.
    pub bytes: usize,
    /// In tokens, estimated.
    pub tokens: usize,
}

/// The outcome of a file.
#[derive(Debug, Serialize, JsonSchema)]
pub struct FileShape {
    /// The path.
    pub path: String,
    /// The outcome.
    pub outcome: &'static str,
    /// The same in a word for a table.
    pub word: &'static str,
    /// The reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The number of its bytes in the prompt.
    pub bytes: usize,
    /// True if only a part of it is in the prompt.
    pub cut: bool,
    /// The carriers that they ride on.
    pub carriers: Vec<&'static str>,
}

impl CompatShape {
    /// Converts views of agents to this shape.
    #[must_use]
    pub fn new(seen: &[AgentView]) -> Self {
        Self { agents: seen.iter().map(agent_shape).collect() }
    }
}

fn agent_shape(seen: &AgentView) -> AgentShape {
    let AgentRecipe { title, version, as_of, known_by, .. } = seen.agent.clone();
    let size = |(carrier, bytes, tokens): (Carrier, usize, usize)| CarrierSize {
        carrier: carrier.word(),
        bytes,
        tokens,
    };
    let file = |(path, file): (&String, &FileView)| FileShape {
        path: path.clone(),
        outcome: file.outcome.word(),
        word: file.word(),
        why: file.why.clone(),
        bytes: file.bytes,
        cut: file.is_cut,
        carriers: file.carriers.iter().map(|carrier| carrier.word()).collect(),
    };
    AgentShape {
        profile: seen.profile.clone(),
        title,
        version,
        as_of,
        known_by: known_by.word(),
        seen: seen.agent.seen.word(),
        carriers: seen.carriers().map(size).collect(),
        files: seen.files.iter().map(file).collect(),
        out_of_reach: seen.out_of_reach,
        notes: seen.warnings().map(|note| note.message.clone()).collect(),
    }
}
