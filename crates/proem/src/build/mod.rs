//! A finished prompt and its identity: fingerprint and signature.

pub(crate) mod fingerprint;
pub(crate) mod signature;

use proem_core::carrier::Carrier;
use proem_core::frozen::{Body, Frozen, Suffix};

use crate::request::Request;

pub use fingerprint::Fingerprint;
pub use signature::Signature;

/// A finished prompt: its frozen part, and the part of this turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Build {
    /// The part that stays for the life of the epoch.
    pub frozen: Frozen,
    /// The part that belongs to this turn only.
    pub suffix: Suffix,
    /// Both parts together, as the model reads them.
    pub whole: Body,
    /// Digests of the parts that a provider's cache depends on.
    pub fingerprint: Fingerprint,
    /// Decides whether a running session may be used for this prompt.
    pub signature: Signature,
}

impl Build {
    /// Adds fingerprint and signature to a frozen prompt.
    pub(crate) fn new(frozen: Frozen, suffix: Suffix, request: &Request, cwd: &str) -> Self {
        let whole = suffix.behind(&frozen);
        let fingerprint = Fingerprint::new(frozen.digest(), request.tools.as_deref().unwrap_or_default());
        let signature = Signature::new(request, &frozen, cwd);
        Self { frozen, suffix, whole, fingerprint, signature }
    }

    /// Returns the system prompt; `None` if it is empty.
    #[must_use]
    pub fn system(&self) -> Option<&str> {
        self.text(Carrier::System)
    }

    /// Returns the same prompt with another text after the boundary, as in the next turn.
    pub(crate) fn with_other_suffix(&self) -> Self {
        let suffix = self.suffix.changed();
        let whole = suffix.behind(&self.frozen);
        Self { suffix, whole, ..self.clone() }
    }

    /// Returns the text of a carrier; `None` if it carries none.
    #[must_use]
    pub fn text(&self, carrier: Carrier) -> Option<&str> {
        self.whole.text(carrier)
    }
}
