//! The notes of a turn that are not those of a build.

use proem_core::note::{Code, Note, Severity};

use crate::build::PendingField;
use crate::conversation::change::waiting;
use crate::conversation::conversations::{Loaded, policy_of};
use crate::conversation::error::ConversationError;
use crate::error::Error;
use crate::request::RequestUpdate;
use crate::request::caller::Caller;
use crate::sections::tools::duplicates;
use crate::sections::unused_fields::unused_field;

/// Returns the notes that a turn begins with: those of a new prompt, or of changes that wait.
pub(super) fn of_start(
    loaded: &Loaded,
    update: &RequestUpdate,
    caller: Caller,
    is_new: bool,
) -> Result<Vec<Note>, ConversationError> {
    let epoch = &loaded.epoch;
    let mut notes = if is_new { epoch.frozen.notes().to_vec() } else { Vec::new() };
    let is_given = |field: &&PendingField| update.names(field.field) || update.removes(field.field);
    let pending = loaded.pending();
    let given: Vec<&PendingField> = pending.iter().filter(is_given).collect();
    if !given.is_empty() {
        let policy = policy_of(epoch, caller)?;
        notes.extend(given.iter().map(|field| waiting(field.field, &policy)));
    }
    if update.names("host") && !is_new {
        notes.extend(fixed(&loaded.state.contradicted()));
    }
    let unused = unused(loaded, update).filter(|note| !notes.contains(note)).collect::<Vec<_>>();
    notes.extend(unused);
    if let Some(tools) = &update.given().tools {
        notes.extend(duplicates(tools)?);
    }
    Ok(notes)
}

/// Returns notes about the given fields that the profile of the conversation has no use for.
pub(super) fn unused<'l>(loaded: &'l Loaded, update: &'l RequestUpdate) -> impl Iterator<Item = Note> + 'l {
    let head = &loaded.epoch.head;
    // The profile that waits may use them.
    let is_current = loaded.state.request.profile.as_deref() == Some(head.profile.as_str());
    let policy = loaded.epoch.details.as_ref().map(|details| &details.policy).filter(|_| is_current);
    let unused = policy.into_iter().flat_map(|policy| &policy.unused_fields);
    let given = unused.filter(|field| update.names(field));
    given.map(|field| unused_field(field, &head.profile))
}

/// Notes facts of the host that were fixed when the conversation began.
fn fixed(keys: &[&str]) -> Option<Note> {
    let names: Vec<String> = keys.iter().map(|key| format!("`{key}`")).collect();
    (!keys.is_empty()).then(|| {
        let message = format!(
            "`host` gives other values for facts that are fixed for the life of the conversation: {}",
            names.join(", ")
        );
        Note::new(Code::PendingChange, Severity::Info, message)
            .with_hint("begin another conversation, or give the value in `variables`")
    })
}

/// Notes that a running session of another backend or with other servers must not be used for this turn.
pub(super) fn other_session() -> Note {
    let message = "the backend or the servers are others than in the turn before: the running session must not be reused";
    Note::new(Code::PendingChange, Severity::Warning, message)
        .with_hint("compare `signature` with that of the turn before, and start another session")
}

pub(super) fn not_observed(error: &Error) -> Note {
    let message = format!("the facts of this turn are those of an earlier one: {error}");
    Note::new(Code::Absent, Severity::Warning, message)
}
