//! What waits for the next epoch: changes of files, skills and tools that the frozen prompt does not have.

use proem_core::cache_loss::{self, CacheLoss};
use proem_core::carrier::Carrier;
use proem_core::frozen::{Body, Frozen};

use crate::build::fingerprint::Fingerprint;

/// What would be different if a prompt were built now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pending {
    /// The sections that changed, came or went, in the order of the prompt that is frozen.
    pub sections: Vec<PendingSection>,
    /// Whether the tools are others.
    pub tools: bool,
    /// What the cache loses of the frozen prompt when the change is made.
    pub change: Option<CacheLoss>,
}

/// A section that would be different.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingSection {
    /// The section's name in the profile.
    pub id: String,
    /// The carrier.
    pub carrier: Carrier,
    /// What became of it.
    pub kind: PendingKind,
}

/// What became of a section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PendingKind {
    /// It has another text.
    Changed,
    /// It is new.
    Added,
    /// It is gone.
    Removed,
}

impl Pending {
    /// Tells whether nothing waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sections.is_empty() && !self.tools
    }

    /// Compares a frozen prompt with one that was built now.
    #[must_use]
    pub fn between(before: (&Frozen, &Fingerprint), now: (&Frozen, &Fingerprint)) -> Self {
        let prefixes = (before.0.prefix(), now.0.prefix());
        Self {
            sections: sections(before.0.body(), now.0.body()),
            tools: before.1.tools != now.1.tools,
            change: (prefixes.0 != prefixes.1).then(|| cache_loss::between(prefixes.0, prefixes.1)),
        }
    }
}

fn sections(before: &Body, after: &Body) -> Vec<PendingSection> {
    let mut changed = Vec::new();
    for placed in before.sections() {
        let same =
            after.sections().iter().find(|other| other.id == placed.id && other.carrier == placed.carrier);
        let text = |body: &Body, bytes: &std::ops::Range<usize>| {
            body.text(placed.carrier).and_then(|text| text.get(bytes.clone())).map(str::to_owned)
        };
        let kind = match same {
            None => PendingKind::Removed,
            Some(other) if text(before, &placed.bytes) == text(after, &other.bytes) => continue,
            Some(_) => PendingKind::Changed,
        };
        changed.push(PendingSection { id: placed.id.clone(), carrier: placed.carrier, kind });
    }
    for placed in after.sections() {
        let is_known = |other: &proem_core::frozen::PlacedSection| {
            other.id == placed.id && other.carrier == placed.carrier
        };
        if !before.sections().iter().any(is_known) {
            let (id, carrier) = (placed.id.clone(), placed.carrier);
            changed.push(PendingSection { id, carrier, kind: PendingKind::Added });
        }
    }
    changed
}
