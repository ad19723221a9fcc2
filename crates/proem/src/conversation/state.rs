//! The state of a conversation besides its epochs: what callers have said so far, its tools, and its fixed facts.

use std::collections::BTreeMap;

use proem_core::profile::Reason;
use serde::{Deserialize, Serialize};

use super::tool_set::{ToolSet, has_same_tools};
use crate::hooks::ResourcePaths;
use crate::request::update::{copy_field, differences, without_call};
use crate::request::{Request, RequestUpdate};

/// The version of the stored form. A later one is refused.
const FORM: u32 = 1;

/// The fields that a profile's policy governs. While a change of one is pending, turns use the value of the epoch.
const GOVERNED: [(&str, Reason); 3] =
    [("profile", Reason::Profile), ("cwd", Reason::Cwd), ("tools", Reason::Tools)];

/// The fields that turns use at once, even where the frozen text keeps their old value.
const IMMEDIATE: [&str; 5] = ["model", "variables", "host", "project", "workspace_id"];

/// The state of a conversation besides its epochs.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct State {
    /// The request, merged from all calls; without tools and without the fields of one call.
    pub request: Request,
    /// The tools; `None` if no call gave any.
    pub tools: Option<ToolSet>,
    /// Resources that were added to the conversation.
    pub resources: ResourcePaths,
    /// The facts that were fixed when the conversation began, by variable; `None` for an absent one.
    pub observed: BTreeMap<String, Option<String>>,
    /// The number of the last epoch whose expected cache miss was reported.
    pub miss_reported: u64,
}

/// A change that waits for the next epoch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PendingField {
    /// The field of the request, or `resources`.
    pub field: &'static str,
    /// The reason that a profile's policy must name to apply it at once; `None` if only the next epoch applies it.
    pub reason: Option<Reason>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredState {
    form: u32,
    request: serde_json::Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tools: Option<ToolSet>,
    #[serde(default, skip_serializing_if = "Resources::is_empty")]
    resources: Resources,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    observed: BTreeMap<String, Option<String>>,
    #[serde(default, skip_serializing_if = "is_zero")]
    miss_reported: u64,
}

#[derive(Default, Serialize, Deserialize)]
struct Resources {
    skills: Vec<String>,
    packs: Vec<String>,
    assets: Vec<String>,
}

impl Resources {
    fn is_empty(&self) -> bool {
        self.skills.is_empty() && self.packs.is_empty() && self.assets.is_empty()
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl State {
    /// Makes the state of a conversation that begins with an update.
    #[must_use]
    pub fn begin(update: &RequestUpdate) -> Self {
        Self::default().merge(update)
    }

    /// Makes the state of a conversation that an earlier version of proem stored without one: its epoch's request.
    #[must_use]
    pub fn from_epoch(request: &Request) -> Self {
        Self::begin(&RequestUpdate::from(without_call(request)))
    }

    /// Returns the state after a call.
    #[must_use]
    pub fn merge(&self, update: &RequestUpdate) -> Self {
        let mut request = update.apply_to(&self.request);
        let tools = match (request.tools.take(), &self.tools) {
            (Some(tools), Some(known)) => Some(known.with_registry(&tools)),
            (Some(tools), None) => Some(ToolSet::new(&tools)),
            (None, _) if update.removes("tools") => None,
            (None, known) => known.clone(),
        };
        Self { request, tools, ..self.clone() }
    }

    /// Returns the request that the next epoch is built from.
    #[must_use]
    pub fn build_request(&self, conversation: &str) -> Request {
        Request {
            tools: self.tools.as_ref().map(ToolSet::active),
            conversation: Some(conversation.to_owned()),
            ..self.request.clone()
        }
    }

    /// Returns the request of one turn in an epoch: pending changes of governed fields do not count, and the fixed facts
    /// do.
    #[must_use]
    pub fn turn_request(&self, frozen: &Request, conversation: &str) -> Request {
        let mut request = self.build_request(conversation);
        for field in differences(&request, frozen) {
            if !IMMEDIATE.contains(&field) {
                copy_field(field, frozen, &mut request);
            }
        }
        for (key, value) in &self.observed {
            request.variables.entry(key.clone()).or_insert_with(|| value.clone());
        }
        request
    }

    /// Returns the changes that the frozen prompt does not have: `frozen` is the request that it was built from, and
    /// `resources` are those that it was built with.
    #[must_use]
    pub fn pending(&self, frozen: &Request, resources: &ResourcePaths) -> Vec<PendingField> {
        let next = self.build_request("");
        let is_changed = |field: &&str| *field != "tools" || !is_same_tools(&next, frozen);
        let reason_of =
            |field: &str| GOVERNED.iter().find(|(name, _)| *name == field).map(|(_, reason)| *reason);
        let fields = differences(&next, frozen).into_iter().filter(is_changed);
        let mut pending: Vec<PendingField> =
            fields.map(|field| PendingField { field, reason: reason_of(field) }).collect();
        if self.resources != *resources {
            pending.push(PendingField { field: "resources", reason: Some(Reason::Resources) });
        }
        pending
    }

    /// Writes the state as JSON.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        let ResourcePaths { skill_paths, prompt_paths, asset_paths } = self.resources.clone();
        serde_json::to_string(&StoredState {
            form: FORM,
            request: serde_json::to_value(&self.request)?,
            tools: self.tools.clone(),
            resources: Resources { skills: skill_paths, packs: prompt_paths, assets: asset_paths },
            observed: self.observed.clone(),
            miss_reported: self.miss_reported,
        })
    }

    /// Reads a stored state. The error says why it cannot be read.
    pub fn from_json(text: &str) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Form {
            form: u32,
        }
        if let Ok(Form { form }) = serde_json::from_str(text)
            && form > FORM
        {
            return Err(format!("it was written by a later proem, in form {form}"));
        }
        let stored: StoredState = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let request = Request::from_json(&stored.request.to_string()).map_err(|error| error.to_string())?;
        let Resources { skills, packs, assets } = stored.resources;
        Ok(Self {
            request,
            tools: stored.tools,
            resources: ResourcePaths { skill_paths: skills, prompt_paths: packs, asset_paths: assets },
            observed: stored.observed,
            miss_reported: stored.miss_reported,
        })
    }
}

fn is_same_tools(one: &Request, other: &Request) -> bool {
    one.tools.is_some() == other.tools.is_some()
        && has_same_tools(
            one.tools.as_deref().unwrap_or_default(),
            other.tools.as_deref().unwrap_or_default(),
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn update(text: &str) -> RequestUpdate {
        RequestUpdate::from_json(text).expect("it is an update")
    }

    fn fields(pending: &[PendingField]) -> Vec<&'static str> {
        pending.iter().map(|pending| pending.field).collect()
    }

    fn pending(state: &State, frozen: &Request) -> Vec<&'static str> {
        fields(&state.pending(frozen, &ResourcePaths::default()))
    }

    #[test]
    fn a_change_is_pending_until_it_is_applied_or_withdrawn() {
        let first = State::begin(&update(r#"{"model": "m", "tools": [{"name": "a"}], "append": "x"}"#));
        let frozen = first.build_request("c");
        assert_eq!(pending(&first, &frozen), Vec::<&str>::new());
        let next = first.merge(&update(r#"{"tools": [{"name": "a"}, {"name": "b"}], "append": "y"}"#));
        assert_eq!(pending(&next, &frozen), ["tools", "append"]);
        let turn = next.turn_request(&frozen, "c");
        assert_eq!((turn.tools, turn.append), (frozen.tools.clone(), frozen.append.clone()));
        let back = next.merge(&update(r#"{"tools": [{"name": "a"}], "append": "x"}"#));
        assert_eq!(pending(&back, &frozen), Vec::<&str>::new());
        assert_eq!(pending(&next, &next.build_request("c")), Vec::<&str>::new());
    }

    #[test]
    fn a_turn_uses_what_the_first_one_said_and_the_fixed_facts() {
        let mut state = State::begin(&update(r#"{"project": false, "variables": {"git:status": "PINNED"}}"#));
        let frozen = state.build_request("c");
        state.observed.insert("system:date".into(), Some("2026-01-01".into()));
        state.observed.insert("git:status".into(), Some("other".into()));
        let turn = state.merge(&update("{}")).turn_request(&frozen, "c");
        assert_eq!(turn.project, Some(false));
        assert_eq!(turn.variables["git:status"].as_deref(), Some("PINNED"));
        assert_eq!(turn.variables["system:date"].as_deref(), Some("2026-01-01"));
    }

    #[test]
    fn a_state_reads_back_as_it_was_written() {
        let mut state = State::begin(&update(
            r#"{"model": "m", "tools": [{"name": "a", "input_schema": {"x": 1.5}}], "host": {"os": null}}"#,
        ));
        state.observed.insert("system:shell".into(), None);
        state.resources.skill_paths.push("skills".into());
        state.miss_reported = 3;
        for one in [State::default(), state] {
            let text = one.to_json().expect("it can be written");
            assert_eq!(State::from_json(&text), Ok(one), "{text}");
        }
    }

    #[test]
    fn a_damaged_or_later_state_is_refused() {
        for (text, why) in [
            (r#"{"form": 2, "anything": 1}"#, "it was written by a later proem, in form 2"),
            ("{", "EOF while parsing an object at line 1 column 1"),
            (r#"{"form": 1, "request": {"modell": 1}}"#, ""),
        ] {
            let error = State::from_json(text).expect_err("it cannot be read");
            assert!(why.is_empty() || error == why, "{error}");
        }
    }
}
