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

mod base;
mod caller;
mod canonical;
pub mod catalog;
pub mod check;
mod collect;
pub mod compat;
pub mod config;
mod deadline;
pub mod deliver;
mod discover;
pub mod doctor;
mod engine;
mod error;
pub mod evidence;
mod file;
mod fingerprint;
mod git;
pub mod hooks;
mod host;
mod init;
mod jinja;
pub mod json;
mod libraries;
pub mod listing;
mod long_date;
pub mod models;
mod object;
mod order;
mod pending;
mod policy;
pub mod preview;
mod process;
pub mod profiles;
mod render;
mod request;
mod residents;
mod resolve;
mod scope;
mod sections;
mod session;
mod setup;
mod signature;
pub mod simulate;
mod skills;
pub mod stats;
pub mod stored;
pub mod tokens;
mod tools;
mod treatment;
pub mod trust;
mod turn;
mod unused;
mod vars;
pub mod warm;
pub mod wire;
mod workspace;

pub use caller::{Caller, Workspaces};
pub use canonical::canonical_json;
pub use deadline::{Cancel, Stopped, with_cancel};
pub use deliver::RawMessage;
pub use engine::{Build, build};
pub use error::{Error, Excerpt, Kind};
pub use file::{Reservation, open_named};
pub use fingerprint::Fingerprint;
#[cfg(feature = "fuzz")]
#[doc(hidden)]
pub use git::fuzzed;
pub use git::{Revision, RevisionError};
pub use hooks::Hook;
pub use host::Host;
pub use init::{Initialised, init};
pub use jinja::TemplateError;
pub use pending::{Pending, PendingKind, PendingSection};
pub use policy::{Policy, compaction_instructions};
pub use request::{HostPins, OneOrMany, Pin, Request, Scope, ScopeRule, Tool};
pub use session::{Engine, Observed, Rebuild, Session, Trigger};
pub use setup::default_profile;
pub use signature::Signature;
pub use skills::{SkillReport, skills};
pub use turn::{PrefixChange, Prompt, ToolDefinition, Turn};
pub use vars::{VariableReport, variables};
pub use workspace::Workspace;
