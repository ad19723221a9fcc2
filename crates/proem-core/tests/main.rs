//! The tests of the core as one program: linking takes longer than running most of them.

#[path = "hygiene/main.rs"]
mod hygiene;
mod properties;
#[expect(clippy::unwrap_used, reason = "a renderer that is wrong must stop the test")]
mod reference;
mod walls;
