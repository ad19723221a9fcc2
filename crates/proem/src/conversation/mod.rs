//! Conversations: sessions, turns, pending changes, and the policy that decides when a prompt is built again.

pub(crate) mod pending;
pub(crate) mod prompt_policy;
pub(crate) mod session;
pub(crate) mod turn;
