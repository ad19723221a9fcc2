//! Bracket templates: `[type:name]`, `[if type:name]`, `[else]`, `[endif]`.
//!
//! Parsing never fails, on any input, and takes linear time; so does rendering. Probable mistakes are reported by
//! [`diagnose`](diagnose::diagnose), which changes nothing.
//!
//! The grammar is in `docs/templates.md`. The stages are separate so that each can be examined: scan (tags) →
//! [`Template`] (a flat list of steps) → [`bind`] (a value for each slot) → [`render`] or [`render_with_spans`].

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

/// The treatment of a tag of an unknown type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum UnknownType {
    /// It inserts nothing.
    Blank,
    /// It stays as written.
    Literal,
    /// The build fails.
    Error,
}

/// The treatment of a variable of a known type that has no value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AbsentVariable {
    /// It inserts nothing.
    Blank,
    /// The build fails, unless the variable is used only in conditions.
    Error,
}

/// The treatment of a line that contains nothing except one `if`, `else` or `endif` tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StandaloneTags {
    /// Its line break stays.
    Keep,
    /// The whole line is removed.
    Trim,
}

/// The choices of a profile about bracket templates.
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
    /// The policies of the system that defined the syntax.
    pub const SEED: Self = Self {
        unknown_type: UnknownType::Blank,
        absent: AbsentVariable::Blank,
        standalone_tags: StandaloneTags::Keep,
    };
}
