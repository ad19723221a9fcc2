//! The answer about one epoch, with the source of every byte.

use std::collections::BTreeMap;

use proem::build_shape::{NoteShape, SectionShape, SpanShape, section_shapes, span_shapes};
use proem_core::note::Note;
use proem_store::LoadedEpoch;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::shapes::{EpochShape, carriers};

/// One epoch, with the source of every byte.
#[derive(Debug, Serialize, JsonSchema)]
pub struct EpochAnswer<'k> {
    /// The id of the conversation.
    pub conversation: &'k str,
    /// The epoch.
    pub epoch: EpochShape,
    /// The frozen text of each carrier.
    pub carriers: BTreeMap<&'static str, String>,
    /// The length of the prefix: the bytes of the system carrier that must not change.
    pub prefix_bytes: usize,
    /// The sections, in order.
    pub sections: Vec<SectionShape<'k>>,
    /// The spans of all carriers, with the source of each.
    pub spans: Vec<SpanShape<'k>>,
    /// Notes about the prompt and its payload.
    pub notes: Vec<NoteShape<'k>>,
    /// The fields of a provider's request body, without messages, if a provider was named.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Value>")]
    pub payload: Option<Box<RawValue>>,
}

impl<'k> EpochAnswer<'k> {
    /// Shows a kept epoch; `more` are notes about its payload.
    #[must_use]
    pub fn new(kept: &'k LoadedEpoch, payload: Option<Box<RawValue>>, more: &'k [Note]) -> Self {
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
