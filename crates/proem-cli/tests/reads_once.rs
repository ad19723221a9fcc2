//! The number of times that a first turn reads settings and starts git. strace counts both.

use std::collections::BTreeMap;
use std::fs;
use std::process::{Command, Stdio};

use crate::desk::Desk;
use crate::served::Server;

/// A profile whose prompt has files, skills and every fact of git.
const PROFILE: &str = "extends = \"boundary\"\n";

/// Makes a repository with settings of the user and of the workspace.
fn desk() -> Desk {
    let desk = Desk::new();
    desk.write("../.config/proem/proem.toml", b"[check]\n")
        .write("../.config/proem/models.toml", b"")
        .write("../.config/proem/profiles/mine.toml", PROFILE.as_bytes())
        .write(".proem/proem.toml", b"profile = \"mine\"\n")
        .write("AGENTS.md", b"Use tabs.\n")
        .write("skills/one/SKILL.md", b"---\nname: one\ndescription: One.\n---\nBody.\n");
    for arguments in [&["init", "-q", "-b", "main"][..], &["add", "-A"], &["commit", "-q", "-m", "First"]] {
        proem_testkit::git(&desk.work(), &arguments.iter().map(ToString::to_string).collect::<Vec<_>>());
    }
    desk.write("AGENTS.md", b"Use spaces.\n");
    desk
}

/// Returns the command below strace, with the log of its calls in `trace`.
fn traced(desk: &Desk, arguments: &[&str]) -> Command {
    let plain = desk.command(arguments);
    let mut traced = Command::new("strace");
    traced.args(["-f", "--seccomp-bpf", "-qq", "-s", "4096", "-e", "signal=none"]);
    traced.args(["-e", "trace=openat,openat2,execve", "-o"]).arg(desk.root.path().join("trace"));
    traced.arg(plain.get_program()).args(plain.get_args()).current_dir(desk.work()).env_clear();
    traced.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?)))).stdin(Stdio::null());
    traced
}

/// Tells whether programs can be traced here.
fn is_traceable() -> bool {
    let traced = Command::new("strace").args(["-qq", "-o", "/dev/null", "true"]).output();
    let is_traceable = traced.is_ok_and(|output| output.status.success());
    assert!(is_traceable || std::env::var_os("PROEM_REQUIRE_STRACE").is_none(), "strace cannot be run");
    is_traceable
}

/// Returns the calls that are made more than once: opened settings and sources, and commands of git.
fn repeated(desk: &Desk) -> (BTreeMap<String, usize>, Vec<String>) {
    let log = fs::read_to_string(desk.root.path().join("trace")).unwrap();
    let root = desk.root.path().to_str().unwrap();
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for call in log.lines().filter(|call| !call.contains("= -1")) {
        let opened = call.split('"').nth(1).filter(|path| call.contains("open") && path.starts_with(root));
        let is_source = |path: &&str| [".toml", ".md", "/HEAD"].iter().any(|end| path.ends_with(end));
        let started = call.contains("execve(").then(|| call.split_once('[')).flatten();
        let started = started.and_then(|(_, rest)| rest.split_once(']')).map(|(arguments, _)| arguments);
        for seen in opened.filter(is_source).into_iter().chain(started) {
            *counts.entry(seen.replace(root, "{root}")).or_default() += 1;
        }
    }
    let seen = counts.keys().cloned().collect();
    counts.retain(|_, count| *count > 1);
    (counts, seen)
}

fn check(desk: &Desk) {
    let (repeated, seen) = repeated(desk);
    assert_eq!(repeated, BTreeMap::new());
    for expected in [
        "{root}/.config/proem/proem.toml",
        "{root}/.config/proem/profiles/mine.toml",
        "{root}/work/.proem/proem.toml",
        "{root}/work/AGENTS.md",
        "{root}/work/skills/one/SKILL.md",
    ] {
        assert!(seen.iter().any(|path| path == expected), "control: {expected} is read; seen: {seen:#?}");
    }
    assert!(seen.iter().any(|call| call.contains("\"status\"")), "control: git is asked; seen: {seen:#?}");
}

#[test]
fn a_first_turn_reads_each_file_once_and_asks_git_once() {
    if !is_traceable() {
        return;
    }
    let desk = desk();
    let turn = ["turn", "--conversation", "c", "--store", "c.db", "--prompt", "Hello", "--format", "json"];
    let output = traced(&desk, &turn).output().unwrap();
    assert_eq!((output.status.code(), desk.said(&output.stderr)), (Some(0), String::new()));
    check(&desk);
}

#[test]
fn a_first_turn_over_http_reads_each_file_once_and_asks_git_once() {
    if !is_traceable() {
        return;
    }
    let desk = desk();
    let serve = ["serve", "--listen", "127.0.0.1:0", "--store", "memory:"];
    let server = Server::spawn(&mut traced(&desk, &serve));
    // Settings of the server itself are read when it starts.
    let at_start = fs::read_to_string(desk.root.path().join("trace")).unwrap().lines().count();
    let cwd = desk.work().to_str().unwrap().to_owned();
    let (status, answer) =
        server.ask("POST", "/conversations/c/turn", &format!("{{\"cwd\": {cwd:?}, \"prompt\": \"Hello\"}}"));
    assert_eq!(status, 200, "{answer}");
    assert_eq!(server.stop_traced(), Some(0));
    let path = desk.root.path().join("trace");
    let log = fs::read_to_string(&path).unwrap();
    let of_turn: Vec<&str> = log.lines().skip(at_start).collect();
    fs::write(path, of_turn.join("\n")).unwrap();
    check(&desk);
}
