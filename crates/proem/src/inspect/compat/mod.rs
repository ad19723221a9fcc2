//! Compares the views of several agents of one directory: builds their profiles side by side.

mod installed;
mod shape;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use proem_core::carrier::Carrier;
use proem_core::file_outcome::Outcome;
use proem_core::note::{Code, Note, Severity};
use proem_core::profile::{AgentRecipe, Profile, Seen};
use proem_core::source::Source;

pub use installed::{Installed, installed, is_newer};
pub use shape::{AgentShape, CarrierSize, CompatShape, FileShape};

use crate::build::Build;
use crate::discover::roster::Agent;
use crate::engine::{BuildInput, build_in, within_limits};
use crate::error::Error;
use crate::request::Request;
use crate::request::caller::Caller;
use crate::sections::Parts;
use crate::sections::build_state::BuildState;
use crate::settings::allow::file_of;
use crate::settings::profiles::Profiles;
use crate::settings::tokens::Tokenizer;
use crate::settings::world::World;

/// The view of one agent.
#[derive(Debug)]
pub struct AgentView {
    /// The profile.
    pub profile: String,
    /// The agent that the profile imitates.
    pub agent: AgentRecipe,
    /// The same agent with its rules.
    pub(crate) rules: Agent,
    /// The prompt.
    pub build: Build,
    /// The outcome of each file that it examined, or that it looked up and that exists.
    pub files: BTreeMap<String, FileView>,
    /// The number of names that could not be looked up from here.
    pub out_of_reach: usize,
}

/// The outcome of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileView {
    /// The outcome.
    pub outcome: Outcome,
    /// The reason.
    pub why: Option<String>,
    /// The number of its bytes in the prompt.
    pub bytes: usize,
    /// The carriers that they ride on.
    pub carriers: Vec<Carrier>,
    /// True if only a part of it is in the prompt.
    pub is_cut: bool,
    /// True if the agent's client sends it to a server that makes the prompt: that prompt is not known.
    pub is_sent: bool,
}

impl FileView {
    /// Returns the outcome, as a word for a table.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self.outcome {
            Outcome::Used if self.is_cut => "cut",
            Outcome::Used if self.is_sent => "sent",
            Outcome::Used => "yes",
            Outcome::Hidden => "at times",
            Outcome::OverBudget => "no room",
            other => other.word(),
        }
    }
}

impl AgentView {
    /// The bytes of a carrier, and about how many tokens they are.
    pub fn carriers(&self) -> impl Iterator<Item = (Carrier, usize, usize)> {
        self.build
            .whole()
            .carriers()
            .map(|(carrier, text)| (carrier, text.len(), Tokenizer::Estimate.count(text)))
    }

    /// Returns notes for an author: files that were cut, left out, or not imported.
    pub fn warnings(&self) -> impl Iterator<Item = &Note> {
        self.build.notes().iter().filter(|note| note.severity > Severity::Info)
    }

    /// The text that a file gives, as the agent gets it.
    #[must_use]
    pub fn text_of(&self, path: &str) -> String {
        let mut text = String::new();
        for (carrier, whole) in self.build.whole().carriers() {
            let own = self.build.whole().spans(carrier).iter().filter(|span| is_content(&span.source, path));
            own.for_each(|span| text.push_str(whole.get(span.bytes.clone()).unwrap_or_default()));
        }
        text
    }
}

/// Text of a file has a place in it; its path in a heading has none.
fn is_content(source: &Source, path: &str) -> bool {
    file_of(source) == Some(path) && (source.place().is_some() || matches!(source, Source::Variable { .. }))
}

/// Returns the agents that profiles imitate, by the name of the profile.
pub fn agents(request: &Request, caller: Caller) -> Result<BTreeMap<String, AgentRecipe>, Error> {
    let all = known(&Profiles::from_request(request, caller)?);
    Ok(all.into_iter().filter_map(|(name, profile)| Some((name, profile.agent.clone()?))).collect())
}

/// Returns the profiles that imitate an agent, by name.
fn known(profiles: &Profiles) -> BTreeMap<String, Arc<Profile>> {
    let names = profiles.list().into_iter().map(|listed| listed.name);
    let profile = |name: String| {
        let profile = profiles.find(&name).ok()?.profile;
        profile.agent.is_some().then_some((name, profile))
    };
    names.filter_map(profile).collect()
}

/// The profiles of some agents; of all of them when none is named.
fn named(profiles: &Profiles, names: &[String]) -> Result<BTreeMap<String, Arc<Profile>>, Error> {
    let mut known = known(profiles);
    if let Some(name) = names.iter().find(|name| !known.contains_key(*name)) {
        let all: Vec<&str> = known.keys().map(String::as_str).collect();
        return Err(Error::usage(
            format!("no profile `{name}` stands in for an agent"),
            format!("the agents are: {}", all.join(", ")),
        ));
    }
    known.retain(|name, _| names.is_empty() || names.contains(name));
    Ok(known)
}

/// The rules of some agents; of all of them when none is named.
pub(crate) fn chosen(profiles: &Profiles, names: &[String]) -> Result<Vec<Agent>, Error> {
    let agent = |profile: Arc<Profile>| Some(Agent { title: profile.agent.clone()?.title, profile });
    Ok(named(profiles, names)?.into_values().filter_map(agent).collect())
}

/// Builds the views of the named agents; of all agents when none is named.
pub fn look(request: &Request, names: &[String], caller: Caller) -> Result<Vec<AgentView>, Error> {
    let wanted = named(&Profiles::from_request(request, caller)?, names)?;
    let seen = wanted.into_iter().filter_map(|(name, profile)| {
        let agent = profile.agent.clone()?;
        Some(one(request, name, agent, Agent { title: profile.agent.clone()?.title, profile }, caller))
    });
    seen.collect()
}

/// Builds an agent's prompt without the template that the configuration sets: that is the base of proem's own prompts.
fn own_build(request: &Request, caller: Caller) -> Result<Build, Error> {
    within_limits(|| {
        let mut world = World::read(request, caller)?;
        world.config.template.value = None;
        build_in(&world, BuildInput { request, hooks: &[] }, &mut BuildState::default(), Parts::All)
    })
}

fn one(
    request: &Request,
    name: String,
    agent: AgentRecipe,
    rules: Agent,
    caller: Caller,
) -> Result<AgentView, Error> {
    let build = own_build(&Request { profile: Some(name.clone()), ..request.clone() }, caller)?;
    let mut files: BTreeMap<String, FileView> = BTreeMap::new();
    let mut out_of_reach = 0;
    for one in build.frozen().considered().iter().filter(|one| one.outcome != Outcome::Missing) {
        // For a remote caller, paths outside the workspace are refused whether they exist or not: that is not a
        // property of the agent.
        if caller.is_remote() && one.outcome == Outcome::Refused {
            out_of_reach += 1;
            continue;
        }
        let seen = FileView {
            outcome: one.outcome,
            why: one.why.clone(),
            bytes: 0,
            carriers: Vec::new(),
            is_cut: false,
            is_sent: agent.seen == Seen::Client,
        };
        let known = files.entry(one.path.clone()).or_insert_with(|| seen.clone());
        if one.outcome == Outcome::Used {
            *known = seen;
        }
    }
    for (carrier, _) in build.whole().carriers() {
        for span in build.whole().spans(carrier) {
            let own = file_of(&span.source).filter(|path| is_content(&span.source, path));
            if let Some(seen) = own.and_then(|path| files.get_mut(path)) {
                seen.bytes += span.bytes.len();
                if !seen.carriers.contains(&carrier) {
                    seen.carriers.push(carrier);
                }
            }
        }
    }
    let cut = build.notes().iter().filter(|note| note.code == Code::OverLimit);
    for path in cut.filter_map(|note| note.source.as_ref().and_then(file_of)) {
        if let Some(seen) = files.get_mut(path).filter(|seen| seen.outcome == Outcome::Used) {
            seen.is_cut = true;
        }
    }
    Ok(AgentView { profile: name, agent, rules, build, files, out_of_reach })
}

/// Returns all files that any of the agents examined.
#[must_use]
pub fn all_files(seen: &[AgentView]) -> BTreeSet<&str> {
    seen.iter().flat_map(|one| one.files.keys()).map(String::as_str).collect()
}

/// Returns the outcome of one file for an agent, by any path that leads to it.
#[must_use]
pub fn file_in<'s>(seen: &'s AgentView, path: &Path) -> Option<&'s FileView> {
    let real = crate::observe::file::canonical(path).ok();
    let is_it = |known: &str| {
        Path::new(known) == path
            || (real.is_some() && crate::observe::file::canonical(Path::new(known)).ok() == real)
    };
    seen.files.iter().find(|(known, _)| is_it(known)).map(|(_, seen)| seen)
}
