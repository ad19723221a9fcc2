//! The shape of messages at each provider, as data: the rest of the delivery reads this table.

use crate::request::raw_json::{Fields, Json, field, object};

/// The shape of a provider's messages.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MessageShape {
    /// The roles of messages; the first is the user's.
    pub(crate) roles: &'static [&'static str],
    /// The role of the model in a message of plain text.
    pub(crate) assistant: &'static str,
    /// The key that holds the content.
    pub(crate) content: &'static str,
    /// The form of a piece of text.
    pub(crate) block: Block,
    /// The forms that a content may have.
    pub(crate) takes: Takes,
    /// The key of a cache marker, which is not part of the message.
    pub(crate) marker: Option<&'static str>,
    /// Keys or types that mark a block as a tool's result.
    pub(crate) answers: &'static [&'static str],
    /// True if items without a role are sent as they are.
    pub(crate) takes_items: bool,
    /// True if servers exist that take joined text only.
    pub(crate) has_plain_form: bool,
    /// True for Claude: a block of white space alone is refused, and a marker follows the newest message.
    pub(crate) is_of_claude: bool,
}

/// The forms that a content may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Takes {
    /// One text.
    Text,
    /// A list of blocks.
    Blocks,
    /// Either.
    Either,
}

/// The form of a piece of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Block {
    /// An object with `type` and `text`.
    Typed(&'static str),
    /// An object with `text` alone.
    Bare,
    /// Text, joined with a blank line.
    Joined,
}

/// Roles of Claude's messages where the model takes system messages.
const CLAUDE_WITH_SYSTEM: &[&str] = &["user", "assistant", "system"];

/// The shape of chat completions, from which the others start.
pub(super) const CHAT: MessageShape = MessageShape {
    roles: &["user", "assistant", "tool", "function", "system", "developer"],
    assistant: "assistant",
    content: "content",
    block: Block::Typed("text"),
    takes: Takes::Either,
    marker: Some("prompt_cache_breakpoint"),
    answers: &[],
    takes_items: false,
    has_plain_form: false,
    is_of_claude: false,
};

impl MessageShape {
    /// Adapts the shape to a model: `is_plain` selects the form that every chat server accepts, and `takes_system` allows
    /// messages of the role `system`.
    pub(super) fn for_model(self, is_plain: bool, takes_system: bool) -> Self {
        let block = if is_plain && self.has_plain_form { Block::Joined } else { self.block };
        let roles = if takes_system && self.is_of_claude { CLAUDE_WITH_SYSTEM } else { self.roles };
        Self { roles, block, ..self }
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
