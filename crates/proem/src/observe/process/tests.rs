use std::fs::{File, OpenOptions};
use std::io::Read;
use std::path::PathBuf;

use proem_core::limit::PROGRAM_ERROR_BYTES_MAX;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{CWD, FileType, mknodat};
use rustix::io::Errno;
use tempfile::TempDir;

use super::*;

const ALLOWANCE: Allowance = Allowance { time: Duration::from_mins(5), output_bytes_max: 1 << 20 };
const BRIEF: Allowance = Allowance { time: Duration::from_millis(300), ..ALLOWANCE };
const MIB: usize = 1 << 20;

const LIMITS: Limits = Limits { memory_bytes_max: 64 << 20, file_bytes_max: 1 << 20 };

/// Runs a program without input.
fn run(command: Command, allowance: Allowance) -> Result<ProcessOutput, ProcessStop> {
    RunningProcess::start(command, allowance, LIMITS)?.finish()
}

fn shell(script: &str) -> Command {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", script]);
    command
}

/// Bytes whose order shows: no block of them looks like its neighbours.
fn bytes(count: usize) -> Vec<u8> {
    (0..count).map(|index| (index ^ (index >> 8) ^ (index >> 16)).to_le_bytes()[0]).collect()
}

fn check(script: &str, input: &[u8], expected: &[u8]) {
    let allowance = Allowance { output_bytes_max: 16 * MIB, ..ALLOWANCE };
    let finished = run_with_input(shell(script), input, allowance).unwrap();
    // Not `assert_eq`: it would print megabytes.
    assert!(finished.output == expected, "{script}: {} bytes", finished.output.len());
    let errors = String::from_utf8_lossy(&finished.errors).into_owned();
    let rest = (errors.as_str(), finished.status.code(), finished.is_cut);
    assert_eq!(rest, ("", Some(0), false), "{script}");
}

/// Shows which processes are alive: a program writes to it, and all that hold it open for writing are dead when reading
/// gives the end of file.
struct Fifo {
    folder: TempDir,
    both_ends: File,
}

impl Fifo {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("fifo");
        mknodat(CWD, &path, FileType::Fifo, 0o600.into(), 0).unwrap();
        let both_ends = OpenOptions::new().read(true).write(true).open(&path).unwrap();
        Self { folder, both_ends }
    }

    /// A shell that runs `script` with the FIFO open as descriptor 3, for its children as well.
    fn shell(&self, script: &str) -> Command {
        shell(&format!("exec 3>'{}'; {script}", self.path().display()))
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("fifo")
    }

    fn line(&mut self) -> String {
        let (mut line, mut byte) = (String::new(), [0]);
        while !line.ends_with('\n') {
            self.both_ends.read_exact(&mut byte).unwrap();
            line.push(byte[0].into());
        }
        line
    }

    /// Returns its remaining content after the last writer has died.
    fn rest(self) -> String {
        let mut reader = File::open(self.path()).unwrap();
        drop(self.both_ends);
        let (mut rest, mut byte) = (String::new(), [0]);
        let patience = Timespec { tv_sec: 60, tv_nsec: 0 };
        loop {
            let mut polled = [PollFd::new(&reader, PollFlags::IN)];
            assert_eq!(poll(&mut polled, Some(&patience)), Ok(1), "a process is alive and holds it open");
            match reader.read(&mut byte).unwrap() {
                0 => return rest,
                _ => rest.push(byte[0].into()),
            }
        }
    }
}

/// Runs `script`, waits for its line in the FIFO and only then ends its time, so that no test depends on the speed of a
/// program.
fn time_out_after_line(fifo: &mut Fifo, script: &str, grace: Duration) -> String {
    let group = start_with_input(fifo.shell(script));
    let line = fifo.line();
    let patience = Patience { deadline: Instant::now(), grace, holders: Holders::CutOff };
    let stopped = attend(group, &bytes(8 * MIB), MIB, patience);
    assert!(matches!(stopped, Err(ProcessStop::TimedOut)), "{script}: {stopped:?}");
    line
}

fn start_with_input(mut command: Command) -> Group {
    command.stdin(Stdio::piped());
    Group::start(command).unwrap()
}

#[test]
fn output_errors_and_status_are_returned() {
    let finished = run(shell("cat; echo out; echo err >&2; exit 3"), ALLOWANCE).unwrap();
    assert_eq!(
        (finished.output.as_slice(), finished.errors.as_slice(), finished.status.code(), finished.is_cut),
        (b"out\n".as_slice(), b"err\n".as_slice(), Some(3), false)
    );
}

#[test]
fn input_comes_back_whole() {
    for count in [0, 1, MIB, 16 * MIB] {
        let input = bytes(count);
        check("cat", &input, &input);
    }
}

#[test]
fn input_need_not_be_read() {
    let input = bytes(8 * MIB);
    check("echo said", &input, b"said\n");
    check("exec <&-; echo closed", &input, b"closed\n");
    check("exec </dev/null; head -c 1000000 /dev/zero", &input, &vec![0; 1_000_000]);
    check("head -c 1000000 /dev/zero", &input, &vec![0; 1_000_000]);
    check("head -c 100000", &input, &input[..100_000]);
    check("dd bs=512 count=2000 2>/dev/null", &input, &input[..512 * 2000]);
}

#[test]
fn input_is_read_after_the_output_is_closed() {
    let mut fifo = Fifo::new();
    let input = bytes(MIB);
    let finished = run_with_input(fifo.shell("exec >&- 2>&-; wc -c >&3"), &input, ALLOWANCE).unwrap();
    assert_eq!((finished.status.code(), fifo.line().trim()), (Some(0), "1048576"));
}

#[test]
fn of_the_errors_the_first_are_kept() {
    let script = "echo first >&2; head -c 1000000 /dev/zero >&2; echo out";
    let finished = run_with_input(shell(script), &bytes(8 * MIB), ALLOWANCE).unwrap();
    let mut expected = b"first\n".to_vec();
    expected.resize(PROGRAM_ERROR_BYTES_MAX, 0);
    assert_eq!((finished.output, finished.errors), (b"out\n".to_vec(), expected));
}

#[test]
fn a_program_may_clean_up_when_its_time_is_up() {
    let mut fifo = Fifo::new();
    // Its last output fills the pipe several times over.
    let script = "trap 'head -c 500000 /dev/zero; echo clean >&3; exit' TERM; echo ready >&3; sleep 600";
    let line = time_out_after_line(&mut fifo, script, Duration::from_mins(5));
    assert_eq!((line.as_str(), fifo.rest().as_str()), ("ready\n", "clean\n"));
}

/// Row T9.
#[test]
fn a_program_that_ignores_the_signal_is_killed_with_all_it_started() {
    let mut fifo = Fifo::new();
    let script = "trap '' TERM; sleep 600 & (sleep 600 &) ; echo $$ >&3; while :; do sleep 600; done";
    let line = time_out_after_line(&mut fifo, script, GRACE);
    assert_eq!(fifo.rest(), "");
    let id = Pid::from_raw(line.trim().parse().unwrap()).unwrap();
    let reaped = waitid(WaitId::Pid(id), WaitIdOptions::EXITED | WaitIdOptions::NOHANG);
    assert_eq!(reaped.err(), Some(Errno::CHILD), "a zombie is left");
}

#[test]
fn what_a_program_started_ends_with_it() {
    let fifo = Fifo::new();
    let finished = run(fifo.shell("sleep 600 >/dev/null 2>&1 & echo done"), ALLOWANCE).unwrap();
    assert_eq!((finished.output.as_slice(), finished.is_cut), (b"done\n".as_slice(), false));
    assert_eq!(fifo.rest(), "");
}

#[test]
fn what_holds_the_output_open_is_cut_off_after_a_grace_period() {
    let fifo = Fifo::new();
    let script = "sleep 600 & head -c 200000 /dev/zero; exit 3";
    let finished = run_with_input(fifo.shell(script), &bytes(8 * MIB), ALLOWANCE).unwrap();
    assert_eq!((finished.output.len(), finished.status.code(), finished.is_cut), (200_000, Some(3), true));
    assert_eq!(fifo.rest(), "");
}

/// All output of the program counts, even if the time was up before it was read.
#[test]
fn output_is_whole_when_its_holder_is_cut_off_at_once() {
    let mut fifo = Fifo::new();
    let script = "sleep 600 & head -c 60000 /dev/zero; echo complaint >&2; echo ready >&3";
    let group = start_with_input(fifo.shell(script));
    fifo.line();
    waitid(WaitId::Pid(group.id), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT).unwrap();
    let patience = Patience { deadline: Instant::now(), grace: Duration::ZERO, holders: Holders::CutOff };
    let finished = attend(group, b"{}", MIB, patience).unwrap();
    assert_eq!(
        (finished.output.len(), finished.errors.as_slice(), finished.is_cut),
        (60_000, b"complaint\n".as_slice(), true)
    );
    assert_eq!(fifo.rest(), "");
}

#[test]
fn what_holds_the_output_open_may_finish_within_the_grace_period() {
    let patience = Patience { grace: ALLOWANCE.time, ..Patience::new(ALLOWANCE, Holders::CutOff) };
    let group = start_with_input(shell("echo early; (echo late) &"));
    let finished = attend(group, b"{}", MIB, patience).unwrap();
    assert_eq!((finished.output.as_slice(), finished.is_cut), (b"early\nlate\n".as_slice(), false));
}

#[test]
fn without_input_a_held_output_is_awaited_until_the_deadline() {
    let fifo = Fifo::new();
    let stopped = run(fifo.shell("sleep 600 & echo done"), BRIEF);
    assert!(matches!(stopped, Err(ProcessStop::TimedOut)), "{stopped:?}");
    assert_eq!(fifo.rest(), "");
}

/// Row G8.
#[test]
fn a_program_that_hangs_is_stopped() {
    for script in ["sleep 600", "exec >&- 2>&-; sleep 600", "while :; do echo >&2; done"] {
        let fifo = Fifo::new();
        let stopped = run_with_input(fifo.shell(script), &bytes(8 * MIB), BRIEF);
        assert!(matches!(stopped, Err(ProcessStop::TimedOut)), "{script}: {stopped:?}");
        assert_eq!(fifo.rest(), "", "{script}");
    }
}

#[test]
fn a_program_that_floods_is_stopped() {
    let check = |script: &str, run: &dyn Fn(Command) -> Result<ProcessOutput, ProcessStop>| {
        let fifo = Fifo::new();
        let stopped = run(fifo.shell(script));
        assert!(matches!(stopped, Err(ProcessStop::TooMuchOutput)), "{script}: {stopped:?}");
        assert_eq!(fifo.rest(), "", "{script}");
    };
    let input = bytes(8 * MIB);
    for script in ["yes", "trap '' TERM; yes", "exec <&-; yes", "yes & wait"] {
        check(script, &|command| run(command, ALLOWANCE));
        check(script, &|command| run_with_input(command, &input, ALLOWANCE));
    }
    check("yes & exit", &|command| run(command, ALLOWANCE));
}

#[test]
fn a_program_that_is_none_cannot_start() {
    for path in ["/nonexistent", "/dev/null", "/"] {
        let stopped = run_with_input(Command::new(path), &bytes(MIB), ALLOWANCE);
        assert!(matches!(stopped, Err(ProcessStop::CannotStart(_))), "{path}: {stopped:?}");
        let stopped = run(Command::new(path), ALLOWANCE);
        assert!(matches!(stopped, Err(ProcessStop::CannotStart(_))), "{path}: {stopped:?}");
    }
}

/// Checks that a program has limits while it runs, and exceeds them without them.
#[cfg(target_os = "linux")]
#[test]
fn memory_and_files_have_limits() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    // It reads its limits as the kernel has them, once they are there.
    let limits = "until ulimit -d | grep -q '^[0-9]'; do :; done; ulimit -d";
    let output = run(shell(limits), ALLOWANCE).unwrap().output;
    assert_eq!(String::from_utf8_lossy(&output).trim(), (64 << 10).to_string());
    let wait = "until ulimit -d | grep -q '^[0-9]'; do :; done;";
    let memory = |mib: usize| format!("{wait} exec dd if=/dev/zero of=/dev/null bs={mib}M count=1");
    let write = |kib: usize| format!("{wait} exec dd if=/dev/zero of='{}' bs={kib}k count=1", file.display());
    for (script, is_refused) in
        [(memory(16), false), (memory(256), true), (write(64), false), (write(4096), true)]
    {
        let finished = run(shell(&script), ALLOWANCE).unwrap();
        assert_eq!(!finished.status.success(), is_refused, "{script}: {finished:?}");
        let plain = run_with_input(shell(&script.replace(wait, "")), b"", ALLOWANCE).unwrap();
        assert!(plain.status.success(), "control: without limits it works: {script}");
    }
    assert!(file.metadata().unwrap().len() == 4 << 20, "control");
}

/// A program that opens a FIFO is not waited for until its deadline, which is five minutes here.
#[cfg(target_os = "linux")]
#[test]
fn a_program_that_waits_for_a_fifo_is_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("fifo");
    mknodat(CWD, &path, FileType::Fifo, 0o600.into(), 0).unwrap();
    let stopped = run(shell(&format!("exec cat '{}'", path.display())), ALLOWANCE);
    assert!(matches!(stopped, Err(ProcessStop::WaitsForFifo)), "{stopped:?}");
    // The control: one that is merely slow is waited for.
    let finished = run(shell("sleep 0.3; echo done"), ALLOWANCE).unwrap();
    assert_eq!(finished.output, b"done\n");
}
