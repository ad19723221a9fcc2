//! The rules of a profile for the life of its prompts.

use proem_core::profile::{Compaction, Part, Profile, Reason};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::request::Tool;
use crate::sections::unused_fields;

/// The rules of a profile for the life of its prompts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptPolicy {
    /// The profile.
    pub profile: String,
    /// The reasons for which a prompt is rebuilt.
    pub rebuild: Vec<Reason>,
    /// The kind of call that summarises a conversation for a compaction.
    pub compaction: Compaction,
    /// True if a part of the prompt is rendered for each turn.
    pub has_turn: bool,
    /// The working directory, as it was opened.
    pub cwd: String,
    /// The tools of a request that gives none: names and descriptions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub default_tools: Vec<(String, Option<String>)>,
    /// The fields of requests that no prompt of the profile depends on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unused_fields: Vec<String>,
}

impl PromptPolicy {
    /// Takes the rules of a profile for a prompt in a working directory.
    #[must_use]
    pub fn new(profile: &Profile, cwd: &str) -> Self {
        Self {
            profile: profile.name.clone(),
            rebuild: profile.rebuild.clone(),
            compaction: profile.compaction,
            has_turn: profile.sections.iter().any(|section| section.part != Part::Prefix),
            cwd: cwd.to_owned(),
            default_tools: {
                let tools = &profile.tools;
                let tool = |name: &String| (name.clone(), tools.descriptions.get(name).cloned());
                tools.default.iter().map(tool).collect()
            },
            // Packs also hold the wording of messages and of compactions.
            unused_fields: unused_fields::unused(profile)
                .into_iter()
                .filter(|field| *field != "packs")
                .map(str::to_owned)
                .collect(),
        }
    }

    /// Returns the tools of a request that gives none.
    #[must_use]
    pub fn tools(&self) -> Vec<Tool> {
        let tool = |(name, description): &(String, Option<String>)| Tool {
            name: name.clone(),
            description: description.clone(),
            ..Tool::default()
        };
        self.default_tools.iter().map(tool).collect()
    }

    /// Tells whether the prompt is rebuilt for a reason.
    #[must_use]
    pub fn allows(&self, reason: Reason) -> bool {
        self.rebuild.contains(&reason)
    }
}

/// A change that waits for the next epoch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PendingField {
    /// The field of the request, `resources`, or `files` for a reload.
    pub field: &'static str,
    /// The reason that a profile's policy must name to apply it at once; missing if only the next epoch applies it.
    pub reason: Option<&'static str>,
}
