//! `proem turn` and the programs that take part in it: what they see of the machine, and which ones run.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up must stop")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use serde_json::Value;

use crate::desk::Desk;

const TURN: [&str; 5] = ["turn", "--prompt-text", "Hello", "--format", "json"];

/// Writes the user's configuration; `{root}` in it is the desk's own path.
fn configure(desk: &Desk, text: &str) {
    let text = text.replace("{root}", desk.root.path().to_str().unwrap());
    desk.write("../.config/proem/proem.toml", text.as_bytes());
}

/// A hook that runs `script` in a shell.
fn shell(event: &str, script: &str, keys: &str) -> String {
    let script = serde_json::to_string(script).unwrap();
    format!("[[hook]]\nevent = \"{event}\"\ncommand = [\"/bin/sh\", \"-c\", {script}]\n{keys}\n")
}

/// Writes a program that leaves its word.
fn program(desk: &Desk, path: &str, word: &str) {
    let said = desk.root.path().join("said");
    desk.write(path, format!("#!/bin/sh\necho {word} >>'{}'\n", said.display()).as_bytes());
    fs::set_permissions(desk.work().join(path), fs::Permissions::from_mode(0o755)).unwrap();
}

/// Takes the output that the programs left.
fn left(desk: &Desk) -> String {
    let path = desk.root.path().join("said");
    let said = fs::read_to_string(&path).unwrap_or_default();
    drop(fs::remove_file(path));
    said
}

/// Runs a turn and returns the messages of its notes about hooks.
fn notes(desk: &Desk, command: &mut Command) -> Vec<String> {
    let output = command.output().unwrap();
    assert_eq!((output.status.code(), desk.said(&output.stderr)), (Some(0), String::new()));
    let turn: Value = serde_json::from_slice(&output.stdout).unwrap();
    let of_hooks = |note: &&Value| note["code"] == "hook_failed" || note["code"] == "ignored_setting";
    let all = turn["notes"].as_array().unwrap().iter().filter(of_hooks);
    all.map(|note| desk.said(note["message"].as_str().unwrap().as_bytes())).collect()
}

/// Row T8.
#[test]
fn a_program_sees_the_usual_variables_and_the_declared_ones() {
    let script = "tr '\\0' '\\n' </proc/$$/environ >'{root}/seen'";
    for (keys, declared) in [
        ("", ""),
        ("env = []", ""),
        ("env = [\"DECLARED\", \"NOT_SET\", \"\", \"A=B\", \"PATH\"]", "DECLARED=a b\n"),
        ("env = [\"CANARY\"]", "CANARY=secret\n"),
    ] {
        let desk = Desk::of("layers");
        configure(&desk, &shell("before_agent_start", script, keys));
        let mut command = desk.command(&TURN);
        command.env("LANG", "C.UTF-8").env("TZ", "UTC").env("LC_ALL", "C").env("PATH", "/usr/bin:/bin");
        command.env("CANARY", "secret").env("DECLARED", "a b").env("A", "B").env("LD_LIBRARY_PATH", "/none");
        command
            .env("PROEM_CANARY", "secret")
            .env("SSH_AUTH_SOCK", "/none")
            .env("IFS", "x")
            .env("ENV", "/none");
        assert_eq!(notes(&desk, &mut command), [""; 0]);
        let seen = desk.said(&fs::read(desk.root.path().join("seen")).unwrap());
        let mut seen: Vec<&str> = seen.lines().collect();
        seen.sort_unstable();
        let expected = format!("{declared}HOME={{root}}\nLANG=C.UTF-8\nPATH=/usr/bin:/bin\nTZ=UTC\n");
        assert_eq!(seen, expected.lines().collect::<Vec<_>>(), "{keys}");
    }
}

/// Row T7.
#[test]
fn a_bare_name_is_never_taken_from_the_working_directory() {
    let desk = Desk::of("layers");
    configure(&desk, "[[hook]]\nevent = \"before_agent_start\"\ncommand = [\"tool\"]\n");
    program(&desk, "tool", "workspace");
    program(&desk, "sub/tool", "workspace");
    program(&desk, "../bin/tool", "user");
    let bin = desk.root.path().join("bin");
    let none = "the hook `tool` is skipped at `before_agent_start`: there is no program `tool` in PATH";
    for path in ["", ".", ":", "./", "sub", "./sub", "../work", "::.", "/nowhere:", "//nowhere/../nowhere:."]
    {
        let mut control = Command::new("/bin/sh");
        control.args(["-c", "tool"]).current_dir(desk.work()).env_clear().env("PATH", path);
        drop(control.output().unwrap());
        let is_trap = left(&desk) == "workspace\n";
        assert!(is_trap || path.is_empty(), "control: a shell takes it from the workspace with {path:?}");
        assert_eq!(notes(&desk, desk.command(&TURN).env("PATH", path)), [none], "{path:?}");
        assert_eq!(left(&desk), "", "{path:?}");
        let path = format!("{path}:{}", bin.display());
        assert_eq!(notes(&desk, desk.command(&TURN).env("PATH", &path)), [""; 0], "{path:?}");
        assert_eq!(left(&desk), "user\n", "{path:?}");
    }
    assert_eq!(notes(&desk, desk.command(&TURN).env_remove("PATH")), [none]);
    assert_eq!(notes(&desk, desk.command(&TURN).env("PATH", desk.work())), [""; 0]);
    assert_eq!(left(&desk), "workspace\n", "control: by its whole path it runs");
}

/// Row T3: no command, whatever it is for, runs what the workspace names.
#[test]
fn hooks_of_the_workspace_run_at_no_command() {
    let desk = Desk::of("layers");
    let events = ["resources_discover", "before_agent_start", "context"];
    let said = desk.root.path().join("said");
    let hooks =
        events.map(|event| shell(event, &format!("echo {event} >>'{}'", said.display()), "")).concat();
    desk.write(".proem/proem.toml", hooks.as_bytes());
    desk.write(".env", format!("PROEM_CONFIG_DIR={}\n", desk.work().join(".proem").display()).as_bytes());
    let commands: [&[&str]; 7] = [
        &TURN,
        &["turn", "--prompt-text", "Hello"],
        &["build"],
        &["explain"],
        &["skills", "list"],
        &["skills", "check"],
        &["config"],
    ];
    for arguments in commands {
        assert!(desk.run(arguments).status.success(), "{arguments:?}");
        assert_eq!(left(&desk), "", "{arguments:?}");
    }
    let ignored = "`[[hook]]` in {root}/work/.proem/proem.toml is ignored: a workspace may not set it";
    assert_eq!(notes(&desk, &mut desk.command(&TURN)), [ignored]);
    let config = desk.work().join(".proem");
    assert_eq!(notes(&desk, desk.command(&TURN).env("PROEM_CONFIG_DIR", config)), [ignored]);
    assert_eq!(left(&desk), events.map(|event| event.to_owned() + "\n").concat(), "control");
}

/// Row T9.
#[test]
fn a_failing_hook_costs_a_warning_and_not_the_turn() {
    let desk = Desk::of("template");
    configure(&desk, &shell("context", "printf '\\033[2J' >&2; exit 1", "name = \"clean\\u001b[2J\""));
    let output = desk.run(&["turn", "--prompt-text", "Hello"]);
    assert_eq!(
        desk.said(&output.stderr),
        "warning: the hook `clean\\u{1b}[2J` is skipped at `context`: exit status: 1: \\u{1b}[2J \
         (hook clean<U+001B>[2J)\n"
    );
    assert_eq!(output.status.code(), Some(0));
    assert!(desk.said(&output.stdout).contains("== Messages (1)\n[user]\nHello\n"));
}

/// Row T7: an invalid hook is an error, because the user relies on that hook.
#[test]
fn a_command_line_as_text_is_refused() {
    let desk = Desk::of("template");
    configure(&desk, "[[hook]]\nevent = \"context\"\ncommand = \"tool --flag\"\n");
    desk.refuses(
        &TURN,
        2,
        "error: cannot use the configuration {root}/.config/proem/proem.toml: line 3, column 11: invalid \
         type: string \"tool --flag\", expected a list such as [\"program\", \"argument\"]: hooks run \
         without a shell\n  |\n3 | command = \"tool --flag\"\n  |           ^\n",
    );
}

/// The facts of a turn are observed again, and what fails again is one thing to read about.
#[test]
fn a_warning_of_prompt_and_turn_is_printed_once() {
    let desk = Desk::new();
    assert!(Command::new("git").args(["init", "-q"]).arg(desk.work()).status().unwrap().success());
    program(&desk, "../bin/git", "asked");
    desk.write("../bin/git", b"#!/bin/sh\nexit 3\n");
    let path = desk.root.path().join("bin");
    let mut command = desk.command(&["turn", "--prompt-text", "Hello"]);
    let output = command.env("PATH", &path).output().unwrap();
    let mut lines: Vec<String> = desk.said(&output.stderr).lines().map(str::to_owned).collect();
    let printed = lines.len();
    lines.sort_unstable();
    lines.dedup();
    assert!(printed > 0 && lines.len() == printed, "{}", desk.said(&output.stderr));
    let output = desk.command(&TURN).env("PATH", &path).output().unwrap();
    let turn: Value = serde_json::from_slice(&output.stdout).unwrap();
    let notes = turn["notes"].as_array().unwrap();
    let failed: Vec<&Value> = notes.iter().filter(|note| note["code"] == "git_failed").collect();
    assert!(!failed.is_empty(), "{turn}");
    assert!(failed.iter().all(|note| notes.iter().filter(|other| other == note).count() == 1), "{turn}");
}
