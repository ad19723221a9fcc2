//! The programs, one file each. One binary has them all: what takes long to build is the link.

pub(crate) mod bare_axum;
pub(crate) mod discover;
pub(crate) mod doctor;
pub(crate) mod fixtures;
pub(crate) mod git;
pub(crate) mod guard;
pub(crate) mod store;
pub(crate) mod templates;
pub(crate) mod tokens;
pub(crate) mod traffic;
