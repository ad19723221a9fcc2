//! Costs: tokens and money of a prompt, and conversations simulated against a provider's cache.

pub mod simulate;
pub mod stats;
