//! Runs a program with a deadline and a limit on its output, and leaves no process behind.
//!
//! A program gets a process group of its own, and the group is killed when the program ends, however it ends. Only a
//! process that leaves the group (`setsid`) escapes; it is never awaited past the deadline.

mod dialogue;
mod limits;
mod pipes;

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use crate::observe::deadline;
pub(crate) use dialogue::Dialogue;
pub(crate) use limits::Limits;
use pipes::Pipes;

/// Limits on the time and output of a program.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Allowance {
    pub(crate) time: Duration,
    pub(crate) output_bytes_max: usize,
}

/// The result of a program that ended by itself.
#[derive(Debug)]
pub(crate) struct ProcessOutput {
    pub(crate) status: ExitStatus,
    pub(crate) output: Vec<u8>,
    pub(crate) errors: Vec<u8>,
    /// True if a process that the program had started was cut off while it could still print. All output of the program
    /// itself is there; [`RunningProcess`] never cuts.
    #[cfg_attr(not(test), expect(dead_code, reason = "the answer of a hook is complete either way"))]
    pub(crate) is_cut: bool,
}

/// A reason why a program was stopped or could not be run.
#[derive(Debug)]
pub(crate) enum ProcessStop {
    CannotStart(io::Error),
    TimedOut,
    /// The program waits for the other end of a FIFO, which never opens.
    WaitsForFifo,
    TooMuchOutput,
    CannotRead(io::Error),
}

/// The time for a program to clean up after TERM, and for its remaining children to go on printing.
const GRACE: Duration = Duration::from_millis(200);
/// The first interval between checks whether a program has exited; the intervals grow from there. A descriptor to wait
/// on (`pidfd`) would need Linux, and sandboxes there refuse it.
const TICK_MIN: Duration = Duration::from_micros(100);
const TICK_MAX: Duration = Duration::from_millis(32);
/// The interval from which on a silent program is tested for waiting for a FIFO: most have ended before.
const TICK_SILENT: Duration = Duration::from_millis(10);
/// The last interval of the wait for a killed program; all of them together are less than half a second.
const DEATH_TICK_MAX: Duration = Duration::from_millis(256);

/// A started program without input, which must be awaited.
pub(crate) struct RunningProcess {
    group: Group,
    allowance: Allowance,
    patience: Patience,
}

impl RunningProcess {
    /// Starts `command` with limits.
    pub(crate) fn start(
        mut command: Command,
        allowance: Allowance,
        limits: Limits,
    ) -> Result<Self, ProcessStop> {
        command.stdin(Stdio::null());
        let patience = Patience::new(allowance, Holders::Awaited);
        let group = Group::start(command)?;
        limits.set(group.id);
        Ok(Self { group, allowance, patience })
    }

    /// Waits until every holder of its output has ended. A program that waits for a FIFO is stopped at once.
    pub(crate) fn finish(self) -> Result<ProcessOutput, ProcessStop> {
        attend(self.group, b"", self.allowance.output_bytes_max, self.patience)
    }
}

/// Runs `command` to its end with `input`, which it need not read to the end.
///
/// A script may exit and leave a process in the background (`notify &`). Its answer is then complete and in the pipe.
/// The background process shares the pipe, often by oversight: waiting for it until the deadline would turn a good
/// answer into a failure. It gets a grace period, because some are intended (`>(tee log)`), and is then cut off;
/// `is_cut` reports that.
pub(crate) fn run_with_input(
    mut command: Command,
    input: &[u8],
    allowance: Allowance,
) -> Result<ProcessOutput, ProcessStop> {
    command.stdin(Stdio::piped());
    let patience = Patience::new(allowance, Holders::CutOff);
    attend(Group::start(command)?, input, allowance.output_bytes_max, patience)
}

/// The treatment of processes that hold a program's output open after it has exited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Holders {
    /// They have until the deadline; missing it is a failure.
    Awaited,
    /// They have a grace period; missing it is not a failure.
    CutOff,
}

/// Limits on the wait for a program and for the holders of its output.
#[derive(Debug, Clone, Copy)]
struct Patience {
    deadline: Instant,
    grace: Duration,
    holders: Holders,
}

impl Patience {
    fn new(allowance: Allowance, holders: Holders) -> Self {
        Self { deadline: Instant::now() + allowance.time, grace: GRACE, holders }
    }
}

/// The way in which the exchange with a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    Closed,
    Cut,
}

/// Awaits a running program.
fn attend(
    mut group: Group,
    input: &[u8],
    output_bytes_max: usize,
    patience: Patience,
) -> Result<ProcessOutput, ProcessStop> {
    let mut pipes = Pipes::new(&mut group.child, input, output_bytes_max)?;
    let followed = follow(&group, &mut pipes, patience);
    if matches!(followed, Err(ProcessStop::TimedOut)) {
        group.signal(Signal::TERM);
        // The exchange goes on: a program that cannot print cannot clean up either, and an end of input would look as
        // if it had read everything.
        let deadline = Instant::now() + patience.grace;
        let _ = follow(&group, &mut pipes, Patience { deadline, holders: Holders::Awaited, ..patience });
    }
    let ending = followed?;
    let status = group.end().map_err(ProcessStop::CannotRead)?;
    if ending == Ending::Cut {
        pipes.empty()?;
    }
    let (output, errors) = pipes.into_read();
    Ok(ProcessOutput { status, output, errors, is_cut: ending == Ending::Cut })
}

/// Feeds and reads a program until it has exited and nothing holds its output open.
fn follow(group: &Group, pipes: &mut Pipes<'_>, patience: Patience) -> Result<Ending, ProcessStop> {
    let (mut deadline, mut has_exited, mut tick) = (patience.deadline, false, TICK_MIN);
    loop {
        if !has_exited && group.has_exited().map_err(ProcessStop::CannotRead)? {
            has_exited = true;
            if patience.holders == Holders::CutOff {
                deadline = deadline.min(Instant::now() + patience.grace);
            }
        }
        if has_exited && pipes.are_closed() {
            return Ok(Ending::Closed);
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() || deadline::check().is_err() {
            let is_cut = has_exited && patience.holders == Holders::CutOff;
            return if is_cut { Ok(Ending::Cut) } else { Err(ProcessStop::TimedOut) };
        }
        let is_silent = patience.holders == Holders::Awaited && !has_exited && tick > TICK_SILENT;
        if is_silent && limits::waits_for_fifo(group.id) {
            return Err(ProcessStop::WaitsForFifo);
        }
        let is_active = pipes.exchange(left.min(tick))?;
        tick = if is_active { TICK_MIN } else { TICK_MAX.min(tick * 2) };
    }
}

/// A running program whose process group is killed when this goes out of scope.
struct Group {
    child: Child,
    id: Pid,
    is_reaped: bool,
}

impl Group {
    fn start(mut command: Command) -> Result<Self, ProcessStop> {
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let child = command.spawn().map_err(ProcessStop::CannotStart)?;
        Ok(Self { id: Pid::from_child(&child), child, is_reaped: false })
    }

    /// Checks without reaping: until the group is killed, its id must not become another's.
    fn has_exited(&self) -> io::Result<bool> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        Ok(waitid(WaitId::Pid(self.id), options)?.is_some())
    }

    fn signal(&self, signal: Signal) {
        // Fails when everything has ended already, which is the usual case.
        let _ = kill_process_group(self.id, signal);
    }

    /// Kills the remaining processes of a program that has exited, and reaps it.
    fn end(&mut self) -> io::Result<ExitStatus> {
        self.signal(Signal::KILL);
        let status = self.child.wait()?;
        self.is_reaped = true;
        Ok(status)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if self.is_reaped {
            return;
        }
        self.signal(Signal::KILL);
        let mut tick = TICK_MIN;
        while tick <= DEATH_TICK_MAX {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            thread::sleep(tick);
            tick *= 2;
        }
        // It cannot be killed: it changed its user (`sudo`), or a disk does not answer. A thread reaps it whenever it
        // ends; the build does not wait for that.
        let id = self.id;
        let _ = thread::Builder::new().spawn(move || waitid(WaitId::Pid(id), WaitIdOptions::EXITED));
    }
}

#[cfg(test)]
mod tests;
