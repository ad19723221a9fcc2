//! Settings: configuration, profiles, trust, models, and the `World` that one operation works in.

pub(crate) mod allow;
pub mod config;
pub(crate) mod init;
pub mod models;
pub mod profiles;
pub mod tokens;
pub(crate) mod toml_file;
pub mod trust;
pub(crate) mod world;
