//! What agents would see, in JSON.

use proem_core::carrier::Carrier;
use proem_core::profile::AgentRecipe;
use schemars::JsonSchema;
use serde::Serialize;

use super::{FileSeen, Seen};

/// What agents would see, for programs.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "proem compat")]
pub struct CompatShape {
    /// The agents.
    pub agents: Vec<AgentShape>,
}

/// What one agent would see.
#[derive(Debug, Serialize, JsonSchema)]
pub struct AgentShape {
    /// The profile that stands in for it.
    pub profile: String,
    /// What it is called.
    pub title: String,
    /// The version whose rules these are.
    pub version: String,
    /// The day on which they were looked at.
    pub as_of: String,
    /// How they are known: `run`, `code` or `documentation`.
    pub known_by: &'static str,
    /// The carriers that have text.
    pub carriers: Vec<CarrierSize>,
    /// What became of each file.
    pub files: Vec<FileShape>,
    /// How many names could not be looked for over a connection: the user's own files, and what lies above the workspace.
    pub out_of_reach: usize,
    /// What was cut, left out, or not imported.
    pub notes: Vec<String>,
}

/// How large a carrier's text is.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CarrierSize {
    /// The carrier.
    pub carrier: &'static str,
    /// In bytes.
    pub bytes: usize,
    /// In tokens, estimated.
    pub tokens: usize,
}

/// What became of a file.
#[derive(Debug, Serialize, JsonSchema)]
pub struct FileShape {
    /// The path.
    pub path: String,
    /// What became of it.
    pub outcome: &'static str,
    /// The same in a word for a table.
    pub word: &'static str,
    /// Why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// How many bytes of it are in the prompt.
    pub bytes: usize,
    /// Whether only a part of it is there.
    pub cut: bool,
    /// The carriers that they ride on.
    pub carriers: Vec<&'static str>,
}

impl CompatShape {
    /// Puts what agents would see into this shape.
    #[must_use]
    pub fn of(seen: &[Seen]) -> Self {
        Self { agents: seen.iter().map(agent_shape).collect() }
    }
}

fn agent_shape(seen: &Seen) -> AgentShape {
    let AgentRecipe { title, version, as_of, known_by } = seen.agent.clone();
    let size = |(carrier, bytes, tokens): (Carrier, usize, usize)| CarrierSize {
        carrier: carrier.word(),
        bytes,
        tokens,
    };
    let file = |(path, file): (&String, &FileSeen)| FileShape {
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
        carriers: seen.carriers().map(size).collect(),
        files: seen.files.iter().map(file).collect(),
        out_of_reach: seen.out_of_reach,
        notes: seen.warnings().map(|note| note.message.clone()).collect(),
    }
}
