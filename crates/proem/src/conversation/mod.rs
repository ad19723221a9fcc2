//! Conversations: epochs in a store, turns, pending changes, and the rules that decide when a prompt is built again.

mod branches;
pub mod calls;
mod change;
mod check;
mod compact;
#[expect(clippy::module_inception, reason = "it holds the type of that name")]
mod conversation;
mod conversations;
mod error;
pub(crate) mod notices;
pub(crate) mod pending;
pub mod state;
pub mod store;
pub mod tool_set;
mod turn;
mod wording;

pub use branches::{BranchKind, BranchShape, Branched, Branches, Child, Parent};
pub use calls::recorder::{KeepExcerpts, Recorded, RecordedCall, Recorder};
pub use calls::usage::{UsageGroup, UsageReport};
pub use change::{Changed, Drift, Plan};
pub use compact::{StartedCompaction, TIME_OF_COMPACTION};
pub use conversation::Conversation;
pub use conversations::{Conversations, LoadedEpoch};
pub use error::ConversationError;
pub use notices::{CheaperAfter, NoticePrice, RebuildPrice};
pub use pending::{Pending, PendingKind, PendingSection};
