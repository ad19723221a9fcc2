//! Templates whose only tags are names in double braces.

use proem_core::brace_slots::{self, Slot};
use proem_core::carrier::Carrier;
use proem_core::draft::check_bytes;
use proem_core::fact::Absence;
use proem_core::note::{Note, Severity};
use proem_core::rendered::Rendered;
use proem_core::source::Source;
use proem_core::stability::Stability;

use super::Builder;
use crate::error::Error;
use crate::request::caller::Author;
use crate::sections::base_text::Text;

impl Builder<'_> {
    /// Fills the slots of a text, one after the other. A fact is observed when its turn comes and the text
    /// has a slot for it.
    pub(super) fn render_slots(&mut self, text: &Text, carrier: Carrier) -> Result<Rendered, Error> {
        let (recipe, author) = (&self.sources.profile.slots, self.author(text.author));
        let mut rendered = brace_slots::begin(&text.content, &text.origin, text.stability);
        for name in &recipe.order {
            let count = brace_slots::count(rendered.text(), name);
            if count == 0 {
                continue;
            }
            let slot = self.slot(name, author, &text.origin);
            check_bytes(carrier, slot.value.len().saturating_mul(count).saturating_add(rendered.len()))?;
            rendered = brace_slots::fill(&rendered, &slot);
        }
        Ok(rendered)
    }

    fn slot<'n>(&mut self, name: &'n str, author: Author, template: &Source) -> Slot<'n> {
        let recipe = &self.sources.profile.slots;
        let key = recipe.facts.get(name).map_or(name, String::as_str);
        let fact = self.resolver.fact(key, author);
        let is_nothing = fact.value.is_err() || self.is_empty_list(key);
        if let Some(words) = recipe.none.get(name).filter(|_| is_nothing) {
            let source = Source::Profile {
                profile: self.sources.profile.name.as_str().into(),
                key: format!("slots.none.{name}").into(),
            };
            return Slot { name, value: words.clone(), source, stability: Stability::Session };
        }
        if let Err(why) = &fact.value {
            self.notes.push(unfilled(name, why, template));
        }
        let source = Source::Variable { key: key.into(), path: fact.path };
        Slot { name, value: fact.value.unwrap_or_default(), source, stability: fact.stability }
    }

    /// A list of nothing has no text; a list of one nameless thing has an empty one.
    fn is_empty_list(&self, key: &str) -> bool {
        let request = self.sources.request;
        key == "prompt:mcp_servers"
            && !request.variables.contains_key(key)
            && request.mcp_servers.as_ref().is_some_and(Vec::is_empty)
    }
}

fn unfilled(name: &str, why: &Absence, template: &Source) -> Note {
    let message = format!("`{{{{{name}}}}}` is filled with nothing: {why}");
    Note::new(why.code(), Severity::Info, message).with_source(template.clone())
}
