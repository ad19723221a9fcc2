//! Writes a profile as a file, with the origin of each key.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde::Serialize;

use super::{
    CarrierRecipe, Content, NoticesRecipe, Part, Profile, SectionRecipe, TemplateRecipe, ToolOrder,
    ToolsRecipe,
};
use crate::carrier::Carrier;

impl Profile {
    /// Writes the resolved profile as a TOML file; parsing it gives the same profile.
    #[must_use]
    pub fn to_toml(&self) -> String {
        let mut page = Page { profile: self, text: String::new() };
        page.line("name", "name", &self.name);
        page.line("description", "description", &self.description);
        if let Some(agent) = &self.agent {
            page.line("agent", "agent", agent);
        }
        page.line("rebuild", "rebuild", &self.rebuild);
        page.line("compaction", "compaction", &self.compaction);
        page.line("stored_template", "stored_template", &self.stored_template);
        if !self.fixed.is_empty() {
            page.line("fixed", "fixed", &self.fixed);
        }
        page.line("append", "append", &self.append);
        page.line("hygiene", "hygiene", &self.hygiene);
        page.line("secrets", "secrets", &self.secrets);
        if !self.fact_bytes_max.is_empty() {
            page.line("fact_bytes_max", "fact_bytes_max", &self.fact_bytes_max);
        }
        if !self.slots.order.is_empty() {
            page.line("slots", "slots", &self.slots);
        }
        if self.notices != NoticesRecipe::default() {
            page.line("notices", "notices", &self.notices);
        }
        if !self.spawn.inherit.is_empty() {
            page.line("spawn", "spawn", &self.spawn);
        }
        page.table("places", &self.places);
        page.table("texts", &self.texts);
        page.tools();
        page.text.push_str("\n[bracket]\n");
        page.line("unknown_type", "bracket.unknown_type", &self.bracket.unknown_type);
        page.line("absent", "bracket.absent", &self.bracket.absent);
        page.line("standalone_tags", "bracket.standalone_tags", &self.bracket.standalone_tags);
        page.text.push_str("\n[jinja]\n");
        page.line("trim_blocks", "jinja.trim_blocks", &self.jinja.trim_blocks);
        page.line("lstrip_blocks", "jinja.lstrip_blocks", &self.jinja.lstrip_blocks);
        page.line("aliases", "jinja.aliases", &self.jinja.aliases);
        page.line("variables", "jinja.variables", &self.jinja.variables);
        page.line("defaults", "jinja.defaults", &self.jinja.defaults);
        for (carrier, recipe) in &self.carriers {
            page.carrier(*carrier, recipe);
        }
        for section in &self.sections {
            page.section(section);
        }
        page.text
    }
}

struct Page<'p> {
    profile: &'p Profile,
    text: String,
}

impl Page<'_> {
    fn carrier(&mut self, carrier: Carrier, recipe: &CarrierRecipe) {
        self.text.push_str(&format!("\n[carrier.{carrier}]\n"));
        let CarrierRecipe { trim_end, separator, trim, budget, cut } = recipe;
        let path = |key: &str| format!("carrier.{carrier}.{key}");
        self.optional("trim_end", &path("trim_end"), trim_end.as_ref());
        self.optional("separator", &path("separator"), separator.as_ref());
        self.optional("trim", &path("trim"), trim.as_ref());
        self.optional("budget", &path("budget"), budget.as_ref());
        self.optional("cut", &path("cut"), cut.as_ref());
    }

    fn optional(&mut self, key: &str, path: &str, value: Option<&impl Serialize>) {
        if let Some(value) = value {
            self.line(key, path, value);
        }
    }

    fn section(&mut self, section: &SectionRecipe) {
        let path = |key: &str| format!("section.{}.{key}", section.id);
        self.text.push_str("\n[[section]]\n");
        self.line("id", "", &section.id);
        match &section.content {
            Content::Template(template) => self.written("template", &path("template"), &inline(template)),
            Content::Given(field) => self.line("given", &path("given"), field),
            Content::Collected(collection) => self.line("collect", &path("collect"), collection),
        }
        if let Some(files) = &section.files {
            self.line("files", &path("files"), files);
        }
        if let Some(tool) = &section.when_tool {
            self.line("when_tool", &path("when_tool"), tool);
        }
        self.line("carrier", &path("carrier"), &section.carrier);
        if let Some(stability) = &section.stability {
            self.line("stability", &path("stability"), stability);
        }
        if let Some(accepts) = &section.accepts {
            self.line("accepts", &path("accepts"), accepts);
        }
        if !section.on_change.is_hold() {
            self.line("on_change", &path("on_change"), &section.on_change);
        }
        if let Some(format) = &section.format {
            self.line("format", &path("format"), format);
        }
        let words = [("lead", &section.lead), ("trail", &section.trail), ("trim_end", &section.trim_end)];
        for (key, words) in words.into_iter().filter(|(_, words)| !words.is_empty()) {
            self.line(key, &path(key), words);
        }
        self.optional("trim", &path("trim"), section.trim.as_ref());
        let flags = [
            ("fresh_line", section.fresh_line),
            ("keep_empty", section.keep_empty),
            ("boundary", section.part == Part::Boundary),
            ("when_project", section.when_project),
        ];
        for (key, flag) in flags.into_iter().filter(|(_, flag)| *flag) {
            self.line(key, &path(key), &flag);
        }
    }

    /// Writes a table whose entries have separate origins.
    fn table(&mut self, name: &str, entries: &BTreeMap<String, String>) {
        if entries.is_empty() {
            return;
        }
        self.text.push_str(&format!("\n[{name}]\n"));
        for (key, value) in entries {
            self.line(&quoted(key), &format!("{name}.{key}"), value);
        }
    }

    fn tools(&mut self) {
        let tools = &self.profile.tools;
        if *tools == ToolsRecipe::default() {
            return;
        }
        self.text.push_str("\n[tools]\n");
        self.line("default", "tools.default", &tools.default);
        if tools.order != ToolOrder::default() {
            self.line("order", "tools.order", &tools.order);
        }
        self.line("guidelines", "tools.guidelines", &tools.guidelines);
        self.table("tools.descriptions", &tools.descriptions);
    }

    fn line(&mut self, key: &str, path: &str, value: &impl Serialize) {
        self.written(key, path, &written(value));
    }

    /// Adds a key and its origin.
    fn written(&mut self, key: &str, path: &str, value: &str) {
        let origin = match path {
            "name" | "" => String::new(),
            path => self
                .profile
                .origins
                .get(path)
                .map_or_else(|| "  # default".to_string(), |by| format!("  # {by}")),
        };
        self.text.push_str(&format!("{key} = {value}{origin}\n"));
    }
}

fn inline(template: &TemplateRecipe) -> String {
    let (key, value) = match template {
        TemplateRecipe::Asset(reference, _) => ("asset", reference),
        TemplateRecipe::Text(text, _) => ("text", text),
    };
    format!("{{ {key} = {}, syntax = {} }}", written(value), written(&template.syntax()))
}

/// Returns a value in TOML, on one line.
fn written(value: &impl Serialize) -> String {
    match toml::Value::try_from(value) {
        Ok(toml::Value::Array(items)) => {
            let items: Vec<String> = items.iter().map(ToString::to_string).collect();
            format!("[{}]", items.join(", "))
        }
        Ok(toml::Value::Table(table)) => {
            let pairs: Vec<String> =
                table.iter().map(|(key, value)| format!("{} = {value}", quoted(key))).collect();
            if pairs.is_empty() { "{}".to_string() } else { format!("{{ {} }}", pairs.join(", ")) }
        }
        Ok(value) => value.to_string(),
        Err(_) => "\"\"".to_string(),
    }
}

/// Returns a key, quoted unless it is a bare key.
fn quoted(key: &str) -> String {
    let is_bare = !key.is_empty()
        && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    if is_bare { key.to_string() } else { toml::Value::String(key.to_string()).to_string() }
}

#[cfg(test)]
mod tests {
    use super::super::{Layer, parse, resolve};
    use crate::builtin;
    use std::vec;

    #[test]
    fn what_is_shown_reads_back_as_the_same_profile() {
        for (name, text) in builtin::PROFILES {
            let layer =
                |text: &str| Layer { origin: "test".into(), file: parse(text, "test", name).unwrap() };
            let mut profile = resolve(name, vec![layer(text)]).unwrap();
            let mut again = resolve(name, vec![layer(&profile.to_toml())]).unwrap();
            profile.origins.clear();
            again.origins.clear();
            assert_eq!(profile, again, "{name}");
        }
    }
}
