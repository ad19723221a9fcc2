//! Builds the system prompt of an LLM agent, freezes it for a conversation, and records the source of every byte.
//!
//! A provider caches a prompt from its first byte on, so one changed byte makes the rest of the conversation expensive.
//! This crate therefore separates the part of a prompt that must not change (the *frozen* part) from the facts of one
//! turn, such as the time or the git status. It reads files, git, the clock and the environment, each at most once and
//! only if a template needs it, and passes the values to [`proem_core`], which renders them without any access to the
//! system. The same request with the same values gives the same bytes.
//!
//! # Build a prompt
//!
//! [`build()`] turns a [`Request`] into a [`Build`]. The request selects a profile, which lists the sections of the
//! prompt; everything that the request does not set is observed. [`Caller`] decides what the request may read.
//!
//! ```
//! use proem::{Caller, Carrier, Request};
//!
//! let request = Request::from_json(
//!     r#"{
//!         "profile": "template",
//!         "template": "Be brief. Today is [system:date].",
//!         "host": {"now": "2026-03-01T12:00:00Z", "timezone": "UTC"}
//!     }"#,
//! )?;
//! let prompt = proem::build(&request, Caller::User)?;
//! assert_eq!(prompt.system(), Some("Be brief. Today is 2026-03-01."));
//!
//! // Every byte has a source: here the template, the variable, and the template again.
//! let sources = prompt.whole().spans(Carrier::System).iter().map(|span| span.source.to_string());
//! assert!(sources.collect::<Vec<_>>().contains(&"[system:date]".to_owned()));
//! # Ok::<(), proem::Error>(())
//! ```
//!
//! Nothing is cut or left out silently: each such case adds a [`Note`] to the prompt. A failed build is an [`Error`],
//! never a substitute prompt.
//!
//! # Keep a conversation
//!
//! An [`Engine`] starts a [`Conversation`] in memory; [`conversation::Conversations`] keeps many of them in a store. Each
//! [`Turn`] returns the same system prompt, and the facts of the moment in the newest message. The prompt changes only if
//! the conversation is told to, for example by [`Conversation::reload`], and if its profile allows that.
//!
//! ```
//! use proem::{Caller, Engine, Request};
//!
//! let request = Request::from_json(r#"{"profile": "template", "system": "Be brief."}"#)?;
//! let conversation = Engine::new().start(request, Caller::User)?;
//! let first = conversation.turn("Hello")?;
//! let next = Request { prompt: Some("And now?".into()), messages: Some(first.history), ..Request::default() };
//! let next = conversation.turn(next)?;
//! assert_eq!(next.system_prompt, first.system_prompt);
//! assert!(next.messages.starts_with(&first.messages));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Add a hook
//!
//! A [`Hook`] adds files before a build, or changes one turn. A hook that fails is reported in a note and skipped.
//!
//! ```
//! use proem::hooks::{AgentStart, BeforeAgentStart, HookError, InjectedMessage};
//! use proem::{Caller, Engine, Hook, Request};
//!
//! struct Reminder;
//!
//! impl Hook for Reminder {
//!     fn name(&self) -> &str {
//!         "reminder"
//!     }
//!
//!     fn before_agent_start(&self, _: &BeforeAgentStart) -> Result<Option<AgentStart>, HookError> {
//!         let message = Some(InjectedMessage::Text("Answer in English.".into()));
//!         Ok(Some(AgentStart { message, ..AgentStart::default() }))
//!     }
//! }
//!
//! let request = Request::from_json(r#"{"profile": "template", "system": "Be brief."}"#)?;
//! let turn = Engine::new().with_hook(Reminder).start(request, Caller::User)?.turn("Bonjour")?;
//! assert_eq!(turn.messages[1].get(), r#"{"content":"Answer in English.","role":"user"}"#);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Deliver to a provider
//!
//! [`deliver`] converts a prompt and its conversation to a provider's request, with cache markers where the provider
//! wants them. Messages that were sent before keep their bytes.
//!
//! ```
//! use proem::deliver::{DeliverOptions, Provider, deliver};
//! use proem::settings::models::Models;
//! use proem::{Caller, Request};
//!
//! let request = Request::from_json(
//!     r#"{"profile": "template", "system": "Be brief.", "model": "claude-opus-5", "prompt": "Hello"}"#,
//! )?;
//! let prompt = proem::build(&request, Caller::User)?;
//! let models = Models::built_in()?;
//! let delivery = deliver(Provider::Anthropic, &prompt, &request, &models, &DeliverOptions::default())?;
//! assert!(delivery.payload.get().contains("cache_control"));
//! # Ok::<(), proem::Error>(())
//! ```
//!
//! # Modules
//!
//! - [`request`], [`conversation`], [`hooks`] and [`deliver`] hold the types around the examples above.
//! - [`costs`] counts tokens and money, and simulates a provider's cache.
//! - [`inspect`] checks prompts for problems, compares two of them, and finds the origin of a text.
//! - [`settings`] reads configuration, profiles, the table of models, and trusted workspaces.
//! - [`output`] has the versioned JSON shapes, printed and stored.
//! - [`core`] is the crate `proem_core`: the types of a prompt, and its templates.

pub mod build;
pub mod conversation;
pub mod costs;
pub mod deliver;
mod discover;
mod engine;
pub mod error;
pub mod hooks;
pub mod inspect;
mod jinja;
mod observe;
pub mod output;
pub mod request;
mod sections;
pub mod settings;

pub use proem_core as core;

pub use build::Build;
pub use conversation::Conversation;
pub use conversation::store;
pub use deliver::turn::Turn;
pub use engine::{Engine, build};
pub use error::Error;
pub use hooks::Hook;
pub use inspect::traffic;
pub use observe::deadline::{Cancel, with_cancel};
pub use observe::host::Host;
pub use observe::workspace::Workspace;
pub use proem_core::carrier::Carrier;
pub use proem_core::note::Note;
pub use request::caller::Caller;
pub use request::{Request, Tool};

/// The version of the printed and sent shapes. Fields are added within a version, never changed or removed.
#[doc(hidden)]
pub const SHAPE_VERSION: u32 = 1;

// Short paths and plumbing for the crates of this workspace.
#[doc(hidden)]
pub use {
    build::{Fingerprint, PendingField, PromptPolicy, Signature},
    conversation::{Pending, PendingKind, PendingSection},
    costs::{simulate, stats},
    deliver::RawMessage,
    deliver::turn::{PrefixChange, ToolDefinition},
    discover::catalog,
    error::{ErrorKind, ErrorPlace, Excerpt, FileRole, StopReason, TemplateError},
    inspect::{
        ProfileBase, SkillReport, VariableReport, check, compare, compat, directory_listing, evidence,
        preview, profile_base, skills, takes_stored_template, variables,
    },
    observe::file::{Reservation, open_named},
    observe::git::{Revision, RevisionError},
    observe::tls::ServerCertificates,
    output::{build_shape, stored_prompt, turn_shape},
    request::caller::Workspaces,
    request::canonical_json::canonical_json,
    request::strict_json::without_place,
    request::{HostPins, OneOrMany, Pin, Scope, ScopeRule, Ttl},
    settings::init::{InitOutcome, init},
    settings::world::default_profile,
    settings::{config, models, profiles, tokens, trust},
};

#[cfg(feature = "fuzz")]
#[doc(hidden)]
pub use observe::git::fuzzed;
