//! Bounds what a template may cost: every value is measured before it exists, and long work is counted as it is done.

pub(super) mod eager;
pub(super) mod expensive;
pub(super) mod filters;
pub(super) mod guard;
#[cfg(test)]
mod hostile;
pub(super) mod value_size;
