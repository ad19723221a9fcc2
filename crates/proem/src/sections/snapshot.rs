//! The sources of sections whose changes matter while a conversation lasts: documents, skills and facts, with the digest
//! of each. Two snapshots are compared to find out what changed.

pub(crate) mod touched;

use std::collections::BTreeMap;
use std::sync::Arc;

use proem_core::digest::Digest;
use proem_core::fact::Absence;
use proem_core::file_outcome::{FileOutcome, Outcome};
use proem_core::profile::{Collection, OnChange, SectionRecipe};
use proem_core::source::Source;
use proem_core::stability::Stability;
use proem_core::variable::{self, Variable};
use serde::{Deserialize, Serialize};

use crate::jinja::{Binding, Item};

/// The digest of a document that is too large to be read.
const TOO_LARGE: &str = "too-large";

/// The sources of all sections that do not hold changes back, in the order of the prompt.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Snapshot {
    pub(crate) sections: Vec<SectionSources>,
}

/// The sources of one section.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SectionSources {
    pub(crate) id: String,
    pub(crate) on_change: OnChange,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) items: Vec<SourceItem>,
    /// The keys of sources that exist and could not be read.
    #[serde(skip)]
    pub(crate) unread: Vec<String>,
}

/// The kind of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SourceKind {
    /// A file whose text is in the prompt.
    Document,
    /// A line of a list of skills.
    Skill,
    /// The value of a variable.
    Fact,
}

/// One source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SourceItem {
    pub(crate) kind: SourceKind,
    /// The path, or the key of a variable.
    pub(crate) key: String,
    /// The name of a skill, or the patterns of the files that a document applies to.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) name: String,
    pub(crate) digest: String,
    /// The text; kept apart from a stored snapshot.
    #[serde(skip)]
    pub(crate) text: Option<Arc<str>>,
}

impl SourceItem {
    pub(crate) fn new(kind: SourceKind, key: &str, name: &str, text: &str) -> Self {
        let digest = digest_of(&format!("{name}\0{text}"));
        Self { kind, key: key.to_owned(), name: name.to_owned(), digest, text: Some(text.into()) }
    }

    /// A document of which only the path is known.
    fn too_large(key: &str) -> Self {
        let (kind, name) = (SourceKind::Document, String::new());
        Self { kind, key: key.to_owned(), name, digest: TOO_LARGE.to_owned(), text: None }
    }
}

/// Returns half of a SHA-256 in hexadecimal: enough to tell texts apart, and half of the memory.
pub(crate) fn digest_of(text: &str) -> String {
    Digest::new(text.as_bytes()).hex().chars().take(32).collect()
}

impl Snapshot {
    /// Tells whether no section announces its changes or opens an epoch for them.
    pub(crate) const fn is_empty(&self) -> bool {
        self.sections.is_empty()
    }

    /// Tells whether a change of some section opens an epoch.
    pub(crate) fn thaws(&self) -> bool {
        self.sections.iter().any(|section| section.on_change == OnChange::Thaw)
    }

    /// Returns the texts of documents by digest: those that a later change is compared with, line by line.
    pub(crate) fn texts(&self) -> BTreeMap<&str, &str> {
        let items = self.sections.iter().flat_map(|section| &section.items);
        let documents = items.filter(|item| item.kind == SourceKind::Document);
        documents.filter_map(|item| Some((item.digest.as_str(), item.text.as_deref()?))).collect()
    }
}

impl SectionSources {
    pub(crate) fn new(recipe: &SectionRecipe) -> Self {
        Self { id: recipe.id.clone(), on_change: recipe.on_change, items: Vec::new(), unread: Vec::new() }
    }

    /// Adds what a section collected, as the prompt has it.
    pub(crate) fn collected(
        &mut self,
        what: &Collection,
        binding: Option<&(&'static str, Binding)>,
        considered: &[FileOutcome],
    ) {
        match binding {
            Some((_, Binding::Items { items, .. })) => items.iter().for_each(|item| self.item(what, item)),
            Some((_, Binding::Text { text, source, .. })) => {
                let key = path_of(source).unwrap_or_else(|| self.id.clone());
                self.items.push(SourceItem::new(SourceKind::Document, &key, "", text));
            }
            _ => {}
        }
        let is_unread = |outcome| {
            matches!(
                outcome,
                Outcome::Unreadable | Outcome::Refused | Outcome::Malformed | Outcome::OverBudget
            )
        };
        let unread = considered.iter().filter(|file| is_unread(file.outcome));
        self.unread.extend(unread.map(|file| file.path.clone()));
    }

    /// Adds documents that exist and are too large to be read. Their path is known, and that is announced.
    pub(crate) fn too_large(&mut self, unread: &[(String, Absence)]) {
        for (path, why) in unread {
            if matches!(why, Absence::OverLimit(_)) {
                self.unread.retain(|unread| unread != path);
                self.items.push(SourceItem::too_large(path));
            }
        }
    }

    /// Adds a file that applies to files with these patterns.
    fn rule(&mut self, path: &str, patterns: &str, text: &str) {
        self.items.push(SourceItem::new(SourceKind::Document, path, patterns, text));
    }

    fn item(&mut self, what: &Collection, item: &Item) {
        let found = match what {
            Collection::Skills(_) => {
                let [name, description, location] =
                    ["name", "description", "location"].map(|name| text_of(item, name));
                SourceItem::new(SourceKind::Skill, location, name, description)
            }
            Collection::SkillDirectory(_) => {
                let source = item.fields.first().and_then(|field| path_of(&field.source));
                let key = source.unwrap_or_else(|| self.id.clone());
                SourceItem::new(SourceKind::Skill, &key, "", text_of(item, "text"))
            }
            _ => {
                let (path, content) = (text_of(item, "path"), text_of(item, "content"));
                // Files come in pieces where others are imported into them.
                if let Some(last) = self.items.last_mut().filter(|last| last.key == path) {
                    let whole = format!("{}{content}", last.text.as_deref().unwrap_or_default());
                    *last = SourceItem::new(SourceKind::Document, path, "", &whole);
                    return;
                }
                SourceItem::new(SourceKind::Document, path, "", content)
            }
        };
        self.items.push(found);
    }

    /// Adds the facts that a section's template read. Values that change with every turn are not announced.
    pub(crate) fn facts(&mut self, seen: &BTreeMap<String, Result<String, Absence>>) {
        for (key, value) in seen {
            let stability = variable::find(key).map_or(Stability::Session, Variable::stability);
            if stability > Stability::Day {
                continue;
            }
            match value {
                Ok(text) => self.items.push(SourceItem::new(SourceKind::Fact, key, "", text)),
                Err(Absence::TimedOut | Absence::GitFailed(_) | Absence::Unreadable(_)) => {
                    self.unread.push(key.clone());
                }
                Err(_) => {}
            }
        }
    }

    /// Adds the text of a section that comes from a file or from the request, as a whole.
    pub(crate) fn text(&mut self, source: &Source, text: &str) {
        let key = path_of(source).unwrap_or_else(|| self.id.clone());
        self.items.push(SourceItem::new(SourceKind::Document, &key, "", text));
    }
}

fn text_of<'i>(item: &'i Item, name: &str) -> &'i str {
    item.fields.iter().find(|field| &*field.name == name).map_or("", |field| &field.text)
}

fn path_of(source: &Source) -> Option<String> {
    match source {
        Source::File { path, .. } => Some(path.to_string()),
        _ => None,
    }
}
