//! The facts of `builtin/agents.toml`.

use std::collections::BTreeMap;

use serde::Deserialize;

pub(super) const BUILT_IN: &str = include_str!("../../builtin/agents.toml");

/// The facts, as they are written.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AgentsData {
    pub(super) as_of: String,
    #[serde(rename = "agent")]
    pub(super) agents: Vec<AgentData>,
}

/// An agent.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct AgentData {
    pub(super) name: String,
    /// Other names of its program.
    pub(super) also: Vec<String>,
    pub(super) title: String,
    /// The program; the name that was given, if there is none.
    pub(super) program: Option<String>,
    pub(super) impossible: Option<String>,
    pub(super) silent: Vec<String>,
    /// Variables that are set unless the user has set them.
    pub(super) set: BTreeMap<String, String>,
    pub(super) set_before: Option<SetBefore>,
    #[serde(rename = "variable")]
    pub(super) variables: Vec<Variable>,
    #[serde(rename = "option")]
    pub(super) options: Vec<OptionRow>,
    pub(super) toml: Option<TomlFile>,
    pub(super) json: Option<JsonConfig>,
    pub(super) extension: Option<Extension>,
}

/// A variable that is set for versions before another one.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SetBefore {
    pub(super) version: String,
    pub(super) name: String,
    pub(super) value: String,
}

/// A variable with a base URL.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Variable {
    pub(super) name: String,
    pub(super) route: String,
    #[serde(default)]
    pub(super) suffix: String,
    pub(super) default: Option<String>,
    #[serde(default)]
    pub(super) only_set: bool,
}

/// An option `FLAG KEY="URL"`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OptionRow {
    pub(super) flag: String,
    pub(super) key: String,
    pub(super) route: String,
    #[serde(default)]
    pub(super) suffix: String,
}

/// A configuration in TOML.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TomlFile {
    pub(super) home: String,
    pub(super) folder: String,
    pub(super) file: String,
    /// The key of the chosen provider.
    pub(super) provider: String,
    /// The key of the user's providers.
    pub(super) providers: String,
    pub(super) url: String,
}

/// A configuration in JSON that a variable can add to.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct JsonConfig {
    pub(super) variable: String,
    /// Files in the working directory and above it.
    pub(super) files: Vec<String>,
    /// Files below the home directory.
    pub(super) home: Vec<String>,
    /// The variable that names another file.
    pub(super) file_variable: String,
    /// A file whose keys are the providers with a login.
    pub(super) logins: String,
    pub(super) providers: String,
    /// The keys on the way to a provider's URL.
    pub(super) url: Vec<String>,
    pub(super) known: Vec<Known>,
}

/// A temporary extension that sets base URLs.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Extension {
    pub(super) flag: String,
    pub(super) home: String,
    pub(super) folder: String,
    pub(super) file: String,
    pub(super) providers: String,
    pub(super) url: String,
    pub(super) known: Vec<Known>,
}

/// A provider that an agent knows by itself.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Known {
    pub(super) provider: String,
    pub(super) route: String,
    #[serde(default)]
    pub(super) suffix: String,
    /// Variables that hold a key for it.
    #[serde(default)]
    pub(super) keys: Vec<String>,
}

impl AgentData {
    /// Returns the means of redirection, for people.
    pub(super) fn means(&self) -> String {
        if self.impossible.is_some() {
            return "not possible".to_owned();
        }
        let mut means: Vec<String> = self.variables.iter().map(|variable| variable.name.clone()).collect();
        means.extend(self.options.iter().map(|option| format!("{} {}", option.flag, option.key)));
        means.extend(self.json.iter().map(|json| json.variable.clone()));
        means.extend(
            self.extension.iter().map(|extension| format!("{} with a temporary extension", extension.flag)),
        );
        means.join(", ")
    }
}
