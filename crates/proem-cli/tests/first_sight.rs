//! T1: the first look at a repository that a stranger made runs nothing of it, whatever the command. Every program that is
//! started is counted.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up must stop")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use crate::desk::Desk;

/// Commands that look at the working directory.
const COMMANDS: [&[&str]; 12] = [
    &["build"],
    &["build", "-p", "template", "--var", "a:b=c"],
    &["build", "-p", "layers", "--format", "json"],
    &["explain"],
    &["vars"],
    &["check"],
    &["compat"],
    &["turn", "--prompt-text", "Hello"],
    &["skills", "list"],
    &["config"],
    &["profile", "list"],
    &["diff", "git:HEAD"],
];

/// A repository in which everything that can name a program names one that leaves a canary.
fn hostile(desk: &Desk) {
    let canary = desk.root.path().join("canary");
    let script = format!("#!/bin/sh\necho \"$0 $*\" >> '{}'\n", canary.display());
    desk.write("AGENTS.md", b"Be brief.\n").write("file.txt", b"one\n");
    git(desk, &["init", "--quiet", "--initial-branch=main"]);
    git(desk, &["add", "."]);
    git(desk, &["-c", "user.name=x", "-c", "user.email=x@example.org", "commit", "--quiet", "--message=x"]);
    for path in
        ["run", ".git/hooks/post-index-change", ".git/hooks/pre-commit", ".proem/hooks/own", "git", "sh"]
    {
        desk.write(path, script.as_bytes());
        fs::set_permissions(desk.work().join(path), fs::Permissions::from_mode(0o755)).unwrap();
    }
    let run = desk.work().join("run");
    let run = run.display();
    for (key, value) in [
        ("core.fsmonitor", format!("{run}")),
        ("core.pager", format!("{run}")),
        ("core.sshCommand", format!("{run}")),
        ("core.editor", format!("{run}")),
        ("filter.x.clean", format!("{run}")),
        ("filter.x.process", format!("{run}")),
        ("diff.external", format!("{run}")),
        ("diff.x.textconv", format!("{run}")),
        ("gpg.program", format!("{run}")),
    ] {
        git(desk, &["config", key, &value]);
    }
    let hooks: String = ["resources_discover", "before_agent_start", "context"]
        .map(|event| format!("[[hook]]\nevent = \"{event}\"\ncommand = [\"hooks/own\"]\n"))
        .concat();
    desk.write(".proem/proem.toml", hooks.as_bytes())
        .write(".gitattributes", b"* filter=x diff=x\n")
        .write(".env", format!("PATH={run}\nPROEM_PROFILE=stolen\n").as_bytes())
        .write("file.txt", b"two\n");
}

fn git(desk: &Desk, arguments: &[&str]) {
    assert!(plain_git(desk, arguments), "{arguments:?}");
}

/// Runs git as it comes; tells whether it succeeds.
fn plain_git(desk: &Desk, arguments: &[&str]) -> bool {
    let mut command = Command::new("git");
    command.args(arguments).current_dir(desk.work()).env("GIT_CONFIG_GLOBAL", "/dev/null");
    command.output().unwrap().status.success()
}

/// Takes the names of the programs that ran since the last call.
fn sung(desk: &Desk) -> String {
    let path = desk.root.path().join("canary");
    let said = fs::read_to_string(&path).unwrap_or_default();
    drop(fs::remove_file(path));
    said
}

/// The programs that a command started, itself included; none where they cannot be counted.
fn started(desk: &Desk, arguments: &[&str]) -> Option<Vec<String>> {
    let log = desk.root.path().join("trace");
    let plain = desk.command(arguments);
    let mut traced = Command::new("strace");
    traced.args(["-f", "-qq", "-e", "trace=execve", "-e", "signal=none", "-o"]).arg(&log);
    traced.arg(plain.get_program()).args(plain.get_args()).current_dir(desk.work()).env_clear();
    traced.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
    traced.stdin(Stdio::null()).output().ok()?;
    let text = fs::read_to_string(log).ok()?;
    let calls = text.lines().filter(|line| line.contains("execve(") && line.contains(" = 0"));
    Some(calls.map(|line| line.split('"').nth(1).unwrap_or_default().to_owned()).collect())
}

/// Row T1.
#[test]
fn the_first_look_at_a_repository_runs_nothing_of_it() {
    let desk = Desk::new();
    hostile(&desk);
    plain_git(&desk, &["status"]);
    assert!(!sung(&desk).is_empty(), "control: plain git runs what the repository names");
    let own = env!("CARGO_BIN_EXE_proem");
    for arguments in COMMANDS {
        let output = desk.run(arguments);
        assert!(
            output.status.code().is_some_and(|code| code < 3),
            "{arguments:?}: {}",
            desk.said(&output.stderr)
        );
        assert_eq!(sung(&desk), "", "{arguments:?}");
        let Some(programs) = started(&desk, arguments) else {
            assert!(std::env::var_os("PROEM_REQUIRE_STRACE").is_none(), "strace cannot be run");
            continue;
        };
        let foreign = |program: &&String| **program != own && !is_of_system(program);
        let foreign: Vec<&String> = programs.iter().filter(foreign).collect();
        assert!(foreign.is_empty(), "{arguments:?} starts {foreign:?}");
        assert!(programs.iter().any(|program| program == own), "control: programs are counted");
    }
}

/// Git itself, where the system has it.
fn is_of_system(program: &str) -> bool {
    ["/usr/", "/bin/", "/opt/", "/nix/"].iter().any(|place| program.starts_with(place))
        && program.rsplit('/').next().is_some_and(|name| name.starts_with("git"))
}
