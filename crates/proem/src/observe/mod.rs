//! Reads the world: files, git, processes, the host and the working directory.
//!
//! Everything here returns values or absences with a reason. Nothing here knows of profiles or prompts.

pub(crate) mod date_words;
pub(crate) mod deadline;
pub(crate) mod file;
pub(crate) mod git;
pub(crate) mod host;
pub(crate) mod listing_order;
pub(crate) mod process;
pub(crate) mod tls;
pub(crate) mod workspace;
