//! Failures of hooks, with all details for the user and for logs, and fewer for remote clients.
//!
//! The last line that a program wrote often has addresses with passwords, tokens and paths of the machine. Secrets of
//! known shapes are masked before anything is kept. Remote clients get none of the line, because a mask misses secrets
//! without a known shape.

use proem_core::note::{Code, Note, Severity};
use proem_core::source::Source;
use proem_core::text_safety::secret::Scanner;

use super::{HookError, HookEvent};
use crate::request::caller::Caller;

/// The reason why one call of a hook failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HookFailureReason {
    /// The part that a remote client may see.
    brief: String,
    /// The whole text, with secrets masked.
    whole: String,
}

impl HookFailureReason {
    /// Makes a reason that reveals nothing about the machine or the hook's output.
    pub(super) fn plain(brief: impl Into<String>) -> Self {
        let brief = brief.into();
        Self { whole: brief.clone(), brief }
    }

    /// Makes a reason with details for the user.
    pub(super) fn new(brief: impl Into<String>, whole: &str) -> Self {
        Self { brief: brief.into(), whole: Scanner::new().without_secrets(whole).into_owned() }
    }
}

impl From<HookError> for HookFailureReason {
    fn from(error: HookError) -> Self {
        Self::new("it failed", &error.to_string())
    }
}

/// A hook that was skipped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookFailure {
    hook: String,
    event: HookEvent,
    why: HookFailureReason,
}

impl HookFailure {
    pub(super) fn new(hook: String, event: HookEvent, why: HookFailureReason) -> Self {
        Self { hook, event, why }
    }

    /// The hook's name.
    #[must_use]
    pub fn hook(&self) -> &str {
        &self.hook
    }

    /// Returns the event of the call.
    #[must_use]
    pub fn event(&self) -> HookEvent {
        self.event
    }

    /// Returns the reason why it was skipped, for the user and for logs; secrets of known shapes are masked.
    #[must_use]
    pub fn why(&self) -> &str {
        &self.why.whole
    }

    /// Makes the note about it.
    pub(crate) fn note(&self, caller: Caller) -> Note {
        let why = match caller {
            Caller::User => &self.why.whole,
            Caller::Remote(_) => &self.why.brief,
        };
        let message = format!("the hook `{}` is skipped at `{}`: {why}", self.hook, self.event.word());
        Note::new(Code::HookFailed, Severity::Warning, message)
            .with_source(Source::Hook { name: self.hook.clone().into() })
    }
}
