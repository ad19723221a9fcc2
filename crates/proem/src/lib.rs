//! Builds the system prompt of an LLM agent and knows where every byte of it came from.
//!
//! This crate looks at the world and lets [`proem_core`] turn what it saw into bytes. One function
//! does it all:
//!
//! ```
//! use proem::{Caller, Request};
//!
//! let request = Request::from_json(r#"{"profile": "template", "system": "Be brief."}"#)?;
//! let built = proem::build(&request, Caller::User)?;
//! assert_eq!(built.system(), Some("Be brief."));
//! # Ok::<(), proem::Error>(())
//! ```

mod build;
mod conversation;
pub mod costs;
pub mod deliver;
mod discover;
mod engine;
mod error;
pub mod hooks;
pub mod inspect;
mod jinja;
mod observe;
pub mod output;
mod request;
mod sections;
pub mod settings;

pub use request::canonical_json::canonical_json;
/// The version of the printed and sent shapes. Fields are added within a version, never changed or removed.
pub const SHAPE_VERSION: u32 = 1;

pub use build::{Build, Fingerprint, Signature};
pub use conversation::pending::{Pending, PendingKind, PendingSection};
pub use conversation::prompt_policy::{Policy, compaction_instructions};
pub use conversation::session::{Engine, Observed, Rebuild, Session, Trigger};
pub use conversation::turn::{PrefixChange, Prompt, ToolDefinition, Turn};
pub use costs::{simulate, stats};
pub use deliver::RawMessage;
pub use discover::catalog;
pub use engine::build;
pub use error::{Error, Excerpt, FileRole, Kind, StopReason, TemplateError};
pub use hooks::Hook;
pub use inspect::skill_report::{SkillReport, skills};
pub use inspect::variable_report::{VariableReport, variables};
pub use inspect::{check, compare, compat, directory_listing, evidence, preview};
pub use observe::deadline::{Cancel, with_cancel};
pub use observe::file::{Reservation, open_named};
#[cfg(feature = "fuzz")]
#[doc(hidden)]
pub use observe::git::fuzzed;
pub use observe::git::{Revision, RevisionError};
pub use observe::host::Host;
pub use observe::workspace::Workspace;
pub use output::{build_shape, json, stored_prompt};
pub use request::caller::{Caller, Workspaces};
pub use request::{HostPins, OneOrMany, Pin, Request, Scope, ScopeRule, Tool};
pub use settings::init::{InitOutcome, init};
pub use settings::world::default_profile;
pub use settings::{config, models, profiles, tokens, trust};
