//! Answers for the pages about costs and causes.

use proem::simulate::Figures;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The state of the server.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct HealthAnswer {
    /// The version of proem.
    pub(crate) version: &'static str,
    /// The seconds since the start of the process.
    pub(crate) uptime_seconds: u64,
    /// The store.
    pub(crate) store: StoreHealth,
    /// The directories that requests may work in.
    pub(crate) workspaces: Vec<String>,
    /// The day of the prices and cache rules.
    pub(crate) prices_as_of: String,
    /// The day of the facts about agents and providers.
    pub(crate) rules_as_of: String,
    /// The models with their prices, in USD for a million tokens.
    pub(crate) models: Vec<ModelPrice>,
    /// Answered requests of this process, by class of status: `2xx`, `4xx`, …
    pub(crate) requests: std::collections::BTreeMap<String, u64>,
    /// The time of answered requests of this process.
    pub(crate) latency: LatencyShape,
    /// Work in progress.
    pub(crate) work: WorkHealth,
}

/// The store.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct StoreHealth {
    /// Its kind and place, without a password.
    pub(crate) place: String,
    /// True if it answers.
    pub(crate) answers: bool,
    /// The reason for which it does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) problem: Option<String>,
}

/// The prices of a model, in USD for a million tokens.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ModelPrice {
    /// The name.
    pub(crate) name: String,
    /// The company that makes it.
    pub(crate) vendor: String,
    /// Tokens that are not cached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) input: Option<f64>,
    /// Tokens read from the cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cache_read: Option<f64>,
    /// Tokens written to the cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cache_write: Option<f64>,
    /// Tokens written to the cache for an hour.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cache_write_1h: Option<f64>,
    /// Tokens of answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) output: Option<f64>,
    /// The smallest prefix that is cached, in tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) min_tokens: Option<usize>,
}

/// The time of answered requests, from the buckets of a histogram: each figure is the upper bound of its bucket.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(crate) struct LatencyShape {
    /// The number of requests.
    pub(crate) count: u64,
    /// Half of the requests took at most this many milliseconds; missing without requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) p50_ms: Option<f64>,
    /// The same for 95 of 100; missing also if the largest bucket has no bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) p95_ms: Option<f64>,
    /// The same for 99 of 100.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) p99_ms: Option<f64>,
    /// The mean in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) mean_ms: Option<f64>,
}

/// Work in progress.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct WorkHealth {
    /// Builds and reads that run.
    pub(crate) running: usize,
    /// The most that run at once.
    pub(crate) running_max: usize,
    /// Requests that wait for a worker.
    pub(crate) waiting: usize,
    /// The most that wait.
    pub(crate) waiting_max: usize,
    /// Streams of events.
    pub(crate) streams: usize,
    /// The most streams of events.
    pub(crate) streams_max: usize,
}

/// Everything that takes part in the prompts of a folder.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SourcesAnswer {
    /// The folder.
    pub(crate) cwd: String,
    /// The profile of the prompt.
    pub(crate) profile: String,
    /// The model whose prices are taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) model: Option<String>,
    /// The day of the prices.
    pub(crate) prices_as_of: String,
    /// The way tokens were counted.
    pub(crate) counted: String,
    /// The sources, the most expensive first.
    pub(crate) sources: Vec<SourceRow>,
    /// The agents whose view of the files is known.
    pub(crate) agents: Vec<SourceAgent>,
    /// The conversations of this folder that were compared, the newest ones.
    pub(crate) conversations: usize,
    /// Findings of `check` that belong to no source of the list.
    pub(crate) findings: Vec<SourceFinding>,
}

/// One source.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(crate) struct SourceRow {
    /// `instruction_file`, `skill`, `hook`, `tool`, `template`, `variable`, `request` or `other`.
    pub(crate) kind: &'static str,
    /// The name: a path, a tool, a hook, the key of a variable.
    pub(crate) name: String,
    /// The file, if it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) path: Option<String>,
    /// The outcome for proem's own prompt: `used`, `shadowed`, …; missing for a file that only agents read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) outcome: Option<&'static str>,
    /// The reason for not using it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) why: Option<String>,
    /// Its bytes in the prompt.
    pub(crate) bytes: usize,
    /// Its tokens in the prompt.
    pub(crate) tokens: usize,
    /// The stability of its least stable byte.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) stability: Option<&'static str>,
    /// The carriers that it rides on.
    pub(crate) carriers: Vec<&'static str>,
    /// The price in a new conversation, in USD.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) usd_new: Option<f64>,
    /// The price in each further turn, read from the cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) usd_turn: Option<f64>,
    /// The time of the last change of the file, in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) changed_at: Option<i64>,
    /// Findings of `check` in it.
    pub(crate) findings: Vec<SourceFinding>,
    /// The outcome for each agent that looked at it.
    pub(crate) agents: Vec<SourceReader>,
    /// The conversations that hold an older text of it, at most twenty.
    pub(crate) older_in: Vec<String>,
    /// The number of those conversations.
    pub(crate) older: usize,
}

/// A finding of `check`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct SourceFinding {
    /// The code.
    pub(crate) code: &'static str,
    /// `info`, `warning` or `error`.
    pub(crate) severity: &'static str,
    /// The finding.
    pub(crate) message: String,
    /// The fix.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) hint: Option<String>,
    /// The line in the file, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) line: Option<usize>,
}

/// An agent.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SourceAgent {
    /// The profile that imitates it.
    pub(crate) profile: String,
    /// Its name.
    pub(crate) title: String,
    /// The version whose rules are imitated.
    pub(crate) version: String,
    /// The day on which they were verified.
    pub(crate) as_of: String,
    /// The way they were verified: `run`, `code` or `documentation`.
    pub(crate) known_by: &'static str,
    /// The estimated tokens of its prompt from these files.
    pub(crate) tokens: usize,
    /// The number of names outside the workspaces that were not looked up.
    pub(crate) out_of_reach: usize,
    /// Notes about files that were cut, left out, or not imported.
    pub(crate) notes: Vec<String>,
}

/// The outcome of a source for an agent.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SourceReader {
    /// The profile of the agent.
    pub(crate) profile: String,
    /// The outcome.
    pub(crate) outcome: &'static str,
    /// The same in a word for a table.
    pub(crate) word: &'static str,
    /// The reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) why: Option<String>,
}

/// A simulation of a conversation with something changed. Without a field, nothing changes.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct WhatIfBody {
    /// Another model, for its prices, tokens and cache rules.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) model: Option<String>,
    /// The provider, if it is not the model's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) provider: Option<String>,
    /// A version of the template; both sides are then built from the files of now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) version: Option<u64>,
    /// Another layout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) layout: Option<WhatIfLayout>,
}

/// The prompts of the calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum WhatIfLayout {
    /// The prompt of the first epoch at every call: no change opens an epoch.
    OneEpoch,
    /// A prompt that is rebuilt for every call: its first volatile value changes each time.
    EveryTurn,
}

/// The result of a simulation with something changed.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct WhatIfAnswer {
    /// The conversation as it is.
    pub(crate) now: WhatIfSide,
    /// The same with the change.
    pub(crate) then: WhatIfSide,
    /// The difference in USD; negative if the change saves money. Missing without prices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) difference_usd: Option<f64>,
    /// The number of simulated calls.
    pub(crate) calls: usize,
    /// True if the times and sizes of the calls are those that were recorded; false if typical ones are assumed.
    pub(crate) recorded: bool,
    /// Assumptions of the simulation, in words.
    pub(crate) assumptions: Vec<String>,
}

/// One side of a simulation.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct WhatIfSide {
    /// The model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) model: Option<String>,
    /// The cache whose rules are simulated.
    pub(crate) cache: String,
    /// The day of rules and prices.
    pub(crate) as_of: String,
    /// The way tokens were counted.
    pub(crate) counted: String,
    /// All calls together.
    pub(crate) total: Figures,
    /// Each call.
    pub(crate) turns: Vec<proem::simulate::SimulatedRequest>,
}
