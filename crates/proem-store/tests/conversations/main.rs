//! Conversations on real stores, with real trees: when a prompt is built, and that nothing else changes it.
//!
//! Every refusal has a control: the same wish, where it is allowed, must show its effect.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a site that cannot be laid out must stop the test")]

mod change;
mod child;
mod compaction;
mod damage;
mod files;
mod full;
mod lax;
mod locks;
mod race;
mod reload;
mod site;
mod stale;
mod transfer;
mod turns;
