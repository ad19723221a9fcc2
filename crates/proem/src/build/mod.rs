//! A finished prompt, and what identifies it: fingerprint and signature.

pub(crate) mod fingerprint;
pub(crate) mod signature;

use proem_core::carrier::Carrier;
use proem_core::frozen::{Body, Frozen, Suffix};

use crate::request::Request;

pub use fingerprint::Fingerprint;
pub use signature::Signature;

/// A finished prompt: what is frozen, and what belongs to this turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Build {
    /// What stays for the life of the epoch.
    pub frozen: Frozen,
    /// What belongs to this turn alone.
    pub suffix: Suffix,
    /// Both together: what the model reads.
    pub whole: Body,
    /// What a provider's cache is keyed by.
    pub fingerprint: Fingerprint,
    /// Whether a running session may be used for this prompt.
    pub signature: Signature,
}

impl Build {
    /// Completes a frozen prompt with what identifies it.
    pub(crate) fn new(frozen: Frozen, suffix: Suffix, request: &Request, cwd: &str) -> Self {
        let whole = suffix.behind(&frozen);
        let fingerprint = Fingerprint::new(frozen.digest(), request.tools.as_deref().unwrap_or_default());
        let signature = Signature::of(request, &frozen, cwd);
        Self { frozen, suffix, whole, fingerprint, signature }
    }

    /// The system prompt; `None` when there is nothing to send.
    #[must_use]
    pub fn system(&self) -> Option<&str> {
        self.text(Carrier::System)
    }

    /// The same prompt with another text behind the boundary, as it will be in the next turn.
    pub(crate) fn with_other_suffix(&self) -> Self {
        let suffix = self.suffix.changed();
        let whole = suffix.behind(&self.frozen);
        Self { suffix, whole, ..self.clone() }
    }

    /// The text of a carrier; `None` when nothing rides on it.
    #[must_use]
    pub fn text(&self, carrier: Carrier) -> Option<&str> {
        self.whole.text(carrier)
    }
}
