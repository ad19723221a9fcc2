//! A finished prompt, its identity (fingerprint and signature), and the rules for its life.

pub(crate) mod fingerprint;
mod policy;
pub(crate) mod signature;

use proem_core::carrier::Carrier;
use proem_core::digest::Digest;
use proem_core::frozen::{Body, Frozen, Suffix};
use proem_core::note::Note;

use crate::request::Request;

pub use fingerprint::Fingerprint;
pub use policy::{PendingField, PromptPolicy};
pub use signature::Signature;

/// A finished prompt: its frozen part, and the part of this turn.
///
/// ```
/// use proem::{Caller, Carrier, Request};
///
/// let request = Request::from_json(r#"{"profile": "template", "system": "Be brief."}"#)?;
/// let prompt = proem::build(&request, Caller::User)?;
/// assert_eq!(prompt.whole().text(Carrier::System), Some("Be brief."));
/// let again = proem::build(&request, Caller::User)?;
/// assert_eq!(again.frozen().digest(), prompt.frozen().digest());
/// # Ok::<(), proem::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Build {
    frozen: Frozen,
    suffix: Suffix,
    /// Always `suffix` after `frozen`: kept because texts are borrowed from it.
    whole: Body,
    fingerprint: Fingerprint,
    signature: Signature,
    policy: PromptPolicy,
    skill_directory: Option<String>,
}

impl Build {
    /// Adds fingerprint and signature to a frozen prompt. `policy` is that of the profile that built it.
    #[must_use]
    pub fn new(frozen: Frozen, suffix: Suffix, request: &Request, policy: PromptPolicy) -> Self {
        let whole = suffix.behind(&frozen);
        let fingerprint = Fingerprint::new(frozen.digest(), request.tools.as_deref().unwrap_or_default());
        let signature = Signature::new(request, &frozen, &policy.cwd);
        Self { frozen, suffix, whole, fingerprint, signature, policy, skill_directory: None }
    }

    /// Returns the rules for the life of this prompt.
    #[must_use]
    pub const fn policy(&self) -> &PromptPolicy {
        &self.policy
    }

    /// Adds the digest of the directory of skills, given its text.
    pub(crate) fn with_skill_directory(self, text: Option<&str>) -> Self {
        Self { skill_directory: text.map(|text| Digest::new(text.as_bytes()).hex()), ..self }
    }

    /// Returns the part that stays for the life of the epoch.
    #[must_use]
    pub const fn frozen(&self) -> &Frozen {
        &self.frozen
    }

    /// Returns the part that belongs to this turn only.
    #[must_use]
    pub const fn suffix(&self) -> &Suffix {
        &self.suffix
    }

    /// Returns both parts together, as the model reads them.
    #[must_use]
    pub const fn whole(&self) -> &Body {
        &self.whole
    }

    /// Returns the digests of the parts that a provider's cache depends on.
    #[must_use]
    pub const fn fingerprint(&self) -> &Fingerprint {
        &self.fingerprint
    }

    /// Returns the properties that decide whether a running session may be used for this prompt.
    #[must_use]
    pub const fn signature(&self) -> &Signature {
        &self.signature
    }

    /// Returns the SHA-256 of the directory of skills, in hexadecimal; `None` if the prompt has none, or was read from a
    /// store.
    ///
    /// The text is the lines of the directory as the model reads them, with a line break between two lines.
    #[must_use]
    pub fn skill_directory(&self) -> Option<&str> {
        self.skill_directory.as_deref()
    }

    /// Returns the notes of the build: everything that was cut, skipped or defaulted, and other findings.
    #[must_use]
    pub fn notes(&self) -> &[Note] {
        self.frozen.notes()
    }

    /// Returns the system prompt; `None` if it is empty.
    #[must_use]
    pub fn system(&self) -> Option<&str> {
        self.text(Carrier::System)
    }

    /// Returns the text of a carrier; `None` if it carries none.
    #[must_use]
    pub fn text(&self, carrier: Carrier) -> Option<&str> {
        self.whole.text(carrier)
    }

    /// Returns the same frozen prompt with the part of another turn.
    #[must_use]
    pub fn with_suffix(self, suffix: Suffix) -> Self {
        let whole = suffix.behind(&self.frozen);
        Self { suffix, whole, ..self }
    }

    /// Separates the frozen part from the part of this turn.
    #[must_use]
    pub fn into_parts(self) -> (Frozen, Suffix) {
        (self.frozen, self.suffix)
    }

    /// Returns the same prompt with another text after the boundary, as in the next turn.
    pub(crate) fn with_other_suffix(&self) -> Self {
        self.clone().with_suffix(self.suffix.changed())
    }
}
