//! Reports the skills and the outcome of each, for authors of skills.

use proem_core::file_outcome::Outcome;
use proem_core::note::Note;
use proem_core::profile::{Collection, Content};

use crate::discover::SearchRoots;
use crate::discover::skills::{self, Candidate};
use crate::error::Error;
use crate::observe::deadline;
use crate::request::Request;
use crate::request::caller::Author;
use crate::request::caller::Caller;
use crate::sections::build_state::BuildState;
use crate::sections::resolver::Resolver;
use crate::sections::sources::resources;
use crate::settings::profiles::ResolvedProfile;
use crate::settings::world::World;

/// One file that could be a skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillReport {
    /// The name; `None` when nothing could be made of the file.
    pub name: Option<String>,
    /// The description, as in the file.
    pub description: Option<String>,
    /// The path.
    pub location: String,
    /// The outcome: used, hidden, shadowed, duplicate, malformed, ignored, or not read at all.
    pub outcome: Outcome,
    /// The reason why it is not listed.
    pub why: Option<String>,
    /// Problems to fix.
    pub problems: Vec<Note>,
}

/// Returns all skills that the profile of a request finds, and further notes.
///
/// A profile that lists no skills has none.
pub fn skills(request: &Request, caller: Caller) -> Result<(Vec<SkillReport>, Vec<Note>), Error> {
    deadline::build(|| skills_here(request, caller)).unwrap_or_else(|(why, _)| Err(Error::Stopped { why }))
}

fn skills_here(request: &Request, caller: Caller) -> Result<(Vec<SkillReport>, Vec<Note>), Error> {
    let world = World::read(request, caller)?;
    let World { host, workspace, config, resolved, .. } = &world;
    let ResolvedProfile { profile, is_of_workspace, .. } = resolved;
    let (places, resolver) =
        (SearchRoots::new(host, workspace), Resolver::new(request, host, workspace, config));
    let author = if *is_of_workspace { Author::Other } else { Author::User };
    let policy = resolver.discovery_policy(author, &places);
    let (resources, failures) = resources(&mut BuildState::default(), &[], &world, workspace);
    let mut notes: Vec<Note> = failures.iter().map(|failure| failure.note(caller)).collect();
    let mut reports = Vec::new();
    for section in &profile.sections {
        let Content::Collected(Collection::Skills(recipe)) = &section.content else { continue };
        let has_project = request.project != Some(false);
        let found = skills::find(recipe, &resources.skills, &places, &policy, has_project);
        reports.extend(found.candidates.iter().map(report));
        let others = found.considered.iter().filter(|other| other.outcome != Outcome::Missing);
        reports.extend(others.map(|other| SkillReport {
            name: None,
            description: None,
            location: other.path.clone(),
            outcome: other.outcome,
            why: other.why.clone(),
            problems: Vec::new(),
        }));
        notes.extend(found.notes);
    }
    Ok((reports, notes))
}

fn report(candidate: &Candidate) -> SkillReport {
    let Candidate { skill, location, outcome, why, problems } = candidate;
    SkillReport {
        name: skill.as_ref().map(|skill| skill.name.to_string()),
        description: skill.as_ref().map(|skill| skill.description.to_string()),
        location: location.to_string(),
        outcome: *outcome,
        why: why.clone(),
        problems: problems.iter().map(|problem| problem.note(location)).collect(),
    }
}
