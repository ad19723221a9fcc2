//! The fields that one call to a conversation gives or removes. A conversation remembers them: what a later call does not
//! mention stays.

use std::collections::BTreeSet;

use serde_json::value::RawValue;

use super::Request;
use super::bundle::VirtualWorkspace;
use super::raw_json::{Fields, Json};
use crate::error::Error;

/// A change of a conversation's request. A given field replaces the remembered one, a removed field is forgotten.
///
/// Merging is shallow: a given `variables` or `host` replaces the whole object.
///
/// ```
/// use proem::request::{Request, RequestUpdate};
///
/// let known = Request::from_json(r#"{"model": "m1", "language": "French"}"#)?;
/// let update = RequestUpdate::from_json(r#"{"model": "m2", "language": null}"#)?;
/// let merged = update.apply_to(&known);
/// assert_eq!((merged.model.as_deref(), merged.language), (Some("m2"), None));
/// # Ok::<(), proem::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RequestUpdate {
    given: Request,
    /// The names of the given fields.
    named: BTreeSet<String>,
    /// The names of the fields that were given as `null`.
    removed: BTreeSet<String>,
}

/// The fields that say which text is the base of a prompt: giving one of them removes the others.
const BASE: [&str; 3] = ["system", "template", "instruction"];

impl From<Request> for RequestUpdate {
    /// Every field that differs from that of an empty request is given.
    fn from(given: Request) -> Self {
        let empty = Request::default();
        let named = FIELDS.iter().filter(|field| !(field.is_same)(&given, &empty)).map(|field| field.name);
        let named = named.map(str::to_owned).collect();
        Self { given, named, removed: BTreeSet::new() }
    }
}

impl From<&Request> for RequestUpdate {
    fn from(given: &Request) -> Self {
        given.clone().into()
    }
}

impl From<&Self> for RequestUpdate {
    fn from(update: &Self) -> Self {
        update.clone()
    }
}

impl RequestUpdate {
    /// Reads an update from a JSON object; a top-level `null` removes a field.
    pub fn from_json(text: &str) -> Result<Self, Error> {
        let raw = serde_json::from_str::<Box<RawValue>>(text);
        let Some(Json::Object(members)) = raw.ok().and_then(|raw| Json::open(&raw).ok()) else {
            // The reader of requests describes the problem.
            return Request::from_json(text).map(Self::from);
        };
        Self::from_members(text, members)
    }

    /// Makes an update of the members of the object `text`.
    fn from_members(text: &str, members: Fields) -> Result<Self, Error> {
        let is_null = |value: &Json| matches!(value, Json::Raw(raw) if raw.get() == "null");
        let (nulls, given): (Fields, Fields) =
            members.into_iter().partition(|(name, value)| is_null(value) && is_remembered(name));
        let named = given.iter().map(|(name, _)| name.clone()).collect();
        let removed: BTreeSet<String> = nulls.into_iter().map(|(name, _)| name).collect();
        // Errors name lines of the text that the caller wrote.
        let given = if removed.is_empty() { Request::from_json(text)? } else { read(given)? };
        Ok(Self { given, named, removed })
    }

    /// Writes the update as JSON that reads back as the same one. Messages keep their spelling.
    pub fn to_json(&self) -> Result<String, Error> {
        self.written(&self.given)
    }

    /// Writes the update as JSON without the fields of one call.
    pub(crate) fn to_remembered_json(&self) -> Result<String, Error> {
        self.written(&without_call(&self.given))
    }

    fn written(&self, given: &Request) -> Result<String, Error> {
        let failed = |error: serde_json::Error| Error::request(format!("it cannot be written: {error}"));
        let raw = serde_json::value::to_raw_value(given).map_err(failed)?;
        let Json::Object(mut fields) = Json::open(&raw).map_err(failed)? else { return Ok("{}".to_owned()) };
        // `host` is written even if it is not given.
        fields.retain(|(name, _)| !is_remembered(name) || self.named.contains(name));
        if self.named.contains("variables") && !fields.iter().any(|(name, _)| name == "variables") {
            fields.push(("variables".to_owned(), Json::Object(Fields::new())));
        }
        let null = || Json::Raw(RawValue::NULL.to_owned());
        fields.extend(self.removed.iter().map(|name| (name.clone(), null())));
        serde_json::to_string(&Json::Object(fields)).map_err(failed)
    }

    /// Returns the update with other given fields: those that differ count as given.
    #[must_use]
    pub fn with_given(mut self, given: Request) -> Self {
        for field in FIELDS.iter().filter(|field| !(field.is_same)(&given, &self.given)) {
            self.named.insert(field.name.to_owned());
            self.removed.remove(field.name);
        }
        self.given = given;
        self
    }

    /// Returns the given fields.
    #[must_use]
    pub const fn given(&self) -> &Request {
        &self.given
    }

    /// Returns the given fields, to set those that belong to one call.
    pub const fn given_mut(&mut self) -> &mut Request {
        &mut self.given
    }

    /// Gives a working directory.
    #[must_use]
    pub fn with_cwd(mut self, cwd: String) -> Self {
        self.named.insert("cwd".to_owned());
        self.removed.remove("cwd");
        self.given.cwd = Some(cwd);
        self
    }

    /// Gives a workspace.
    #[must_use]
    pub fn with_workspace(mut self, workspace: VirtualWorkspace) -> Self {
        self.named.insert("workspace".to_owned());
        self.removed.remove("workspace");
        self.named.remove("cwd");
        self.given.cwd = None;
        self.given.workspace = Some(workspace);
        self
    }

    /// Tells whether the update gives a field.
    #[must_use]
    pub fn names(&self, field: &str) -> bool {
        self.named.contains(field)
    }

    /// Tells whether the update removes a field.
    #[must_use]
    pub fn removes(&self, field: &str) -> bool {
        self.removed.contains(field)
    }

    /// Tells whether the update changes nothing that a conversation remembers.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.removed.is_empty() && !FIELDS.iter().any(|field| self.names(field.name))
    }

    /// Returns a remembered request with this update. Fields of one call, such as `messages` and `prompt`, are not part
    /// of it.
    #[must_use]
    pub fn apply_to(&self, known: &Request) -> Request {
        let mut merged = without_call(known);
        if BASE.iter().any(|field| self.names(field)) {
            (merged.system, merged.template, merged.instruction) = (None, None, None);
            merged.template_path.clone_from(&self.given.template_path);
        }
        // A directory and a workspace that was sent are two values of one thing.
        if self.names("workspace") {
            merged.cwd = None;
        } else if self.names("cwd") {
            merged.workspace = None;
        }
        let empty = Request::default();
        for field in &FIELDS {
            if self.names(field.name) {
                (field.copy)(&self.given, &mut merged);
            } else if self.removes(field.name) {
                (field.copy)(&empty, &mut merged);
            }
        }
        merged
    }
}

/// Tells whether a conversation remembers a field.
fn is_remembered(name: &str) -> bool {
    FIELDS.iter().any(|field| field.name == name)
}

/// Reads a request from members.
fn read(members: Fields) -> Result<Request, Error> {
    let text = serde_json::to_string(&Json::Object(members));
    Request::from_json(&text.map_err(|error| Error::request(error.to_string()).caused_by(error))?)
}

/// Returns a request without the fields of one call, and without the conversation's name.
#[must_use]
pub(crate) fn without_call(request: &Request) -> Request {
    Request {
        messages: None,
        prompt: None,
        images: None,
        recalled: None,
        per_prompt: None,
        touched: None,
        provider: None,
        ttl: None,
        cached_content: None,
        conversation: None,
        ..request.clone()
    }
}

/// A field that a conversation remembers.
struct Field {
    name: &'static str,
    copy: fn(&Request, &mut Request),
    is_same: fn(&Request, &Request) -> bool,
}

macro_rules! fields {
    ($($name:ident),* $(,)?) => {
        const FIELDS: [Field; [$(stringify!($name)),*].len()] = [$(Field {
            name: stringify!($name),
            copy: |from, to| to.$name.clone_from(&from.$name),
            is_same: |one, other| one.$name == other.$name,
        }),*];

        /// Fails to compile when a field of a request is neither remembered nor named here as one of a single call.
        #[expect(dead_code, reason = "it is compiled, not run")]
        fn every_field_is_considered(request: Request) {
            let Request { $($name: _,)* conversation: _, messages: _, prompt: _, images: _, recalled: _, per_prompt: _, touched: _, provider: _, ttl: _,
                cached_content: _, template_path: _ } =
                request;
        }
    };
}

fields!(
    profile,
    cwd,
    workspace,
    workspace_id,
    model,
    language,
    tools,
    scope,
    packs,
    backend,
    mcp_servers,
    system,
    append,
    template,
    instruction,
    residents,
    project,
    first_user_text,
    variables,
    host,
);

/// The names of the fields in which two requests differ, of those that a conversation remembers.
pub(crate) fn differences(one: &Request, other: &Request) -> Vec<&'static str> {
    FIELDS.iter().filter(|field| !(field.is_same)(one, other)).map(|field| field.name).collect()
}

/// Copies a field that a conversation remembers.
pub(crate) fn copy_field(name: &str, from: &Request, to: &mut Request) {
    if let Some(field) = FIELDS.iter().find(|field| field.name == name) {
        (field.copy)(from, to);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merged(known: &str, update: &str) -> Request {
        let known = Request::from_json(known).expect("it is a request");
        RequestUpdate::from_json(update).expect("it is an update").apply_to(&known)
    }

    fn request(text: &str) -> Request {
        Request::from_json(text).expect("it is a request")
    }

    #[test]
    fn a_given_field_replaces_an_absent_one_stays_and_null_removes() {
        for (known, update, expected) in [
            (r#"{"model": "a", "append": "x"}"#, "{}", r#"{"model": "a", "append": "x"}"#),
            (r#"{"model": "a", "append": "x"}"#, r#"{"model": "b"}"#, r#"{"model": "b", "append": "x"}"#),
            (r#"{"model": "a", "append": "x"}"#, r#"{"append": null}"#, r#"{"model": "a"}"#),
            (
                r#"{"variables": {"a:b": "1", "c:d": null}}"#,
                r#"{"variables": {"a:b": null}}"#,
                r#"{"variables": {"a:b": null}}"#,
            ),
            (r#"{"variables": {"a:b": "1"}}"#, r#"{"variables": {}}"#, "{}"),
            (r#"{"variables": {"a:b": "1"}}"#, r#"{"variables": null}"#, "{}"),
            (
                r#"{"host": {"os": "linux", "shell": null}}"#,
                r#"{"host": {"os": "mac"}}"#,
                r#"{"host": {"os": "mac"}}"#,
            ),
            (r#"{"host": {"os": "linux"}}"#, r#"{"host": null}"#, "{}"),
            (r#"{"tools": [{"name": "a"}]}"#, r#"{"tools": []}"#, r#"{"tools": []}"#),
        ] {
            assert_eq!(merged(known, update), request(expected), "{known} + {update}");
        }
    }

    #[test]
    fn system_template_and_instruction_are_one_field() {
        assert_eq!(merged(r#"{"system": "a"}"#, r#"{"template": "b"}"#), request(r#"{"template": "b"}"#));
        assert_eq!(
            merged(r#"{"template": "a"}"#, r#"{"instruction": "$b"}"#),
            request(r#"{"instruction": "$b"}"#)
        );
        assert_eq!(merged(r#"{"template": "a"}"#, r#"{"system": null}"#), request(r#"{"template": "a"}"#));
        assert_eq!(merged(r#"{"system": "a"}"#, r#"{"system": ""}"#), request(r#"{"system": ""}"#));
    }

    #[test]
    fn fields_of_one_call_are_not_remembered() {
        let update = r#"{"messages": [], "prompt": "p", "images": [], "recalled": "r", "model": "m"}"#;
        assert_eq!(merged("{}", update), request(r#"{"model": "m"}"#));
        assert!(RequestUpdate::from_json(r#"{"prompt": "p"}"#).expect("it is an update").is_empty());
    }

    #[test]
    fn an_update_is_written_as_it_was_read() {
        for text in [
            "{}",
            r#"{"model":"m","variables":{},"append":null,"host":null}"#,
            r#"{"prompt":"p","messages":[{"b":1.50,"role":"user","a":"\u0041"}],"host":{"os":null}}"#,
        ] {
            let update = RequestUpdate::from_json(text).expect("it is an update");
            let written = update.to_json().expect("it can be written");
            assert_eq!(RequestUpdate::from_json(&written).expect("it is an update"), update, "{written}");
            assert_eq!(text.contains("1.50"), written.contains(r#"{"b":1.50,"role":"user","a":"\u0041"}"#));
        }
        let update = RequestUpdate::from_json(r#"{"model": null}"#).expect("it is an update");
        let given = Request { model: Some("m".into()), ..Request::default() };
        assert_eq!(update.with_given(given.clone()), RequestUpdate::from(given));
    }

    #[test]
    fn what_is_no_field_is_refused_even_as_null() {
        for text in [r#"{"modell": null}"#, r#"{"modell": 1}"#, "[]", "", r#"{"model": null, "model": "a"}"#]
        {
            assert!(RequestUpdate::from_json(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_request_is_an_update_that_removes_nothing() {
        let given = request(r#"{"model": "m", "host": {"os": null}}"#);
        let update = RequestUpdate::from(given.clone());
        assert_eq!(update.apply_to(&Request::default()), given);
        assert!(update.names("host") && !update.names("variables") && !update.removes("cwd"));
    }
}
