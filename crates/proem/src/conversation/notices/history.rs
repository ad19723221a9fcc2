//! The notices that a turn delivers: those that the history of the caller does not have.

use proem_core::note::{Code, Note, Severity};
use serde_json::Value;

use crate::deliver::Notice;
use crate::request::message::RawMessage;

/// Returns the notices to deliver. Without `messages` these are the ones after the number `before`; an empty list gets
/// all. One that is in the history with another text is left alone, with a note.
pub(super) fn due<'n>(
    notices: &'n [Notice],
    messages: Option<&[RawMessage]>,
    before: u64,
) -> (Vec<&'n Notice>, Vec<Note>) {
    let Some(messages) = messages else {
        return (notices.iter().filter(|notice| notice.number > before).collect(), Vec::new());
    };
    if notices.is_empty() {
        return (Vec::new(), Vec::new());
    }
    let texts: Vec<String> = messages.iter().flat_map(texts).collect();
    let (mut due, mut notes) = (Vec::new(), Vec::new());
    for notice in notices {
        let tag = format!("<notice-{}>", notice.id);
        if texts.iter().any(|text| text.contains(&notice.text)) {
            continue;
        }
        if texts.iter().any(|text| text.contains(&tag)) {
            notes.push(edited(&notice.id));
        } else {
            due.push(notice);
        }
    }
    (due, notes)
}

/// Returns the texts of a message in which a notice can be: not those of the model, and not the results of tools.
fn texts(message: &RawMessage) -> Vec<String> {
    if !message.get().contains("notice-") {
        return Vec::new();
    }
    let Ok(map) = message.to_map() else { return Vec::new() };
    let role = map.get("role").and_then(Value::as_str).unwrap_or_default();
    if !matches!(role, "user" | "system" | "developer") {
        return Vec::new();
    }
    match map.get("content").or_else(|| map.get("parts")) {
        Some(Value::String(text)) => vec![text.clone()],
        Some(Value::Array(blocks)) => {
            blocks.iter().filter_map(|block| Some(block.get("text")?.as_str()?.to_owned())).collect()
        }
        _ => Vec::new(),
    }
}

fn edited(id: &str) -> Note {
    let message =
        format!("the history has the notice {id} with another text: it is left as it is, and not sent again");
    Note::new(Code::NoticeEdited, Severity::Warning, message)
        .with_hint("keep the messages of an answer's `history` as they are")
}
