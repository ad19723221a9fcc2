//! Conversations: sessions, turns, pending changes, and the policy that decides when a prompt is built again.

pub(crate) mod pending;
pub(crate) mod prompt_policy;
pub(crate) mod session;
pub mod state;
pub mod tool_set;
pub(crate) mod turn;

pub use pending::{Pending, PendingKind, PendingSection};
pub use prompt_policy::{PromptPolicy, compaction_instructions};
pub use session::{Engine, Rebuild, Session, Trigger, TurnFacts};
pub use turn::{PrefixChange, ToolDefinition, Turn, UserInput};
