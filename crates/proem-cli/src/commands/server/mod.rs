//! Commands that serve prompts and manage the stored ones.

mod bodies;
pub(super) mod conversation;
pub(super) mod gateway;
pub(super) mod run;
pub(super) mod serve;
pub(super) mod store;
mod store_check;
pub(super) mod watch;
