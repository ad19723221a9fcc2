//! Compares the sources of a conversation with those that the model knows.

use proem_core::note::{Code, Note, Severity};
use proem_core::profile::OnChange;

use super::state::{KnownSource, NoticeState};
use crate::sections::snapshot::{SectionSources, Snapshot, SourceItem};

/// The kind of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChangeKind {
    /// The source is new.
    Added,
    /// It has another content.
    Replaced,
    /// It is gone.
    Removed,
    /// It applies to a path that the agent touched.
    Touched,
}

/// A change of one source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) section: String,
    pub(super) kind: ChangeKind,
    /// The source as it is now; as it was, if it is gone.
    pub(super) item: SourceItem,
    /// The source as the model knows it.
    pub(super) before: Option<KnownSource>,
}

/// The differences between the sources and what the model knows of them.
#[derive(Debug, Default)]
pub(super) struct Differences {
    /// The changes to announce, in the order of the prompt.
    pub(super) changes: Vec<Change>,
    /// True if a source changed whose section opens an epoch then.
    pub(super) thaws: bool,
    /// The sections that are held from now on.
    pub(super) held: Vec<String>,
    pub(super) notes: Vec<Note>,
}

/// Finds what changed. `touched` has sources that apply to touched paths.
pub(super) fn find(epoch: &Snapshot, state: &NoticeState, now: &Snapshot, touched: &Snapshot) -> Differences {
    let mut found = Differences::default();
    for section in &now.sections {
        // A section that the prompt did not have waits for the next epoch.
        let Some(frozen) = epoch.sections.iter().find(|frozen| frozen.id == section.id) else { continue };
        let known = state.known(&section.id, &frozen.items);
        let more = touched.sections.iter().find(|more| more.id == section.id);
        let changes = of_section(section, more, &known, &mut found.notes);
        if changes.is_empty() {
            continue;
        }
        if section.on_change == OnChange::Thaw {
            found.thaws = true;
        } else if state.is_held(&section.id) {
            found.notes.push(held(&section.id));
        } else if changes.iter().any(|change| change.before.as_ref().is_some_and(|before| before.flips)) {
            found.notes.push(held(&section.id));
            found.held.push(section.id.clone());
        } else {
            found.changes.extend(changes);
        }
    }
    found
}

fn of_section(
    now: &SectionSources,
    touched: Option<&SectionSources>,
    known: &[KnownSource],
    notes: &mut Vec<Note>,
) -> Vec<Change> {
    let section = now.id.clone();
    let is_same = |one: &SourceItem, other: &KnownSource| one.kind == other.kind && one.key == other.key;
    let mut changes = Vec::new();
    let found_again =
        |item: &SourceItem| now.items.iter().any(|one| one.kind == item.kind && one.key == item.key);
    let more = touched.into_iter().flat_map(|touched| &touched.items).filter(|item| !found_again(item));
    let all: Vec<(&SourceItem, ChangeKind)> = now
        .items
        .iter()
        .map(|item| (item, ChangeKind::Added))
        .chain(more.map(|item| (item, ChangeKind::Touched)))
        .collect();
    for (item, new) in &all {
        let before = known.iter().find(|known| is_same(item, known));
        let kind = match before {
            Some(known) if known.digest == item.digest => continue,
            Some(known) if !known.digest.is_empty() => ChangeKind::Replaced,
            _ => *new,
        };
        changes.push(Change {
            section: section.clone(),
            kind,
            item: (*item).clone(),
            before: before.cloned(),
        });
    }
    let unread: Vec<&String> =
        now.unread.iter().chain(touched.into_iter().flat_map(|more| &more.unread)).collect();
    for gone in known.iter().filter(|known| !known.digest.is_empty()) {
        if all.iter().any(|(item, _)| is_same(item, gone)) {
            continue;
        }
        // Of what cannot be read, nothing new is known.
        if unread.contains(&&gone.key) {
            notes.push(unreadable(&gone.key));
            continue;
        }
        let KnownSource { kind, key, name, .. } = gone.clone();
        let item = SourceItem { kind, key, name, digest: String::new(), text: None };
        let (kind, before) = (ChangeKind::Removed, Some(gone.clone()));
        changes.push(Change { section: section.clone(), kind, item, before });
    }
    changes
}

fn unreadable(key: &str) -> Note {
    let message = format!("{key} cannot be read now: nothing is announced, and what was said of it stays");
    Note::new(Code::Unreadable, Severity::Warning, message)
}

fn held(section: &str) -> Note {
    let message = format!(
        "the changes of the section `{section}` are not announced any more in this epoch: a source changed back and forth"
    );
    Note::new(Code::ChangeHeld, Severity::Warning, message)
        .with_hint("a reload of the conversation takes the sources as they are then")
}
