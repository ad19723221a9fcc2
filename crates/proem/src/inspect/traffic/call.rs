//! One call to a provider, as collectors record it and the analysis reads it.
//!
//! A call never holds a credential: [`CallHeaders`] takes only the headers that a cache key or a conversation is made of.

use std::collections::BTreeMap;
use std::sync::Arc;

use proem_core::note::Note;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One request to a provider and what is known of its answer.
///
/// Everything but the id is optional, because sources differ: a transcript has no headers, and an event has no body. The
/// analysis says `unknown` where something is missing, so a collector must not fill a field by guessing.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Call {
    /// The id, equal for the same call in several sources: of two calls with one id, the one with the body is kept.
    pub id: String,
    /// The time of sending, in milliseconds since 1970.
    pub at: Option<i64>,
    /// The file and line from which it was read.
    pub place: Option<CallPlace>,
    /// The agent that made the call.
    pub agent: Option<CallingAgent>,
    /// The conversation, as the agent names it. Without one the analysis groups calls by their messages.
    pub conversation: Option<String>,
    /// The thread inside the conversation; `None` is the main thread. A sub-agent has its own.
    pub thread: Option<String>,
    /// The thread or conversation that this one was forked from or started by.
    pub parent: Option<String>,
    /// The purpose.
    pub purpose: Purpose,
    /// The format of the request.
    pub wire: Wire,
    /// The provider's name in the tables of rules (`anthropic`, `openai-responses`, `llama.cpp`, …); else it follows from
    /// the format and the model.
    pub provider: Option<String>,
    /// The host and account that received it.
    pub route: Route,
    /// The model, as the request or the answer names it; else that of the body counts.
    pub model: Option<String>,
    /// The relevant headers of the request.
    pub headers: CallHeaders,
    /// The body of the request: JSON text, unchanged. Shared, because one text may be part of several records.
    pub body: Option<Arc<str>>,
    /// The tokens that the provider reported.
    pub usage: CallUsage,
    /// The reason that the provider gave for a miss.
    pub provider_reason: Option<ProviderReason>,
    /// The working directory of the agent.
    pub cwd: Option<String>,
    /// True if the agent uses a subscription: its money is list price.
    pub is_subscription: bool,
    /// The number of proem's own epoch, for conversations of the store.
    pub epoch: Option<u64>,
    /// The hints of the source about the origin of texts in the request.
    pub hints: Vec<OwnerHint>,
    /// Notes about this call, such as a part of a record that was not understood.
    pub notes: Vec<Note>,
}

/// The place of a record.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct CallPlace {
    /// The file.
    pub path: String,
    /// The line, from 1, in a file of lines.
    pub line: Option<usize>,
}

/// An agent and its version.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallingAgent {
    /// The name of its profile: `claude-code`, `codex`, `opencode`, `pi`, …
    pub name: String,
    /// The version.
    pub version: Option<String>,
}

/// The purpose of a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// A step of the main conversation, or not known to be anything else.
    #[default]
    Main,
    /// A step of a sub-agent.
    SubAgent,
    /// A title or another small auxiliary request.
    Title,
    /// The request that summarises a conversation.
    Compaction,
    /// A request that only warms or measures: prewarm, count of tokens.
    Probe,
}

/// The format of a request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Wire {
    /// Anthropic's Messages API, also at other hosts.
    Anthropic,
    /// Bedrock's Converse API.
    Bedrock,
    /// OpenAI's Responses API.
    Responses,
    /// OpenAI's Chat Completions API and its imitations.
    Chat,
    /// Gemini's `generateContent`.
    Gemini,
    /// Not known: the analysis recognises it by the fields of the body.
    #[default]
    Unknown,
}

/// The receiver of a call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Route {
    /// The host, without credentials, path and query.
    pub host: Option<String>,
    /// The region.
    pub region: Option<String>,
    /// A digest of the account or key; never the account or key.
    pub account: Option<String>,
}

/// The tokens of one call. `None` means that the provider did not report the number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CallUsage {
    /// Read from the cache.
    pub read: Option<u64>,
    /// Written to the cache, for any lifetime.
    pub written: Option<u64>,
    /// The part of `written` that is kept for an hour.
    pub written_1h: Option<u64>,
    /// Neither read nor written.
    pub uncached: Option<u64>,
    /// Tokens of the answer.
    pub output: Option<u64>,
}

impl CallUsage {
    /// Returns all input tokens; `None` without a single number.
    #[must_use]
    pub fn input(&self) -> Option<u64> {
        let parts = [self.read, self.written, self.uncached];
        let is_known = parts.iter().any(Option::is_some);
        is_known.then(|| parts.into_iter().flatten().fold(0, u64::saturating_add))
    }
}

/// The provider's own word for a miss.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProviderReason {
    /// The word, as the provider writes it.
    pub reason: String,
    /// The tokens that were lost, if it says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
}

/// The kind of an owner: the thing or person that caused a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OwnerKind {
    /// A file of instructions, such as AGENTS.md.
    InstructionFile,
    /// A skill.
    Skill,
    /// An MCP server.
    McpServer,
    /// A tool that belongs to no server.
    Tool,
    /// A plugin.
    Plugin,
    /// A hook.
    Hook,
    /// A time of day.
    Clock,
    /// A day.
    Date,
    /// The state of a git repository.
    GitStatus,
    /// A number that counts.
    Counter,
    /// A random id, or the path of a temporary folder.
    RandomId,
    /// The agent itself.
    Agent,
    /// Another version of the agent.
    AgentVersion,
    /// The user.
    User,
    /// The provider.
    Provider,
    /// The passing of time.
    Time,
    /// Not known.
    Unknown,
}

/// A statement of a source about the origin of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnerHint {
    /// The place of the text in the request.
    pub place: HintPlace,
    /// The kind of owner.
    pub kind: OwnerKind,
    /// Its name: a skill, a server, a hook.
    pub name: Option<String>,
    /// Its file.
    pub path: Option<String>,
}

/// The place that a hint is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HintPlace {
    /// Every place where this text stands. For an instruction file, its whole content: the line of a change follows
    /// from it.
    Text(Arc<str>),
    /// A part, as on the wire: `system[2]`, `messages[14].content[0]`, `input[1]`.
    Part(String),
}

/// The headers of a request that say something about a cache key, a conversation or an agent.
///
/// Names are in lower case. [`CallHeaders::keep`] refuses every name that is not in the list of `traffic.toml`, so that a
/// credential cannot get in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallHeaders(BTreeMap<String, String>);

impl CallHeaders {
    /// Adds a header if it is a relevant one; returns false if not.
    pub fn keep(&mut self, name: &str, value: &str) -> bool {
        let name = name.trim().to_ascii_lowercase();
        let is_kept = super::rules::is_header_kept(&name);
        if is_kept {
            self.0.insert(name, value.trim().to_owned());
        }
        is_kept
    }

    /// Returns the value of a header; the name is in lower case.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Iterates over all headers, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_never_enter_a_call() {
        let mut headers = CallHeaders::default();
        for name in
            ["Authorization", "x-api-key", "Cookie", "x-goog-api-key", "api-key", "chatgpt-account-id"]
        {
            assert!(!headers.keep(name, "sk-ant-value"), "{name}");
        }
        assert!(headers.keep("Anthropic-Beta", "a,b"));
        assert_eq!(headers.iter().collect::<Vec<_>>(), [("anthropic-beta", "a,b")]);
    }
}
