//! The protocol by which prompts are stored: as a model that is checked in every state, and as recorded histories of
//! the real stores. A fault that is put in on purpose is found by both.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up must stop")]

mod history;
mod model;
