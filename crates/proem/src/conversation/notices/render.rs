//! The text of a notice. Text of files goes in as data, inside tags that it cannot close: their names have the id of the
//! notice, which occurs in none of the texts.

use std::collections::BTreeMap;

use proem_core::digest::Digest;
use proem_core::estimate::Estimate;
use proem_core::profile::NoticesRecipe;
use proem_core::text_safety::escape::escape_line;
use proem_core::variable;

use super::changes::{Change, ChangeKind};
use super::edit::changed_lines;
use crate::conversation::wording::Wording;
use crate::deliver::Notice;
use crate::error::Error;
use crate::sections::snapshot::SourceKind;

/// The characters of an id.
const ID_CHARACTERS: usize = 12;

/// Tokens that are kept free for the words around the changes, and for the sentence about those that have no room.
const RESERVED_TOKENS: usize = 200;

/// Names a notice: its conversation, its epoch, and its number there.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NoticeName<'n> {
    pub(crate) conversation: &'n str,
    pub(crate) epoch: u64,
    pub(crate) number: u64,
}

impl NoticeName<'_> {
    /// Returns an id that occurs in none of the texts. It depends on them and on the name alone.
    fn id(self, texts: &[&str]) -> String {
        let Self { conversation, epoch, number } = self;
        let seed = Digest::new(texts.join("\0").as_bytes()).hex();
        let mut salt = 0_u32;
        loop {
            let all = format!("{conversation}\0{epoch}\0{number}\0{seed}\0{salt}");
            let id: String = Digest::new(all.as_bytes()).hex().chars().take(ID_CHARACTERS).collect();
            if !texts.iter().any(|text| text.contains(&id)) {
                return id;
            }
            salt += 1;
        }
    }

    /// Makes the notice of a text.
    fn notice(self, id: String, sections: Vec<String>, text: &str) -> Notice {
        let text = format!("<notice-{id}>\n{text}\n</notice-{id}>");
        Notice { id, number: self.number, sections, text }
    }

    /// Makes the notice with the role of a fork.
    pub(crate) fn role(self, role: &str, wording: &Wording<'_>) -> Result<Notice, Error> {
        let text = wording.text("fork_role", &[("text", role)])?;
        Ok(self.notice(self.id(&[&text]), Vec::new(), &text))
    }
}

/// Makes one notice of all changes, in their order. `earlier` has the texts of documents as the model knows them, by digest.
pub(super) fn notice(
    name: NoticeName<'_>,
    changes: &[Change],
    earlier: &BTreeMap<String, String>,
    recipe: NoticesRecipe,
    wording: &Wording<'_>,
) -> Result<Notice, Error> {
    let before = |change: &Change| -> Option<String> {
        let known = change.before.as_ref()?;
        known.text.clone().or_else(|| earlier.get(&known.digest).cloned())
    };
    let lines: Vec<Option<String>> = changes
        .iter()
        .map(|change| match (change.kind, &change.item.text) {
            (ChangeKind::Replaced, Some(after)) if change.item.kind == SourceKind::Document => {
                changed_lines(&before(change)?, after, recipe.edit_percent)
            }
            _ => None,
        })
        .collect();
    let mut texts: Vec<&str> = Vec::new();
    for change in changes {
        texts.extend([change.item.key.as_str(), change.item.name.as_str()]);
        texts.extend(change.item.text.as_deref());
    }
    texts.extend(lines.iter().flatten().map(String::as_str));
    let id = name.id(&texts);
    let mut page = Page {
        id: &id,
        wording,
        parts: Vec::new(),
        tokens: recipe.tokens_max.saturating_sub(RESERVED_TOKENS),
        left_out: 0,
    };
    let mut index = 0;
    while let Some(change) = changes.get(index) {
        let is_alike = |other: &&Change| {
            other.section == change.section
                && other.item.kind == change.item.kind
                && other.kind == change.kind
        };
        let group = changes.iter().skip(index).take_while(is_alike).count();
        let alike = changes.get(index..index + group).unwrap_or_default();
        match change.item.kind {
            SourceKind::Skill => page.skills(alike)?,
            // All facts of a section are one list, whatever happened to each.
            SourceKind::Fact => {
                let is_fact =
                    |other: &&Change| other.section == change.section && other.item.kind == SourceKind::Fact;
                let facts = changes.iter().skip(index).take_while(is_fact).count();
                page.facts(changes.get(index..index + facts).unwrap_or_default())?;
                index += facts;
                continue;
            }
            SourceKind::Document => {
                for (change, lines) in alike.iter().zip(lines.iter().skip(index)) {
                    page.document(change, lines.as_deref())?;
                }
            }
        }
        index += group;
    }
    let text = page.finish()?;
    let mut sections: Vec<String> = changes.iter().map(|change| change.section.clone()).collect();
    sections.dedup();
    Ok(name.notice(id, sections, &text))
}

/// A notice that is being written.
struct Page<'p> {
    id: &'p str,
    wording: &'p Wording<'p>,
    parts: Vec<String>,
    /// The tokens that are left.
    tokens: usize,
    /// The number of changes without room.
    left_out: usize,
}

impl Page<'_> {
    fn document(&mut self, change: &Change, lines: Option<&str>) -> Result<(), Error> {
        let item = &change.item;
        let name = escape_line(&item.key);
        if change.kind == ChangeKind::Removed {
            let text = self.wording.text("notice_removed", &[("name", &name)])?;
            self.add_or_count(text);
            return Ok(());
        }
        if let Some(text) = lines.or(item.text.as_deref()) {
            let data = self.data("file", &[("path", &item.key)], text);
            let key = match (change.kind, lines) {
                (_, Some(_)) => "notice_edited",
                (ChangeKind::Touched, _) if !item.name.is_empty() => "notice_rule",
                (ChangeKind::Touched, _) => "notice_touched",
                (ChangeKind::Replaced, _) => "notice_replaced",
                _ => "notice_added",
            };
            // Data over the limit is not even rendered.
            if self.has_room(&data) {
                let patterns = escape_line(&item.name);
                let values = [("name", &*name), ("text", &data), ("patterns", &patterns)];
                let text = self.wording.text(key, &values)?;
                if self.add(text) {
                    return Ok(());
                }
            }
        }
        let is_new = if change.kind == ChangeKind::Replaced { "" } else { "yes" };
        let text = self.wording.text("notice_long", &[("name", &name), ("is_new", is_new)])?;
        self.add_or_count(text);
        Ok(())
    }

    fn skills(&mut self, changes: &[Change]) -> Result<(), Error> {
        let key = match changes.first().map(|change| change.kind) {
            Some(ChangeKind::Replaced) => "notice_skills_changed",
            Some(ChangeKind::Removed) => "notice_skills_removed",
            _ => "notice_skills_added",
        };
        let line = |change: &Change| {
            let item = &change.item;
            let (name, path) = (one_line(&item.name), one_line(&item.key));
            match item.text.as_deref() {
                Some(text) if name.is_empty() => format!("- {} ({path})", one_line(text)),
                Some(text) => format!("- {name}: {} ({path})", one_line(text)),
                None if name.is_empty() => format!("- {path}"),
                None => format!("- {name} ({path})"),
            }
        };
        let lines: Vec<String> = changes.iter().map(line).collect();
        self.list(key, "skills", &lines)
    }

    fn facts(&mut self, changes: &[Change]) -> Result<(), Error> {
        let line = |change: &Change| {
            let value = change.item.text.as_deref().unwrap_or("none");
            format!("- {}: {}", fact_name(&change.item.key), one_line(value))
        };
        let lines: Vec<String> = changes.iter().map(line).collect();
        self.list("notice_facts", "facts", &lines)
    }

    /// Adds as many lines as there is room for.
    fn list(&mut self, key: &str, tag: &str, lines: &[String]) -> Result<(), Error> {
        let mut kept = lines.len();
        while kept > 0 {
            let data = self.data(tag, &[], &lines.get(..kept).unwrap_or_default().join("\n"));
            if self.has_room(&data) {
                let text = self.wording.text(key, &[("text", &data)])?;
                if self.add(text) {
                    break;
                }
            }
            kept /= 2;
        }
        self.left_out += lines.len() - kept;
        Ok(())
    }

    /// Puts text between tags that it cannot close.
    fn data(&self, tag: &str, attributes: &[(&str, &str)], text: &str) -> String {
        let mut written = String::new();
        for (name, value) in attributes {
            written.push_str(&format!(" {name}=\"{}\"", attribute(value)));
        }
        let id = self.id;
        let text = text.trim_end_matches('\n');
        format!("<{tag}-{id}{written}>\n{text}\n</{tag}-{id}>")
    }

    fn has_room(&self, text: &str) -> bool {
        // A text never has more tokens than bytes, so that most need no count.
        text.len() <= self.tokens || Estimate::from_text(text).tokens() <= self.tokens
    }

    fn add(&mut self, text: String) -> bool {
        let tokens = Estimate::from_text(&text).tokens();
        if tokens > self.tokens {
            return false;
        }
        self.tokens -= tokens;
        self.parts.push(text);
        true
    }

    fn add_or_count(&mut self, text: String) {
        if !self.add(text) {
            self.left_out += 1;
        }
    }

    fn finish(mut self) -> Result<String, Error> {
        if self.left_out > 0 {
            let count = self.left_out.to_string();
            let more = self.wording.text("notice_more", &[("count", &count)])?;
            self.parts.push(more);
        }
        let changes = self.parts.join("\n\n");
        self.wording.text("notice", &[("changes", &changes)])
    }
}

/// Returns the name of a fact for the model: `branch` of `git:branch`, `date` of `system:local_date`.
fn fact_name(key: &str) -> String {
    let (_, name) = variable::split(key);
    let name = if name.is_empty() { key } else { name };
    let name = name.strip_prefix("local_").unwrap_or(name);
    one_line(name.strip_suffix("_name").unwrap_or(name))
}

/// Puts a text on one line: what comes from a file must not begin a line of its own.
fn one_line(text: &str) -> String {
    text.split(char::is_control).filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
}

/// Escapes a text for an attribute.
fn attribute(text: &str) -> String {
    one_line(text).replace('&', "&amp;").replace('"', "&quot;").replace('<', "&lt;").replace('>', "&gt;")
}
