//! Lays the files of an `extends` chain over each other.

use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::file::{CarrierKeys, SectionKeys, TemplateKeys};
use super::{
    Compaction, Content, JinjaRecipe, Profile, ProfileError, ProfileFile, SectionRecipe, Syntax,
    TemplateRecipe,
};
use crate::bracket::Policies;
use crate::carrier::Carrier;

/// One file of a chain, and what to call it.
#[derive(Debug, Clone)]
pub struct Layer {
    /// The file, as a path or `built-in NAME`.
    pub origin: String,
    /// What it says.
    pub file: ProfileFile,
}

/// Makes one profile of a chain, the base first.
///
/// A later file wins key by key. A section of a known id changes that section in its place; a new
/// one goes to the end, or next to the section that `before` or `after` names.
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
        self.key(&mut keys.description, file.description, "description", &origin);
        self.key(&mut keys.rebuild, file.rebuild, "rebuild", &origin);
        self.key(&mut keys.compaction, file.compaction, "compaction", &origin);
        self.key(&mut keys.bracket.unknown_type, file.bracket.unknown_type, "bracket.unknown_type", &origin);
        self.key(&mut keys.bracket.absent, file.bracket.absent, "bracket.absent", &origin);
        self.key(
            &mut keys.bracket.standalone_tags,
            file.bracket.standalone_tags,
            "bracket.standalone_tags",
            &origin,
        );
        let (own, said) = (&mut keys.jinja, file.jinja);
        self.key(&mut own.trim_blocks, said.trim_blocks, "jinja.trim_blocks", &origin);
        self.key(&mut own.lstrip_blocks, said.lstrip_blocks, "jinja.lstrip_blocks", &origin);
        self.key(&mut own.aliases, said.aliases, "jinja.aliases", &origin);
        self.key(&mut own.variables, said.variables, "jinja.variables", &origin);
        self.key(&mut own.defaults, said.defaults, "jinja.defaults", &origin);
        for (carrier, said) in file.carrier {
            let own = keys.carrier.entry(carrier).or_default();
            self.key(&mut own.trim_end, said.trim_end, &format!("carrier.{carrier}.trim_end"), &origin);
        }
        refuse_twins(&file.section, &origin)?;
        for section in file.section {
            self.section(&mut keys.section, section, &origin)?;
        }
        self.keys = Some(keys);
        Ok(())
    }

    /// Takes a key if the file has it, and remembers who said it.
    fn key<T>(&mut self, own: &mut Option<T>, said: Option<T>, path: &str, origin: &str) {
        if said.is_some() {
            *own = said;
            self.origins.insert(path.to_owned(), origin.to_owned());
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

    fn section_keys(&mut self, own: &mut SectionKeys, said: SectionKeys, origin: &str) {
        let id = own.id.clone();
        let path = |key: &str| format!("section.{id}.{key}");
        // A section has one kind of content: saying another one replaces the first.
        if said.template.is_some() || said.given.is_some() || said.collect.is_some() {
            (own.template, own.given, own.collect) = (None, None, None);
            for kind in ["template", "given", "collect"] {
                self.origins.remove(&path(kind));
            }
            if said.collect.is_none() {
                own.format = None;
                self.origins.remove(&path("format"));
            }
        }
        self.key(&mut own.template, said.template, &path("template"), origin);
        self.key(&mut own.given, said.given, &path("given"), origin);
        self.key(&mut own.collect, said.collect, &path("collect"), origin);
        self.key(&mut own.format, said.format, &path("format"), origin);
        self.key(&mut own.carrier, said.carrier, &path("carrier"), origin);
        self.key(&mut own.stability, said.stability, &path("stability"), origin);
        self.key(&mut own.lead, said.lead, &path("lead"), origin);
        self.key(&mut own.trail, said.trail, &path("trail"), origin);
        self.key(&mut own.trim_end, said.trim_end, &path("trim_end"), origin);
        self.key(&mut own.fresh_line, said.fresh_line, &path("fresh_line"), origin);
        self.key(&mut own.keep_empty, said.keep_empty, &path("keep_empty"), origin);
    }

    fn finish(self, name: &str, origin: &str) -> Result<Profile, ProfileError> {
        let keys = self.keys.ok_or_else(|| ProfileError::new(origin, "it is empty"))?;
        let sections =
            keys.section.into_iter().map(|section| recipe(section, origin)).collect::<Result<Vec<_>, _>>()?;
        if sections.is_empty() {
            return Err(ProfileError::new(origin, "it has no section").with_hint(
                "add a `[[section]]`, or start from a built-in one with `extends = \"template\"`",
            ));
        }
        Ok(Profile {
            name: name.to_owned(),
            description: keys.description.unwrap_or_default(),
            rebuild: keys.rebuild.unwrap_or_default(),
            compaction: keys.compaction.unwrap_or(Compaction::Aligned),
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
            carrier_trim_end: trim_ends(keys.carrier),
            sections,
            origins: self.origins,
        })
    }
}

fn trim_ends(carriers: BTreeMap<Carrier, CarrierKeys>) -> BTreeMap<Carrier, String> {
    carriers.into_iter().filter_map(|(carrier, keys)| Some((carrier, keys.trim_end?))).collect()
}

fn recipe(keys: SectionKeys, origin: &str) -> Result<SectionRecipe, ProfileError> {
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
        .with_hint("`format` is a key of the catalog, for example \"agents_md_section\""));
    }
    Ok(SectionRecipe {
        id: keys.id,
        content,
        carrier: keys.carrier.unwrap_or(Carrier::System),
        stability: keys.stability,
        format: keys.format,
        lead: keys.lead.unwrap_or_default(),
        trail: keys.trail.unwrap_or_default(),
        trim_end: keys.trim_end.unwrap_or_default(),
        fresh_line: keys.fresh_line.unwrap_or(false),
        keep_empty: keys.keep_empty.unwrap_or(false),
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
            return Err(ProfileError::new(origin, format!("`{}` is no section id", section.id))
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
