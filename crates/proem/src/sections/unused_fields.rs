//! Notes fields of the request or the configuration that the profile does not use.

use proem_core::note::{Code, Note, Severity};
use proem_core::profile::{Collection, Content, GivenField, Profile, SectionRecipe};
use proem_core::source::Source;

use crate::request::Request;
use crate::sections::base_text;
use crate::settings::config::Config;

/// Tells whether the wording of a section comes from the catalog.
pub(crate) fn is_catalogued(section: &SectionRecipe) -> bool {
    section.format.as_ref().is_some_and(|format| !format.starts_with('$'))
}

/// Notes the fields of the request that this profile has no use for.
pub(crate) fn fields(request: &Request, profile: &Profile) -> Vec<Note> {
    let is_given = |field: &&str| match *field {
        "system" => request.system.is_some(),
        "template" => request.template.is_some(),
        "instruction" => request.instruction.is_some(),
        "scope" => request.scope.is_some(),
        "packs" => request.packs.is_some(),
        "residents" => request.residents.is_some(),
        "project" => request.project.is_some(),
        "first_user_text" => request.first_user_text.is_some(),
        "append" => request.append.is_some(),
        _ => request.recalled.is_some(),
    };
    unused(profile).into_iter().filter(is_given).map(|field| unused_field(field, &profile.name)).collect()
}

/// Returns the fields of requests that no section of a profile uses.
pub(crate) fn unused(profile: &Profile) -> Vec<&'static str> {
    let takes =
        |field: GivenField| profile.sections.iter().any(|section| section.content == Content::Given(field));
    let collects = |what: &[Collection]| {
        profile
            .sections
            .iter()
            .any(|section| matches!(&section.content, Content::Collected(own) if what.contains(own)))
    };
    let is_catalogued = profile.sections.iter().any(is_catalogued);
    let uses_project =
        profile.sections.iter().any(|section| section.format.is_some() || section.files.is_some());
    let reads_first_user = profile.sections.iter().any(|section| {
        matches!(&section.content, Content::Collected(Collection::Documents(recipe))
            if recipe.unless_first_user_starts.is_some())
    });
    let has_base = base_text::is_in(profile);
    let fields = [
        ("system", has_base),
        ("template", has_base),
        ("instruction", has_base),
        ("scope", collects(&[Collection::Scope])),
        ("packs", is_catalogued),
        ("residents", collects(&[Collection::Knowledge, Collection::Workflows])),
        ("project", uses_project),
        ("first_user_text", reads_first_user),
        ("append", takes(GivenField::Append)),
        ("recalled", takes(GivenField::Recalled)),
    ];
    fields.into_iter().filter(|(_, is_used)| !is_used).map(|(field, _)| field).collect()
}

/// Notes a configured template that has nothing to replace.
pub(crate) fn template(config: &Config, profile: &Profile) -> Option<Note> {
    let path = config.template.value.as_ref().filter(|_| !base_text::is_in(profile))?;
    let message = format!("the profile `{}` has no base that {} could replace", profile.name, path.display());
    Some(Note::new(Code::UnusedField, Severity::Warning, message))
}

/// Notes a field of a request that a profile has no use for.
pub(crate) fn unused_field(field: &str, profile: &str) -> Note {
    let message = format!("the profile `{profile}` has no use for the request's `{field}`");
    Note::new(Code::UnusedField, Severity::Warning, message)
        .with_source(Source::Request { field: field.into(), place: None })
}
