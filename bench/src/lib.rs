//! Shared parts of the benchmark programs: timing, output and test data.

pub mod fixture;
pub mod options;
#[cfg(feature = "peers")]
pub mod peers;
pub mod race;

pub use options::Options;
pub use race::Race;
