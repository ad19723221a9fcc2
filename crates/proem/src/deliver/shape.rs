//! How messages look at each provider, as data: the rest of the delivery asks this table.

use super::Provider;
use crate::request::raw_json::{Fields, Json, field, object};

/// The shape of a provider's messages.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    /// Who may speak; the first is the user.
    pub(crate) roles: &'static [&'static str],
    /// What stands for `assistant` in a message of plain text.
    pub(crate) assistant: &'static str,
    /// The key that holds the content.
    pub(crate) content: &'static str,
    /// How a piece of text is written.
    pub(crate) block: Block,
    /// What a content may be.
    pub(crate) takes: Takes,
    /// The key of a cache marker, which is no part of what was said.
    pub(crate) marker: Option<&'static str>,
    /// Keys or types that say that a block is a tool's answer.
    pub(crate) answers: &'static [&'static str],
    /// Whether items without a role are sent as they are.
    pub(crate) takes_items: bool,
    /// Whether Claude reads it: a block of white space alone is refused, whoever wrote it, and a marker stands
    /// at the end of the newest words.
    pub(crate) is_of_claude: bool,
}

/// What a content may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Takes {
    /// One text.
    Text,
    /// A list of blocks.
    Blocks,
    /// Either.
    Either,
}

/// How a piece of text is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Block {
    /// An object with `type` and `text`.
    Typed(&'static str),
    /// An object with `text` alone.
    Bare,
    /// Text, joined with a blank line.
    Joined,
}

const CLAUDE: &[&str] = &["user", "assistant"];
const CLAUDE_WITH_SYSTEM: &[&str] = &["user", "assistant", "system"];

const CHAT: Shape = Shape {
    roles: &["user", "assistant", "tool", "function", "system", "developer"],
    assistant: "assistant",
    content: "content",
    block: Block::Typed("text"),
    takes: Takes::Either,
    marker: Some("prompt_cache_breakpoint"),
    answers: &[],
    takes_items: false,
    is_of_claude: false,
};

impl Shape {
    /// The shape of a provider's messages. `is_plain` asks for the form that every server takes.
    pub(crate) const fn of(provider: Provider, is_plain: bool, takes_system: bool) -> Self {
        let claude = if takes_system { CLAUDE_WITH_SYSTEM } else { CLAUDE };
        match provider {
            Provider::Anthropic => Self {
                roles: claude,
                marker: Some("cache_control"),
                answers: &["tool_result"],
                is_of_claude: true,
                ..CHAT
            },
            Provider::OpenAiResponses => Self {
                roles: &["user", "assistant", "system", "developer"],
                block: Block::Typed("input_text"),
                takes_items: true,
                ..CHAT
            },
            Provider::OpenAiChat if is_plain => Self { block: Block::Joined, ..CHAT },
            Provider::OpenAiChat => CHAT,
            Provider::DeepSeek => Self {
                roles: &["user", "assistant", "tool", "system"],
                block: Block::Joined,
                takes: Takes::Text,
                ..CHAT
            },
            Provider::Gemini => Self {
                roles: &["user", "model"],
                assistant: "model",
                content: "parts",
                block: Block::Bare,
                takes: Takes::Blocks,
                marker: None,
                answers: &["functionResponse"],
                ..CHAT
            },
            Provider::Bedrock => Self {
                roles: claude,
                block: Block::Bare,
                takes: Takes::Blocks,
                marker: Some("cachePoint"),
                answers: &["toolResult"],
                is_of_claude: true,
                ..CHAT
            },
            Provider::Acp => Self { roles: &["user", "assistant"], marker: None, ..CHAT },
            Provider::Codex => Self { roles: &["user", "assistant"], block: Block::Joined, ..CHAT },
        }
    }

    /// A piece of text as a block.
    pub(crate) fn text_block(&self, text: &str) -> Json {
        match self.block {
            Block::Typed(kind) => object([("type", kind.into()), ("text", text.into())]),
            Block::Bare => object([("text", text.into())]),
            // Beside images, a list of blocks is the only way.
            Block::Joined => object([("type", "text".into()), ("text", text.into())]),
        }
    }

    /// Tells whether a block is a tool's answer.
    pub(crate) fn is_answer(&self, block: &Fields) -> bool {
        let kind = field(block, "type").and_then(Json::text);
        self.answers.iter().any(|word| kind.as_deref() == Some(word) || field(block, word).is_some())
    }
}
