//! The base of a profile as its author wrote it, for editors.

use proem_core::profile::Content;

use crate::discover::libraries::Libraries;
use crate::error::Error;
use crate::request::Request;
use crate::request::caller::{Author, Caller};
use crate::sections::base_text::{self, TemplateSources};
use crate::settings::world::World;

/// The base of the profile that a request is built with.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProfileBase {
    /// The name of the profile.
    pub profile: String,
    /// The text of the base section's template, not rendered; empty if the profile has no such section.
    pub text: String,
    /// True if a template of the store takes its place in new conversations.
    pub takes_stored_template: bool,
}

/// Reads the base of the profile that the request names, or else the configuration.
pub fn profile_base(request: &Request, caller: Caller) -> Result<ProfileBase, Error> {
    let world = World::read(request, caller)?;
    let profile = &*world.resolved.profile;
    let libraries = Libraries::new(&world.host, &world.workspace.seen_by(profile));
    let sources = TemplateSources { request, config: &world.config, libraries: &libraries, profile };
    let section = profile.sections.iter().find(|section| section.id == base_text::SECTION);
    let text = match section.map(|section| (section, &section.content)) {
        Some((section, Content::Template(template))) => {
            sources.of_profile(section, template, Author::Other)?.content
        }
        _ => String::new(),
    };
    Ok(ProfileBase { profile: profile.name.clone(), text, takes_stored_template: profile.stored_template })
}

/// Tells whether the profile of a request takes a template of the store as its base.
pub fn takes_stored_template(request: &Request, caller: Caller) -> Result<bool, Error> {
    Ok(World::read(request, caller)?.resolved.profile.stored_template)
}
