//! One epoch, with the origin of every byte.

use std::collections::BTreeMap;

use proem::build_shape::{NoteShape, SectionShape, SpanShape, section_shapes, span_shapes};
use proem_core::note::Note;
use proem_store::LoadedEpoch;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::{EpochShape, carriers};

/// One epoch, with the origin of every byte.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct EpochAnswer<'k> {
    /// The conversation.
    pub(crate) conversation: &'k str,
    /// The epoch.
    pub(crate) epoch: EpochShape,
    /// The frozen text of each carrier.
    pub(crate) carriers: BTreeMap<&'static str, String>,
    /// How many bytes of the system carrier must not change.
    pub(crate) prefix_bytes: usize,
    /// The sections, in order.
    pub(crate) sections: Vec<SectionShape<'k>>,
    /// Where every byte comes from.
    pub(crate) spans: Vec<SpanShape<'k>>,
    /// What a reader should know.
    pub(crate) notes: Vec<NoteShape<'k>>,
    /// The parts of a request that a provider takes, if one was named; without messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Value>")]
    pub(crate) payload: Option<Box<RawValue>>,
}

impl<'k> EpochAnswer<'k> {
    /// Shows a kept epoch; `more` are notes about its payload.
    pub(crate) fn of(kept: &'k LoadedEpoch, payload: Option<Box<RawValue>>, more: &'k [Note]) -> Self {
        let (head, frozen) = (&kept.head, &kept.frozen);
        Self {
            conversation: &head.conversation,
            epoch: head.clone().into(),
            carriers: carriers(frozen.body()),
            prefix_bytes: frozen.prefix().len(),
            sections: section_shapes(frozen.body()),
            spans: span_shapes(frozen.body()),
            notes: frozen.notes().iter().chain(more).map(NoteShape::new).collect(),
            payload,
        }
    }
}
