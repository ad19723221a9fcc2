//! Hooks: foreign code that may add resources, change the prompt for one turn, and rewrite messages.
//!
//! Handlers run one after another, in the order of registration. A handler that fails, takes too long or gives an
//! invalid answer is reported by name and skipped; the prompt is built without it. Changes by a handler are measured
//! against the frozen prompt, because they cost cache.

mod chain;
mod command;
mod configured;
mod failure;
mod handler;
mod url;
mod watched;

use std::time::Duration;

use proem_core::limit::HOOK_TIME_MAX;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::ErrorCause;

pub(crate) use chain::{Resources, Start, StartChange, context, discover, start};
pub use command::CommandHook;
pub(crate) use configured::HookKeys;
pub use configured::{ConfiguredHandler, ConfiguredHook, HookEvent};
pub use failure::HookFailure;
pub(crate) use failure::HookFailureReason;
pub(crate) use handler::{Handler, handlers};
pub use url::{HookUrl, UrlHook};

/// A message of a conversation, in the shape that the caller uses: an object with a `role`.
pub use crate::request::message::Message;

/// Code that takes part in making a prompt. Every method has a default that does nothing.
pub trait Hook: Send + Sync {
    /// The name by which it is reported.
    fn name(&self) -> &str;

    /// Returns the longest time that one call may take. A late handler is abandoned: its thread goes on, and its answer
    /// is discarded.
    fn time_max(&self) -> Duration {
        HOOK_TIME_MAX
    }

    /// Adds paths before files are searched for.
    fn resources_discover(&self, event: &ResourcesDiscover) -> Result<Option<ResourcePaths>, HookError> {
        let _ = event;
        Ok(None)
    }

    /// Changes the system prompt for one prompt of the user, or adds a message. Called once for each prompt of the
    /// user.
    fn before_agent_start(&self, event: &BeforeAgentStart) -> Result<Option<AgentStart>, HookError> {
        let _ = event;
        Ok(None)
    }

    /// Returns other messages for one call of the model; they are not stored.
    fn context(&self, event: &ContextEvent) -> Result<Option<Vec<Message>>, HookError> {
        let _ = event;
        Ok(None)
    }
}

/// The reason why a handler gave no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookError {
    message: String,
    cause: ErrorCause,
}

impl ResourcePaths {
    /// Tells whether there are no paths.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.skill_paths.is_empty() && self.prompt_paths.is_empty() && self.asset_paths.is_empty()
    }

    /// Returns these paths followed by others, each once.
    #[must_use]
    pub fn with(mut self, more: &Self) -> Self {
        let lists = [
            (&mut self.skill_paths, &more.skill_paths),
            (&mut self.prompt_paths, &more.prompt_paths),
            (&mut self.asset_paths, &more.asset_paths),
        ];
        for (own, more) in lists {
            for path in more {
                if !own.contains(path) {
                    own.push(path.clone());
                }
            }
        }
        self
    }
}

impl HookError {
    /// Makes an error with a message.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), cause: ErrorCause::NONE }
    }

    /// Makes an error with the message of another one, which becomes its source.
    #[must_use]
    pub fn from_error(error: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self { message: error.to_string(), cause: ErrorCause::new(error) }
    }
}

impl std::fmt::Display for HookError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for HookError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.cause.source()
    }
}

/// The reason for a search for resources.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DiscoverReason {
    /// A prompt is built for the first time.
    #[default]
    Startup,
    /// A fresh prompt was requested.
    Reload,
}

/// The event before resources are searched for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ResourcesDiscover {
    /// The working directory.
    pub cwd: String,
    /// The reason for the search.
    pub reason: DiscoverReason,
}

/// Paths that a handler adds after the existing ones: relative to the working directory, or starting with `~`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ResourcePaths {
    /// Directories of skills, or single skill files.
    pub skill_paths: Vec<String>,
    /// Packs that replace wording.
    pub prompt_paths: Vec<String>,
    /// Folders of assets, for `$user/…` references that the user's own library lacks.
    pub asset_paths: Vec<String>,
}

/// The event after a prompt of the user and before the model's answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BeforeAgentStart {
    /// The text of the user.
    pub prompt: String,
    /// Images beside it, in the caller's shape.
    pub images: Vec<Value>,
    /// The system prompt as the previous handlers left it.
    pub system_prompt: String,
    /// The working directory.
    pub cwd: String,
    /// The model, if it is known.
    pub model: Option<String>,
}

/// Changes by a handler for one prompt of the user.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AgentStart {
    /// Another system prompt, for this one prompt.
    pub system_prompt: Option<String>,
    /// A message for the history, after the user's.
    pub message: Option<InjectedMessage>,
}

/// A message that a handler adds. Its role is always `user`.
#[derive(Debug, Clone, PartialEq)]
pub enum InjectedMessage {
    /// Its text.
    Text(String),
    /// Its content: blocks in the caller's shape.
    Content(Value),
}

impl<'de> Deserialize<'de> for InjectedMessage {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let refuse =
            || serde::de::Error::custom("`message` must be a text, or an object with `content` alone");
        match Value::deserialize(deserializer)? {
            Value::String(text) => Ok(Self::Text(text)),
            Value::Object(mut fields) if fields.len() == 1 => {
                fields.remove("content").map(Self::Content).ok_or_else(refuse)
            }
            _ => Err(refuse()),
        }
    }
}

/// The event before a call of the model.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ContextEvent {
    /// A copy of the messages.
    pub messages: Vec<Message>,
    /// The working directory.
    pub cwd: String,
}
