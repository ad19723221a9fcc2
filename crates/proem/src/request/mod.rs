//! The request: everything that a caller can set, in one shape for library, command line and HTTP.
//!
//! Values that are not given are observed. With `host` and `variables` pinned, the same tree gives the same bytes on
//! any machine.

pub mod bundle;
pub(crate) mod caller;
pub(crate) mod canonical_json;
pub(crate) mod message;
pub(crate) mod per_prompt;
pub(crate) mod raw_json;
pub(crate) mod strict_json;
pub(crate) mod update;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::{Error, ErrorCause, Excerpt};
use crate::request::message::{Message, RawMessage};
use crate::request::raw_json::Items;
use crate::request::strict_json::{
    Object, object, objects, required_object, required_objects, unique_keys, without_place,
};
use proem_core::did_you_mean::nearest;
use proem_core::limit::REQUEST_BYTES_MAX;
use proem_core::text::Place;

pub use caller::Workspaces;
pub use per_prompt::PerPrompt;
pub use update::RequestUpdate;

/// A request for a prompt.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    /// The profile's name; the configuration's when not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// The working directory; the process's own when not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// The workspace itself in the place of `cwd`: its files, facts of git and a working directory, or the digest of one that
    /// was sent before.
    #[schemars(with = "Option<bundle::WorkspaceShape>")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace: Option<bundle::VirtualWorkspace>,
    /// The conversation's id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conversation: Option<String>,
    /// The workspace's id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace_id: Option<String>,
    /// The model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The language in which to answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    /// The active tools.
    #[serde(deserialize_with = "objects")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<Tool>>,
    /// The paths that the agent may read and write.
    #[serde(deserialize_with = "object")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<Scope>,
    /// Paths of packs that replace wording, later ones win.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packs: Option<Vec<String>>,
    /// The backend that runs the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backend: Option<String>,
    /// Names of the connected MCP servers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mcp_servers: Option<Vec<String>>,
    /// Text that replaces the base; `""` is an empty base.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    /// Text, or texts, added after the base.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub append: Option<OneOrMany>,
    /// An unsaved template for the base, in the profile's syntax.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub template: Option<String>,
    /// The file that `template` was read from, when the caller read one: for provenance only.
    #[serde(skip)]
    pub template_path: Option<String>,
    /// A reference to an asset for the base.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instruction: Option<String>,
    /// True to include resident knowledge and workflows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub residents: Option<bool>,
    /// True to include the parts that the profile takes from the workspace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<bool>,
    /// Remembered text for this turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recalled: Option<String>,
    /// The first user message, if the profile needs it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_user_text: Option<String>,
    /// For a turn: the message of the user; without it the turn continues by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// For a turn: images beside the prompt, as blocks in the provider's format.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub images: Option<Vec<Value>>,
    /// For a turn: the conversation so far, each message an object with a `role`.
    #[serde(deserialize_with = "messages")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub messages: Option<Vec<RawMessage>>,
    /// For a turn: the paths that the agent has touched, relative to the working directory. Instruction files that apply to
    /// them are announced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub touched: Option<Vec<String>>,
    /// For a turn: changes of the caller for this prompt, after those of hooks.
    #[serde(deserialize_with = "object")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_prompt: Option<PerPrompt>,
    /// For a turn: the provider whose request body the answer contains.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// For a turn with a provider: the time for which the provider caches the frozen part.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl: Option<Ttl>,
    /// For a turn with a provider: the name of content that the provider keeps for the frozen part.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cached_content: Option<String>,
    /// Values that give or override facts; `null` means absent.
    #[serde(deserialize_with = "unique_keys", skip_serializing_if = "BTreeMap::is_empty")]
    pub variables: BTreeMap<String, Option<String>>,
    /// Facts about the host that replace observed ones.
    #[serde(deserialize_with = "required_object")]
    pub host: HostPins,
}

/// Reads messages; an error names the invalid one.
fn messages<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<RawMessage>>, D::Error> {
    let Some(Items(messages)) = Option::<Items>::deserialize(deserializer)? else { return Ok(None) };
    let message = |(index, raw)| {
        RawMessage::checked(raw)
            .map_err(|why| serde::de::Error::custom(format_args!("`messages[{index}]`: {why}")))
    };
    messages.into_iter().enumerate().map(message).collect::<Result<_, _>>().map(Some)
}

/// One text or several.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum OneOrMany {
    /// One text.
    One(String),
    /// Several, in order.
    Many(Vec<String>),
}

impl OneOrMany {
    /// The texts, in order.
    #[must_use]
    pub fn texts(&self) -> &[String] {
        match self {
            Self::One(text) => std::slice::from_ref(text),
            Self::Many(texts) => texts,
        }
    }
}

impl<'de> Deserialize<'de> for OneOrMany {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Texts;
        impl<'de> serde::de::Visitor<'de> for Texts {
            type Value = OneOrMany;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("a text or a list of texts")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<OneOrMany, E> {
                Ok(OneOrMany::One(text.to_owned()))
            }

            fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut items: A) -> Result<OneOrMany, A::Error> {
                let mut texts = Vec::new();
                while let Some(text) = items.next_element()? {
                    texts.push(text);
                }
                Ok(OneOrMany::Many(texts))
            }
        }
        deserializer.deserialize_any(Texts)
    }
}

/// A tool that the model may call.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tool {
    /// The name.
    pub name: String,
    /// One line for the prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snippet: Option<String>,
    /// Guidelines for the prompt, while the tool is active.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub guidelines: Vec<String>,
    /// The description that the provider gets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The JSON schema of the input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_schema: Option<Value>,
}

/// Returns the first tool of each name; later ones with the same name are ignored.
pub(crate) fn distinct_tools(tools: &[Tool]) -> Vec<&Tool> {
    let mut distinct: Vec<&Tool> = Vec::new();
    for tool in tools {
        if !distinct.iter().any(|known| known.name == tool.name) {
            distinct.push(tool);
        }
    }
    distinct
}

/// The paths that the agent may read and write.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Scope {
    /// The allowed paths, in order.
    #[serde(deserialize_with = "required_objects")]
    pub allow: Vec<ScopeRule>,
    /// The forbidden paths, in order.
    #[serde(default, deserialize_with = "required_objects")]
    pub deny: Vec<ScopeRule>,
}

/// One rule of a scope.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScopeRule {
    /// The absolute path.
    pub target: String,
    /// The permission; `read` when not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permission: Option<Permission>,
    /// True if the rule applies to everything below the path; true when not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recursive: Option<bool>,
}

/// The access that a scope rule permits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Permission {
    /// Reading.
    Read,
    /// Reading and writing.
    Write,
}

/// The time for which a provider caches the frozen part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Ttl {
    /// Five minutes after the last use.
    #[serde(rename = "5m")]
    FiveMinutes,
    /// An hour.
    #[serde(rename = "1h")]
    Hour,
}

/// A value that is observed unless it is given.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Pin<T> {
    /// Not given: the value is observed.
    #[default]
    Observe,
    /// Given as absent: `null`.
    None,
    /// Given as this value.
    Given(T),
}

impl<T> Pin<T> {
    /// Returns the given value, if any; the inner `None` means that it was given as absent.
    pub const fn pinned(&self) -> Option<Option<&T>> {
        match self {
            Self::Observe => None,
            Self::None => Some(None),
            Self::Given(value) => Some(Some(value)),
        }
    }
}

impl<T> Pin<T> {
    /// Returns the given value, if there is one.
    pub(crate) const fn given(&self) -> Option<&T> {
        match self {
            Self::Given(value) => Some(value),
            Self::Observe | Self::None => None,
        }
    }

    pub(crate) const fn is_observed(&self) -> bool {
        matches!(self, Self::Observe)
    }
}

impl<T: Serialize> Serialize for Pin<T> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.pinned().flatten().serialize(serializer)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Pin<T> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Option::deserialize(deserializer).map(|value| value.map_or(Self::None, Self::Given))
    }
}

impl<T: JsonSchema> JsonSchema for Pin<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        format!("Pin_{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        Option::<T>::json_schema(generator)
    }
}

/// Facts about the host that replace observed ones. `null` means that there is none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct HostPins {
    /// The moment of the build, in RFC 3339.
    #[serde(skip_serializing_if = "Pin::is_observed")]
    pub now: Pin<String>,
    /// The time zone, as an IANA name.
    #[serde(skip_serializing_if = "Pin::is_observed")]
    pub timezone: Pin<String>,
    /// The home directory.
    #[serde(skip_serializing_if = "Pin::is_observed")]
    pub home: Pin<String>,
    /// proem's configuration directory.
    #[serde(skip_serializing_if = "Pin::is_observed")]
    pub config_dir: Pin<String>,
    /// The platform word.
    #[serde(skip_serializing_if = "Pin::is_observed")]
    pub os: Pin<String>,
    /// The system's full name.
    #[serde(skip_serializing_if = "Pin::is_observed")]
    pub os_name: Pin<String>,
    /// The kernel release.
    #[serde(skip_serializing_if = "Pin::is_observed")]
    pub os_version: Pin<String>,
    /// The machine's name.
    #[serde(skip_serializing_if = "Pin::is_observed")]
    pub hostname: Pin<String>,
    /// The user's shell.
    #[serde(skip_serializing_if = "Pin::is_observed")]
    pub shell: Pin<String>,
    /// The environment.
    #[serde(skip_serializing_if = "Pin::is_observed")]
    pub env: Pin<BTreeMap<String, String>>,
}

impl Request {
    /// Returns the text of the user's first message, as far as the request has it.
    pub(crate) fn first_user_words(&self) -> Option<String> {
        let is_of_user = |message: &Message| message.get("role").and_then(Value::as_str) == Some("user");
        let mut messages = self.messages.iter().flatten().filter_map(|message| message.to_map().ok());
        let first = messages.find(is_of_user);
        let content =
            first.as_ref().and_then(|message| message.get("content").or_else(|| message.get("parts")));
        // A text, or the first block of a list.
        let text =
            content.and_then(|content| content.as_str().or_else(|| content.get(0)?.get("text")?.as_str()));
        let prompt = if first.is_some() { None } else { self.prompt.as_deref() };
        self.first_user_text.as_deref().or(text).or(prompt).map(str::to_owned)
    }

    /// Writes the request as JSON that reads back as the same one.
    pub fn to_json(&self) -> Result<String, Error> {
        serde_json::to_string(self)
            .map_err(|error| Error::request(format!("it cannot be written: {error}")).caused_by(error))
    }

    /// Reads a request from JSON. An error names all unknown fields.
    pub fn from_json(text: &str) -> Result<Self, Error> {
        if text.len() > REQUEST_BYTES_MAX {
            let message = format!("it has {} bytes, and {REQUEST_BYTES_MAX} are allowed", text.len());
            return Err(Error::request(message));
        }
        let request: Self = serde_json::from_str(text)
            .map(|Object(request)| request)
            .map_err(|error| explain(text, error))?;
        request.check_place()?;
        Ok(request)
    }
}

/// Describes a JSON error, with its line.
fn explain(text: &str, error: serde_json::Error) -> Error {
    if let Some(unknown) = unknown_fields(text) {
        return unknown.caused_by(error);
    }
    let place = Place { line: error.line(), column: error.column().max(1) };
    let line = text.lines().nth(place.line.saturating_sub(1)).unwrap_or_default();
    let message = without_place(&error);
    Error::Request {
        message: format!("{message}, at line {}, column {}", place.line, place.column),
        hint: Some("docs/request.md describes every field".into()),
        excerpt: Some(Box::new(Excerpt { place, line: line.to_owned() })),
        cause: ErrorCause::new(error),
    }
}

/// Names every unknown field, at the top and in `host`.
fn unknown_fields(text: &str) -> Option<Error> {
    let Value::Object(fields) = serde_json::from_str(text).ok()? else { return None };
    let (known, known_host) = (field_names::<Request>(), field_names::<HostPins>());
    let mut unknown: Vec<(String, Option<String>)> = Vec::new();
    let mut look = |fields: &serde_json::Map<String, Value>, known: &[String], prefix: &str| {
        for name in fields.keys().filter(|name| !known.contains(name)) {
            let near = nearest(name, known.iter().map(String::as_str));
            unknown.push((format!("{prefix}{name}"), near.map(|near| format!("{prefix}{near}"))));
        }
    };
    look(&fields, &known, "");
    if let Some(Value::Object(host)) = fields.get("host") {
        look(host, &known_host, "host.");
    }
    if unknown.is_empty() {
        return None;
    }
    unknown.sort();
    let names: Vec<String> = unknown.iter().map(|(name, _)| format!("`{name}`")).collect();
    let plural = if names.len() == 1 { "unknown field" } else { "unknown fields" };
    let suggestions: Vec<String> = unknown
        .iter()
        .filter_map(|(name, near)| Some(format!("`{}` for `{name}`", near.as_ref()?)))
        .collect();
    let hint = if suggestions.is_empty() {
        let is_of_host = unknown.iter().all(|(name, _)| name.starts_with("host."));
        let (of, known) =
            if is_of_host { ("the fields of `host`", known_host) } else { ("the fields", known) };
        format!("{of} are: {}", known.join(", "))
    } else {
        format!("did you mean {}?", suggestions.join(", "))
    };
    Some(Error::request_with_hint(format!("{plural} {}", names.join(", ")), hint))
}

fn field_names<T: JsonSchema>() -> Vec<String> {
    let schema = schemars::schema_for!(T);
    let properties = schema.get("properties").and_then(Value::as_object);
    let mut names: Vec<String> =
        properties.into_iter().flat_map(|properties| properties.keys().cloned()).collect();
    // Another crate may have switched on ordered JSON maps.
    names.sort();
    names
}
