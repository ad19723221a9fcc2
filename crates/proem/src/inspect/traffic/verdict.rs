//! The shapes of a verdict: the cause of a miss, its place, its owner and its cost.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::call::{OwnerKind, ProviderReason, Purpose};

/// The result of a call for the cache.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CacheVerdict {
    /// All expected tokens were read.
    Hit,
    /// The first call of a thread.
    ColdStart,
    /// The lifetime of the entry was over.
    Expired,
    /// The prefix is shorter than the smallest that is cached.
    BelowMinimum,
    /// Another model, which has a cache of its own.
    ModelChanged,
    /// Another parameter of the cache key.
    ParameterChanged,
    /// More tools.
    ToolsAdded,
    /// Fewer tools.
    ToolsRemoved,
    /// The same tools in another order.
    ToolsReordered,
    /// Another definition of a tool.
    ToolsRedefined,
    /// Another system prompt.
    SystemChanged,
    /// An earlier message is another one.
    MessageEdited,
    /// An earlier message is missing.
    MessageRemoved,
    /// An earlier message is written in another form.
    MessageReformed,
    /// The markers end before the cached prefix.
    MarkerMoved,
    /// No block is marked.
    MarkerMissing,
    /// The marker stands too many blocks after the cached prefix.
    LookbackExceeded,
    /// The conversation was summarised.
    Compaction,
    /// The first call of a thread that begins with another one's blocks.
    Fork,
    /// Another account, region or cache key.
    Routing,
    /// Nothing changed.
    Provider,
    /// Something that would be needed is not known.
    #[default]
    Unknown,
}

impl CacheVerdict {
    /// All verdicts.
    pub const ALL: [Self; 22] = [
        Self::Hit,
        Self::ColdStart,
        Self::Expired,
        Self::BelowMinimum,
        Self::ModelChanged,
        Self::ParameterChanged,
        Self::ToolsAdded,
        Self::ToolsRemoved,
        Self::ToolsReordered,
        Self::ToolsRedefined,
        Self::SystemChanged,
        Self::MessageEdited,
        Self::MessageRemoved,
        Self::MessageReformed,
        Self::MarkerMoved,
        Self::MarkerMissing,
        Self::LookbackExceeded,
        Self::Compaction,
        Self::Fork,
        Self::Routing,
        Self::Provider,
        Self::Unknown,
    ];

    /// Returns the word that JSON has.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Hit => "hit",
            Self::ColdStart => "cold_start",
            Self::Expired => "expired",
            Self::BelowMinimum => "below_minimum",
            Self::ModelChanged => "model_changed",
            Self::ParameterChanged => "parameter_changed",
            Self::ToolsAdded => "tools_added",
            Self::ToolsRemoved => "tools_removed",
            Self::ToolsReordered => "tools_reordered",
            Self::ToolsRedefined => "tools_redefined",
            Self::SystemChanged => "system_changed",
            Self::MessageEdited => "message_edited",
            Self::MessageRemoved => "message_removed",
            Self::MessageReformed => "message_reformed",
            Self::MarkerMoved => "marker_moved",
            Self::MarkerMissing => "marker_missing",
            Self::LookbackExceeded => "lookback_exceeded",
            Self::Compaction => "compaction",
            Self::Fork => "fork",
            Self::Routing => "routing",
            Self::Provider => "provider",
            Self::Unknown => "unknown",
        }
    }

    /// Tells if a report shows it unasked: expected misses are counted only.
    #[must_use]
    pub const fn is_alarming(self) -> bool {
        !matches!(
            self,
            Self::Hit
                | Self::ColdStart
                | Self::Expired
                | Self::Compaction
                | Self::Fork
                | Self::ModelChanged
                | Self::ParameterChanged
                | Self::Unknown
        )
    }
}

/// The place of a change.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChangePlace {
    /// The part of the earlier request; absent if it was inserted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part_before: Option<String>,
    /// The part of this request; absent if it was removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part_after: Option<String>,
    /// The first different byte, from 0, in the decoded text of the block.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub byte: Option<usize>,
    /// Its line, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// Its column in characters, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<usize>,
    /// The text around it in the earlier request, secrets masked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// The text around it in this request, secrets masked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}

/// The owner of a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChangeOwner {
    /// The kind.
    pub kind: OwnerKind,
    /// The name: a tool, a server, a skill, a hook, a version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The line of the file, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// The agent, where the owner is the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

impl ChangeOwner {
    /// Creates an owner without a name.
    #[must_use]
    pub const fn new(kind: OwnerKind) -> Self {
        Self { kind, name: None, path: None, line: None, by: None }
    }

    /// Adds a name.
    #[must_use]
    pub fn with_name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }
}

/// The side that a loss is counted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LossSide {
    /// Files, skills, servers, plugins and hooks that the user configured.
    Ours,
    /// The user: an edited message, another model, a pause.
    User,
    /// The agent.
    Agent,
    /// The provider.
    Provider,
    /// Not known.
    Unknown,
}

impl LossSide {
    /// Returns the side of an owner.
    #[must_use]
    pub const fn of(owner: OwnerKind) -> Self {
        match owner {
            OwnerKind::InstructionFile
            | OwnerKind::Skill
            | OwnerKind::McpServer
            | OwnerKind::Tool
            | OwnerKind::Plugin
            | OwnerKind::Hook => Self::Ours,
            OwnerKind::User | OwnerKind::Time => Self::User,
            OwnerKind::Clock
            | OwnerKind::Date
            | OwnerKind::GitStatus
            | OwnerKind::Counter
            | OwnerKind::RandomId
            | OwnerKind::Agent
            | OwnerKind::AgentVersion => Self::Agent,
            OwnerKind::Provider => Self::Provider,
            OwnerKind::Unknown => Self::Unknown,
        }
    }
}

/// A call with its verdict, as reports and the API show it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CallVerdict {
    /// The id of the call.
    pub id: String,
    /// The time of sending, in RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// The conversation; `#1`, `#2`, … where the source names none.
    pub conversation: String,
    /// The thread; absent for the main thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
    /// The thread or conversation that this one comes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// The purpose.
    pub purpose: Purpose,
    /// The model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The rules of the cache.
    pub provider: String,
    /// The id of the call that it is compared with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predecessor: Option<String>,
    /// Tokens read from the cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read: Option<u64>,
    /// Tokens written to the cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written: Option<u64>,
    /// The part of `written` that is kept for an hour.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written_1h: Option<u64>,
    /// Tokens neither read nor written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uncached: Option<u64>,
    /// Tokens of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<u64>,
    /// Tokens that should have been read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_read: Option<u64>,
    /// The verdict.
    pub verdict: CacheVerdict,
    /// False for hits and for misses that are expected.
    pub alarming: bool,
    /// The verdict's details in one sentence.
    pub why: String,
    /// The place of the change.
    #[serde(default, rename = "where", skip_serializing_if = "Option::is_none")]
    pub place: Option<ChangePlace>,
    /// The owner of the change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<ChangeOwner>,
    /// Tokens that were expected and not read.
    pub lost_tokens: u64,
    /// Their price, less that of reading them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_usd: Option<f64>,
    /// The price of the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usd: Option<f64>,
    /// The price of the same call without a cache, less its price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saved_usd: Option<f64>,
    /// The reason that the provider gave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_reason: Option<ProviderReason>,
    /// True if the provider's reason contradicts the verdict.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub disagrees: bool,
    /// The advice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
}
