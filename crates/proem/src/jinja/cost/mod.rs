//! Limits the cost of a template: every value is measured before it exists, and long work is charged as it is done.

pub(super) mod eager;
pub(super) mod expensive;
pub(super) mod filters;
pub(super) mod guard;
#[cfg(test)]
mod hostile;
pub(super) mod value_size;
