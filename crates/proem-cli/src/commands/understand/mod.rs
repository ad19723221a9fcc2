//! Commands that explain a prompt: its sources, its changes and its cost.

pub(crate) mod comparison;
pub(super) mod compat;
pub(super) mod diff;
pub(super) mod drift;
pub(super) mod evidence;
pub(super) mod explain;
mod explain_all;
mod explain_page;
pub(super) mod report;
pub(super) mod simulate;
pub(super) mod statusline;
pub(super) mod vars;
pub(super) mod why;
