//! Libraries that do the same work.

pub mod templates;
pub mod tokens;
