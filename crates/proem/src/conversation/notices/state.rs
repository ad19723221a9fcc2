//! The stored part of notices: those of the epoch, and what was announced since it began.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::changes::{Change, ChangeKind};
use crate::deliver::Notice;
use crate::sections::snapshot::{SourceItem, SourceKind};

/// The contents that are remembered of one source, to recognise one that changes back and forth.
const CONTENTS_KEPT: usize = 4;

/// The notices of an epoch, and what was announced since it began.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NoticeState {
    /// The notices, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) list: Vec<Notice>,
    /// The number of the last notice that a turn delivered.
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) delivered: u64,
    /// The sources that differ from those of the epoch, by section, as they were announced.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    announced: BTreeMap<String, Vec<AnnouncedSource>>,
    /// The sections whose changes wait for the next epoch, because a source changed back and forth.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    held: BTreeSet<String>,
}

/// A source as it was announced last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct AnnouncedSource {
    kind: SourceKind,
    key: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    name: String,
    /// The digests of its last contents, the newest last; an empty one if it was absent.
    contents: Vec<String>,
    /// Its text, for a document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    /// True for a document that was announced because a path below its folder was touched.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_touched: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands out references")]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl AnnouncedSource {
    fn digest(&self) -> &str {
        self.contents.last().map_or("", String::as_str)
    }

    /// Tells whether the last contents were two in turn.
    fn flips(&self) -> bool {
        match self.contents.as_slice() {
            [one, other, again, at_last] => one == again && other == at_last,
            _ => false,
        }
    }
}

/// A source as the model knows it: from the prompt, or from a notice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KnownSource {
    pub(super) kind: SourceKind,
    pub(super) key: String,
    pub(super) name: String,
    pub(super) digest: String,
    /// The text, if it was announced; that of the prompt is in the epoch.
    pub(super) text: Option<String>,
    /// True if it changed back and forth.
    pub(super) flips: bool,
}

impl NoticeState {
    /// Tells whether nothing was announced.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Adds a notice.
    pub(crate) fn push(&mut self, notice: Notice) {
        self.list.push(notice);
    }

    /// Tells whether a change of a section was announced, or waits because it is held.
    pub(crate) fn has_announced(&self, section: &str) -> bool {
        self.announced.contains_key(section) || self.held.contains(section)
    }

    /// Returns the notices of the epoch, in order.
    #[must_use]
    pub fn list(&self) -> &[Notice] {
        &self.list
    }

    pub(crate) fn next_number(&self) -> u64 {
        self.list.last().map_or(1, |last| last.number + 1)
    }

    /// Returns the bytes of all notices.
    pub(super) fn bytes(&self) -> usize {
        self.list.iter().map(|notice| notice.text.len()).sum()
    }

    pub(super) fn is_held(&self, section: &str) -> bool {
        self.held.contains(section)
    }

    pub(super) fn hold(&mut self, section: &str) {
        self.held.insert(section.to_owned());
    }

    /// Returns the sources of a section as the model knows them. `epoch` has those of the prompt.
    pub(super) fn known(&self, section: &str, epoch: &[SourceItem]) -> Vec<KnownSource> {
        let announced = self.announced.get(section).map(Vec::as_slice).unwrap_or_default();
        let announced_as =
            |item: &SourceItem| announced.iter().find(|one| one.kind == item.kind && one.key == item.key);
        let from_announced = |one: &AnnouncedSource| KnownSource {
            kind: one.kind,
            key: one.key.clone(),
            name: one.name.clone(),
            digest: one.digest().to_owned(),
            text: one.text.clone(),
            flips: one.flips(),
        };
        let from_epoch = |item: &SourceItem| KnownSource {
            kind: item.kind,
            key: item.key.clone(),
            name: item.name.clone(),
            digest: item.digest.clone(),
            text: None,
            flips: false,
        };
        let of_epoch =
            epoch.iter().map(|item| announced_as(item).map_or_else(|| from_epoch(item), from_announced));
        let is_of_epoch =
            |one: &&AnnouncedSource| epoch.iter().any(|item| one.kind == item.kind && one.key == item.key);
        let new = announced.iter().filter(|one| !is_of_epoch(one)).map(from_announced);
        of_epoch.chain(new).collect()
    }

    /// Returns the paths of the documents of a section that were announced because a path was touched.
    pub(super) fn touched(&self, section: &str) -> impl Iterator<Item = &str> {
        let all = self.announced.get(section).into_iter().flatten();
        all.filter(|one| one.is_touched && !one.digest().is_empty()).map(|one| one.key.as_str())
    }

    /// Records a change that is announced.
    pub(super) fn announce(&mut self, change: &Change) {
        let known = self.announced.entry(change.section.clone()).or_default();
        let item = &change.item;
        let index = known.iter().position(|one| one.kind == item.kind && one.key == item.key);
        let mut contents = match index.and_then(|index| known.get(index)) {
            Some(one) => one.contents.clone(),
            None => vec![change.before.as_ref().map(|before| before.digest.clone()).unwrap_or_default()],
        };
        let is_removed = change.kind == ChangeKind::Removed;
        contents.push(if is_removed { String::new() } else { item.digest.clone() });
        contents.drain(..contents.len().saturating_sub(CONTENTS_KEPT));
        let was_touched = index.and_then(|index| known.get(index)).is_some_and(|one| one.is_touched);
        let source = AnnouncedSource {
            kind: item.kind,
            key: item.key.clone(),
            name: item.name.clone(),
            contents,
            text: item.text.as_deref().filter(|_| item.kind == SourceKind::Document).map(str::to_owned),
            is_touched: was_touched || change.kind == ChangeKind::Touched,
        };
        match index.and_then(|index| known.get_mut(index)) {
            Some(one) => *one = source,
            None => known.push(source),
        }
    }
}
