//! Handlers that are programs: the event as JSON on standard input, the answer as JSON on standard output.
//!
//! They come from the user's configuration, or from a workspace that the user trusts, and run without a shell, in a
//! clean environment, in a process group that is killed with them, with limits on time and output.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use proem_core::limit::{HOOK_OUTPUT_BYTES_MAX, HOOK_TIME_MAX};
use proem_core::text_safety::secret::Scanner;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::HookFailureReason;
use crate::error::reason;
use crate::observe::process::{self, Allowance, ProcessOutput, ProcessStop};
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

/// A program that handles one event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandHook {
    /// The name by which it is reported.
    pub name: String,
    /// The event on which it is called.
    pub event: HookEvent,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The folder for a relative program path: the one of the configuration.
    pub folder: PathBuf,
    /// The time that it may run.
    pub time_max: Duration,
    /// The most bytes that it may print, if the configuration sets a limit.
    pub output_bytes_max: Option<usize>,
    /// Names of environment variables that it gets in addition to the usual ones.
    pub env: Vec<String>,
}

/// Environment variables that every handler gets.
const USUAL: [&str; 4] = ["PATH", "HOME", "LANG", "TZ"];

/// The keys of a `[[hook]]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct HookKeys {
    name: Option<String>,
    event: HookEvent,
    #[serde(deserialize_with = "argv")]
    command: Vec<String>,
    timeout_ms: Option<u64>,
    output_bytes_max: Option<usize>,
    #[serde(default)]
    env: Vec<String>,
}

/// Reads a command: a program and its arguments, never a shell command line.
fn argv<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
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
    deserializer.deserialize_any(Argv)
}

impl CommandHook {
    /// Makes a handler from a `[[hook]]` of the configuration in `folder`.
    pub(crate) fn new(keys: HookKeys, folder: &Path) -> Self {
        let program = Path::new(&keys.command[0]).file_name().map(|name| name.to_string_lossy().into_owned());
        Self {
            name: keys.name.or(program).unwrap_or_default(),
            event: keys.event,
            command: keys.command,
            folder: folder.to_owned(),
            time_max: keys.timeout_ms.map_or(HOOK_TIME_MAX, Duration::from_millis),
            output_bytes_max: keys.output_bytes_max,
            env: keys.env,
        }
    }

    /// Runs the program if the event matches, and parses its answer. Empty output means no answer.
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
        let finished = process::run_with_input(self.command()?, input.as_bytes(), allowance)
            .map_err(|stopped| self.stopped(&stopped, allowance))?;
        if !finished.status.success() {
            return Err(failed(&finished));
        }
        let text = str::from_utf8(&finished.output).map_err(|error| {
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

    fn command(&self) -> Result<Command, HookFailureReason> {
        let program = self.program()?;
        // The program may read any file, so a revision that is laid out on demand is laid out completely.
        crate::observe::file::lay_out_everything();
        let mut command = Command::new(program);
        // Not in the working directory: a relative argument must not name a file of the repository.
        command.args(self.command.iter().skip(1)).current_dir(&self.folder).env_clear();
        let names = USUAL.into_iter().chain(self.env.iter().map(String::as_str));
        command.envs(names.filter_map(|name| Some((name, std::env::var_os(name)?))));
        Ok(command)
    }

    /// Returns the program's file. A bare name is searched for in `PATH`, and only in absolute folders: the working
    /// directory must never decide which program runs.
    fn program(&self) -> Result<PathBuf, HookFailureReason> {
        let written = Path::new(self.command.first().map_or("", String::as_str));
        if written.components().count() > 1 || written.is_absolute() {
            return Ok(self.folder.join(written));
        }
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::env::split_paths(&path).filter(|folder| folder.is_absolute());
        let found = folders.map(|folder| folder.join(written)).find(|file| file.is_file());
        found.ok_or_else(|| {
            HookFailureReason::new(
                CANNOT_START,
                &format!("there is no program `{}` in PATH", written.display()),
            )
        })
    }

    /// Returns the most bytes that the program may print. A program that returns all messages needs room for them.
    fn output_bytes_max(&self, input_bytes: usize) -> usize {
        let returned = if self.event == HookEvent::Context { 2 * input_bytes } else { 0 };
        self.output_bytes_max.unwrap_or(HOOK_OUTPUT_BYTES_MAX + returned)
    }

    fn stopped(&self, stopped: &ProcessStop, allowance: Allowance) -> HookFailureReason {
        match stopped {
            ProcessStop::CannotStart(error) => {
                let program =
                    self.program().map_or_else(|_| String::new(), |path| path.display().to_string());
                HookFailureReason::new(
                    CANNOT_START,
                    &format!("{program} cannot be started: {}", reason(error)),
                )
            }
            ProcessStop::TimedOut | ProcessStop::WaitsForFifo => {
                HookFailureReason::plain(format!("it took longer than {} ms", self.time_max.as_millis()))
            }
            ProcessStop::TooMuchOutput => {
                HookFailureReason::plain(format!("it printed more than {} bytes", allowance.output_bytes_max))
            }
            ProcessStop::CannotRead(error) => {
                HookFailureReason::plain(format!("its output cannot be read: {}", reason(error)))
            }
        }
    }
}

/// The message for a program that cannot be started: clients must not learn its path.
const CANNOT_START: &str = "it cannot be started";

/// Describes the exit status, and for the user the last line of the error output.
fn failed(finished: &ProcessOutput) -> HookFailureReason {
    let errors = String::from_utf8_lossy(&finished.errors);
    let last = errors.lines().map(str::trim).rfind(|line| !line.is_empty());
    let status = finished.status.to_string();
    let Some(line) = last else { return HookFailureReason::plain(status) };
    // Masked first: an escape inside of a secret would hide its shape.
    let line = Scanner::new().without_secrets(line).escape_debug().to_string();
    HookFailureReason::new(status.as_str(), &format!("{status}: {line}"))
}

#[cfg(test)]
mod tests {
    use super::super::{HookFailure, ResourcePaths};
    use super::*;
    use crate::request::caller::Caller;

    /// Returns the reports to the user and to a remote client about a command that fails.
    fn reports(command: &[&str]) -> [String; 2] {
        let hook = CommandHook {
            name: "bad".to_owned(),
            event: HookEvent::ResourcesDiscover,
            command: command.iter().map(|word| (*word).to_owned()).collect(),
            folder: PathBuf::from("/"),
            time_max: HOOK_TIME_MAX,
            output_bytes_max: None,
            env: Vec::new(),
        };
        let answer = hook.ask::<ResourcePaths>(hook.event, &serde_json::json!({}));
        let why = answer.expect_err("it fails");
        let failure = HookFailure::new(hook.name, hook.event, why);
        [Caller::User, Caller::REMOTE].map(|caller| failure.note(caller).message)
    }

    #[test]
    fn remote_clients_are_told_nothing_of_what_a_program_wrote_or_where_it_lies() {
        let begin = "the hook `bad` is skipped at `resources_discover`: ";
        for (command, brief) in [
            (&["sh", "-c", "echo CANARY >&2; exit 3"][..], "exit status: 3"),
            (&["sh", "-c", "echo '{\"CANARY\": 1}'"], "its answer is not valid"),
            (&["/CANARY/program"], "it cannot be started"),
            (&["CANARY-program"], "it cannot be started"),
        ] {
            let [of_user, of_remote] = reports(command);
            assert!(of_user.contains("CANARY"), "control: the user is informed: {of_user}");
            assert_eq!(of_remote, format!("{begin}{brief}"));
        }
    }
}
