//! The tests of the core as one program: linking takes longer than running most of them.

#[path = "hygiene/main.rs"]
mod hygiene;
mod properties;
mod reference;
mod walls;
