//! The command in a stranger's site, with its system calls in a log.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use proem_testkit::hostile::Site;

/// The command in a hostile site, with nothing of this process's environment but `PATH`.
pub(crate) fn command(site: &Site, cwd: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_proem"));
    command.args(arguments).current_dir(site.path(cwd)).env_clear().env("HOME", site.path("home"));
    command.env("PATH", std::env::var_os("PATH").unwrap()).stdin(Stdio::null());
    command
}

/// Runs a command below strace. Returns its output, and the calls that it and its children made of those that `filter`
/// names; `None` without strace.
pub(crate) fn traced(site: &Site, plain: &Command, filter: &[&str]) -> Option<(Output, String)> {
    let log = site.path("trace");
    let mut traced = Command::new("strace");
    // Only the calls that are named stop the command, which makes it several times as fast.
    traced.args(["-f", "--seccomp-bpf", "-qq", "-e", "signal=none"]).args(filter).arg("-o").arg(&log);
    traced.arg(plain.get_program()).args(plain.get_args()).current_dir(plain.get_current_dir().unwrap());
    traced.env_clear().envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = traced.stdin(Stdio::null()).output().ok();
    let calls = fs::read_to_string(log).unwrap_or_default();
    let seen = output.filter(|_| !calls.is_empty()).map(|output| (output, calls));
    assert!(seen.is_some() || std::env::var_os("PROEM_REQUIRE_STRACE").is_none(), "strace cannot be run");
    seen
}

/// The programs that were started, or would have been, had they been there.
fn programs(calls: &str) -> Vec<&str> {
    let lines = calls.lines().filter(|line| line.contains("execve("));
    lines.map(|line| line.split('"').nth(1).unwrap_or_default()).collect()
}

/// Git, and not one of the site's.
fn is_git(program: &str) -> bool {
    program.rsplit('/').next() == Some("git") && !program.starts_with("/tmp")
}

/// Checks that the command itself and git were started, and nothing else; tells whether git was.
pub(crate) fn check_started(calls: &str, name: &str) -> bool {
    let own = env!("CARGO_BIN_EXE_proem");
    let programs = programs(calls);
    let foreign: Vec<&&str> =
        programs.iter().filter(|program| **program != own && !is_git(program)).collect();
    assert!(foreign.is_empty(), "{name}: starts {foreign:?}");
    assert!(programs.contains(&own), "{name}: control: programs are counted");
    programs.into_iter().any(is_git)
}

/// A profile that the workspace brings, with one template.
pub(crate) fn bring(path: &Path, template: &str) {
    let profile =
        format!("[[section]]\nid = \"base\"\ntemplate = {{ text = {template:?}, syntax = \"bracket\" }}\n");
    fs::create_dir_all(path.join(".proem/profiles")).unwrap();
    fs::write(path.join(".proem/profiles/theirs.toml"), profile).unwrap();
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}
