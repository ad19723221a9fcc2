//! Commands that build a prompt and print it.

pub(super) mod build;
pub(super) mod bundle;
pub(super) mod stats;
pub(super) mod turn;
