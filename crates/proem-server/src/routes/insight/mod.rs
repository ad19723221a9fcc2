//! Routes that pages about costs and causes need: events, health, sources of a folder, and simulations.

pub(super) mod events;
pub(super) mod health;
pub(super) mod sources;
pub(super) mod what_if;
