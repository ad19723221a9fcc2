//! The tests of the stores that need no second process, as one program, because linking takes longer than most of them.

mod broken;
mod commits;
mod conformance;
mod maintenance;
mod names;
#[path = "protocol/main.rs"]
mod protocol;
mod traffic;
mod workspaces;
