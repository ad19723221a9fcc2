//! Merges the files of an `extends` chain.

use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use super::file::{SectionKeys, TemplateKeys, ToolsKeys};
use super::places;
use super::{
    Collection, Compaction, Content, GivenField, JinjaRecipe, NoticesRecipe, Part, Profile, ProfileError,
    ProfileFile, SectionRecipe, SlotsRecipe, Syntax, TemplateRecipe, ToolsRecipe,
};
use crate::bracket::Policies;
use crate::carrier::Carrier;
use crate::did_you_mean;
use crate::limit::NOTICE_TOKENS_MAX;
use crate::variable::{self, Variable};

/// One file of a chain, with its name for messages.
#[derive(Debug, Clone)]
pub struct Layer {
    /// The file, as a path or `built-in NAME`.
    pub origin: String,
    /// The content of the file.
    pub file: ProfileFile,
}

/// Merges a chain into one profile, the base first.
///
/// A later file wins key by key. A section with a known id changes that section in place; a new one is added at the
/// end, or next to the section that `before` or `after` names.
pub fn resolve(name: &str, chain: Vec<Layer>) -> Result<Profile, ProfileError> {
    let last = chain.last().map_or_else(String::new, |layer| layer.origin.clone());
    let mut merge = Merge::default();
    for layer in chain {
        merge.lay(layer)?;
    }
    merge.finish(name, &last)
}

#[derive(Default)]
struct Merge {
    keys: Option<ProfileFile>,
    origins: BTreeMap<String, String>,
}

impl Merge {
    fn lay(&mut self, layer: Layer) -> Result<(), ProfileError> {
        let Layer { origin, file } = layer;
        let mut keys = self.keys.take().unwrap_or_default();
        self.key(&mut keys.description, file.description, format_args!("description"), &origin);
        self.key(&mut keys.agent, file.agent, format_args!("agent"), &origin);
        self.key(&mut keys.rebuild, file.rebuild, format_args!("rebuild"), &origin);
        self.key(&mut keys.compaction, file.compaction, format_args!("compaction"), &origin);
        let stored = file.stored_template;
        self.key(&mut keys.stored_template, stored, format_args!("stored_template"), &origin);
        self.key(&mut keys.fixed, file.fixed, format_args!("fixed"), &origin);
        self.key(
            &mut keys.bracket.unknown_type,
            file.bracket.unknown_type,
            format_args!("bracket.unknown_type"),
            &origin,
        );
        self.key(&mut keys.bracket.absent, file.bracket.absent, format_args!("bracket.absent"), &origin);
        self.key(
            &mut keys.bracket.standalone_tags,
            file.bracket.standalone_tags,
            format_args!("bracket.standalone_tags"),
            &origin,
        );
        self.key(&mut keys.append, file.append, format_args!("append"), &origin);
        self.key(&mut keys.hygiene, file.hygiene, format_args!("hygiene"), &origin);
        self.key(&mut keys.secrets, file.secrets, format_args!("secrets"), &origin);
        self.key(&mut keys.fact_bytes_max, file.fact_bytes_max, format_args!("fact_bytes_max"), &origin);
        self.key(&mut keys.slots, file.slots, format_args!("slots"), &origin);
        self.key(&mut keys.notices, file.notices, format_args!("notices"), &origin);
        self.key(&mut keys.spawn, file.spawn, format_args!("spawn"), &origin);
        self.entries(&mut keys.places, file.places, "places", &origin);
        self.entries(&mut keys.texts, file.texts, "texts", &origin);
        self.entries(&mut keys.tools.descriptions, file.tools.descriptions, "tools.descriptions", &origin);
        self.key(&mut keys.tools.default, file.tools.default, format_args!("tools.default"), &origin);
        self.key(&mut keys.tools.order, file.tools.order, format_args!("tools.order"), &origin);
        self.key(
            &mut keys.tools.guidelines,
            file.tools.guidelines,
            format_args!("tools.guidelines"),
            &origin,
        );
        let (own, said) = (&mut keys.jinja, file.jinja);
        self.key(&mut own.trim_blocks, said.trim_blocks, format_args!("jinja.trim_blocks"), &origin);
        self.key(&mut own.lstrip_blocks, said.lstrip_blocks, format_args!("jinja.lstrip_blocks"), &origin);
        self.key(&mut own.aliases, said.aliases, format_args!("jinja.aliases"), &origin);
        self.key(&mut own.variables, said.variables, format_args!("jinja.variables"), &origin);
        self.key(&mut own.defaults, said.defaults, format_args!("jinja.defaults"), &origin);
        for (carrier, said) in file.carrier {
            let own = keys.carrier.entry(carrier).or_default();
            self.key(&mut own.trim_end, said.trim_end, format_args!("carrier.{carrier}.trim_end"), &origin);
            self.key(
                &mut own.separator,
                said.separator,
                format_args!("carrier.{carrier}.separator"),
                &origin,
            );
            self.key(&mut own.trim, said.trim, format_args!("carrier.{carrier}.trim"), &origin);
            self.key(&mut own.budget, said.budget, format_args!("carrier.{carrier}.budget"), &origin);
            self.key(&mut own.cut, said.cut, format_args!("carrier.{carrier}.cut"), &origin);
        }
        refuse_twins(&file.section, &origin)?;
        for section in file.section {
            self.section(&mut keys.section, section, &origin)?;
        }
        self.keys = Some(keys);
        Ok(())
    }

    /// Takes a key if the file has it, and records the file as its origin.
    fn key<T>(&mut self, own: &mut Option<T>, said: Option<T>, path: fmt::Arguments<'_>, origin: &str) {
        if said.is_some() {
            *own = said;
            self.origins.insert(path.to_string(), origin.to_owned());
        }
    }

    /// Merges a table entry by entry; entries that a file does not name stay.
    fn entries(
        &mut self,
        own: &mut BTreeMap<String, String>,
        said: BTreeMap<String, String>,
        path: &str,
        origin: &str,
    ) {
        for (name, value) in said {
            self.origins.insert(format!("{path}.{name}"), origin.to_owned());
            own.insert(name, value);
        }
    }

    fn section(
        &mut self,
        sections: &mut Vec<SectionKeys>,
        said: SectionKeys,
        origin: &str,
    ) -> Result<(), ProfileError> {
        let known = sections.iter().position(|section| section.id == said.id);
        if said.remove {
            let index = known.ok_or_else(|| no_section(origin, &said.id, sections))?;
            if said != (SectionKeys { id: said.id.clone(), remove: true, ..SectionKeys::default() }) {
                let message = format!("section `{}` has `remove` and other keys", said.id);
                return Err(ProfileError::new(origin, message).with_hint("keep `id` and `remove` alone"));
            }
            sections.remove(index);
            self.origins.retain(|path, _| !path.starts_with(&format!("section.{}.", said.id)));
            return Ok(());
        }
        let mut own = match known {
            Some(index) => sections[index].clone(),
            None => SectionKeys { id: said.id.clone(), ..SectionKeys::default() },
        };
        let moved = said.before.is_some() || said.after.is_some();
        let (before, after) = (said.before.clone(), said.after.clone());
        self.section_keys(&mut own, said, origin);
        match known {
            Some(index) if !moved => sections[index] = own,
            _ => {
                if let Some(index) = known {
                    sections.remove(index);
                }
                let index = place(sections, before.as_deref(), after.as_deref(), origin)?;
                sections.insert(index, own);
            }
        }
        Ok(())
    }

    fn section_keys(&mut self, own: &mut SectionKeys, mut said: SectionKeys, origin: &str) {
        let id = own.id.clone();
        keep_deny(own.collect.as_ref(), said.collect.as_mut());
        // A section has one kind of content: another kind replaces the first.
        if said.template.is_some() || said.given.is_some() || said.collect.is_some() {
            let loses_format = said.collect.is_none() && own.format.take().is_some();
            let lost = [
                ("template", own.template.take().is_some()),
                ("given", own.given.take().is_some()),
                ("collect", own.collect.take().is_some()),
                ("format", loses_format),
            ];
            for (kind, _) in lost.into_iter().filter(|(_, is_lost)| *is_lost) {
                self.origins.remove(&format!("section.{id}.{kind}"));
            }
        }
        self.key(&mut own.template, said.template, format_args!("section.{id}.template"), origin);
        self.key(&mut own.given, said.given, format_args!("section.{id}.given"), origin);
        self.key(&mut own.collect, said.collect, format_args!("section.{id}.collect"), origin);
        self.key(&mut own.format, said.format, format_args!("section.{id}.format"), origin);
        self.key(&mut own.files, said.files, format_args!("section.{id}.files"), origin);
        self.key(&mut own.when_tool, said.when_tool, format_args!("section.{id}.when_tool"), origin);
        self.key(&mut own.when_project, said.when_project, format_args!("section.{id}.when_project"), origin);
        self.key(&mut own.carrier, said.carrier, format_args!("section.{id}.carrier"), origin);
        self.key(&mut own.stability, said.stability, format_args!("section.{id}.stability"), origin);
        self.key(&mut own.accepts, said.accepts, format_args!("section.{id}.accepts"), origin);
        self.key(&mut own.on_change, said.on_change, format_args!("section.{id}.on_change"), origin);
        self.key(&mut own.lead, said.lead, format_args!("section.{id}.lead"), origin);
        self.key(&mut own.trail, said.trail, format_args!("section.{id}.trail"), origin);
        self.key(&mut own.trim_end, said.trim_end, format_args!("section.{id}.trim_end"), origin);
        self.key(&mut own.trim, said.trim, format_args!("section.{id}.trim"), origin);
        self.key(&mut own.fresh_line, said.fresh_line, format_args!("section.{id}.fresh_line"), origin);
        self.key(&mut own.boundary, said.boundary, format_args!("section.{id}.boundary"), origin);
        self.key(&mut own.keep_empty, said.keep_empty, format_args!("section.{id}.keep_empty"), origin);
    }

    fn finish(self, name: &str, origin: &str) -> Result<Profile, ProfileError> {
        let keys = self.keys.ok_or_else(|| ProfileError::new(origin, "it is empty"))?;
        let mut sections =
            keys.section.into_iter().map(|section| recipe(section, origin)).collect::<Result<Vec<_>, _>>()?;
        for section in &mut sections {
            places::settle(section, &keys.places, origin)?;
        }
        divide(&mut sections, origin)?;
        if sections.is_empty() {
            return Err(ProfileError::new(origin, "it has no section").with_hint(
                "add a `[[section]]`, or start from a built-in one with `extends = \"template\"`",
            ));
        }
        Ok(Profile {
            name: name.to_owned(),
            description: keys.description.unwrap_or_default(),
            agent: keys.agent,
            rebuild: keys.rebuild.unwrap_or_default(),
            compaction: keys.compaction.unwrap_or(Compaction::Aligned),
            stored_template: keys.stored_template.unwrap_or(false),
            fixed: fixed_variables(keys.fixed.unwrap_or_default(), origin)?,
            bracket: Policies {
                unknown_type: keys.bracket.unknown_type.unwrap_or(Policies::SEED.unknown_type),
                absent: keys.bracket.absent.unwrap_or(Policies::SEED.absent),
                standalone_tags: keys.bracket.standalone_tags.unwrap_or(Policies::SEED.standalone_tags),
            },
            jinja: JinjaRecipe {
                trim_blocks: keys.jinja.trim_blocks.unwrap_or(false),
                lstrip_blocks: keys.jinja.lstrip_blocks.unwrap_or(false),
                aliases: keys.jinja.aliases.unwrap_or_default(),
                variables: keys.jinja.variables.unwrap_or_default(),
                defaults: keys.jinja.defaults.unwrap_or_default(),
            },
            places: keys.places,
            texts: keys.texts,
            tools: tools_recipe(keys.tools, origin)?,
            append: keys.append.unwrap_or_default(),
            hygiene: keys.hygiene.unwrap_or_default(),
            secrets: keys.secrets.unwrap_or_default(),
            fact_bytes_max: keys.fact_bytes_max.unwrap_or_default(),
            notices: notices_recipe(keys.notices.unwrap_or_default(), origin)?,
            spawn: keys.spawn.unwrap_or_default(),
            slots: slots_recipe(keys.slots.unwrap_or_default(), origin)?,
            carriers: keys.carrier,
            sections,
            origins: self.origins,
        })
    }
}

/// Checks the form of notices.
fn notices_recipe(recipe: NoticesRecipe, origin: &str) -> Result<NoticesRecipe, ProfileError> {
    if recipe.edit_percent > 100 {
        let message = format!("`notices.edit_percent` is {}, and is a percentage", recipe.edit_percent);
        return Err(ProfileError::new(origin, message).with_hint("use 0 to 100"));
    }
    if recipe.tokens_max > NOTICE_TOKENS_MAX {
        let message = format!("`notices.tokens_max` is {}", recipe.tokens_max);
        return Err(ProfileError::new(origin, message)
            .with_hint(format!("a notice has at most {NOTICE_TOKENS_MAX} tokens")));
    }
    Ok(recipe)
}

/// Keeps the names that are never read when a file replaces the rules of a section and does not mention them.
fn keep_deny(own: Option<&Collection>, said: Option<&mut Collection>) {
    if let (Some(Collection::Documents(own)), Some(Collection::Documents(said))) = (own, said)
        && said.deny.is_none()
    {
        said.deny.clone_from(&own.deny);
    }
}

/// Checks that every key of `fixed` is a variable.
fn fixed_variables(keys: Vec<String>, origin: &str) -> Result<Vec<String>, ProfileError> {
    let Some(unknown) = keys.iter().find(|key| variable::find(key).is_none()) else { return Ok(keys) };
    let known: Vec<String> = Variable::ALL
        .iter()
        .filter(|variable| !variable.is_dynamic())
        .map(|variable| format!("{}:{}", variable.kind(), variable.name()))
        .collect();
    let hint = match did_you_mean::nearest(unknown, known.iter().map(String::as_str)) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("the variables are: {}", known.join(", ")),
    };
    Err(ProfileError::new(origin, format!("`fixed` names `{unknown}`, which is not a variable"))
        .with_hint(hint))
}

/// Checks that every slot is filled by a fact.
fn slots_recipe(slots: SlotsRecipe, origin: &str) -> Result<SlotsRecipe, ProfileError> {
    match slots.order.iter().find(|name| !slots.facts.contains_key(*name)) {
        Some(name) => Err(ProfileError::new(origin, format!("the slot `{name}` is filled by nothing"))
            .with_hint(format!("name its fact in `slots.facts`, for example `{name} = \"prompt:{name}\"`"))),
        None => Ok(slots),
    }
}

/// Determines the side of the boundary for each section.
fn divide(sections: &mut [SectionRecipe], origin: &str) -> Result<(), ProfileError> {
    let mut boundary: Option<(String, Carrier)> = None;
    for section in sections {
        match &boundary {
            Some((first, _)) if section.part == Part::Boundary => {
                let message = format!("the sections `{first}` and `{}` are both the boundary", section.id);
                return Err(
                    ProfileError::new(origin, message).with_hint("keep `boundary = true` at one of them")
                );
            }
            None if section.part == Part::Boundary => boundary = Some((section.id.clone(), section.carrier)),
            Some((_, carrier)) if section.carrier == *carrier => section.part = Part::Suffix,
            _ => {}
        }
        if !section.carrier.is_cached() {
            section.part = Part::Suffix;
        }
    }
    Ok(())
}

fn tools_recipe(keys: ToolsKeys, origin: &str) -> Result<ToolsRecipe, ProfileError> {
    let guidelines = keys.guidelines.unwrap_or_default();
    if let Some(index) = guidelines.iter().position(|line| line.text.is_some() == line.of_tools) {
        let message = format!("guideline {} of `tools` needs either `text` or `of_tools`", index + 1);
        return Err(ProfileError::new(origin, message)
            .with_hint("`of_tools = true` marks the place of the tools' own guidelines"));
    }
    let (default, descriptions) = (keys.default.unwrap_or_default(), keys.descriptions);
    Ok(ToolsRecipe { default, descriptions, guidelines, order: keys.order.unwrap_or_default() })
}

/// Rejects `files` if the section's content does not come from one text.
fn check_files(keys: &SectionKeys, origin: &str) -> Result<(), ProfileError> {
    if keys.files.is_some() && (keys.collect.is_some() || keys.given == Some(GivenField::Recalled)) {
        let message =
            format!("section `{}` has `files`, which only a template or `append` can have", keys.id);
        return Err(ProfileError::new(origin, message).with_hint("to collect files use `collect`"));
    }
    Ok(())
}

fn recipe(keys: SectionKeys, origin: &str) -> Result<SectionRecipe, ProfileError> {
    check_files(&keys, origin)?;
    let content = match (keys.template, keys.given, keys.collect) {
        (Some(template), None, None) => Content::Template(template_recipe(template, &keys.id, origin)?),
        (None, Some(field), None) => Content::Given(field),
        (None, None, Some(collection)) => Content::Collected(collection),
        (None, None, None) => {
            return Err(ProfileError::new(origin, format!("section `{}` has no content", keys.id))
                .with_hint("add one of `template`, `given`, `collect`"));
        }
        _ => {
            return Err(ProfileError::new(origin, format!("section `{}` has two kinds of content", keys.id))
                .with_hint("keep one of `template`, `given`, `collect`, or split the section"));
        }
    };
    if matches!(content, Content::Collected(_)) != keys.format.is_some() {
        return Err(ProfileError::new(
            origin,
            format!("section `{}` needs both `collect` and `format`, or none", keys.id),
        )
        .with_hint("`format` is a key of the catalog or a reference such as \"$builtin/layers/context\""));
    }
    Ok(SectionRecipe {
        id: keys.id,
        content,
        files: keys.files,
        when_tool: keys.when_tool,
        when_project: keys.when_project.unwrap_or(false),
        carrier: keys.carrier.unwrap_or(Carrier::System),
        stability: keys.stability,
        accepts: keys.accepts,
        on_change: keys.on_change.unwrap_or_default(),
        format: keys.format,
        lead: keys.lead.unwrap_or_default(),
        trail: keys.trail.unwrap_or_default(),
        trim_end: keys.trim_end.unwrap_or_default(),
        trim: keys.trim,
        fresh_line: keys.fresh_line.unwrap_or(false),
        keep_empty: keys.keep_empty.unwrap_or(false),
        part: if keys.boundary == Some(true) { Part::Boundary } else { Part::Prefix },
    })
}

fn template_recipe(keys: TemplateKeys, id: &str, origin: &str) -> Result<TemplateRecipe, ProfileError> {
    let syntax = keys.syntax.unwrap_or(Syntax::Bracket);
    match (keys.asset, keys.text) {
        (Some(asset), None) => Ok(TemplateRecipe::Asset(asset, syntax)),
        (None, Some(text)) => Ok(TemplateRecipe::Text(text, syntax)),
        _ => Err(ProfileError::new(
            origin,
            format!("`template` of section `{id}` needs either `asset` or `text`"),
        )
        .with_hint("for example `template = { asset = \"$builtin/template/base\" }`")),
    }
}

fn refuse_twins(sections: &[SectionKeys], origin: &str) -> Result<(), ProfileError> {
    for (index, section) in sections.iter().enumerate() {
        if sections.iter().take(index).any(|earlier| earlier.id == section.id) {
            return Err(ProfileError::new(origin, format!("two sections are called `{}`", section.id))
                .with_hint("rename one, or say all its keys in one `[[section]]`"));
        }
        if !is_id(&section.id) {
            return Err(ProfileError::new(origin, format!("`{}` is not a section id", section.id))
                .with_hint("use 1 to 64 letters, digits, `_` and `-`"));
        }
    }
    Ok(())
}

fn is_id(id: &str) -> bool {
    (1..=64).contains(&id.len())
        && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

fn place(
    sections: &[SectionKeys],
    before: Option<&str>,
    after: Option<&str>,
    origin: &str,
) -> Result<usize, ProfileError> {
    let find = |id: &str| {
        sections.iter().position(|section| section.id == id).ok_or_else(|| no_section(origin, id, sections))
    };
    match (before, after) {
        (Some(id), None) => find(id),
        (None, Some(id)) => Ok(find(id)? + 1),
        (None, None) => Ok(sections.len()),
        (Some(_), Some(_)) => Err(ProfileError::new(origin, "a section has both `before` and `after`")
            .with_hint("keep one of them")),
    }
}

fn no_section(origin: &str, id: &str, sections: &[SectionKeys]) -> ProfileError {
    let known: Vec<&str> = sections.iter().map(|section| section.id.as_str()).collect();
    ProfileError::new(origin, format!("there is no section `{id}`"))
        .with_hint(format!("the sections up to here are: {}", known.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::super::{Profile, parse};
    use super::{Layer, resolve};
    use crate::builtin;
    use std::string::String;
    use std::vec::Vec;

    /// Resolves a built-in profile and the files that extend it.
    fn chain(base: &str, extensions: &[&str]) -> Profile {
        let texts = [builtin::profile(base).unwrap()].into_iter().chain(extensions.iter().copied());
        let layer = |text: &str| Layer { origin: "test".into(), file: toml::from_str(text).unwrap() };
        resolve("mine", texts.map(layer).collect()).unwrap()
    }

    #[test]
    fn only_two_built_in_profiles_take_the_stored_template() {
        let takes = |(name, text): &(&'static str, &str)| {
            let layer = Layer { origin: "test".into(), file: parse(text, "test", name).unwrap() };
            resolve(name, [layer].into()).unwrap().stored_template
        };
        let names: Vec<&str> =
            builtin::PROFILES.iter().filter(|row| takes(row)).map(|(name, _)| *name).collect();
        assert_eq!(names, ["default", "template"]);
    }

    #[test]
    fn stored_template_and_fixed_variables_are_inherited() {
        assert!(chain("template", &["compaction = \"aligned\""]).stored_template);
        assert!(!chain("template", &["stored_template = false"]).stored_template);
        let session = ["system:date", "system:os", "system:os_version", "system:shell", "prompt:cwd"];
        assert_eq!(chain("boundary", &["append = \"both\""]).fixed, session);
        assert_eq!(chain("boundary", &["fixed = [\"git:branch\"]"]).fixed, ["git:branch"]);
        assert_eq!(chain("template", &[]).fixed, Vec::<String>::new());
    }
}
