//! The protocol of storing prompts: models that are checked in every state, and recorded histories of the real stores.
//! Both find faults that are injected on purpose.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up must stop")]

mod commits;
mod history;
mod model;
