//! Libraries that do the same work.

pub mod git;
pub mod templates;
pub mod tokens;
