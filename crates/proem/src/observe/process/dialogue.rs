//! A program that answers one question after the other.
//!
//! A question is one short line, and its answer is read before the next one is sent, so that neither side can wait for
//! the other while a pipe is full.

use std::io::{self, ErrorKind, Read, Write};
use std::process::{ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use proem_core::limit::PROGRAM_ERROR_BYTES_MAX;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::pipes::unblock;
use super::{Group, Limits, ProcessStop, TICK_MAX, TICK_MIN, TICK_SILENT, limits};
use crate::observe::deadline;

/// The number of bytes that are read at a time.
const CHUNK_BYTES: usize = 64 << 10;

/// A running program that answers questions. Its process group is killed when this goes out of scope.
pub(crate) struct Dialogue {
    group: Group,
    stdin: ChildStdin,
    stdout: ChildStdout,
    stderr: ChildStderr,
    /// Bytes that were read and not yet returned.
    read: Vec<u8>,
    /// Time that all answers together may still take.
    time_left: Duration,
}

impl Dialogue {
    /// Starts `command`, whose answers may take `time` together.
    pub(crate) fn start(mut command: Command, time: Duration, limits: Limits) -> Result<Self, ProcessStop> {
        command.stdin(Stdio::piped());
        let mut group = Group::start(command)?;
        limits.set(group.id);
        let pipes = (group.child.stdin.take(), group.child.stdout.take(), group.child.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
            return Err(ProcessStop::CannotRead(ErrorKind::BrokenPipe.into()));
        };
        unblock(Some(&stdout)).and_then(|()| unblock(Some(&stderr))).map_err(ProcessStop::CannotRead)?;
        Ok(Self { group, stdin, stdout, stderr, read: Vec::new(), time_left: time })
    }

    /// Sends a question of one line.
    pub(crate) fn ask(&mut self, line: &str) -> Result<(), ProcessStop> {
        self.stdin.write_all(format!("{line}\n").as_bytes()).map_err(ProcessStop::CannotRead)
    }

    /// Reads a line of the answer, without its end.
    pub(crate) fn line(&mut self) -> Result<Vec<u8>, ProcessStop> {
        loop {
            if let Some(end) = memchr::memchr(b'\n', &self.read) {
                let mut line: Vec<u8> = self.read.drain(..=end).collect();
                line.pop();
                return Ok(line);
            }
            if self.read.len() > CHUNK_BYTES {
                return Err(ProcessStop::TooMuchOutput);
            }
            self.more()?;
        }
    }

    /// Reads `count` bytes of the answer.
    pub(crate) fn bytes(&mut self, count: usize) -> Result<Vec<u8>, ProcessStop> {
        while self.read.len() < count {
            self.more()?;
        }
        let rest = self.read.split_off(count);
        Ok(std::mem::replace(&mut self.read, rest))
    }

    /// Reads `count` bytes of the answer and discards them.
    pub(crate) fn skip(&mut self, mut count: u64) -> Result<(), ProcessStop> {
        loop {
            let here = usize::try_from(count).unwrap_or(usize::MAX).min(self.read.len());
            self.read.drain(..here);
            count -= here as u64;
            if count == 0 {
                return Ok(());
            }
            self.more()?;
        }
    }

    /// Returns the error output of the program so far.
    pub(crate) fn complaints(&mut self) -> Vec<u8> {
        let mut complaints = vec![0; PROGRAM_ERROR_BYTES_MAX];
        let count = self.stderr.read(&mut complaints).unwrap_or(0);
        complaints.truncate(count);
        complaints
    }

    /// Waits for more of the answer and reads it.
    fn more(&mut self) -> Result<(), ProcessStop> {
        let begun = Instant::now();
        let read = self.wait_and_read(begun);
        self.time_left = self.time_left.saturating_sub(begun.elapsed());
        read
    }

    fn wait_and_read(&mut self, begun: Instant) -> Result<(), ProcessStop> {
        let mut tick = TICK_MIN;
        loop {
            let left = self.time_left.saturating_sub(begun.elapsed());
            if left.is_zero() || deadline::check().is_err() {
                return Err(ProcessStop::TimedOut);
            }
            if tick > TICK_SILENT && limits::waits_for_fifo(self.group.id) {
                return Err(ProcessStop::WaitsForFifo);
            }
            if is_ready(&self.stdout, left.min(tick)).map_err(ProcessStop::CannotRead)? {
                let mut chunk = vec![0; CHUNK_BYTES];
                match self.stdout.read(&mut chunk) {
                    Ok(0) => return Err(ProcessStop::CannotRead(ErrorKind::UnexpectedEof.into())),
                    Ok(count) => {
                        self.read.extend_from_slice(&chunk[..count]);
                        return Ok(());
                    }
                    Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
                    Err(error) => return Err(ProcessStop::CannotRead(error)),
                }
            }
            tick = TICK_MAX.min(tick * 2);
        }
    }
}

fn is_ready(pipe: &ChildStdout, time_max: Duration) -> io::Result<bool> {
    let time_max = Timespec::try_from(time_max).map_err(io::Error::other)?;
    match poll(&mut [PollFd::new(pipe, PollFlags::IN)], Some(&time_max)) {
        Ok(count) => Ok(count > 0),
        Err(Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
