//! Commands that look for problems in prompts and skills.

pub(super) mod check;
pub(super) mod skills;
