//! Shapes that are printed, sent or stored: apart from the model, each with a version.

pub mod build_shape;
pub mod stored_prompt;
pub(crate) mod stored_sources;
pub(crate) mod stored_view;
pub mod turn_shape;
