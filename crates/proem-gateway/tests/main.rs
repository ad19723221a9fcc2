//! Tests of the gateway with real sockets: a provider on the loopback interface, clients, and the gateway between them.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot be set up must stop")]

mod analysed;
mod base;
mod canaries;
mod differential;
mod faults;
mod refusals;
mod sockets;
mod streams;
