//! Tests of the server over real sockets.
//!
//! Requests are written as bytes, so that tests can send requests that no client library would send.

#![expect(clippy::unwrap_used, reason = "a server that cannot be set up must stop the test")]

mod base;
mod calls;
mod client;
mod crowd;
mod description;
mod editor;
mod failures;
mod files;
mod gate;
mod guarded;
mod ids;
mod insight;
mod kept;
mod memory;
mod merge;
mod numbers;
mod routes;
mod secrets;
mod server;
mod stopped;
mod stores;
mod strangers;
mod texts;
mod turns;
mod versions;
mod web;
mod wire;
mod wrong;
