//! Runs a program with a deadline and a cap on its output, and leaves nothing of it behind.

use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, Signal, kill_process_group};

/// What a program may use up.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Allowance {
    pub(crate) time: Duration,
    pub(crate) output_bytes_max: usize,
}

/// What a program left.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) status: ExitStatus,
    pub(crate) output: Vec<u8>,
    pub(crate) errors: Vec<u8>,
}

/// Why a program was not let finish.
#[derive(Debug)]
pub(crate) enum Stopped {
    CannotStart(std::io::Error),
    TimedOut,
    TooMuchOutput,
    CannotRead(std::io::Error),
}

const ERROR_BYTES_MAX: usize = 4 << 10;
const EXIT_POLL: Duration = Duration::from_millis(2);

/// Runs `command` to its end. Its process group dies with it, whatever happens.
pub(crate) fn run(mut command: Command, allowance: Allowance) -> Result<Finished, Stopped> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let deadline = Instant::now() + allowance.time;
    let child = command.spawn().map_err(Stopped::CannotStart)?;
    let mut group = Group { child };
    let (output, errors) = drain(&mut group.child, deadline, allowance.output_bytes_max)?;
    let status = group.exit(deadline)?;
    Ok(Finished { status, output, errors })
}

/// A running program whose process group is killed when this goes out of scope.
struct Group {
    child: Child,
}

impl Group {
    fn exit(&mut self, deadline: Instant) -> Result<ExitStatus, Stopped> {
        loop {
            if let Some(status) = self.child.try_wait().map_err(Stopped::CannotRead)? {
                return Ok(status);
            }
            if Instant::now() >= deadline {
                return Err(Stopped::TimedOut);
            }
            // Its pipes are closed, so it is about to exit: no descriptor is left to wait on.
            std::thread::sleep(EXIT_POLL);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(group) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            // Fails when everything has ended already, which is the usual case.
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.child.wait();
    }
}

/// Reads both pipes until they are closed.
fn drain(
    child: &mut Child,
    deadline: Instant,
    output_bytes_max: usize,
) -> Result<(Vec<u8>, Vec<u8>), Stopped> {
    let (mut stdout, mut stderr) = (child.stdout.take(), child.stderr.take());
    let (mut output, mut errors) = (Vec::new(), Vec::new());
    while stdout.is_some() || stderr.is_some() {
        let (has_output, has_errors) = wait(stdout.as_ref(), stderr.as_ref(), deadline)?;
        if has_output {
            read_some(&mut stdout, &mut output)?;
            if output.len() > output_bytes_max {
                return Err(Stopped::TooMuchOutput);
            }
        }
        if has_errors {
            read_some(&mut stderr, &mut errors)?;
            errors.truncate(ERROR_BYTES_MAX);
        }
    }
    Ok((output, errors))
}

/// Waits until one of the pipes has something or is closed.
fn wait(
    stdout: Option<&impl AsFd>,
    stderr: Option<&impl AsFd>,
    deadline: Instant,
) -> Result<(bool, bool), Stopped> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Err(Stopped::TimedOut);
    }
    let timeout = left.try_into().map_err(|_| Stopped::TimedOut)?;
    let mut polled: Vec<PollFd<'_>> = Vec::with_capacity(2);
    polled.extend(stdout.map(|pipe| PollFd::new(pipe, PollFlags::IN)));
    polled.extend(stderr.map(|pipe| PollFd::new(pipe, PollFlags::IN)));
    match poll(&mut polled, Some(&timeout)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(error) => return Err(Stopped::CannotRead(error.into())),
    }
    let is_ready = |index: usize| polled.get(index).is_some_and(|polled| !polled.revents().is_empty());
    let has_output = stdout.is_some() && is_ready(0);
    let has_errors = stderr.is_some() && is_ready(usize::from(stdout.is_some()));
    Ok((has_output, has_errors))
}

fn read_some(pipe: &mut Option<impl Read>, into: &mut Vec<u8>) -> Result<(), Stopped> {
    let mut chunk = [0; 16 << 10];
    let Some(open) = pipe else { return Ok(()) };
    match open.read(&mut chunk) {
        Ok(0) => *pipe = None,
        Ok(count) => into.extend_from_slice(&chunk[..count]),
        Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
        Err(error) => return Err(Stopped::CannotRead(error)),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALLOWANCE: Allowance = Allowance { time: Duration::from_mins(1), output_bytes_max: 1 << 20 };

    fn shell(script: &str) -> Command {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn output_errors_and_status_are_returned() {
        let finished = run(shell("echo out; echo err >&2; exit 3"), ALLOWANCE).unwrap();
        assert_eq!(
            (finished.output.as_slice(), finished.errors.as_slice(), finished.status.code()),
            (b"out\n".as_slice(), b"err\n".as_slice(), Some(3))
        );
    }

    /// The grandchild holds a FIFO open for writing: the end of file comes when it is dead.
    #[test]
    fn a_program_that_hangs_is_stopped_with_its_children() {
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("held");
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        let script = format!("(exec 3<>{0}; echo held >&3; exec sleep 600) & wait", fifo.display());
        let mut reader = std::fs::OpenOptions::new().read(true).write(true).open(&fifo).unwrap();
        let allowance = Allowance { time: Duration::from_millis(500), ..ALLOWANCE };
        assert!(matches!(run(shell(&script), allowance), Err(Stopped::TimedOut)));
        let mut only_reader = std::fs::File::open(&fifo).unwrap();
        drop(std::io::Write::write_all(&mut reader, b"."));
        drop(reader);
        let mut held = String::new();
        only_reader.read_to_string(&mut held).unwrap();
        assert!(held == "held\n." || held == ".", "{held:?}");
    }

    #[test]
    fn a_program_that_floods_is_stopped() {
        assert!(matches!(run(shell("yes"), ALLOWANCE), Err(Stopped::TooMuchOutput)));
    }

    #[test]
    fn a_program_that_does_not_exist_cannot_start() {
        assert!(matches!(run(Command::new("/nonexistent"), ALLOWANCE), Err(Stopped::CannotStart(_))));
    }
}
