//! Named directories: `{project}/SYSTEM.md` changes with `project`.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::{Collection, Content, ProfileError, SectionRecipe};

/// The place that every profile has: proem's configuration directory.
pub(super) const CONFIG: &str = "config";

/// Replaces the names of places in all paths of a section.
pub(super) fn settle(
    section: &mut SectionRecipe,
    places: &BTreeMap<String, String>,
    origin: &str,
) -> Result<(), ProfileError> {
    let mut paths: Vec<&mut String> = Vec::new();
    paths.extend(section.files.iter_mut().flat_map(|files| &mut files.paths));
    match &mut section.content {
        Content::Collected(Collection::Documents(recipe)) => {
            paths.extend(recipe.global.iter_mut().chain(&mut recipe.last).chain(&mut recipe.names));
        }
        Content::Collected(Collection::SkillDirectory(recipe)) => paths.extend(&mut recipe.roots),
        Content::Collected(Collection::Skills(recipe)) => {
            paths.extend(recipe.directories.iter_mut().map(|directory| &mut directory.path));
        }
        Content::Collected(Collection::Rules(recipe)) => {
            paths.extend(recipe.places.iter_mut().filter_map(|place| place.dir.as_mut()));
        }
        _ => {}
    }
    for path in paths {
        *path = expand(path, places).map_err(|name| {
            let known: Vec<&str> = places.keys().map(String::as_str).chain([CONFIG]).collect();
            let message = format!("`{path}` in section `{}` names the place `{name}`", section.id);
            ProfileError::new(origin, format!("{message}, which is not in `[places]`"))
                .with_hint(format!("the places are: {}", known.join(", ")))
        })?;
    }
    Ok(())
}

/// Returns the path with every `{name}` replaced, or the first undefined name.
fn expand(path: &str, places: &BTreeMap<String, String>) -> Result<String, String> {
    let mut expanded = String::with_capacity(path.len());
    let mut rest = path;
    while let Some((before, after)) = rest.split_once('{') {
        let Some((name, behind)) = after.split_once('}') else { break };
        expanded.push_str(before);
        match places.get(name) {
            Some(place) => expanded.push_str(place),
            // Resolved later, because the core does not know the machine.
            None if name == CONFIG => expanded.push_str("{config}"),
            None => return Err(name.into()),
        }
        rest = behind;
    }
    expanded.push_str(rest);
    Ok(expanded)
}
