//! Handlers of the configuration: programs and URLs. Both get the event as JSON, and answer with JSON.
//!
//! They come from the user's configuration, or from a workspace that the user trusts.

use std::path::{Path, PathBuf};
use std::time::Duration;

use proem_core::limit::{HOOK_OUTPUT_BYTES_MAX, HOOK_TIME_MAX};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::HookFailureReason;
use super::command::CommandHook;
use super::url::{HookUrl, UrlHook};
use crate::observe::process::Allowance;
use crate::request::strict_json::Object;

/// The event on which a handler is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HookEvent {
    /// Before files are searched for.
    ResourcesDiscover,
    /// Once for each prompt of the user.
    BeforeAgentStart,
    /// Before every call of the model.
    Context,
}

impl HookEvent {
    /// The word used in the configuration and in messages.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::ResourcesDiscover => "resources_discover",
            Self::BeforeAgentStart => "before_agent_start",
            Self::Context => "context",
        }
    }
}

/// A hook of the configuration, which handles one event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfiguredHook {
    /// The name by which it is reported.
    pub name: String,
    /// The event on which it is called.
    pub event: HookEvent,
    /// The program or the address.
    pub handler: ConfiguredHandler,
    /// The longest time of one call.
    pub time_max: Duration,
    /// The most bytes of an answer, if the configuration sets a limit.
    pub output_bytes_max: Option<usize>,
}

/// The handler of a configured hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConfiguredHandler {
    /// A program.
    Command(CommandHook),
    /// An HTTP server.
    Url(UrlHook),
}

/// The keys of a `[[hook]]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "WrittenKeys")]
pub(crate) struct HookKeys {
    name: Option<String>,
    event: HookEvent,
    handler: HandlerKeys,
    timeout_ms: Option<u64>,
    output_bytes_max: Option<usize>,
}

#[derive(Debug, Clone)]
enum HandlerKeys {
    Command { command: Vec<String>, env: Vec<String> },
    Url { url: HookUrl, token_file: Option<String> },
}

/// The keys of a `[[hook]]` as they are written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenKeys {
    name: Option<String>,
    event: HookEvent,
    #[serde(default, deserialize_with = "argv")]
    command: Option<Vec<String>>,
    url: Option<HookUrl>,
    token_file: Option<String>,
    timeout_ms: Option<u64>,
    output_bytes_max: Option<usize>,
    env: Option<Vec<String>>,
}

impl TryFrom<WrittenKeys> for HookKeys {
    type Error = &'static str;

    fn try_from(keys: WrittenKeys) -> Result<Self, Self::Error> {
        let WrittenKeys { name, event, command, url, token_file, timeout_ms, output_bytes_max, env } = keys;
        let handler = match (command, url) {
            (None, None) => return Err("a hook needs a `command` or a `url`"),
            (Some(_), Some(_)) => return Err("a hook has a `command` or a `url`, not both"),
            (Some(_), None) if token_file.is_some() => {
                return Err("`token_file` is for hooks with a `url`: a program reads its own files");
            }
            (Some(command), None) => HandlerKeys::Command { command, env: env.unwrap_or_default() },
            (None, Some(_)) if env.is_some() => {
                return Err("`env` is for hooks with a `command`: a server has its own environment");
            }
            (None, Some(url)) => HandlerKeys::Url { url, token_file },
        };
        Ok(Self { name, event, handler, timeout_ms, output_bytes_max })
    }
}

/// Reads a command: a program and its arguments, never a shell command line.
fn argv<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<String>>, D::Error> {
    struct Argv;
    impl<'de> serde::de::Visitor<'de> for Argv {
        type Value = Vec<String>;

        fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            formatter.write_str("a list such as [\"program\", \"argument\"]: hooks run without a shell")
        }

        fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut items: A) -> Result<Vec<String>, A::Error> {
            let mut words = Vec::new();
            while let Some(word) = items.next_element::<String>()? {
                words.push(word);
            }
            match words.first() {
                Some(program) if !program.is_empty() => Ok(words),
                _ => Err(serde::de::Error::custom("`command` names no program")),
            }
        }
    }
    deserializer.deserialize_any(Argv).map(Some)
}

impl ConfiguredHook {
    /// Makes a hook from a `[[hook]]` of the configuration in `folder`. `hosts` are those besides this machine that the
    /// user allows.
    pub(crate) fn new(keys: HookKeys, folder: &Path, hosts: &[String]) -> Self {
        let (name, handler) = match keys.handler {
            HandlerKeys::Command { command, env } => {
                let program = command.first().map(Path::new).and_then(Path::file_name);
                let name = program.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
                (name, ConfiguredHandler::Command(CommandHook { command, folder: folder.to_owned(), env }))
            }
            HandlerKeys::Url { url, token_file } => {
                let token_file: Option<PathBuf> = token_file.map(|path| folder.join(path));
                let is_allowed = url.is_allowed(hosts);
                (url.host().to_owned(), ConfiguredHandler::Url(UrlHook { url, token_file, is_allowed }))
            }
        };
        Self {
            name: keys.name.unwrap_or(name),
            event: keys.event,
            handler,
            time_max: keys.timeout_ms.map_or(HOOK_TIME_MAX, Duration::from_millis),
            output_bytes_max: keys.output_bytes_max,
        }
    }

    /// Calls the handler if the event matches, and parses its answer. An empty answer changes nothing.
    pub(super) fn ask<A: DeserializeOwned>(
        &self,
        event: HookEvent,
        fields: &impl Serialize,
    ) -> Result<Option<A>, HookFailureReason> {
        if event != self.event {
            return Ok(None);
        }
        let mut input =
            serde_json::to_value(fields).map_err(|error| HookFailureReason::plain(error.to_string()))?;
        if let Value::Object(input) = &mut input {
            input.insert("event".into(), event.word().into());
        }
        let input = input.to_string();
        let allowance =
            Allowance { time: self.time_max, output_bytes_max: self.output_bytes_max(input.len()) };
        // The handler may read any file, so a revision that is laid out on demand is laid out completely.
        crate::observe::file::lay_out_everything();
        let output = match &self.handler {
            ConfiguredHandler::Command(command) => command.run(&input, allowance)?,
            ConfiguredHandler::Url(url) => url.post(input, allowance)?,
        };
        let text = str::from_utf8(&output).map_err(|error| {
            HookFailureReason::plain(format!(
                "its answer is not UTF-8: bad byte at offset {}",
                error.valid_up_to()
            ))
        })?;
        if text.trim().is_empty() {
            return Ok(None);
        }
        serde_json::from_str(text).map(|Object(answer)| Some(answer)).map_err(|error| {
            // The error may quote the answer.
            let brief = "its answer is not valid";
            HookFailureReason::new(brief, &format!("{brief}: {error}"))
        })
    }

    /// Returns the most bytes of an answer. A handler that returns all messages needs room for them.
    fn output_bytes_max(&self, input_bytes: usize) -> usize {
        let returned = if self.event == HookEvent::Context { 2 * input_bytes } else { 0 };
        self.output_bytes_max.unwrap_or(HOOK_OUTPUT_BYTES_MAX + returned)
    }
}
