//! Commands that show and change settings, and print shell completions and manual pages.

pub(super) mod config;
pub(super) mod init;
pub(super) mod pages;
pub(super) mod profile;
pub(super) mod trust;
