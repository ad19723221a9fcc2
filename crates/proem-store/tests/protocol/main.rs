//! The protocol of storing prompts: a model that is checked in every state, and recorded histories of the real stores.
//! Both find faults that are injected on purpose.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up must stop")]

mod history;
mod model;
