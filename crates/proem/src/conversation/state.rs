//! The state of a conversation besides its epochs: what callers have said so far, its tools, and its fixed facts.

mod hooked;

use std::collections::{BTreeMap, BTreeSet};

use proem_core::digest::Digest;
use proem_core::profile::Reason;
use serde::{Deserialize, Serialize};

pub use hooked::HookedPrompt;

use super::branches::Branches;
use super::notices::NoticeState;
use super::tool_set::{ToolSet, has_same_tools};
use crate::build::PendingField;
use crate::hooks::ResourcePaths;
use crate::request::update::{copy_field, differences, without_call};
use crate::request::{HostPins, Pin, Request, RequestUpdate};

/// The version of the stored form. A later one is refused.
const FORM: u32 = 2;

/// The version that programs before notices and branches read. A state without them is written in it.
const FORM_WITHOUT_NOTICES: u32 = 1;

/// The fields that a profile's policy governs. While a change of one is pending, turns use the value of the epoch.
const GOVERNED: [(&str, Reason); 4] = [
    ("profile", Reason::Profile),
    ("cwd", Reason::Cwd),
    ("workspace", Reason::Cwd),
    ("tools", Reason::Tools),
];

/// The fields that turns use at once, even where the frozen text keeps their old value.
const IMMEDIATE: [&str; 5] = ["model", "variables", "host", "project", "workspace_id"];

/// The fields that reach a prompt by one variable alone.
const BY_VARIABLE: [(&str, &str); 5] = [
    ("model", "prompt:model"),
    ("workspace_id", "prompt:workspace_id"),
    ("language", "prompt:language"),
    ("backend", "prompt:backend"),
    ("mcp_servers", "prompt:mcp_servers"),
];

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
    /// The digest of the prefix of the last turn.
    pub delivered: Option<String>,
    /// The session that the last turn needed.
    pub session: Option<RunningSession>,
    /// True if a reload was requested that the profile does not allow: the next epoch reads all files again.
    pub wants_reload: bool,
    /// The digest of a request that was built and gave the prompt of the current epoch.
    pub settled: Option<String>,
    /// The system prompt that hooks made for the last prompt of the user.
    pub hooked: Option<HookedPrompt>,
    /// The notices of the epoch, and what was announced.
    pub notices: NoticeState,
    /// The conversations from which this one began, and those that began from it.
    pub branches: Branches,
}

/// The properties of a running session that a caller chooses: another backend or other servers need another session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunningSession {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    backend: Option<String>,
    /// The names in order: the order of a request does not count.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    mcp_servers: Vec<String>,
}

impl RunningSession {
    /// Returns the session that a request needs.
    #[must_use]
    pub fn new(request: &Request) -> Self {
        let mut mcp_servers = request.mcp_servers.clone().unwrap_or_default();
        mcp_servers.sort();
        Self { backend: request.backend.clone(), mcp_servers }
    }
}

/// The inputs of a frozen prompt, as far as a change of them may be pending.
#[derive(Clone, Copy)]
pub struct FrozenInputs<'f> {
    /// The request that it was built from.
    pub request: &'f Request,
    /// The resources that it was built with.
    pub resources: &'f ResourcePaths,
    /// The keys of the variables that its text depends on.
    pub facts: &'f BTreeSet<String>,
    /// The fields that its profile has no use for.
    pub unused: &'f [String],
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredState {
    form: u32,
    request: serde_json::Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tools: Option<ToolSet>,
    #[serde(default, skip_serializing_if = "ResourcePaths::is_empty")]
    resources: ResourcePaths,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    observed: BTreeMap<String, Option<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    delivered: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    session: Option<RunningSession>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    wants_reload: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    settled: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hooked: Option<HookedPrompt>,
    #[serde(default, skip_serializing_if = "NoticeState::is_empty")]
    notices: NoticeState,
    #[serde(default, skip_serializing_if = "Branches::is_empty")]
    branches: Branches,
}

impl State {
    /// Makes the state of a conversation that begins with an update.
    #[must_use]
    pub fn begin(update: &RequestUpdate) -> Self {
        Self::default().merge(update)
    }

    /// Makes the state of a conversation that an earlier version of proem stored without one: its epoch's request.
    #[must_use]
    pub fn from_epoch(request: &Request, digest: &str) -> Self {
        let state = Self::begin(&RequestUpdate::from(without_call(request)));
        let session = Some(RunningSession::new(&state.request));
        Self { delivered: Some(digest.to_owned()), session, ..state }
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

    /// Returns the fixed facts that the request's `host` contradicts: they stay for the life of the conversation.
    #[must_use]
    pub fn contradicted(&self) -> Vec<&str> {
        let is_other = |key: &str, value: &Option<String>| match pin(&self.request.host, key) {
            Some(Pin::Given(pinned)) => value.as_ref() != Some(pinned),
            Some(Pin::None) => value.is_some(),
            Some(Pin::Observe) | None => false,
        };
        let all = self.observed.iter();
        all.filter(|(key, value)| is_other(key, value)).map(|(key, _)| key.as_str()).collect()
    }

    /// Tells whether a turn with this prefix finds everything as the last turn left it.
    #[must_use]
    pub fn is_delivered(&self, digest: &str) -> bool {
        self.delivered.as_deref() == Some(digest)
            && self.session.as_ref() == Some(&RunningSession::new(&self.request))
    }

    /// Returns the state after a turn with this prefix.
    #[must_use]
    pub fn after_turn(&self, digest: &str) -> Self {
        let session = Some(RunningSession::new(&self.request));
        Self { delivered: Some(digest.to_owned()), session, ..self.clone() }
    }

    /// Returns everything that callers have said so far, with the active tools.
    #[must_use]
    pub fn said(&self) -> Request {
        Request { tools: self.tools.as_ref().map(ToolSet::active), ..self.request.clone() }
    }

    /// Returns the request that the next epoch is built from: all that was said, and the fixed facts. `conversation` is
    /// its id, unless prompts do not learn it.
    #[must_use]
    pub fn build_request(&self, conversation: Option<&str>) -> Request {
        let mut request = Request { conversation: conversation.map(str::to_owned), ..self.said() };
        for (key, value) in &self.observed {
            request.variables.entry(key.clone()).or_insert_with(|| value.clone());
        }
        request
    }

    /// Returns the request of one turn in an epoch: pending changes do not count, except for fields that turns use at
    /// once, and the fixed facts do. Changes that the frozen text does not depend on count.
    #[must_use]
    pub fn turn_request(&self, frozen: FrozenInputs<'_>, conversation: Option<&str>) -> Request {
        let mut request = self.build_request(conversation);
        let pending = self.pending(frozen);
        let waits = |field: &str| pending.iter().any(|pending| pending.field == field);
        for field in differences(&request, frozen.request) {
            // Without a profile or a directory, those of the epoch stay; and its tools keep their order.
            let is_of_epoch = GOVERNED.iter().any(|(governed, _)| *governed == field)
                // Other files in the same place: as on disk, they wait for a reload, and git is that of now.
                && (field != "workspace" || has_other_place(&request, frozen.request) || request.workspace.is_none());
            if is_of_epoch || (waits(field) && !IMMEDIATE.contains(&field)) {
                copy_field(field, frozen.request, &mut request);
            }
        }
        request
    }

    /// Returns the changes that the frozen prompt does not have.
    #[must_use]
    pub fn pending(&self, frozen: FrozenInputs<'_>) -> Vec<PendingField> {
        let mut pending: Vec<PendingField> = Vec::new();
        if self.settled.is_none() || self.settled.as_deref() != Some(&self.digest()) {
            let next = self.said();
            let fields = differences(&next, frozen.request).into_iter();
            let fields = fields.filter(|field| is_changed(field, &next, frozen));
            pending.extend(fields.map(|field| PendingField { field, reason: reason_of(field) }));
            if self.resources != *frozen.resources {
                pending.push(PendingField { field: "resources", reason: Some(Reason::Resources.word()) });
            }
        }
        if self.wants_reload {
            pending.push(PendingField { field: "files", reason: Some(Reason::Reload.word()) });
        }
        pending
    }

    /// Returns the digest of everything that the next epoch would be built from.
    #[must_use]
    pub fn digest(&self) -> String {
        let inputs = serde_json::to_string(&(&self.request, &self.tools, &self.resources));
        // Requests, tools and paths can always be serialised.
        Digest::new(inputs.unwrap_or_default().as_bytes()).hex()
    }

    /// Writes the state as JSON.
    pub(crate) fn to_json(&self) -> Result<String, serde_json::Error> {
        let is_plain = self.notices.is_empty() && self.branches.is_empty();
        serde_json::to_string(&StoredState {
            form: if is_plain { FORM_WITHOUT_NOTICES } else { FORM },
            request: serde_json::to_value(&self.request)?,
            tools: self.tools.clone(),
            resources: self.resources.clone(),
            observed: self.observed.clone(),
            delivered: self.delivered.clone(),
            session: self.session.clone(),
            wants_reload: self.wants_reload,
            settled: self.settled.clone(),
            hooked: self.hooked.clone(),
            notices: self.notices.clone(),
            branches: self.branches.clone(),
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
        let StoredState {
            tools,
            resources,
            observed,
            delivered,
            session,
            wants_reload,
            settled,
            hooked,
            notices,
            branches,
            ..
        } = stored;
        Ok(Self {
            request,
            tools,
            resources,
            observed,
            delivered,
            session,
            wants_reload,
            settled,
            hooked,
            notices,
            branches,
        })
    }
}

/// Returns the pin of a fact of the host. A pinned moment is that of one call, so no fixed date contradicts it.
const fn pin<'h>(host: &'h HostPins, key: &str) -> Option<&'h Pin<String>> {
    Some(match key.as_bytes() {
        b"system:os" => &host.os,
        b"system:os_name" => &host.os_name,
        b"system:os_version" => &host.os_version,
        b"system:hostname" => &host.hostname,
        b"system:shell" => &host.shell,
        _ => return None,
    })
}

/// Returns the reason that a profile's policy must name to apply a change of a field at once.
pub(super) fn reason_of(field: &str) -> Option<&'static str> {
    GOVERNED.iter().find(|(name, _)| *name == field).map(|(_, reason)| reason.word())
}

/// Tells whether a field that differs could change the frozen text.
fn is_changed(field: &str, next: &Request, frozen: FrozenInputs<'_>) -> bool {
    let FrozenInputs { request, facts, unused, .. } = frozen;
    // Another profile may use it.
    if unused.iter().any(|unused| unused == field) && next.profile == request.profile {
        return false;
    }
    if let Some((_, key)) = BY_VARIABLE.iter().find(|(name, _)| *name == field) {
        return facts.contains(*key);
    }
    match field {
        "tools" => !is_same_tools(next, request),
        "workspace" => has_other_place(next, request),
        "variables" => {
            let keys = next.variables.keys().chain(request.variables.keys());
            let is_other = |key: &&String| next.variables.get(*key) != request.variables.get(*key);
            keys.filter(is_other).any(|key| facts.contains(key))
        }
        "host" => is_host_changed(&next.host, &request.host, facts),
        _ => true,
    }
}

/// Tells whether the workspace that a request brings is another directory than that of a frozen prompt. Other files in the
/// same directory are an edit.
fn has_other_place(next: &Request, frozen: &Request) -> bool {
    match (&next.workspace, &frozen.workspace) {
        (Some(next), Some(frozen)) => next.cwd() != frozen.cwd(),
        (Some(_), None) => true,
        // The working directory says where the prompt is built.
        (None, _) => false,
    }
}

/// Tells whether other facts of the host could change a text that depends on these variables. Another home or
/// configuration may have other files. Another moment is not a change: it is that of each build, given or not.
fn is_host_changed(one: &HostPins, other: &HostPins, facts: &BTreeSet<String>) -> bool {
    let is_other = |key: &str| match key {
        "system:os" => one.os != other.os,
        "system:os_name" => one.os_name != other.os_name,
        "system:os_version" => one.os_version != other.os_version,
        "system:hostname" => one.hostname != other.hostname,
        "system:shell" => one.shell != other.shell,
        "system:timezone" | "system:local_time" | "system:local_date" => one.timezone != other.timezone,
        _ => key.starts_with("env:") && one.env != other.env,
    };
    one.home != other.home || one.config_dir != other.config_dir || facts.iter().any(|key| is_other(key))
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

    fn pending(state: &State, frozen: &Request, facts: &[&str]) -> Vec<&'static str> {
        let facts = facts.iter().map(|key| (*key).to_owned()).collect();
        let resources = &ResourcePaths::default();
        let inputs = FrozenInputs { request: frozen, resources, facts: &facts, unused: &[] };
        state.pending(inputs).iter().map(|pending| pending.field).collect()
    }

    fn turn_request(state: &State, frozen: &Request, facts: &[&str]) -> Request {
        let facts = facts.iter().map(|key| (*key).to_owned()).collect();
        let resources = &ResourcePaths::default();
        let inputs = FrozenInputs { request: frozen, resources, facts: &facts, unused: &[] };
        state.turn_request(inputs, Some("c"))
    }

    const NONE: [&str; 0] = [];

    #[test]
    fn a_change_is_pending_until_it_is_applied_or_withdrawn() {
        let first = State::begin(&update(r#"{"model": "m", "tools": [{"name": "a"}], "append": "x"}"#));
        let frozen = first.said();
        assert_eq!(pending(&first, &frozen, &[]), NONE);
        let next = first.merge(&update(r#"{"tools": [{"name": "a"}, {"name": "b"}], "append": "y"}"#));
        assert_eq!(pending(&next, &frozen, &[]), ["tools", "append"]);
        let turn = turn_request(&next, &frozen, &[]);
        assert_eq!((turn.tools, turn.append), (frozen.tools.clone(), frozen.append.clone()));
        let back = next.merge(&update(r#"{"tools": [{"name": "a"}], "append": "x"}"#));
        assert_eq!(pending(&back, &frozen, &[]), NONE);
        assert_eq!(pending(&next, &next.said(), &[]), NONE);
        let settled = State { settled: Some(next.digest()), ..next.clone() };
        assert_eq!(pending(&settled, &frozen, &[]), NONE, "it was built, and gave the same prompt");
        let reload = State { wants_reload: true, ..first };
        assert_eq!(pending(&reload, &frozen, &[]), ["files"]);
    }

    #[test]
    fn a_value_is_pending_only_if_the_frozen_text_has_it() {
        let first = State::begin(&update(r#"{"model": "m", "variables": {"a:b": "1", "c:d": "2"}}"#));
        let frozen = first.said();
        let change = r#"{"model": "n", "variables": {"a:b": "1", "c:d": "3"}, "host": {"shell": "/bin/sh"}}"#;
        let next = first.merge(&update(change));
        assert_eq!(pending(&next, &frozen, &["a:b", "system:os"]), NONE);
        assert_eq!(pending(&next, &frozen, &["prompt:model", "c:d"]), ["model", "variables"]);
        assert_eq!(pending(&next, &frozen, &["system:shell"]), ["host"]);
        let home = first.merge(&update(r#"{"host": {"home": "/other"}}"#));
        assert_eq!(pending(&home, &frozen, &[]), ["host"], "files may lie there");
        let now = first.merge(&update(r#"{"host": {"now": "2026-01-01T00:00:00Z", "os": "linux"}}"#));
        assert_eq!(pending(&now, &frozen, &["system:os_name", "system:local_date", "system:date"]), NONE);
        assert_eq!(pending(&now, &frozen, &["system:os"]), ["host"]);
        let zone = first.merge(&update(r#"{"host": {"timezone": "Europe/Paris"}}"#));
        assert_eq!(pending(&zone, &frozen, &["system:os", "system:date"]), NONE);
        assert_eq!(pending(&zone, &frozen, &["system:local_date"]), ["host"]);
    }

    #[test]
    fn a_turn_uses_what_the_first_one_said_and_the_fixed_facts() {
        let mut state = State::begin(&update(r#"{"project": false, "variables": {"git:status": "PINNED"}}"#));
        let frozen = state.build_request(Some("c"));
        state.observed.insert("system:date".into(), Some("2026-01-01".into()));
        state.observed.insert("git:status".into(), Some("other".into()));
        let turn = turn_request(&state.merge(&update("{}")), &frozen, &[]);
        assert_eq!(turn.project, Some(false));
        assert_eq!(turn.variables["git:status"].as_deref(), Some("PINNED"));
        assert_eq!(turn.variables["system:date"].as_deref(), Some("2026-01-01"));
    }

    #[test]
    fn a_turn_uses_a_change_that_the_frozen_text_does_not_depend_on() {
        let first =
            State::begin(&update(r#"{"profile": "p", "cwd": "/", "tools": [{"name": "a"}, {"name": "b"}]}"#));
        let frozen = first.said();
        let next = first.merge(&update(r#"{"language": "Latin", "profile": null, "cwd": null}"#));
        let turn = turn_request(&next, &frozen, &[]);
        assert_eq!(
            (turn.language.as_deref(), turn.profile, turn.cwd),
            (Some("Latin"), Some("p".into()), Some("/".into()))
        );
        assert_eq!(turn_request(&next, &frozen, &["prompt:language"]).language, None, "it waits");
        let packs = first.merge(&update(r#"{"packs": ["x"]}"#));
        assert_eq!(turn_request(&packs, &frozen, &[]).packs, None, "it waits");
        let settled = State { settled: Some(packs.digest()), ..packs };
        assert_eq!(turn_request(&settled, &frozen, &[]).packs, Some(vec!["x".into()]));
        let other = first.merge(&update(r#"{"tools": [{"name": "b"}]}"#));
        let back = other.merge(&update(r#"{"tools": [{"name": "a"}, {"name": "b"}]}"#));
        assert_ne!(back.said().tools, frozen.tools, "control: another order");
        assert_eq!(turn_request(&back, &frozen, &[]).tools, frozen.tools);
    }

    #[test]
    fn a_state_reads_back_as_it_was_written() {
        let mut state = State::begin(&update(
            r#"{"model": "m", "tools": [{"name": "a", "input_schema": {"x": 1.5}}], "host": {"os": null}}"#,
        ));
        state.observed.insert("system:shell".into(), None);
        state.resources.skill_paths.push("skills".into());
        (state.delivered, state.settled, state.wants_reload) = (Some("d".into()), Some("s".into()), true);
        for one in [State::default(), state] {
            let text = one.to_json().expect("it can be written");
            assert_eq!(State::from_json(&text), Ok(one), "{text}");
        }
    }

    #[test]
    fn a_damaged_or_later_state_is_refused() {
        for (text, why) in [
            (r#"{"form": 3, "anything": 1}"#, "it was written by a later proem, in form 3"),
            ("{", "EOF while parsing an object at line 1 column 1"),
            (r#"{"form": 1, "request": {"modell": 1}}"#, ""),
        ] {
            let error = State::from_json(text).expect_err("it cannot be read");
            assert!(why.is_empty() || error == why, "{error}");
        }
    }
}
