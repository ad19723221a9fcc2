//! Conversations: epochs in a store, turns, pending changes, and the rules that decide when a prompt is built again.

pub mod calls;
mod change;
mod check;
mod compact;
#[expect(clippy::module_inception, reason = "it holds the type of that name")]
mod conversation;
mod conversations;
mod error;
mod locks;
pub(crate) mod pending;
mod recent;
pub mod state;
pub mod store;
pub mod tool_set;
mod turn;
mod wording;

pub use calls::recorder::{KeepExcerpts, Recorded, RecordedCall, Recorder};
pub use calls::usage::{UsageGroup, UsageReport};
pub use change::{Changed, Drift, Plan};
pub use compact::{StartedCompaction, TIME_OF_COMPACTION};
pub use conversation::Conversation;
pub use conversations::{Conversations, LoadedEpoch};
pub use error::ConversationError;
pub use pending::{Pending, PendingKind, PendingSection};
