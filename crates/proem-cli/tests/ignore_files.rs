//! Ignore files of a workspace that are not files, have no end, or are too many: each costs a note, with every command.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up must stop")]

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::desk::Desk;
use rustix::fs::{CWD, FileType, mknodat};

const COMMANDS: [&[&str]; 6] = [
    &["build", "-p", "goose"],
    &["explain", "-p", "goose"],
    &["compat"],
    &["check", "--as", "all"],
    &["skills", "list"],
    &["build"],
];

/// Puts something in the place of an ignore file.
type Put = fn(&Path);

const KINDS: [(&str, Put); 6] = [
    ("FIFO", |place| mknodat(CWD, place, FileType::Fifo, 0o644.into(), 0).unwrap()),
    ("/dev/zero", |place| symlink("/dev/zero", place).unwrap()),
    ("/proc/kmsg", |place| symlink("/proc/kmsg", place).unwrap()),
    ("/proc/self/environ", |place| symlink("/proc/self/environ", place).unwrap()),
    ("10 GiB", |place| File::create(place).unwrap().set_len(10 << 30).unwrap()),
    ("a folder", |place| fs::create_dir(place).unwrap()),
];

/// A workspace with an import and a skill.
fn workspace() -> Desk {
    let desk = Desk::new();
    desk.write(".git/HEAD", b"ref: refs/heads/main\n")
        .write("AGENTS.md", b"See @other.md here.\n")
        .write("other.md", b"IMPORTED\n")
        .write(".agents/skills/one/SKILL.md", b"---\nname: one\ndescription: Does one thing.\n---\n");
    desk
}

/// Output and messages of a command that may take 4 GiB of memory, and a minute: more than any machine needs for it.
fn run(desk: &Desk, arguments: &[&str]) -> (String, String) {
    let mut command = Command::new("timeout");
    command.args(["60", "sh", "-c", "ulimit -v 4194304; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_proem")]);
    command.args(arguments).current_dir(desk.work()).env_clear().env("HOME", desk.root.path());
    command.env("PATH", std::env::var_os("PATH").unwrap()).stdin(Stdio::null());
    let output = command.output().unwrap();
    let [out, err] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    // Findings of a check are not a failure.
    assert!(matches!(output.status.code(), Some(0 | 1)), "{arguments:?}: {}\n{err}", output.status);
    (out, err)
}

#[test]
fn ignore_files_that_are_none_cost_a_note() {
    for (kind, put) in KINDS {
        for name in [".gitignore", ".ignore", ".fdignore"] {
            for folder in ["", ".agents/skills", ".agents/skills/one"] {
                let desk = workspace();
                put(&desk.work().join(folder).join(name));
                for arguments in COMMANDS {
                    let (out, err) = run(&desk, arguments);
                    let case = format!("{kind} as {folder}/{name}, {arguments:?}\n{out}\n{err}");
                    let is_asked = name == ".gitignore" && folder.is_empty();
                    if arguments == ["build", "-p", "goose"] {
                        assert_eq!(out.contains("IMPORTED"), !is_asked, "{case}");
                        assert_eq!(
                            err.contains(".gitignore could not be used and may exclude it"),
                            is_asked,
                            "{case}"
                        );
                        assert_eq!(err.contains(&format!("work/{name} is left out")), is_asked, "{case}");
                    }
                    if arguments == ["skills", "list"] {
                        assert!(out.contains("one"), "{case}");
                        assert_eq!(
                            err.contains(&format!("{folder}/{name} is left out")),
                            !folder.is_empty(),
                            "{case}"
                        );
                    }
                }
            }
        }
    }
}

/// The control: an ignore file that can be read has its effect, and one that names something else has none.
#[test]
fn ignore_files_that_can_be_read_are_obeyed() {
    for (text, is_imported) in
        [("other.md\n", false), ("*.md\n!other.md\n", true), ("another.md\n", true), ("", true)]
    {
        let desk = workspace();
        desk.write(".gitignore", text.as_bytes());
        let (out, _) = run(&desk, &["build", "-p", "goose"]);
        assert_eq!(out.contains("IMPORTED"), is_imported, "{text:?}");
    }
    let desk = workspace();
    desk.write(".agents/skills/.ignore", b"one\n");
    let (out, _) = run(&desk, &["skills", "list"]);
    assert!(out.contains("ignored"), "{out}");
}

#[test]
fn many_ignore_files_share_one_budget() {
    let desk = workspace();
    let globs: String = (0..6_000).map(|number| format!("*a{number}*b\n")).collect::<Vec<_>>().concat();
    for number in 0..300 {
        let folder = format!(".agents/skills/s{number:03}");
        desk.write(
            &format!("{folder}/SKILL.md"),
            format!("---\nname: s{number:03}\ndescription: d\n---\n").as_bytes(),
        );
        desk.write(&format!("{folder}/.gitignore"), format!("{globs}SKILL.md\n").as_bytes());
    }
    let (out, err) = run(&desk, &["build"]);
    // Those that were read exclude their skills; the others exclude nothing, and one note says so.
    let listed = |number: usize| out.contains(&format!("s{number:03}/SKILL.md"));
    assert_eq!(
        (0..300).map(listed).collect::<Vec<_>>(),
        (0..300).map(|number| number >= 3).collect::<Vec<_>>()
    );
    assert_eq!(err.matches("do not count: over 256 KiB, 20000 patterns").count(), 1, "{err}");
    assert!(err.contains("s003/.gitignore and all ignore files behind it"), "{err}");
}
