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
    let fields = [
        ("system", request.system.is_some() && !base_text::is_in(profile)),
        ("template", request.template.is_some() && !base_text::is_in(profile)),
        ("instruction", request.instruction.is_some() && !base_text::is_in(profile)),
        ("scope", request.scope.is_some() && !collects(&[Collection::Scope])),
        ("packs", request.packs.is_some() && !is_catalogued),
        (
            "residents",
            request.residents.is_some() && !collects(&[Collection::Knowledge, Collection::Workflows]),
        ),
        ("project", request.project.is_some() && !uses_project),
        ("first_user_text", request.first_user_text.is_some() && !reads_first_user),
        ("append", request.append.is_some() && !takes(GivenField::Append)),
        ("recalled", request.recalled.is_some() && !takes(GivenField::Recalled)),
    ];
    let unused = fields.into_iter().filter(|(_, is_unused)| *is_unused);
    unused.map(|(field, _)| unused_field(field, &profile.name)).collect()
}

/// Notes a configured template that has nothing to replace.
pub(crate) fn template(config: &Config, profile: &Profile) -> Option<Note> {
    let path = config.template.value.as_ref().filter(|_| !base_text::is_in(profile))?;
    let message = format!("the profile `{}` has no base that {} could replace", profile.name, path.display());
    Some(Note::new(Code::UnusedField, Severity::Warning, message))
}

fn unused_field(field: &str, profile: &str) -> Note {
    let message = format!("the profile `{profile}` has no use for the request's `{field}`");
    Note::new(Code::UnusedField, Severity::Warning, message)
        .with_source(Source::Request { field: field.into(), place: None })
}
