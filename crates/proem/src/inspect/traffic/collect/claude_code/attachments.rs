//! Attachment lines of transcripts: who put which text into a request.

use std::sync::Arc;

use serde_json::Value;

use super::super::json::text;
use super::super::rules::CollectRules;
use super::AGENT;
use crate::inspect::traffic::call::{HintPlace, OwnerHint, OwnerKind};

/// Returns what an attachment says about owners.
pub(super) fn hints(attachment: &Value, rendered: Option<&Value>) -> Vec<OwnerHint> {
    let Some(word) = text(attachment, "type") else { return Vec::new() };
    let Some(kind) = CollectRules::built_in().owner(AGENT, word) else { return Vec::new() };
    let hint = |content: &str, name: Option<&str>, path: Option<&str>| OwnerHint {
        place: HintPlace::Text(Arc::from(content)),
        kind,
        name: name.map(str::to_owned),
        path: path.map(str::to_owned),
    };
    let list = |key: &str| attachment.get(key).and_then(Value::as_array).into_iter().flatten();
    match kind {
        OwnerKind::InstructionFile => {
            let nested = attachment.get("content").filter(|content| content.is_object());
            let file = |file: &Value| Some(hint(text(file, "content")?, None, text(file, "path")));
            list("files").chain(nested).filter_map(file).collect()
        }
        OwnerKind::McpServer => {
            let names = list("addedNames").map(Value::as_str);
            let blocks = list("addedBlocks").filter_map(Value::as_str);
            blocks.zip(names).map(|(block, name)| hint(block, name, None)).collect()
        }
        OwnerKind::GitStatus => {
            let status = attachment.get("context").and_then(|context| text(context, "gitStatus"));
            status.into_iter().map(|status| hint(status, None, None)).collect()
        }
        OwnerKind::Hook => {
            let name = text(attachment, "hookName");
            sent(attachment, rendered).into_iter().map(|content| hint(&content, name, None)).collect()
        }
        _ => sent(attachment, rendered).into_iter().map(|content| hint(&content, Some(word), None)).collect(),
    }
}

/// Returns the texts as they were sent. Their tags are left away, because not every model gets them.
fn sent(attachment: &Value, rendered: Option<&Value>) -> Vec<String> {
    let rendered = rendered.and_then(Value::as_array).into_iter().flatten();
    let texts: Vec<String> = rendered.filter_map(|one| text(one, "content")).map(bare).collect();
    if texts.is_empty() {
        return ["content", "text"]
            .into_iter()
            .find_map(|key| text(attachment, key))
            .map(bare)
            .into_iter()
            .collect();
    }
    texts
}

fn bare(sent: &str) -> String {
    let inner =
        sent.strip_prefix("<system-reminder>").and_then(|rest| rest.strip_suffix("</system-reminder>"));
    inner.unwrap_or(sent).trim_matches('\n').to_owned()
}
