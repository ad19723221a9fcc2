//! Hooks from the outside: their abilities, and proof that a bad hook does not damage a prompt.
//!
//! Every refusal has a control: the same hook, where it is allowed, must show its effect.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a site that cannot be laid out must stop the test")]

mod addresses;
mod answers;
mod chain;
mod configured;
mod failures;
mod own;
mod pending;
mod programs;
mod rebuild;
mod resources;
mod site;
mod trusted;
