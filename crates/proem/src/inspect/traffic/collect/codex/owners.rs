//! Owners of items: Codex writes the kind of each content beside it.

use std::sync::Arc;

use serde_json::Value;

use super::super::json::text;
use super::super::rules::CollectRules;
use super::AGENT;
use crate::inspect::traffic::call::{HintPlace, OwnerHint, OwnerKind};

/// Returns what an input item says about its owners.
pub(super) fn hints(item: &Value) -> Vec<OwnerHint> {
    let about = item.get("internal_chat_message_metadata_passthrough");
    let kinds = about.and_then(|about| about.get("content_item_kinds")?.as_array());
    let contents = item.get("content").and_then(Value::as_array);
    let pairs = kinds.into_iter().flatten().zip(contents.into_iter().flatten());
    pairs.filter_map(|(kind, content)| hint(kind.as_str()?, content)).collect()
}

fn hint(word: &str, content: &Value) -> Option<OwnerHint> {
    let kind = CollectRules::built_in().owner(AGENT, word)?;
    let content = text(content, "text")?;
    // A text of the user needs no proof, and there are many.
    let is_worth_it = kind != OwnerKind::User;
    let hint = OwnerHint {
        place: HintPlace::Text(Arc::from(content)),
        kind,
        name: Some(word.to_owned()),
        path: None,
    };
    is_worth_it.then_some(hint)
}
