//! Bracket templates: `[type:name]`, `[if type:name]`, `[else]`, `[endif]`.
//!
//! Parsing never fails, on any input, and takes time linear in it; so does rendering. What the
//! author probably did not mean is said by [`diagnose`](diagnose::diagnose), which changes nothing.
//!
//! The grammar is in `docs/templates.md`. The stages are separate so that each can be looked at:
//! scan (tags) → [`Template`] (a flat list of steps) → [`bind`] (a value for each slot) →
//! [`render`] or [`render_with_spans`].

mod bind;
pub mod diagnose;
pub mod lint;
pub mod outline;
mod plain;
mod render;
mod scan;
mod slot;
mod template;

pub use bind::{Bindings, PolicyError, bind};
pub use render::{render, render_with_spans, rendered_bytes};
pub use template::Template;

use serde::{Deserialize, Serialize};

/// What to do with a tag whose type nobody provides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum UnknownType {
    /// It inserts nothing.
    Blank,
    /// It stays as it is written.
    Literal,
    /// The build fails.
    Error,
}

/// What to do with a variable of a known type that has no value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AbsentVariable {
    /// It inserts nothing.
    Blank,
    /// The build fails, unless only a condition asks for it.
    Error,
}

/// What to do with a line that holds nothing but one `if`, `else` or `endif` tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StandaloneTags {
    /// Its line break stays.
    Keep,
    /// The whole line goes.
    Trim,
}

/// What a profile chooses about bracket templates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policies {
    /// For tags of an unknown type.
    pub unknown_type: UnknownType,
    /// For known variables without a value.
    pub absent: AbsentVariable,
    /// For lines that hold only a block tag.
    pub standalone_tags: StandaloneTags,
}

impl Policies {
    /// What the system that defined the syntax does.
    pub const SEED: Self = Self {
        unknown_type: UnknownType::Blank,
        absent: AbsentVariable::Blank,
        standalone_tags: StandaloneTags::Keep,
    };
}
