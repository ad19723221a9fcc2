//! Conversations on real stores, with real trees: a prompt is built at defined moments, and nothing else changes it.
//!
//! Every refusal has a control: the same change, where it is allowed, must have its effect.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a site that cannot be laid out must stop the test")]

mod change;
mod child;
mod compaction;
mod damage;
mod files;
mod full;
mod lax;
mod locks;
mod notices;
mod race;
mod reload;
mod site;
mod stale;
mod transfer;
mod turns;
mod upgrade;
