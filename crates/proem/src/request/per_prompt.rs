//! Changes that a caller makes for one prompt, such as those of handlers that a client runs itself.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::message::RawMessage;
use super::messages;

/// Changes of one prompt, applied after the hooks of the configuration. A conversation does not remember them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PerPrompt {
    /// Another system prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// Messages after the user's and those of hooks; they stay in the history.
    #[serde(deserialize_with = "messages")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub messages: Option<Vec<RawMessage>>,
}
