//! Conversations: epochs in a store, turns, pending changes, and the policy that decides when a prompt is built again.

mod answer;
mod calls;
mod change;
mod compact;
mod conversations;
pub(crate) mod pending;
pub(crate) mod prompt_policy;
mod recent;
pub(crate) mod session;
pub mod state;
pub mod store;
pub mod tool_set;

pub use answer::{Answer, ConversationError};
pub use change::{Drift, Plan, Rebuilt};
pub use compact::{StartedCompaction, TIME_OF_COMPACTION};
pub use conversations::{Conversations, LoadedEpoch};
pub use pending::{Pending, PendingKind, PendingSection};
pub use prompt_policy::{PromptPolicy, compaction_instructions};
pub use session::{Rebuild, Session, Trigger};
