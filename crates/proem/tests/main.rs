//! The tests of the library that may share a process, as one program: linking takes longer than running most of them.

mod agents;
mod canonical;
mod causes;
mod collectors;
mod corpus;
mod docs;
mod doctor_properties;
mod door;
mod engraving;
mod estimate;
mod git_diff;
mod hostile_git;
mod jinja_properties;
mod lines;
mod mishaps;
mod payloads;
mod revision;
mod rooms;
mod schema;
mod traffic;
mod traffic_pairs;
