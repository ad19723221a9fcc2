//! What all benchmark programs share: how candidates are timed, what a program prints, and what is measured on.

pub mod fixture;
pub mod options;
#[cfg(feature = "peers")]
pub mod peers;
pub mod race;

pub use options::Options;
pub use race::{Race, Unit, difference, report};
