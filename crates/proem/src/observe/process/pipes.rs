//! The three pipes of a running program. No call waits longer than its time limit.

use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout};
use std::time::Duration;

use proem_core::limit::PROGRAM_ERROR_BYTES_MAX;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;

use super::ProcessStop;

/// Our ends of a program's pipes, the input still to be written and the output read so far.
pub(super) struct Pipes<'a> {
    stdin: Option<ChildStdin>,
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    input: &'a [u8],
    output: Vec<u8>,
    errors: Vec<u8>,
    output_bytes_max: usize,
}

impl<'a> Pipes<'a> {
    /// Takes over the pipes of `child`.
    pub(super) fn new(
        child: &mut Child,
        input: &'a [u8],
        output_bytes_max: usize,
    ) -> Result<Self, ProcessStop> {
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        unblock(stdin.as_ref())
            .and_then(|()| unblock(stdout.as_ref()))
            .and_then(|()| unblock(stderr.as_ref()))
            .map_err(ProcessStop::CannotRead)?;
        let stdin = stdin.filter(|_| !input.is_empty());
        let (output, errors) = (Vec::new(), Vec::new());
        Ok(Self { stdin, stdout, stderr, input, output, errors, output_bytes_max })
    }

    /// Tells whether every writer has closed the output.
    pub(super) fn are_closed(&self) -> bool {
        self.stdout.is_none() && self.stderr.is_none()
    }

    /// Waits until a pipe is ready, writes and reads as much as possible, and returns whether one was ready.
    pub(super) fn exchange(&mut self, time_max: Duration) -> Result<bool, ProcessStop> {
        if !self.wait(time_max).map_err(ProcessStop::CannotRead)? {
            return Ok(false);
        }
        // None of them blocks, so there is no need to know which one is ready.
        self.write_some().map_err(ProcessStop::CannotRead)?;
        read_some(&mut self.stdout, &mut self.output).map_err(ProcessStop::CannotRead)?;
        read_some(&mut self.stderr, &mut self.errors).map_err(ProcessStop::CannotRead)?;
        self.errors.truncate(PROGRAM_ERROR_BYTES_MAX);
        if self.output.len() > self.output_bytes_max {
            return Err(ProcessStop::TooMuchOutput);
        }
        Ok(true)
    }

    /// Reads the present content of the pipes. Ends even if a process keeps filling them: the output has a limit, and
    /// of the errors only as much is read as is kept.
    pub(super) fn empty(&mut self) -> Result<(), ProcessStop> {
        self.stdin = None;
        loop {
            if self.errors.len() >= PROGRAM_ERROR_BYTES_MAX {
                self.stderr = None;
            }
            if !self.exchange(Duration::ZERO)? {
                return Ok(());
            }
        }
    }

    /// Returns the output and the error output.
    pub(super) fn into_read(self) -> (Vec<u8>, Vec<u8>) {
        (self.output, self.errors)
    }

    fn wait(&self, time_max: Duration) -> io::Result<bool> {
        let time_max = Timespec::try_from(time_max).map_err(io::Error::other)?;
        let mut polled: Vec<PollFd<'_>> = Vec::with_capacity(3);
        polled.extend(self.stdin.as_ref().map(|pipe| PollFd::new(pipe, PollFlags::OUT)));
        polled.extend(self.stdout.as_ref().map(|pipe| PollFd::new(pipe, PollFlags::IN)));
        polled.extend(self.stderr.as_ref().map(|pipe| PollFd::new(pipe, PollFlags::IN)));
        match poll(&mut polled, Some(&time_max)) {
            Ok(count) => Ok(count > 0),
            Err(Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Writes what fits, and closes the pipe after the last byte.
    fn write_some(&mut self) -> io::Result<()> {
        let Some(pipe) = &mut self.stdin else { return Ok(()) };
        match pipe.write(self.input) {
            Ok(count) => self.input = &self.input[count..],
            // A program need not read all of its input.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => self.input = &[],
            Err(error) if is_passing(&error) => {}
            Err(error) => return Err(error),
        }
        if self.input.is_empty() {
            self.stdin = None;
        }
        Ok(())
    }
}

fn read_some(pipe: &mut Option<impl Read>, into: &mut Vec<u8>) -> io::Result<()> {
    let mut chunk = [0; 16 << 10];
    let Some(open) = pipe else { return Ok(()) };
    match open.read(&mut chunk) {
        Ok(0) => *pipe = None,
        Ok(count) => into.extend_from_slice(&chunk[..count]),
        Err(error) if is_passing(&error) => {}
        Err(error) => return Err(error),
    }
    Ok(())
}

fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

/// Makes our end non-blocking. The two ends of a pipe have separate flags, and a program expects its end to block.
pub(super) fn unblock(pipe: Option<&impl AsFd>) -> io::Result<()> {
    let Some(pipe) = pipe else { return Ok(()) };
    Ok(fcntl_setfl(pipe, fcntl_getfl(pipe)? | OFlags::NONBLOCK)?)
}
