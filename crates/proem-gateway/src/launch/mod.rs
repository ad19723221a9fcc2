//! Agents: how each is made to call the gateway. The facts are dated data, `builtin/agents.toml`.

mod data;
mod files;
mod plan;

use std::sync::OnceLock;

use data::{AgentData, AgentsData};
pub use plan::{LaunchError, LaunchPlan, Surroundings};

/// An agent that `proem run` knows.
#[derive(Debug, Clone, Copy)]
pub struct Agent(&'static AgentData);

impl Agent {
    /// Returns all known agents.
    pub fn all() -> impl Iterator<Item = Self> {
        built_in().agents.iter().map(Self)
    }

    /// Returns the agent of a command: of its name or the file of its path; a program that is not known is `generic`.
    #[must_use]
    pub fn of_command(command: &str) -> Option<Self> {
        let file =
            std::path::Path::new(command).file_name().and_then(|name| name.to_str()).unwrap_or(command);
        let is_it = |agent: &Self| agent.0.name == file || agent.0.also.iter().any(|also| also == file);
        Self::all().find(is_it).or_else(|| Self::all().find(|agent| agent.0.name == "generic"))
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        &self.0.name
    }

    /// Returns the name for people.
    #[must_use]
    pub fn title(&self) -> &'static str {
        &self.0.title
    }

    /// Returns the reason why it cannot be redirected.
    #[must_use]
    pub fn impossible(&self) -> Option<&'static str> {
        self.0.impossible.as_deref()
    }

    /// Returns the reasons why it may have made no call.
    #[must_use]
    pub fn silent(&self) -> &'static [String] {
        &self.0.silent
    }

    /// Tells if the plan depends on the version of the agent.
    #[must_use]
    pub const fn needs_version(&self) -> bool {
        self.0.set_before.is_some()
    }

    /// Returns the means of redirection, for people.
    #[must_use]
    pub fn means(&self) -> String {
        self.0.means()
    }
}

/// Returns the day of the facts about agents.
#[must_use]
pub fn agents_as_of() -> &'static str {
    &built_in().as_of
}

fn built_in() -> &'static AgentsData {
    static READ: OnceLock<AgentsData> = OnceLock::new();
    READ.get_or_init(|| toml::from_str(data::BUILT_IN).unwrap_or_default())
}
