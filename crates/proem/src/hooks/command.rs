//! Handlers that are programs: the event as JSON on standard input, the answer as JSON on standard output.
//!
//! They run without a shell, in a clean environment, in a process group that is killed with them, with limits on time and
//! output.

use std::path::{Path, PathBuf};
use std::process::Command;

use proem_core::text_safety::secret::Scanner;

use super::HookFailureReason;
use crate::error::reason;
use crate::observe::process::{self, Allowance, ProcessOutput, ProcessStop};

/// A program that handles an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandHook {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The folder for a relative program path: the one of the configuration.
    pub folder: PathBuf,
    /// Names of environment variables that it gets in addition to the usual ones.
    pub env: Vec<String>,
}

/// Environment variables that every handler gets.
const USUAL: [&str; 4] = ["PATH", "HOME", "LANG", "TZ"];

impl CommandHook {
    /// Runs the program with an event, and returns its output.
    pub(super) fn run(&self, event: &str, allowance: Allowance) -> Result<Vec<u8>, HookFailureReason> {
        let finished = process::run_with_input(self.command()?, event.as_bytes(), allowance)
            .map_err(|stopped| self.stopped(&stopped, allowance))?;
        if finished.status.success() { Ok(finished.output) } else { Err(failed(&finished)) }
    }

    fn command(&self) -> Result<Command, HookFailureReason> {
        let program = self.program()?;
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
                HookFailureReason::plain(format!("it took longer than {} ms", allowance.time.as_millis()))
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
    use std::path::PathBuf;

    use proem_core::limit::HOOK_TIME_MAX;

    use super::super::{ConfiguredHandler, ConfiguredHook, HookEvent, HookFailure, ResourcePaths};
    use super::*;
    use crate::request::caller::Caller;

    /// Returns the reports to the user and to a remote client about a command that fails.
    fn reports(command: &[&str]) -> [String; 2] {
        let hook = ConfiguredHook {
            name: "bad".to_owned(),
            event: HookEvent::ResourcesDiscover,
            handler: ConfiguredHandler::Command(CommandHook {
                command: command.iter().map(|word| (*word).to_owned()).collect(),
                folder: PathBuf::from("/"),
                env: Vec::new(),
            }),
            time_max: HOOK_TIME_MAX,
            output_bytes_max: None,
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
