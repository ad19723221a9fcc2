//! Programs that hang, flood, ignore signals or leave others behind.

use std::fs::File;
use std::io::Read;
use std::path::PathBuf;

use proem::Engine;
use proem_core::note::Code;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{CWD, FileType, mknodat};

use crate::site::{Site, hook, hook_with, said};

/// Short for a program that never ends; a program that reports its start first has enough time for it.
const BRIEF: &str = "timeout_ms = 1500";
/// Long enough for any machine.
const PATIENT: &str = "timeout_ms = 300000";

/// Shows which processes are alive: a program writes to it, and all that hold it open for writing are dead when reading
/// gives the end of file.
struct Fifo {
    path: PathBuf,
    both_ends: File,
}

impl Fifo {
    fn new(site: &Site) -> Self {
        let path = site.path("fifo");
        mknodat(CWD, &path, FileType::Fifo, 0o600.into(), 0).unwrap();
        let both_ends = File::options().read(true).write(true).open(&path).unwrap();
        Self { path, both_ends }
    }

    /// Returns its content after the last writer has died.
    fn reported(self) -> String {
        let mut reader = File::open(&self.path).unwrap();
        drop(self.both_ends);
        let (mut reported, mut byte) = (String::new(), [0]);
        let patience = Timespec { tv_sec: 60, tv_nsec: 0 };
        loop {
            let mut polled = [PollFd::new(&reader, PollFlags::IN)];
            assert_eq!(poll(&mut polled, Some(&patience)), Ok(1), "a process is alive and holds it open");
            match reader.read(&mut byte).unwrap() {
                0 => return reported,
                _ => reported.push(byte[0].into()),
            }
        }
    }
}

/// Runs a program that reports its id and runs `script`, between two good ones.
fn check(script: &str, keys: &str, expected: Result<&str, &str>) {
    let script = format!("exec 3>'{{root}}/fifo'; echo $$ >&3; {script}");
    let site = Site::with_hooks(&[
        hook_with("good", "before_agent_start", r#"echo '{"system_prompt": "good"}'"#, PATIENT),
        hook_with("odd", "before_agent_start", &script, keys),
        hook_with("last", "before_agent_start", r#"echo '{"message": "last"}'"#, PATIENT),
    ]);
    let fifo = Fifo::new(&site);
    let turn = site.start(&Engine::new()).turn(&said(&"x".repeat(4 << 20)));
    // The program itself must be reaped; its children are reaped by the system.
    let reported = fifo.reported();
    let (id, rest) = reported.split_once('\n').unwrap_or_else(|| panic!("it never ran: {script}"));
    assert!(!PathBuf::from(format!("/proc/{id}")).exists(), "{script}: {id} is still there");
    assert_eq!(rest, "", "{script}: a process lived long enough to report again");
    let failed: Vec<String> = expected
        .err()
        .map(|why| format!("the hook `odd` is skipped at `before_agent_start`: {why}"))
        .into_iter()
        .collect();
    assert_eq!(site.noted(&turn.notes, Code::HookFailed), failed, "{script}");
    assert_eq!(turn.system_prompt, expected.unwrap_or("good"), "{script}");
    assert_eq!((turn.messages.len(), &turn.messages[1]["content"]), (2, &"last".into()), "{script}");
}

const LATE: Result<&str, &str> = Err("it took longer than 1500 ms");

/// Row T9.
#[test]
fn what_hangs_is_stopped() {
    check("sleep 600", BRIEF, LATE);
    check("exec sleep 600", BRIEF, LATE);
    // Its output is closed, and it goes on.
    check("exec >&- 2>&-; sleep 600", BRIEF, LATE);
}

#[test]
fn what_has_answered_and_hangs_has_not_answered() {
    check(r#"echo '{"system_prompt": "late"}'; sleep 600"#, BRIEF, LATE);
}

/// Row T9.
#[test]
fn what_ignores_signals_is_killed() {
    check("trap '' TERM INT HUP PIPE; sleep 600; sleep 600; echo late >&3", BRIEF, LATE);
    check("trap 'sleep 600' TERM; sleep 600", BRIEF, LATE);
}

/// Row T9.
#[test]
fn what_starts_others_takes_them_along() {
    check("sleep 600 & sleep 600 & (sleep 600; echo late >&3) & wait", BRIEF, LATE);
    check("trap '' TERM; (trap '' TERM; sleep 600; echo late >&3) & wait", BRIEF, LATE);
}

/// Row T9.
#[test]
fn what_is_left_in_the_background_dies_and_the_answer_counts() {
    let answer = r#"echo '{"system_prompt": "answered"}'"#;
    check(&format!("(sleep 600; echo late >&3) & {answer}"), PATIENT, Ok("answered"));
    check(&format!("(trap '' TERM; sleep 600) >/dev/null 2>&1 & {answer}"), PATIENT, Ok("answered"));
    check("(sleep 600) & exit 2", PATIENT, Err("exit status: 2"));
}

/// Row T9.
#[test]
fn floods_are_cut() {
    check("yes", PATIENT, Err("it printed more than 65536 bytes"));
    check("yes", "timeout_ms = 300000\noutput_bytes_max = 10", Err("it printed more than 10 bytes"));
    check("yes & yes & wait", PATIENT, Err("it printed more than 65536 bytes"));
    check("yes >&2", BRIEF, LATE);
}

/// Row T9, the control.
#[test]
fn output_may_be_as_long_as_the_configuration_says() {
    let script = |count: usize| {
        format!(r#"printf '{{"system_prompt":"'; head -c {count} /dev/zero | tr '\0' y; printf '"}}'"#)
    };
    let text = "y".repeat(65536 - 20);
    check(&script(text.len()), PATIENT, Ok(&text));
    check(&script(text.len() + 1), PATIENT, Err("it printed more than 65536 bytes"));
    let text = "y".repeat(1 << 20);
    check(&script(text.len()), "timeout_ms = 300000\noutput_bytes_max = 1048596", Ok(&text));
}

/// Row T9, the control: all of these get a prompt of 4 MiB on standard input.
#[test]
fn nobody_has_to_read_standard_input() {
    let answer = r#"echo '{"system_prompt": "answered"}'"#;
    check(answer, PATIENT, Ok("answered"));
    check(&format!("exec <&-; {answer}"), PATIENT, Ok("answered"));
    check(&format!("head -c 10 >/dev/null; {answer}"), PATIENT, Ok("answered"));
    check(&format!("{answer}; cat >/dev/null"), PATIENT, Ok("answered"));
    check(&format!("sleep 600 <&0 & {answer}"), PATIENT, Ok("answered"));
    check("sleep 600 <&0", BRIEF, LATE);
}

#[test]
fn complaints_are_cut() {
    let complaint = "e".repeat(4096);
    check(
        "head -c 100000 /dev/zero | tr '\\0' e >&2; exit 1",
        PATIENT,
        Err(&format!("exit status: 1: {complaint}")),
    );
}

#[test]
fn programs_that_cannot_be_started_are_named() {
    for (command, expected) in [
        (r#"["no-such-program-of-ours"]"#, "there is no program `no-such-program-of-ours` in PATH"),
        (r#"["./none"]"#, "{root}/config/./none cannot be started: no such file or directory"),
        (r#"["{root}/config"]"#, "{root}/config cannot be started: permission denied"),
        (r#"["{root}/config/plain"]"#, "{root}/config/plain cannot be started: permission denied"),
        (r#"["/dev/null"]"#, "/dev/null cannot be started: permission denied"),
        (r#"["."]"#, "there is no program `.` in PATH"),
        (r#"[".."]"#, "there is no program `..` in PATH"),
        (r#"["/bin/sh", "-c", "a\u0000b"]"#, "/bin/sh cannot be started: nul byte found in provided data"),
    ] {
        let bad = format!("[[hook]]\nname = \"bad\"\nevent = \"before_agent_start\"\ncommand = {command}\n");
        let good = hook("good", "before_agent_start", r#"echo '{"system_prompt": "good"}'"#);
        let site = Site::with_hooks(&[bad, good]);
        site.write("config/plain", "#!/bin/sh\n");
        let turn = site.start(&Engine::new()).turn(&said("Hello"));
        let expected = format!("the hook `bad` is skipped at `before_agent_start`: {expected}");
        assert_eq!(site.noted(&turn.notes, Code::HookFailed), [expected], "{command}");
        assert_eq!(turn.system_prompt, "good", "{command}");
    }
}

/// Row T8: a hook does not get the environment of this process, such as the variables of `cargo test`.
#[test]
fn a_program_sees_no_variable_of_this_process() {
    const OWN: &str = "CARGO_MANIFEST_DIR";
    let script = "tr '\\0' '\\n' </proc/$$/environ >'{root}/seen'";
    let site = Site::with_hooks(&[hook("spy", "before_agent_start", script)]);
    drop(site.start(&Engine::new()).turn(&said("x")));
    let seen = std::fs::read_to_string(site.path("seen")).unwrap();
    assert!(std::env::var_os(OWN).is_some(), "control");
    assert!(!seen.contains(OWN), "{seen}");
}
