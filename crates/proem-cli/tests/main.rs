//! The tests of the command as one program: linking takes longer than running most of them.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up must stop")]

mod bundles;
mod check;
mod command;
mod compat;
mod conversations;
mod corpus;
mod delivery;
mod desk;
mod doctor;
mod encrypted;
mod explain;
mod first_sight;
mod gateway;
mod gateway_tls;
mod hook_server;
mod ignore_files;
mod lints;
mod numbers;
mod reads_once;
mod recipes;
mod report;
mod secure;
mod serve;
mod served;
mod stores;
mod strangers;
mod terminal;
mod tls;
mod trace;
mod transcripts;
mod trusted;
mod turn;
mod unfenced;
mod views;
